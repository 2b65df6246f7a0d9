"""PDF, slides, sheets and notebooks: documents with parts, and the choice of some of them."""

import pytest
from tests.sources.documents import build
from tests.sources.documents.build import hangul_line, line, rows, shape
from tests.sources.documents.samples import SAMPLES, needs_pdf, needs_sheets

from octavo.core.errors import InvalidParams
from octavo.sources._shared.documents.converter import Converter
from octavo.sources._shared.documents.model import ConversionLimits, ConvertedDocument

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F7")]

QUARTERS = build.xlsx({"Q1": rows(["항목", "값"], ["가", 1], ["나", 2.5]), "Q2 실적": rows(["x"])})


@needs_pdf
async def test_pdf_pages_with_headings_paragraphs_links_and_hangul(converter: Converter) -> None:
    first = line("Annual report", 780, 24) + line("One line", 740) + line("and the next", 726) + hangul_line(650)
    raw = build.pdf(first, line("Second page", 700), title="예산 개요", link="https://example.com/x")
    document = await converter.convert(raw, build.PDF)
    assert document == ConvertedDocument(
        "<!-- page 1 -->\n\n# Annual report\n\nOne line\nand the next\n\n가나다 예산\n\nLinks: <https://example.com/x>\n\n"
        "<!-- page 2 -->\n\nSecond page\n\nLinks: <https://example.com/x>\n",
        ("Page 1: 예산 개요", "Page 2"),
        truncated=False,
    )


@needs_pdf
async def test_chosen_pages_come_once_and_in_order(converter: Converter) -> None:
    raw = build.pdf(*(line(f"This is {number}", 700) for number in range(1, 8)))
    document = await converter.convert(raw, build.PDF, pages="7, 2-3,3")
    assert document.markdown == "".join(f"<!-- page {n} -->\n\nThis is {n}\n\n" for n in (2, 3, 7))[:-1]
    assert len(document.parts) == 7
    assert "page 6" in (await converter.convert(raw, build.PDF, pages="6-")).markdown


@needs_pdf
@pytest.mark.parametrize("pages", ["0", "3", "2-3", "2-1", "x", "", "1,,2", "-1", "9" * 30, "1-2-3"])
async def test_pages_that_are_not_there_are_refused_with_what_is(converter: Converter, pages: str) -> None:
    with pytest.raises(InvalidParams, match="the document has 2 pages"):
        await converter.convert(build.pdf(line("a", 700), line("b", 700)), build.PDF, pages=pages)


@needs_pdf
async def test_a_page_without_text_says_so(converter: Converter) -> None:
    document = await converter.convert(build.pdf(b"0 0 100 100 re f"), build.PDF)
    assert document.markdown == "<!-- page 1 -->\n\n(no text on this page; it may be a scanned image)\n"


@needs_pdf
async def test_an_encrypted_pdf_says_so(converter: Converter) -> None:
    with pytest.raises(InvalidParams, match="The PDF is protected by a password"):
        await converter.convert(build.pdf(line("secret", 700), encrypted=True), build.PDF)


