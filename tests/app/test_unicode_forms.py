"""Names are compared in one Unicode form, in whichever form somebody wrote them into the configuration."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Final, Literal, TypeAlias

import pytest
from tests.app.asking import ask

from octavo.app import Octavo
from octavo.app.configuration import load, load_text
from octavo.config.problems import ConfigError
from octavo.core.errors import Forbidden, NotFound, OctavoError

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F1")]

Form: TypeAlias = Literal["NFC", "NFD"]
FORMS: Final[tuple[Form, ...]] = ("NFC", "NFD")
FILES = ("비밀/x.md", "글.비밀", "열린/x.md", "문서/비밀/x.md", "문서/y.md", "직무/가/z.md")
# What a configuration says, and what is not there by it.
SAYS = (
    ("f: {kind: file, roots: [./hb], hide: [비밀]}", "file://비밀/x.md", "file://열린/x.md"),
    ("f: {kind: file, roots: [./hb], hide: ['비*']}", "file://비밀/x.md", "file://열린/x.md"),
    ("f: {kind: file, roots: [./hb], extensions: [비밀]}", "file://열린/x.md", "file://글.비밀"),
    ("f: {kind: file, roots: [./hb], expose: false}, d: {kind: doc, store: f, path: 문서, without: [비밀]}",
     "doc://비밀/x", "doc://y"),
    ("f: {kind: file, roots: [./hb], expose: false, hide: [비밀]}, d: {kind: doc, store: f, path: 문서}",
     "doc://비밀/x", "doc://y"),
    ("f: {kind: file, roots: [./hb], expose: false}, d: {kind: doc, store: f, path: '', files: '직무/{a}/{name}.md'}",
     "doc://열린/x", "doc://직무/가/z"),
)  # fmt: skip


def handbook(base: Path, form: Form) -> Path:
    for name in FILES:
        file = base / "hb" / unicodedata.normalize(form, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("# X\n", encoding="utf-8")
    return base / "octavo.yaml"


def written(says: str, form: Form) -> str:
    return unicodedata.normalize(form, f"version: 1\nsources: {{{says}}}\n")


@pytest.mark.parametrize("on_disk", FORMS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", range(len(SAYS)))
async def test_a_name_in_the_configuration_means_both_forms(
    tmp_path: Path, number: int, form: Form, on_disk: Form
) -> None:
    says, absent, there = SAYS[number]
    file = handbook(tmp_path, on_disk)
    async with Octavo(load_text(written(says, form), file=file, environ={})) as octavo:
        with pytest.raises((NotFound, Forbidden)):
            await ask(octavo, None, "read", absent)
        assert (await ask(octavo, None, "read", there)).body == "# X\n"


async def test_a_name_of_an_agent_or_role_is_one_in_both_forms(tmp_path: Path) -> None:
    file = handbook(tmp_path, "NFC")
    rule = "  - {{who: {0}, may: '*', what: 'file://비밀/*', effect: deny}}\n"
    agents = "agents: {대리: {roles: [인사]}}\npolicy:\n  - {who: '*', may: '*', what: '**'}\n"
    for who in ("대리", "role:인사"):
        text = f"version: 1\nsources: {{f: {{kind: file, roots: [./hb]}}}}\n{agents}"
        text += unicodedata.normalize("NFD", rule.format(who))
        file.write_text(text, encoding="utf-8")
        async with Octavo(load(file, environ={})) as octavo:
            with pytest.raises(OctavoError):
                await ask(octavo, "대리", "read", "file://비밀/x.md")
            assert (await ask(octavo, "대리", "read", "file://열린/x.md")).body == "# X\n"


@pytest.mark.parametrize("suffix", ["yaml", "toml"])
def test_one_name_in_two_forms_is_given_twice(tmp_path: Path, suffix: str) -> None:
    handbook(tmp_path, "NFC")
    other = unicodedata.normalize("NFD", "문서")
    if suffix == "yaml":
        text = f"version: 1\nsources:\n  문서: {{kind: file, roots: [./hb]}}\n  {other}: {{kind: memory, scheme: x}}\n"
    else:
        text = (
            f'version = 1\n[sources."문서"]\nkind = "file"\nroots = ["./hb"]\n'
            f'[sources."{other}"]\nkind = "memory"\nscheme = "x"\n'
        )
    file = tmp_path / f"octavo.{suffix}"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="is given twice"):
        load(file, environ={})
