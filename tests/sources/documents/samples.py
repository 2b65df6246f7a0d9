"""One small document of each kind, in Korean and English, and which extra reads it."""

from importlib.util import find_spec
from typing import NamedTuple

import pytest
from tests.sources.documents import build


class Sample(NamedTuple):
    mime: str
    raw: bytes
    module: str = ""

    @property
    def readable(self) -> bool:
        return not self.module or find_spec(self.module) is not None


needs_pdf = pytest.mark.skipif(find_spec("pypdfium2") is None, reason="needs the extra pdf")
needs_sheets = pytest.mark.skipif(find_spec("python_calamine") is None, reason="needs the extra sheets")
needs_images = pytest.mark.skipif(find_spec("PIL") is None, reason="needs the extra images")

SAMPLES = {
    "docx": Sample(
        build.DOCX,
        build.docx(
            build.paragraph("예산 보고", style="1")
            + build.paragraph("The budget of 2025.")
            + build.listed("하나", 1)
            + "<w:tbl><w:tr><w:tc>"
            + build.paragraph("항목")
            + "</w:tc></w:tr></w:tbl>"
        ),
    ),
    "pptx": Sample(
        build.PPTX,
        build.pptx([build.shape("title", "예산") + build.shape("body", "Revenue", "비용")], {1: "천천히 말한다"}),
    ),
    "xlsx": Sample(build.XLSX, build.xlsx({"예산": build.rows(["항목", "Value"], ["가", 1.5])}, strings=["x"])),
    "hwpx": Sample(
        build.HWPX,
        build.hwpx(
            build.hwp_paragraph(build.hwp_text("개요"), style="2") + build.hwp_paragraph(build.hwp_text("본문 text"))
        ),
    ),
    "odt": Sample(build.ODT, build.odt("<text:h>제목</text:h><text:p>Text</text:p>")),
    "ods": Sample(build.ODS, build.ods([["항목", "Value"], ["가", "1"]]), "python_calamine"),
    "notebook": Sample(
        build.NOTEBOOK,
        build.notebook(
            {"cell_type": "markdown", "source": "# 분석"},
            {"cell_type": "code", "source": "1 + 1", "outputs": [{"data": {"text/plain": "2"}}]},
        ),
    ),
    "pdf": Sample(
        build.PDF,
        build.pdf(build.line("Budget", 780, 24) + build.line("of 2025", 700) + build.hangul_line(650)),
        "pypdfium2",
    ),
}
