"""DOCX, HWPX and ODT: what a reader of the document sees is what stands in the Markdown."""

import pytest
from tests.sources.documents import build
from tests.sources.documents.build import hwp_paragraph, hwp_text, listed, paragraph

from octavo.core.errors import InvalidParams
from octavo.sources._shared.documents.converter import Converter
from octavo.sources._shared.documents.model import ConvertedDocument

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F7")]


def cell(*paragraphs: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{''.join(paragraphs)}</w:tc>"


def row(*cells: str) -> str:
    return f"<w:tr>{''.join(cells)}</w:tr>"


async def test_headings_come_from_styles_by_name_by_base_and_by_outline(converter: Converter) -> None:
    body = (
        paragraph("예산 보고", style="1")
        + paragraph("배경", style="Section")
        + paragraph("Detail", properties='<w:outlineLvl w:val="2"/>')
        + paragraph("Text.")
    )
    document = await converter.convert(build.docx(body), build.DOCX)
    assert document == ConvertedDocument(
        "# 예산 보고\n\n## 배경\n\n### Detail\n\nText.\n", ("예산 보고", "배경", "Detail"), truncated=False
    )


async def test_lists_keep_their_marks_and_levels(converter: Converter) -> None:
    body = listed("가", 1) + listed("나", 1, 1) + listed("first", 2) + listed("second", 2) + listed("off", 0)
    document = await converter.convert(build.docx(body), build.DOCX)
    assert document.markdown == "- 가\n    - 나\n1. first\n2. second\n\noff\n"


async def test_tables_keep_merged_cells_bars_and_lines_in_their_places(converter: Converter) -> None:
    body = (
        "<w:tbl>"
        + row(cell(paragraph("항목"), properties='<w:gridSpan w:val="2"/>'), cell(paragraph("값")))
        + row(cell(paragraph("a|b"), paragraph("c")), cell(paragraph("x"), properties='<w:vMerge w:val="restart"/>'))
        + row(cell(paragraph("d")), cell(paragraph("hidden"), properties="<w:vMerge/>"), cell(paragraph("3")))
        + "</w:tbl>"
    )
    document = await converter.convert(build.docx(body), build.DOCX)
    assert document.markdown == "| 항목 |  | 값 |\n| --- | --- | --- |\n| a\\|b<br>c | x |  |\n| d |  | 3 |\n"


async def test_a_table_in_a_table_is_told_once(converter: Converter) -> None:
    inner = f"<w:tbl>{row(cell(paragraph('inner')))}</w:tbl>"
    document = await converter.convert(
        build.docx(f"<w:tbl>{row(cell(paragraph('outer'), inner, paragraph('')))}</w:tbl>"), build.DOCX
    )
    assert document.markdown == "| outer<br>inner |\n| --- |\n"


async def test_links_and_footnotes_are_kept(converter: Converter) -> None:
    body = (
        '<w:p><w:r><w:t>See </w:t></w:r><w:hyperlink r:id="L"><w:r><w:t>규정 [1]</w:t></w:r></w:hyperlink>'
        '<w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    )
    notes = f'<w:footnote w:id="2">{paragraph("각주입니다")}</w:footnote>'
    raw = build.docx(body, footnotes=notes, external={"L": "https://example.com/a_(b)"})
    document = await converter.convert(raw, build.DOCX)
    assert document.markdown == "See [규정 \\[1\\]](https://example.com/a_%28b%29)[^2]\n\n[^2]: 각주입니다\n"


async def test_deleted_text_is_gone_and_inserted_text_is_there(converter: Converter) -> None:
    body = (
        "<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
        "<w:r><w:tab/><w:t>x</w:t><w:br/><w:t>y</w:t></w:r></w:p>"
    )
    document = await converter.convert(build.docx(body), build.DOCX)
    assert document.markdown == "new\tx\ny\n"


async def test_a_text_box_follows_its_paragraph_and_is_not_told_twice(converter: Converter) -> None:
    box = f"<w:txbxContent>{paragraph('상자')}</w:txbxContent>"
    body = (
        f"<w:p><w:r><w:t>Anchor</w:t></w:r><w:r><mc:AlternateContent xmlns:mc='urn:mc'><mc:Choice>{box}</mc:Choice>"
        f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    document = await converter.convert(build.docx(body), build.DOCX)
    assert document.markdown == "Anchor\n\n상자\n"


async def test_text_that_looks_like_a_heading_or_a_fence_stays_text(converter: Converter) -> None:
    body = paragraph("# not a heading") + paragraph("```") + paragraph("#hashtag")
    document = await converter.convert(build.docx(body), build.DOCX)
    assert document == ConvertedDocument("\\# not a heading\n\n\\```\n\n#hashtag\n", (), truncated=False)


async def test_decomposed_hangul_is_composed(converter: Converter) -> None:
    document = await converter.convert(build.docx(paragraph("\u1112\u1161\u11ab\u1100\u1173\u11af")), build.DOCX)
    assert document.markdown == "한글\n"


async def test_hangul_outlines_lists_and_sections_in_order(converter: Converter) -> None:
    first = (
        hwp_paragraph(hwp_text("사업 개요"), style="2")
        + hwp_paragraph(hwp_text("추진 배경"), shape="1")
        + hwp_paragraph(hwp_text("글머리"), shape="2")
        + hwp_paragraph(hwp_text("하나"), shape="3")
        + hwp_paragraph(hwp_text("둘"), shape="3")
    )
    document = await converter.convert(build.hwpx(first, hwp_paragraph(hwp_text("Second section"))), build.HWPX)
    assert document == ConvertedDocument(
        "## 사업 개요\n\n# 추진 배경\n\n- 글머리\n1. 하나\n2. 둘\n\nSecond section\n",
        ("사업 개요", "추진 배경"),
        truncated=False,
    )


async def test_hangul_tables_footnotes_links_and_tabs(converter: Converter) -> None:
    def tc(column: int, text: str, span: int = 1) -> str:
        return (
            f'<hp:tc><hp:cellAddr colAddr="{column}" rowAddr="0"/><hp:cellSpan colSpan="{span}" rowSpan="1"/>'
            f"<hp:subList>{hwp_paragraph(hwp_text(text))}</hp:subList></hp:tc>"
        )

    table = f"<hp:tbl><hp:tr>{tc(0, '항목', 2)}{tc(2, '값')}</hp:tr><hp:tr>{tc(1, '나')}{tc(2, '3')}</hp:tr></hp:tbl>"
    note = f"<hp:ctrl><hp:footNote><hp:subList>{hwp_paragraph(hwp_text('각주'))}</hp:subList></hp:footNote></hp:ctrl>"
    link = (
        '<hp:ctrl><hp:fieldBegin type="HYPERLINK"><hp:parameters><hp:stringParam name="Command">'
        "https\\://example.com/x;1;0;0;</hp:stringParam></hp:parameters></hp:fieldBegin></hp:ctrl>"
    )
    body = (
        hwp_paragraph(f"<hp:run><hp:t>앞<hp:tab/>뒤</hp:t>{note}</hp:run>")
        + hwp_paragraph(f"<hp:run>{link}<hp:t>여기</hp:t><hp:ctrl><hp:fieldEnd/></hp:ctrl><hp:t> 끝</hp:t></hp:run>")
        + hwp_paragraph(f"<hp:run>{table}</hp:run>")
    )
    document = await converter.convert(build.hwpx(body), build.HWPX)
    assert document.markdown == (
        "앞\t뒤[^1]\n\n[여기](https://example.com/x) 끝\n\n"
        "| 항목 |  | 값 |\n| --- | --- | --- |\n|  | 나 | 3 |\n\n[^1]: 각주\n"
    )


async def test_hangul_fields_captions_and_tracked_changes(converter: Converter) -> None:
    field = '<hp:ctrl><hp:fieldBegin type="CLICK_HERE"/></hp:ctrl><hp:t>홍길동</hp:t><hp:ctrl><hp:fieldEnd/></hp:ctrl>'
    changed = "<hp:t>남은<hp:deleteBegin/> 지운<hp:deleteEnd/> 글</hp:t>"
    caption = hwp_paragraph('<hp:run><hp:t>표 </hp:t><hp:ctrl><hp:autoNum num="1" numType="TABLE"/></hp:ctrl></hp:run>')
    cells = f"<hp:tr><hp:tc><hp:subList>{hwp_paragraph(hwp_text('칸'))}</hp:subList></hp:tc></hp:tr>"
    table = f"<hp:tbl><hp:caption><hp:subList>{caption}</hp:subList></hp:caption>{cells}</hp:tbl>"
    body = hwp_paragraph(f"<hp:run>{field}{changed}</hp:run>") + hwp_paragraph(f"<hp:run>{table}</hp:run>")
    document = await converter.convert(build.hwpx(body), build.HWPX)
    assert document.markdown == "홍길동남은 글\n\n표 1\n\n| 칸 |\n| --- |\n"


async def test_an_encrypted_hangul_document_says_so(converter: Converter) -> None:
    with pytest.raises(InvalidParams, match="The HWPX is protected by a password"):
        await converter.convert(build.hwpx("", encrypted=True), build.HWPX)


async def test_open_document_text(converter: Converter) -> None:
    body = (
        '<text:h text:outline-level="2">제목</text:h><text:p>앞<text:s text:c="2"/>뒤'
        '<text:a xlink:href="https://example.com/">link</text:a><text:note><text:note-body><text:p>각주</text:p>'
        "</text:note-body></text:note></text:p>"
        "<text:list><text:list-item><text:p>가</text:p><text:list><text:list-item><text:p>나</text:p>"
        "</text:list-item></text:list></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>A</text:p></table:table-cell>"
        '<table:table-cell table:number-columns-repeated="2"/></table:table-row></table:table>'
    )
    document = await converter.convert(build.odt(body), build.ODT)
    assert document == ConvertedDocument(
        "## 제목\n\n앞  뒤[link](https://example.com/)[^1]\n\n- 가\n    - 나\n\n"
        "| A |  |  |\n| --- | --- | --- |\n\n[^1]: 각주\n",
        ("제목",),
        truncated=False,
    )
