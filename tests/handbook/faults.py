"""A handbook with faults of every kind, made from the clean one of examples/maison-haru, always the same.

    python -m tests.handbook.faults DIRECTORY      make it, and list the faults

Each fault stands in files of its own, whose names begin with `fault-`: all others stay clean. What `octavo check` has
to say of it is known by file, line and a part of the message.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.handbook.copies import Copy

from octavo.cli.demo import make

EACH = 5  # of every kind, but for those that need time or room


class Fault(NamedTuple):
    kind: str
    file: str  # below the handbook
    line: int
    says: str


Seeded = Iterator[tuple[str, int, str]]  # file, line, part of the message
Seed = Callable[[Path, str, int], Seeded]
Change = Callable[[Copy], int]
KINDS: dict[str, tuple[Seed, int]] = {}


def seed(directory: Path) -> list[Fault]:
    """Makes the organisation in a new directory, with its faults. Same order, same files, every time."""
    make(directory)
    handbook = directory / "handbook"
    configure(directory / "octavo.yaml")
    return [
        Fault(kind, *found)
        for kind, (sow, count) in KINDS.items()
        for number in range(count)
        for found in sow(handbook, kind, number)
    ]


def configure(config: Path) -> None:
    """Agents of whom files say what is not so, both endings of YAML files, and time to read all of it."""
    text = config.read_text(encoding="utf-8")
    agents = "".join(f"  {name}: {{}}\n" for name in AGENTS)
    names = ", ".join(AGENTS)
    rules = (
        f'  - {{who: [{names}], may: [list, read], what: ["sop://brand/*", "skill://hr/*"]}}\n'
        f'  - {{who: [{names}], may: read, what: "sop://brand/newsletter", effect: deny, why: no}}\n'
    )
    text = text.replace(".yml,", ".yml, .yaml,").replace("per_principal: 50/s", "per_principal: off")
    text = text.replace("\nagents:\n", f"\nagents:\n{agents}")
    config.write_text(text.replace("\npolicy:\n", f"\npolicy:\n{rules}"), encoding="utf-8")


def kind(name: str, count: int = EACH) -> Callable[[Seed], Seed]:
    def known(sow: Seed) -> Seed:
        KINDS[name] = (sow, count)
        return sow

    return known


def changed(name: str, of: str, says: str, change: Change, count: int = EACH) -> None:
    """A kind that is one change in a copy of a clean file."""

    def sow(handbook: Path, kind: str, number: int) -> Seeded:
        copy = Copy(handbook, of, kind, number)
        line = change(copy)
        copy.write()
        yield copy.file, line, says

    KINDS[name] = (sow, count)


# What the front matter is


def _open_ended(copy: Copy) -> int:
    """The end is taken to be where the keys end: before the first heading, or an empty line."""
    copy.lines[1:] = [line for line in copy.lines[1:] if line.rstrip() not in ("---", "...")]
    return next(n for n, line in enumerate(copy.lines, 1) if not line.strip() or line.startswith("#"))


def _headless(copy: Copy) -> int:
    del copy.lines[0]
    return 1


def _absent(key: str) -> Change:
    def drop(copy: Copy) -> int:
        copy.drop(key)
        return 2 if copy.path.suffix == ".md" else 1

    return drop


changed("headless", "sop", "has no front matter", _headless)
changed("open-ended", "doc", "does not end with a line ---", _open_ended)
changed("no-yaml", "sop", "is no YAML", lambda one: one.behind("title", "  more: indented") - 1)
changed("tab", "skill", "a tab indents", lambda one: one.behind("version", "more:", "\t- tab") + 1)
changed("control", "skill", "holds a character that YAML does not allow", lambda one: one.put("version", "1\x07"))
changed("bomb", "agent", "anchor or alias", lambda one: one.end("a: &a [x, x]", "b: &b [*a, *a]", "c: [*b, *b]"))
changed("alias", "sop", "title needs quotes", lambda one: one.put("title", "*title"))
changed("tag", "role", "has a tag", lambda one: one.end("run: !!python/object/apply:os.system [id]"))
changed("merge", "function", "merge keys (<<) are not used", lambda one: one.end("<<: {id: other}"))
changed("second", "stream", "begins a second document", lambda one: one.end("---", "id: other"))
changed("twice", "doc", "id is given twice", lambda one: one.behind("title", "id: other"))
changed("deep", "skill", "is nested deeper", lambda one: one.end("deep: " + "[" * 40 + "]" * 40))
changed("many", "agent", "has more than 10000 values", lambda one: one.end(f"many: [{'0, ' * 11_000}0]"), 3)
changed("number", "function", "is a number that cannot be used", lambda one: one.end("budget: .inf"))
changed("odd-key", "role", "a key must be plain text", lambda one: one.end("? [a, b]", ": c"))
changed("long-matter", "sop", "front matter is too long", lambda one: one.put("note", "x" * 300_000) and 1, 3)
changed("wordy", "sop", "tags is too long to be listed", lambda one: one.put("tags", f"[{'tag, ' * 2_500}tag]"), 3)


@kind("no-keys")
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, "skill", kind, number)
    copy.lines = ["- a list", "- of things"]
    copy.write()
    yield copy.file, 1, "must be keys and values"


@kind("unreadable")
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, ("doc", "agent")[number % 2], kind, number)
    copy.write(bytes(range(256)) * 8)
    yield copy.file, 1, "is no text that can be read"


@kind("large-definition", 2)
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, "skill", kind, number)
    copy.end(*["# nothing but comments"] * 14_000)
    copy.write()
    yield copy.file, 1, "too large for a definition"


@kind("huge", 1)
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, "doc", kind, number)
    copy.write("\n".join(copy.lines).encode() + "\n길고 긴 문서. A very long document.".encode() * 1_300_000)
    assert copy.path.stat().st_size > 50 << 20
    yield copy.file, 1, "it is read in parts only"


# What the keys say

changed("no-id", "sop", "id is missing", _absent("id"))
changed("no-id-of-agent", "agent", "id is missing", _absent("id"))
changed("no-title", "doc", "title is missing", _absent("title"))
changed("no-version", "sop", "version is missing", _absent("version"))
changed("no-status", "sop", "status is missing", _absent("status"))
changed("no-name", "skill", "name is missing", _absent("name"))
changed("null-id", "role", "id is missing", lambda one: one.put("id", ""))
changed("empty", "doc", "title is missing", lambda one: one.put("title", "''"))
changed("status", "sop", "status must be one of: draft, active, deprecated", lambda one: one.put("status", "actve"))
changed("no-list", "sop", "tags must be a list", lambda one: one.put("tags", "brand"))
changed("no-words", "skill", "agents[1] must be text", lambda one: one.put("agents", "[agent-brand, [agent-hr]]"))
changed("no-mapping", "agent", "permissions must be keys and values", lambda one: one.put("permissions", "[all]"))
changed("no-object", "stream", "stages[0] must be keys and values", lambda one: one.put("stages", "[first]"))
changed("triggers", "skill", "triggers must be a list or keys and values", lambda one: one.put("triggers", "now"))
changed("date", "doc", "last_updated does not fit", lambda one: one.put("last_updated", "yesterday"))


@kind("category")
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, "doc", kind, number)
    copy.drop("category")
    copy.path = handbook / "docs" / "fault-misc" / copy.path.name
    copy.write()
    yield copy.file, 2, "category must be one of"


@kind("wrong-folder")
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, "skill", kind, number)
    other = "func-hr" if copy.path.parent.name != "hr" else "func-brand"
    line = copy.put("function", other)
    copy.write()
    yield copy.file, line, "function is not the folder that the file stands in"


# What refers to what

changed("no-agent", "sop", "agent: there is no such agent", lambda one: one.put("agent", "agent-nobody"))
changed("no-agents", "skill", "agents[1]: there is no such agent", lambda one: one.put("agents", "[agent-hr, nobody]"))
changed("no-skill", "agent", "skills[0]: there is no such skill", lambda one: one.put("skills", "[skill://brand/none]"))
changed("no-sop", "function", "sops[0]: there is no such sop", lambda one: one.put("sops", "[sop://hr/none]"))
changed("no-function", "agent", "function: there is no such function", lambda one: one.put("function", "func-none"))
changed("no-role", "function", "lead: there is no such role or agent", lambda one: one.put("lead", "role-nobody"))
changed("no-boss", "role", "reports_to: there is no such role", lambda one: one.put("reports_to", "org://role/none"))
changed("no-owner", "doc", "owner: there is no such function or role or agent", lambda one: one.put("owner", "ghost"))
changed("no-stream", "function", "value_streams[0]: there is no", lambda one: one.put("value_streams", "[vs-none]"))
changed("no-reference", "skill", "references[0]: there is no", lambda one: one.put("references", "[doc://brand/none]"))
changed("other-kind", "agent", "skills[0]: there is no such skill", lambda one: one.put("skills", "[sop://hr/hiring]"))
changed("itself", "function", "parent leads in a circle", lambda one: one.put("parent", one.id))
changed("dead-link", "sop", "sop://brand/none leads nowhere", lambda one: one.end("[다음](sop://brand/none) 절차를"))
changed(
    "dead-word", "doc", "org://role/none을 leads nowhere", lambda one: one.end("담당은 `x`, org://role/none을 본다.")
)
changed("dead-file", "sop", "../hr/none.md leads nowhere", lambda one: one.end("[Next](../hr/none.md#steps)"))
changed(
    "dead-step", "skill", "doc://policies/none leads nowhere", lambda one: one.end("note: see doc://policies/none.")
)
changed("no-tool", "skill", "there is no such tool", lambda one: _active(one, "required_tools", "[read, teleport]"))
changed("no-agent-tool", "agent", "there is no such tool", lambda one: _active(one, "tools", "[teleport]"))


def _active(copy: Copy, key: str, value: str) -> int:
    copy.put("status", "active")
    return copy.put(key, value)


@kind("stage")
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, "stream", kind, number)
    line = copy.put("stages", "")
    copy.behind("stages", "  - name: first", "    sops: [sop://hr/hiring, sop://hr/none]")
    copy.write()
    yield copy.file, line + 2, "stages[0].sops[1]: there is no such sop"


@kind("circle", 4)
def _(handbook: Path, kind: str, number: int) -> Seeded:
    size = 2 + number
    for at in range(size):
        copy = Copy(handbook, "role", f"{kind}{number}", at)
        line = copy.put("reports_to", f"role-fault-{kind}{number}-{(at + 1) % size}")
        copy.write()
        yield copy.file, line, "reports_to leads in a circle"


@kind("one-id")
def _(handbook: Path, kind: str, number: int) -> Seeded:
    for at in (2 * number, 2 * number + 1):
        copy = Copy(handbook, ("sop", "role")[number % 2], kind, at)
        line = copy.put("id", f"fault-one-id-{number}")
        copy.write()
        yield copy.file, line, "its id is also that of"


@kind("ambiguous")
def _(handbook: Path, kind: str, number: int) -> Seeded:
    for function in ("brand", "ops"):
        twin = Copy(handbook, "sop", f"{kind}-{function}", number)
        twin.path = handbook / "sops" / function / f"fault-twin-{number}.md"
        twin.drop("function")
        twin.write()
    copy = Copy(handbook, "agent", kind, number)
    line = copy.put("sops", f"[fault-twin-{number}]")
    copy.write()
    yield copy.file, line, "sops[0]: there is more than one such sop"


# Where files stand


@kind("ghost")
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, "doc", kind, number)
    copy.path = copy.path.with_name(f"fault-ghost-{number}@1.0.0.md")
    copy.write()
    yield copy.file, 1, "is a version of what is not there"


@kind("one-address")
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, "skill", kind, number)
    copy.write()
    copy.path = copy.path.with_suffix(".yaml")
    copy.write()
    yield copy.file, 1, "is not served: another file has its address"


@kind("way-out")
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, "doc", kind, number)
    copy.path.symlink_to(Path("../../sops/hr/salary-policy.md"))
    yield copy.file, 1, "is a link that leads out of the catalog"


# What agents claim, and the policy says

CLAIMS = (
    ("read: [sop://brand/*, skill://hr/*]", "the policy does not allow {0} to read sop://brand/newsletter"),
    ("read: [sop://brand/*, skill://hr/*, sop://hr/*]\n  deny: [sop://brand/newsletter]", "to read sop://hr/"),
    ("read: [sop://brand/*]\n  deny: [sop://brand/newsletter]", "the policy also allows {0} to read skill://hr/"),
    ("deny: [sop://brand/*]", "the policy allows {0} to read sop://brand/"),
    ("write: [sop://brand/*]", "the policy does not allow {0} to write sop://brand/*"),
    ("reed: [sop://brand/*]", "there is no such verb"),
    ("list: ['no pattern']", "is no pattern"),
)
AGENTS = tuple(f"agent-fault-claims-{number}" for number in range(len(CLAIMS)))


@kind("claims", len(CLAIMS))
def _(handbook: Path, kind: str, number: int) -> Seeded:
    copy = Copy(handbook, "agent", kind, number)
    claim, says = CLAIMS[number]
    line = copy.put("permissions", "")
    copy.behind("permissions", *f"  {claim}".splitlines())
    copy.write()
    yield copy.file, line + 1, says.format(copy.id)


# Prompts


def _prompt(id: str, **part: str) -> str:
    message = {"role": "user", "content": [{"type": "text", "text": "t", **part}]}
    return f'{{"id": "{id}", "description": "d", "messages": [\n{json.dumps(message)}]}}'


PROMPTS = (
    ('{"id": "x",', 1, "is missing"),
    ('{"description": "d", "messages": []}', 1, "id is missing"),
    (_prompt("explain_sop"), 1, "is already that of"),
    (_prompt("fault3", type="song"), 2, "type is one of"),
    (_prompt("fault4", text="{{x}}"), 2, "is not declared"),
    (_prompt("fault5", text="as in sop://hr/none\nand so on"), 2, "sop://hr/none leads nowhere"),
    (_prompt("fault6", more="x"), 2, "unknown key"),
)


@kind("prompt", len(PROMPTS))
def _(handbook: Path, kind: str, number: int) -> Seeded:
    text, line, says = PROMPTS[number]
    file = handbook / "prompts" / f"fault-{kind}-{number}.json"
    file.write_text(text, encoding="utf-8")
    yield f"prompts/{file.name}", line, says


if __name__ == "__main__":
    for fault in seed(Path(sys.argv[1])):
        print(json.dumps(fault._asdict(), ensure_ascii=False))
