"""A proposal as octavo.yaml: with remarks for whoever goes on writing it, and never with a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from octavo.cli._words import said
from octavo.cli.proposal.agents import AUTHOR, ProposedAgent
from octavo.cli.proposal.folder import Look
from octavo.cli.proposal.parts import DRAFTS, Parts
from octavo.sources.catalog.declaration import Segments
from octavo.sources.kinds import AGENT, DOC, FOLDERS, ORG, SKILL, SOP

_CHANGING: Final = ("write", "edit", "move", "copy", "delete", "create_directory", "undo")
_PLAIN: Final = re.compile(r"[A-Za-z_./][\w./-]*", re.ASCII)
_MEANT: Final = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n", ".inf", ".nan"))
_WIDTH: Final = 100
_ABOUT: Final = {
    SOP: "init.of_sop", DOC: "init.of_doc", SKILL: "init.of_skill", AGENT: "init.of_agent",
    ORG: "init.of_org",
}  # fmt: skip


class Proposal(Struct, frozen=True):
    look: Look
    parts: Parts
    agents: Sequence[ProposedAgent]
    write: bool = False

    @property
    def text(self) -> str:
        return "\n".join(_lines(self)) + "\n"


def _lines(of: Proposal) -> Iterator[str]:
    yield f"# {said('init.head', folder=_on_one_line(of.look.base.name))}"
    yield f"# {said('init.head_check')}"
    yield "version: 1"
    yield ""
    yield "sources:"
    yield from _sources(of)
    yield ""
    yield "agents:"
    yield f"  # {said('init.keys')}"
    yield f"  # {said('init.keys_stdio')}"
    yield from (f"  {_word(agent.name)}: {{}}" for agent in of.agents)
    if of.write:
        yield f"  {AUTHOR}: {{}}"
    yield ""
    yield "policy:"
    yield from _rules(of)
    if of.parts.prompts:
        yield ""
        yield f"prompts: {{dirs: {_list(_path(one) for one in of.parts.prompts)}}}"
    elif any(one[0] == "prompts" for one in of.look.files):
        yield ""
        yield f"# {said('init.no_prompts')}"
        yield "prompts: {dirs: []}"


def _sources(of: Proposal) -> Iterator[str]:
    parts = of.parts
    if parts.catalogs:
        yield f"  # {said('init.store')}"
        hide = _hidden(of)
        yield f"  handbook: {{kind: {FOLDERS}, roots: [.], {f'hide: {_list(hide)}, ' if hide else ''}expose: false}}"
    for part in parts.catalogs:
        yield f"  # {said(_ABOUT[part.kind])}"
        apart = [*part.without, *([(DRAFTS,)] if of.write and not part.path else [])]
        without = f", without: {_list('/'.join(one) for one in apart)}" if apart else ""
        path = _word("/".join(part.path))
        yield f"  {part.source}: {{kind: {part.kind}, store: handbook, path: {path}{without}}}"
    if parts.files:
        yield f"  # {said('init.of_files')}"
        whole = () in parts.files
        hidden = [*_hidden(of), *(["octavo.yaml"] if whole else [])]
        roots = _list(_path(one) for one in parts.files)
        every = ', extensions: ["*"]' if parts.every else ""
        yield f"  files: {{kind: {FOLDERS}, roots: {roots}{every}{f', hide: {_list(hidden)}' if hidden else ''}}}"
    if parts.attached:
        yield f"  # {said('init.of_attached', scheme=parts.beside)}"
        name, scheme = ("attachments", f", scheme: {parts.beside}") if parts.files else ("files", "")
        bundles = {part.path[0] for part in parts.catalogs if part.kind == SKILL and part.path}
        unseen = dict.fromkeys([*_hidden(of), *sorted(bundles), *parts.apart, *([DRAFTS] if of.write else [])])
        taken = f"extensions: {_list(parts.endings)}, hide: {_list(unseen)}"
        yield f"  {name}: {{kind: {FOLDERS}, roots: [.]{scheme}, {taken}}}"
    if of.write:
        yield f"  # {said('init.drafts', folder=DRAFTS)}"
        yield f"  {DRAFTS}: {{kind: {FOLDERS}, roots: [./{DRAFTS}], scheme: draft, write: true}}"


def _hidden(of: Proposal) -> list[str]:
    """What was not looked at is not served either."""
    used = {part.path[0] for part in of.parts.catalogs if part.path}
    dotted = sorted(of.look.hidden - used) if any(one.startswith(".") for one in used) else [".*"]
    return [*dotted, *sorted(of.look.passed)]


def _rules(of: Proposal) -> Iterator[str]:
    yield f"  # {said('init.rules')}"
    for agent in of.agents:
        yield f"  - who: {_word(agent.name)}"
        yield "    may: [list, read, search, watch]"
        yield from _patterns(agent.what)
    if of.write:
        yield f"  # {said('init.author')}"
        yield f"  - who: {AUTHOR}"
        yield "    may: [list, read, search, watch]"
        yield from _patterns([f"{scheme}://*" for scheme in (*of.parts.schemes, "draft")])
        yield f'  - {{who: {AUTHOR}, may: [write, delete], what: "draft://*"}}'
        yield f"  - who: {AUTHOR}"
        yield "    may: invoke"
        yield from _patterns([f"tool://{name}" for name in _CHANGING])
    if of.parts.prompts:
        yield f"  # {said('init.prompts')}"
        yield '  - {who: "*", may: render, what: "prompt://*"}'


def _patterns(patterns: Sequence[str]) -> Iterator[str]:
    line = f"    what: {_list(patterns)}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield "    what:"
    yield from (f"      - {_word(one)}" for one in patterns)


def _path(folder: Segments) -> str:
    return "/".join((".", *folder)) if folder else "."


def _list(words: Iterable[str]) -> str:
    return f"[{', '.join(map(_word, words))}]"


def _word(text: str) -> str:
    """Bare where YAML could mean nothing else by it."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _MEANT else json.dumps(text, ensure_ascii=False)


def _on_one_line(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text)