async def test_slides_with_titles_lists_tables_and_notes(converter: Converter) -> None:
    table = (
        "<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>가</a:t></a:r></a:p>"
        "</a:txBody></a:tc></a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )
    first = shape("title", "1분기 실적") + shape("body", "Revenue", "비용") + table + shape("ftr", "footer")
    raw = build.pptx([first, shape("", "Free text")], {1: "천천히 말한다"})
    document = await converter.convert(raw, build.PPTX)
    assert document == ConvertedDocument(
        "## Slide 1: 1분기 실적\n\n- Revenue\n- 비용\n\n| 가 |\n| --- |\n\nNotes:\n\n천천히 말한다\n\n"
        "## Slide 2\n\nFree text\n",
        ("1분기 실적", "Slide 2"),
        truncated=False,
    )
    assert (await converter.convert(raw, build.PPTX, pages="2")).markdown == "## Slide 2\n\nFree text\n"
    with pytest.raises(InvalidParams, match="There is no slide 3: the document has 2 slides"):
        await converter.convert(raw, build.PPTX, pages="3")


async def test_every_sheet_is_a_table_under_its_name(converter: Converter) -> None:
    assert await converter.convert(QUARTERS, build.XLSX) == ConvertedDocument(
        "## Q1 (A1:B3)\n\n| 항목 | 값 |\n| --- | --- |\n| 가 | 1 |\n| 나 | 2.5 |\n\n"
        "## Q2 실적 (A1:A1)\n\n| x |\n| --- |\n",
        ("Q1", "Q2 실적"),
        truncated=False,
    )


@pytest.mark.parametrize("sheet", ["Q1", "q1", "1"])
async def test_a_range_of_a_sheet_by_name_or_number(converter: Converter, sheet: str) -> None:
    document = await converter.convert(QUARTERS, build.XLSX, sheet=sheet, range="b3:a2")
    assert document.markdown == "## Q1 (A2:B3)\n\n| 가 | 1 |\n| --- | --- |\n| 나 | 2.5 |\n"


async def test_wrong_sheets_and_ranges_are_refused_with_what_is_there(converter: Converter) -> None:
    with pytest.raises(InvalidParams, match="There is no such sheet; there are: 1 Q1, 2 Q2 실적"):
        await converter.convert(QUARTERS, build.XLSX, sheet="Q9")
    with pytest.raises(InvalidParams, match="range is written like A1:C9"):
        await converter.convert(QUARTERS, build.XLSX, sheet="Q1", range="A0")
    with pytest.raises(InvalidParams, match="A range needs a sheet; there are: 1 Q1"):
        await converter.convert(QUARTERS, build.XLSX, range="A1")
    empty = await converter.convert(QUARTERS, build.XLSX, sheet="Q1", range="X9:Z99")
    assert empty.markdown == "## Q1\n\n(no filled cells in this range)\n"


async def test_dates_truths_shared_strings_and_errors_as_a_reader_sees_them(converter: Converter) -> None:
    cells = (
        '<c r="A1" t="s"><v>0</v></c><c r="B1" s="1"><v>45000</v></c><c r="C1" s="2"><v>45000.5</v></c>'
        '<c r="D1" s="3"><v>4.5</v></c><c r="E1" t="b"><v>1</v></c><c r="F1" t="e"><v>#DIV/0!</v></c>'
        '<c r="G1" t="str"><f>A1</f><v>공유</v></c><c r="H1"><v>1E3</v></c>'
    )
    raw = build.xlsx({"S": f'<row r="1">{cells}</row>'}, strings=["공유"])
    document = await converter.convert(raw, build.XLSX)
    assert document.markdown.splitlines()[2] == (
        "| 공유 | 2023-03-15 | 2023-03-15 12:00:00 | 4.5 | TRUE | #DIV/0! | 공유 | 1000 |"
    )


async def test_two_cells_at_the_far_corners_of_a_sheet_are_a_small_table(converter: Converter) -> None:
    corners = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    document = await converter.convert(build.xlsx({"S": corners}), build.XLSX)
    assert document.markdown == "## S (A1:XFD1048576)\n\n| 1 |  |\n| --- | --- |\n|  | 2 |\n"


@needs_sheets
async def test_open_document_sheets(converter: Converter) -> None:
    document = await converter.convert(build.ods([["항목", "Value"], ["가", "1"]]), build.ODS, sheet="예산")
    assert document == ConvertedDocument(
        "## 예산 (A1:B2)\n\n| 항목 | Value |\n| --- | --- |\n| 가 | 1 |\n", ("예산",), truncated=False
    )


async def test_notebooks_with_code_outputs_errors_and_pictures(converter: Converter) -> None:
    outputs = [
        {"output_type": "stream", "text": ["한글\n", "```\n"]},
        {"output_type": "display_data", "data": {"text/plain": "<Figure>", "image/png": "aGk="}},
        {"output_type": "error", "traceback": ["\x1b[31mZeroDivisionError\x1b[0m"]},
    ]
    raw = build.notebook(
        {"cell_type": "markdown", "source": ["# 분석\n", "text"]},
        {"cell_type": "code", "source": "1 / 0", "outputs": outputs},
    )
    document = await converter.convert(raw, build.NOTEBOOK)
    assert document == ConvertedDocument(
        "# 분석\ntext\n\n```python\n1 / 0\n```\n\n````text\n한글\n```\n````\n\n```text\n<Figure>\n```\n\n"
        "[output: image/png]\n\n```text\nZeroDivisionError\n```\n",
        ("분석",),
        truncated=False,
    )


@pytest.mark.parametrize("name", ["docx", "hwpx", "notebook", "xlsx"])
async def test_documents_without_pages_refuse_pages(converter: Converter, name: str) -> None:
    with pytest.raises(InvalidParams, match="has no pages to choose from"):
        await converter.convert(SAMPLES[name].raw, SAMPLES[name].mime, pages="1")


async def test_documents_without_sheets_refuse_sheets(converter: Converter) -> None:
    with pytest.raises(InvalidParams, match="has no sheets to choose from; choose pages"):
        await converter.convert(SAMPLES["pptx"].raw, build.PPTX, sheet="1")


async def test_a_media_type_that_is_no_document_names_those_that_are(converter: Converter) -> None:
    with pytest.raises(InvalidParams, match="PDF, DOCX, PPTX, XLSX, XLS"):
        await converter.convert(b"hello", "text/plain")


@pytest.mark.parametrize("name", SAMPLES)
async def test_the_output_is_bounded_and_says_that_it_was_cut(name: str) -> None:
    mime, raw, _ = sample = SAMPLES[name]
    if not sample.readable:
        pytest.skip(f"{sample.module} is not installed")
    async with Converter() as generous:
        whole = (await generous.convert(raw, mime)).markdown
    for most in (0, 1, len(whole.encode()) // 2):
        async with Converter(ConversionLimits(output_bytes=most)) as converter:
            document = await converter.convert(raw, mime)
        assert document.truncated
        assert len(document.markdown.encode()) <= most + 1
        assert whole.startswith(document.markdown.rstrip("\n"))
