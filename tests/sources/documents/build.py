"""Real documents, written with the standard library."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

OOXML = "application/vnd.openxmlformats-officedocument"
DOCX = f"{OOXML}.wordprocessingml.document"
PPTX = f"{OOXML}.presentationml.presentation"
XLSX = f"{OOXML}.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODT = "application/vnd.oasis.opendocument.text"
HWPX = "application/hwp+zip"
NOTEBOOK = "application/x-ipynb+json"
PDF = "application/pdf"

RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_HP = "http://www.hancom.co.kr/hwpml/2011/paragraph"
_HH = "http://www.hancom.co.kr/hwpml/2011/head"
_HS = "http://www.hancom.co.kr/hwpml/2011/section"
_OPF = "http://www.idpf.org/2007/opf/"


def archive(members: Mapping[str, str | bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return packed.getvalue()


def relations(*each: tuple[str, str, str], external: Sequence[str] = ()) -> str:
    """Of (id, kind, target)."""
    written = (
        f'<Relationship Id="{key}" Type="{RELATIONS}/{kind}" Target="{escape(target)}" '
        f'TargetMode="{"External" if key in external else "Internal"}"/>'
        for key, kind, target in each
    )
    return f'<Relationships xmlns="{_PACKAGE}">{"".join(written)}</Relationships>'


ROOT = relations(("rId1", "officeDocument", "word/document.xml"))
NUMBERING = f"""<w:numbering xmlns:w="{_W}">
<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>
<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
</w:numbering>"""
STYLES = f"""<w:styles xmlns:w="{_W}">
<w:style w:styleId="1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="Section"><w:name w:val="Our section"/><w:basedOn w:val="2"/></w:style>
<w:style w:styleId="2"><w:name w:val="제목 2"/></w:style></w:styles>"""


def paragraph(text: str, *, style: str = "", properties: str = "") -> str:
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{styled}{properties}</w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def listed(text: str, number: int, level: int = 0) -> str:
    numbered = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return paragraph(text, properties=numbered)


def docx(body: str, *, footnotes: str = "", external: Mapping[str, str] | None = None) -> bytes:
    links = external or {}
    return archive({
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": ROOT,
        "word/_rels/document.xml.rels": relations(
            ("s", "styles", "styles.xml"),
            ("n", "numbering", "numbering.xml"),
            ("f", "footnotes", "footnotes.xml"),
            *((key, "hyperlink", target) for key, target in links.items()),
            external=[*links],
        ),
        "word/document.xml": f'<w:document xmlns:w="{_W}" xmlns:r="{RELATIONS}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": STYLES,
        "word/numbering.xml": NUMBERING,
        "word/footnotes.xml": f'<w:footnotes xmlns:w="{_W}">{footnotes}</w:footnotes>',
    })  # fmt: skip


def shape(kind: str, *lines: str) -> str:
    placeholder = f'<p:ph type="{kind}"/>' if kind else ""
    text = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in lines)
    return (
        f"<p:sp><p:nvSpPr><p:nvPr>{placeholder}</p:nvPr></p:nvSpPr><p:txBody>{text}</p:txBody></p:sp>"
    )  # fmt: skip


def pptx(slides: Sequence[str], notes: Mapping[int, str] | None = None) -> bytes:
    """Slides are shapes; the notes are by the number of the slide."""
    spoken = notes or {}
    head = f'xmlns:p="{_P}" xmlns:a="{_A}" xmlns:r="{RELATIONS}"'
    members = {
        "_rels/.rels": relations(("rId1", "officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {head}><p:sldIdLst>"
        + "".join(f'<p:sldId id="{256 + index}" r:id="r{index}"/>' for index in range(len(slides)))
        + "</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            *((f"r{index}", "slide", f"slides/slide{index + 1}.xml") for index in range(len(slides)))
        ),
    }
    for number, shapes in enumerate(slides, 1):
        members[f"ppt/slides/slide{number}.xml"] = (
            f"<p:sld {head}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
        if number in spoken:
            members[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(
                ("n", "notesSlide", f"../notesSlides/notes{number}.xml")
            )
            members[f"ppt/notesSlides/notes{number}.xml"] = (
                f"<p:notes {head}><p:cSld><p:spTree>{shape('body', spoken[number])}{shape('sldNum', '7')}"
                "</p:spTree></p:cSld></p:notes>"
            )
    return archive(members)


def rows(*each: Sequence[str | float | None]) -> str:
    """Texts stand inline; None leaves a gap."""
    written: list[str] = []
    for number, values in enumerate(each, 1):
        cells: list[str] = []
        for column, value in enumerate(values):
            place = f"{chr(65 + column)}{number}"
            if isinstance(value, str):
                cells.append(f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>')
            elif value is not None:
                cells.append(f'<c r="{place}"><v>{value}</v></c>')
        written.append(f'<row r="{number}">{"".join(cells)}</row>')
    return "".join(written)


def xlsx(sheets: Mapping[str, str], *, strings: Sequence[str] = ()) -> bytes:
    """Style 1 is a date, style 2 a date by a format of its own."""
    numbered = list(enumerate(sheets.items(), 1))
    members = {
        "_rels/.rels": relations(("rId1", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{_S}" xmlns:r="{RELATIONS}"><sheets>'
        + "".join(f'<sheet name="{escape(name)}" sheetId="{n}" r:id="r{n}"/>' for n, (name, _) in numbered)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            ("t", "sharedStrings", "sharedStrings.xml"),
            ("s", "styles", "styles.xml"),
            *((f"r{n}", "worksheet", f"/xl/worksheets/sheet{n}.xml") for n, _ in numbered),
        ),
        "xl/sharedStrings.xml": f'<sst xmlns="{_S}">'
        + "".join(f"<si><r><t>{escape(text)}</t></r><rPh><t>reading</t></rPh></si>" for text in strings)
        + "</sst>",
        "xl/styles.xml": f'<styleSheet xmlns="{_S}"><numFmts>'
        '<numFmt numFmtId="164" formatCode="yyyy&quot;년&quot;m&quot;월&quot;"/>'
        '<numFmt numFmtId="165" formatCode="0.0&quot;days&quot;"/></numFmts><cellXfs><xf numFmtId="0"/>'
        '<xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>',
    }
    for n, (_, data) in numbered:
        members[f"xl/worksheets/sheet{n}.xml"] = f'<worksheet xmlns="{_S}"><sheetData>{data}</sheetData></worksheet>'
    return archive(members)


def hwp_paragraph(inner: str, *, style: str = "0", shape: str = "0") -> str:
    return f'<hp:p styleIDRef="{style}" paraPrIDRef="{shape}">{inner}</hp:p>'


def hwp_text(text: str) -> str:
    return f"<hp:run><hp:t>{escape(text)}</hp:t></hp:run>"


def hwpx(*sections: str, encrypted: bool = False) -> bytes:
    """Style 2 is an outline; the shapes of paragraphs are 1 outline, 2 bullet, 3 number."""
    kinds = ("NONE", "OUTLINE", "BULLET", "NUMBER")
    members = {
        "mimetype": HWPX,
        "META-INF/manifest.xml": f"<manifest>{'<encryption-data/>' if encrypted else ''}</manifest>",
        "Contents/header.xml": f'<hh:head xmlns:hh="{_HH}"><hh:refList>'
        + "".join(
            f'<hh:paraPr id="{key}"><hh:heading type="{kind}" level="0"/></hh:paraPr>' for key, kind in enumerate(kinds)
        )
        + '<hh:styles><hh:style id="0" name="바탕글"/><hh:style id="2" name="개요 2" engName="Outline 2"/></hh:styles>'
        "</hh:refList></hh:head>",
        "Contents/content.hpf": f'<opf:package xmlns:opf="{_OPF}"><opf:manifest>'
        + "".join(f'<opf:item id="s{n}" href="Contents/section{n}.xml"/>' for n in range(len(sections)))
        + "</opf:manifest><opf:spine>"
        + "".join(f'<opf:itemref idref="s{n}"/>' for n in range(len(sections)))
        + "</opf:spine></opf:package>",
    }
    for n, section in enumerate(sections):
        members[f"Contents/section{n}.xml"] = f'<hs:sec xmlns:hs="{_HS}" xmlns:hp="{_HP}">{section}</hs:sec>'
    return archive(members)


def odt(body: str) -> bytes:
    spaces = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"' for short in ("office", "text", "table")
    )
    content = (
        f'<office:document-content {spaces} xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    return archive({"mimetype": ODT, "content.xml": content})


def ods(cells: Sequence[Sequence[str]]) -> bytes:
    spaces = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"' for short in ("office", "text", "table")
    )
    table = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'
            for cell in row
        )
        + "</table:table-row>"
        for row in cells
    )
    return archive({
        "mimetype": ODS,
        "META-INF/manifest.xml": "<manifest/>",
        "content.xml": f"<office:document-content {spaces}><office:body><office:spreadsheet>"
        f'<table:table table:name="예산">{table}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>",
    })  # fmt: skip


def notebook(*cells: Mapping[str, object]) -> bytes:
    about = {"language_info": {"name": "python"}}
    return json.dumps({"nbformat": 4, "metadata": about, "cells": cells}, ensure_ascii=False).encode("utf-8")


HANGUL = "가나다 예산"


def pdf(*page_contents: bytes, title: str = "", link: str = "", encrypted: bool = False) -> bytes:
    """Pages by their content streams. /F1 is Helvetica, /F2 maps the codes 1, 2, ... to the letters of HANGUL."""
    letters = "".join(f"<{code:04x}> <{ord(letter):04x}>\n" for code, letter in enumerate(HANGUL, 1))
    mapping = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        f"1 begincodespacerange <0000> <ffff> endcodespacerange\n{len(HANGUL)} beginbfchar\n{letters}endbfchar\n"
        "endcmap end end"
    ).encode("ascii")  # fmt: skip
    count = len(page_contents)
    first = 10  # the number of the first page's object
    pages = " ".join(f"{first + 2 * index} 0 R" for index in range(count))
    target = f"<</Title {_pdf_text(title)} /Parent 8 0 R /Dest [{first} 0 R /Fit]>>"
    objects: dict[int, bytes] = {
        1: b"<</Type /Catalog /Pages 2 0 R" + (b" /Outlines 8 0 R" if title else b"") + b">>",
        2: f"<</Type /Pages /Kids [{pages}] /Count {count}>>".encode("ascii"),
        3: b"<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>",
        4: b"<</Type /Font /Subtype /Type0 /BaseFont /Batang /Encoding /Identity-H /DescendantFonts [5 0 R] "
        b"/ToUnicode 6 0 R>>",
        5: b"<</Type /Font /Subtype /CIDFontType2 /BaseFont /Batang /DW 1000 /CIDToGIDMap /Identity "
        b"/CIDSystemInfo <</Registry (Adobe) /Ordering (Identity) /Supplement 0>> /FontDescriptor 7 0 R>>",
        6: _stream(mapping),
        7: b"<</Type /FontDescriptor /FontName /Batang /Flags 4 /FontBBox [0 -200 1000 800] /Ascent 800 /Descent -200 "
        b"/CapHeight 700 /StemV 80 /ItalicAngle 0>>",
        8: b"<</Type /Outlines /First 9 0 R /Last 9 0 R /Count 1>>",
        9: target.encode("ascii"),
    }
    annotation = f" /Annots [<</Type /Annot /Subtype /Link /Rect [0 0 9 9] /A <</S /URI /URI ({link})>>>>]"
    for index, content in enumerate(page_contents):
        number = first + 2 * index
        objects[number] = (
            f"<</Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {number + 1} 0 R "
            f"/Resources <</Font <</F1 3 0 R /F2 4 0 R>>>>{annotation if link else ''}>>"
        ).encode("ascii")
        objects[number + 1] = _stream(content)
    return _pdf_file(objects, encrypted)


def line(text: str, y: int, size: int = 12) -> bytes:
    return f"BT /F1 {size} Tf 72 {y} Td ({text}) Tj ET\n".encode("ascii")


def hangul_line(y: int, size: int = 12) -> bytes:
    codes = "".join(f"{code:04x}" for code in range(1, len(HANGUL) + 1))
    return f"BT /F2 {size} Tf 72 {y} Td <{codes}> Tj ET\n".encode("ascii")


def _pdf_text(text: str) -> str:
    return f"<feff{text.encode('utf-16-be').hex()}>"


def _stream(content: bytes) -> bytes:
    packed = zlib.compress(content)
    head = f"<</Length {len(packed)} /Filter /FlateDecode>>\nstream\n".encode("ascii")
    return head + packed + b"\nendstream"


def _pdf_file(objects: Mapping[int, bytes], encrypted: bool) -> bytes:
    out = bytearray(b"%PDF-1.7\n")
    places: dict[int, int] = {}
    for number, body in objects.items():
        places[number] = len(out)
        out += f"{number} 0 obj\n".encode("ascii") + body + b"\nendobj\n"
    table = len(out)
    size = max(objects) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n".encode("ascii")
    for number in range(1, size):
        out += f"{places[number]:010d} 00000 n \n".encode("ascii")
    key = "00" * 32
    locked = f" /Encrypt <</Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <{key}> /U <{key}>>> /ID [<00><00>]"
    out += f"trailer <</Size {size} /Root 1 0 R{locked if encrypted else ''}>>\n".encode("ascii")
    out += f"startxref\n{table}\n%%EOF\n".encode("ascii")
    return bytes(out)
