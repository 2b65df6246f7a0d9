"""Files of each kind of catalog with nasty names, for the contract of every source."""

from __future__ import annotations

from typing import ClassVar

import pytest

from octavo.core.ports.source import Source
from octavo.core.ref import Ref
from octavo.sources.catalog import DECLARATIONS, Declaration
from octavo.testing.base import Suite

_SOP = "---\nid: sop-{0}\ntitle: 문서 {0}\nversion: 1.{0}.0\nstatus: active\ntags: [가, b]\n---\n# 본문 {0}\n"
_YAML = "id: x-{0}\nname: 이름 {0}\n"
_NASTY = ("one", "두 번째", "three %2F?", 'it\'s "quoted" & <tagged>', "#hash, [set] and *", "👩‍💻 emoji", "a@b")


class Catalog(Suite):
    declaration: ClassVar[Declaration]
    suffix: ClassVar[str] = ".md"

    def beside(self, path: str, name: str) -> str:
        return super().beside(path, name).removesuffix(".md") + self.suffix


class Sops(Catalog):
    """An address has exactly a function and a name."""

    declaration = DECLARATIONS["sop"]
    TREE = {f"{folder}/{name}.md": _SOP.format(n) for folder in ("brand", "재무") for n, name in enumerate(_NASTY)}


class Documents(Catalog):
    declaration = DECLARATIONS["doc"]
    TREE = {f"policies/{name}.md": _SOP.format(n) for n, name in enumerate(_NASTY)} | {
        "brand/x.md": "no front matter\n"
    }


class Skills(Catalog):
    declaration = DECLARATIONS["skill"]
    suffix = ".yml"
    TREE = {f"{folder}/{name}.yml": _YAML.format(n) for folder in ("brand", "hr") for n, name in enumerate(_NASTY)}


class Agents(Catalog):
    """An address is one name, so there are no folders."""

    declaration = DECLARATIONS["agent"]
    suffix = ".yml"
    TREE = {f"{name}.yml": _YAML.format(n) for n, name in enumerate(_NASTY)}


class Organisation(Catalog):
    declaration = DECLARATIONS["org"]
    suffix = ".yml"
    TREE = {f"functions/{name}.yml": _YAML.format(n) for n, name in enumerate(_NASTY)} | {
        "roles/lead.yml": "id: role-lead\nname: 팀장\n",
        "value-streams/collection-launch.yml": "id: vs-collection-launch\nname: Launch\n",
    }

    def ref(self, source: Source, path: str) -> Ref:
        folder, _, name = path.removesuffix(".yml").partition("/")
        return Ref.of("org", [{"functions": "function", "roles": "role"}.get(folder, "value-stream"), name])

    @property
    def folder(self) -> str:
        pytest.skip("the folders of the store have other names than the collections")

    test_1_listing_a_scope_gives_what_is_in_it_and_nothing_else = None  # for the same reason
