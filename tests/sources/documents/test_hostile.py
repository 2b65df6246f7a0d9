"""Documents of strangers: bombs, entities, damage, and paths that lead elsewhere."""

import io
import os
import struct
import zipfile

import pytest
from tests.sources.documents import build, fuzz
from tests.sources.documents.build import paragraph
from tests.sources.documents.samples import SAMPLES

from octavo.core.errors import InvalidParams, TooLarge
from octavo.sources._shared.documents.converter import Converter
from octavo.sources._shared.documents.model import ConversionLimits

pytestmark = pytest.mark.anyio

FUZZ = int(os.environ.get("OCTAVO_FUZZ_DOCUMENTS", "300"))
MIB = 1 << 20


def document(xml: str | bytes) -> bytes:
    return build.archive({"_rels/.rels": build.ROOT, "word/document.xml": xml})


async def test_an_archive_that_declares_too_much_is_refused(converter: Converter) -> None:
    """The second is small in all, and blown up beyond what any document is."""
    async with Converter(ConversionLimits(unpacked_bytes=MIB)) as strict:
        with pytest.raises(TooLarge, match="unpacks to"):
            await strict.convert(document(os.urandom(MIB) + b"x"), build.DOCX)
    with pytest.raises(TooLarge, match="unpacks to"):
        await converter.convert(document(bytes(32 * MIB)), build.DOCX)


async def test_an_archive_that_declares_less_than_it_holds_gives_no_more_than_that(converter: Converter) -> None:
    raw = bytearray(document(b"<a>" + b" " * 2 * MIB + b"</a>"))
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = raw.rindex(mark)
        raw[at + place : at + place + 4] = struct.pack("<I", 10)
    with pytest.raises(InvalidParams, match="Not a readable DOCX: it is damaged or cut off"):
        await converter.convert(bytes(raw), build.DOCX)


async def test_one_member_read_over_and_over_counts_every_time() -> None:
    """A relationship costs a few bytes, the part that it names is unpacked again for each."""
    slides = '<sldId r:id="s"/>' * 40
    head = f'xmlns:r="{build.RELATIONS}"'
    raw = build.archive({
        "_rels/.rels": build.relations(("r", "officeDocument", "p.xml")),
        "p.xml": f"<p {head}><sldIdLst>{slides}</sldIdLst></p>",
        "_rels/p.xml.rels": build.relations(("s", "slide", "s.xml")),
        "s.xml": b"<s>" + os.urandom(50_000).hex().encode() + b"</s>",
    })  # fmt: skip
    async with Converter(ConversionLimits(unpacked_bytes=MIB)) as strict:
        with pytest.raises(TooLarge, match="unpacks to more than"):
            await strict.convert(raw, build.PPTX)


async def test_an_archive_of_countless_members_is_refused(converter: Converter) -> None:
    with pytest.raises(TooLarge, match="10001 members"):
        await converter.convert(build.archive({str(number): b"" for number in range(10_001)}), build.DOCX)


@pytest.mark.parametrize(
    "xml",
    [
        '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><document><body>&b;</body></document>',
        '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><document><body>&x;</body></document>',
        '<!DOCTYPE d SYSTEM "http://127.0.0.1:9/d.dtd"><document><body/></document>',
        "<!DOCTYPE d><document><body/></document>".encode("utf-16"),
    ],
)
async def test_document_types_and_entities_are_refused(converter: Converter, xml: str | bytes) -> None:
    with pytest.raises(InvalidParams, match="Not a readable DOCX: it declares a document type or entities"):
        await converter.convert(document(xml), build.DOCX)


async def test_xml_nested_without_end_is_refused(converter: Converter) -> None:
    deep = "<x>" * 100_000 + "</x>" * 100_000
    with pytest.raises(InvalidParams, match="nested too deeply"):
        await converter.convert(document(f"<document><body>{deep}</body></document>"), build.DOCX)


async def test_json_nested_without_end_is_refused(converter: Converter) -> None:
    raw = b'{"cells": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    with pytest.raises(InvalidParams, match="Not a readable notebook"):
        await converter.convert(raw, build.NOTEBOOK)


async def test_nested_tables_of_any_depth_are_survived(converter: Converter) -> None:
    nested = paragraph("core")
    for _ in range(60):
        nested = f"<w:tbl><w:tr><w:tc>{nested}</w:tc></w:tr></w:tbl>"
    assert "core" in (await converter.convert(build.docx(nested), build.DOCX)).markdown


async def test_a_table_of_countless_columns_is_cut_not_built(converter: Converter) -> None:
    spans = "".join(f'<w:tc><w:tcPr><w:gridSpan w:val="9999999"/></w:tcPr>{paragraph("x")}</w:tc>' for _ in range(100))
    markdown = (await converter.convert(build.docx(f"<w:tbl><w:tr>{spans}</w:tr></w:tbl>"), build.DOCX)).markdown
    assert len(markdown) < 100_000


async def test_relations_that_lead_out_of_the_package_lead_nowhere(converter: Converter) -> None:
    raw = build.archive({
        "_rels/.rels": build.relations(("r", "officeDocument", "../../../../etc/passwd")),
        "../../etc/passwd": "<document><body/></document>",
    })  # fmt: skip
    with pytest.raises(InvalidParams, match="Not a readable DOCX: it has no main part"):
        await converter.convert(raw, build.DOCX)


@pytest.mark.parametrize("target", ["file:///etc/passwd", "javascript:alert(1)", "\\\\host\\share", "data:text/html,x"])
async def test_links_that_nobody_should_follow_are_text_only(converter: Converter, target: str) -> None:
    body = '<w:p><w:hyperlink r:id="L"><w:r><w:t>here</w:t></w:r></w:hyperlink></w:p>'
    converted = await converter.convert(build.docx(body, external={"L": target}), build.DOCX)
    assert converted.markdown == "here\n"


@pytest.mark.parametrize("name", SAMPLES)
async def test_what_is_damaged_or_of_another_kind_says_so(converter: Converter, name: str) -> None:
    mime, raw, _ = sample = SAMPLES[name]
    if not sample.readable:
        pytest.skip(f"{sample.module} is not installed")
    for wrong in (b"", b"hello", b"\x00" * 1000, raw[: len(raw) // 2], build.archive({"x": "y"})):
        with pytest.raises(InvalidParams, match="Not a readable ") as refused:
            await converter.convert(wrong, mime)
        assert "/" not in refused.value.message and "Error" not in refused.value.message


async def test_office_documents_under_a_password_say_so(converter: Converter) -> None:
    compound = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512)
    with pytest.raises(InvalidParams, match="The DOCX is protected by a password"):
        await converter.convert(compound + "EncryptedPackage".encode("utf-16-le"), build.DOCX)
    with pytest.raises(InvalidParams, match="old binary format; save it in the present one"):
        await converter.convert(compound, build.XLSX)


async def test_an_encrypted_member_says_so(converter: Converter) -> None:
    raw = bytearray(document("<document><body/></document>"))
    for at, place in ((raw.rindex(b"PK\x03\x04"), 6), (raw.rindex(b"PK\x01\x02"), 8)):
        raw[at + place] |= 1
    assert zipfile.ZipFile(io.BytesIO(raw)).infolist()[-1].flag_bits & 1
    with pytest.raises(InvalidParams, match="protected by a password"):
        await converter.convert(bytes(raw), build.DOCX)


async def test_more_bytes_than_are_read_are_refused() -> None:
    async with Converter(ConversionLimits(input_bytes=10)) as converter:
        with pytest.raises(TooLarge, match="11 bytes; at most 10"):
            await converter.convert(b"x" * 11, build.DOCX)


async def test_damage_at_random_gives_a_document_or_a_typed_error(converter: Converter) -> None:
    """`OCTAVO_FUZZ_DOCUMENTS=20000`, or the command in `fuzz`, make it long."""
    outcomes = await fuzz.run(FUZZ, seed=20251115)
    assert outcomes["Document"] and outcomes["InvalidParams"], outcomes
    assert sum(outcomes.values()) == FUZZ
    sample = SAMPLES["docx"]
    assert (await converter.convert(sample.raw, sample.mime)).parts == ("예산 보고",)
