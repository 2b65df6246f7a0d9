"""Changing is no way to read: whoever may not read a thing is shown nothing of it by changing it."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from octavo.app.configuration import load
from octavo.core.errors import ApprovalRequired, Conflict, Forbidden, NotFound, OctavoError
from octavo.core.tools import Text

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F5", "B4", "B2")]

SECRET = "walrus gathers moonlight"
TOOLSETS = "toolsets: [files, filesystem, seed]"
SOURCES = 'sources: {work: {kind: file, roots: [./work], extensions: ["*"], write: true}}'
DROP = f"""
    {SOURCES}
    {TOOLSETS}
    agents: {{ann: {{}}}}
    policy:
      - {{who: ann, may: [write], what: "file://drop/*"}}
      - {{who: ann, may: [list, read, write, delete], what: "file://pub/*"}}
      - {{who: ann, may: [invoke], what: "tool://*"}}
"""
# A rule against reading beside one that allows everything.
DENIED = f"""
    {SOURCES}
    {TOOLSETS}
    agents: {{ann: {{}}}}
    policy:
      - {{who: ann, may: "*", what: "**"}}
      - {{who: ann, may: [read, search], what: "file://drop/*", effect: deny}}
"""
OF_PART = [{"old": " ", "new": "_", "expected": "all"}]
LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    "edit": ("edit", {"edits": OF_PART}),
    "its dry run": ("edit", {"edits": OF_PART, "dry_run": True}),
    "its error": ("edit", {"edits": [{"old": "walrus gather moonlight", "new": ""}]}),
    "patch": ("edit", {"patch": f"@@ -1 +1 @@\n-{SECRET[:-1]}\n+x\n", "dry_run": True}),
    "append": ("write", {"content": "", "mode": "append"}),
    "append of bytes": ("write", {"base64": "", "mode": "append"}),
    "edit_file": ("edit_file", {"edits": [{"oldText": SECRET[:6], "newText": "x"}], "dryRun": True}),
    "move": ("move", {"to": "pub/x.md"}),
    "copy": ("copy", {"to": "pub/x.md"}),
    "move_file": ("move_file", {"destination": "pub/x.md"}),
}


def asked(tool: str, given: dict[str, Any], path: str) -> dict[str, Any]:
    key = {"edit_file": "path", "move_file": "source"}.get(tool, "target")
    return {key: path, **given}


@pytest.mark.parametrize("rules", [DROP, DENIED], ids=["write alone", "read denied"])
@pytest.mark.parametrize("way", LOOKS)
async def test_what_may_not_be_read_is_not_shown_by_changing_it(serve: Any, way: str, rules: str) -> None:
    tools = await serve(rules, {"drop/x.md": f"{SECRET}\n", "pub/y.md": "y\n"})
    tool, given = LOOKS[way]
    refusals = []
    for path in ("drop/x.md", "drop/y.md"):  # one that is there, and one that is not
        with pytest.raises(Forbidden) as refused:
            await tools(tool, who="ann", **asked(tool, given, path))
        refusals.append(f"{refused.value.message} {refused.value.data}".replace(path, ""))
    assert refusals[0] == refusals[1] and SECRET[:6] not in refusals[0]
    assert (tools.root / "drop/x.md").read_text(encoding="utf-8") == f"{SECRET}\n" and not (
        tools.root / "pub/x.md"
    ).exists()


@pytest.mark.parametrize("way", [way for way in LOOKS if "error" not in way])
async def test_whoever_may_read_it_too_may_do_all_that(serve: Any, way: str) -> None:
    tools = await serve(DROP.replace("may: [write]", "may: [read, write, delete]"), {"drop/x.md": f"{SECRET}\n"})
    tool, given = LOOKS[way]
    given = {**given, "patch": f"@@ -1 +1 @@\n-{SECRET}\n+x\n"} if "patch" in given else given
    await tools(tool, who="ann", **asked(tool, given, "drop/x.md"))


async def test_a_folder_is_not_moved_or_copied_away_with_what_may_not_be_read(serve: Any) -> None:
    tools = await serve(DENIED.replace("file://drop/*", "file://drop/in/x.md"), {"drop/in/x.md": SECRET})
    for tool in ("move", "copy"):
        for folder in ("drop", "drop/in"):
            with pytest.raises(Forbidden):
                await tools(tool, who="ann", target=folder, to="pub/in")
    assert (tools.root / "drop/in/x.md").exists() and not (tools.root / "pub/in").exists()


@pytest.mark.parametrize("tool", ["write", "delete"])
async def test_if_match_is_no_way_to_guess_a_content(serve: Any, tool: str) -> None:
    """The etag of a guess, made elsewhere, would match if it were right."""
    tools = await serve(DENIED, {"drop/pin.txt": "4711", "pub/guess.txt": "4711"})
    etag = (await tools.data("info", who="ann", target="pub/guess.txt"))["etag"]
    given = {"content": "x"} if tool == "write" else {}
    for guess in (etag, "0" * 16):
        with pytest.raises(Forbidden):
            await tools(tool, who="ann", target="drop/pin.txt", if_match=guess, **given)
    assert (tools.root / "drop/pin.txt").read_text(encoding="utf-8") == "4711"


@pytest.mark.parametrize("before", [None, "짧은 글".encode("utf-16"), SECRET.encode(), b"\xff\x00\x81"])
async def test_a_plain_write_needs_write_alone_and_tells_nothing_of_what_was_there(serve: Any, before: Any) -> None:
    tools = await serve(DROP, {} if before is None else {"drop/x.md": before})
    told = await tools("write", who="ann", target="drop/x.md", content="새 글\n")
    assert (tools.root / "drop/x.md").read_bytes() == "새 글\n".encode()
    (said,) = told.content
    assert isinstance(said, Text) and said.text.startswith("Wrote file://drop/x.md, which has 8 bytes")
    assert told.structured is not None and {*told.structured} == {"uri", "name", "type", "size", "version"}


async def test_whoever_may_read_keeps_the_encoding_of_the_file(serve: Any) -> None:
    tools = await serve(DROP, {"pub/x.md": "가나다라 마바사\n".encode("utf-16")})
    await tools("write", who="ann", target="pub/x.md", content="새 글\n")
    assert (tools.root / "pub/x.md").read_bytes() == "새 글\n".encode("utf-16")


async def test_what_is_in_the_way_is_not_described_to_whoever_may_not_list_it(serve: Any) -> None:
    tools = await serve(DROP, {"drop/folder.md/x.md": "x", "drop/twice.md": "x", "pub/y.md": "y"})
    said = set()
    for tool, given in (
        ("write", {"target": "drop/folder.md", "content": "x"}),
        ("write", {"target": "drop/twice.md", "content": "x", "mode": "create"}),
        ("create_directory", {"target": "drop/twice.md"}),
        ("copy", {"target": "pub/y.md", "to": "drop/folder.md"}),
        ("copy", {"target": "pub/y.md", "to": "drop/twice.md"}),
        ("move", {"target": "pub/y.md", "to": "drop/twice.md"}),
    ):
        with pytest.raises(Conflict) as refused:
            await tools(tool, who="ann", **given)
        said.add(f"{refused.value.message} {refused.value.data}".replace("folder.md", "twice.md"))
    assert len(said) == 1, said


async def test_undoing_a_move_carries_nothing_back_that_may_no_longer_be_read(serve: Any) -> None:
    tools = await serve(DENIED[: DENIED.index("      - {who: ann, may: [read")], {"pub/d/x.md": SECRET})
    await tools("move", who="ann", target="pub/d", to="drop/d")
    file = tools.root.parent / "octavo.yaml"
    file.write_text("version: 1\n" + dedent(DENIED), encoding="utf-8")
    await tools.octavo.reload(load(file, environ={}))
    with pytest.raises(Forbidden):
        await tools("undo", who="ann")
    assert (tools.root / "drop/d/x.md").exists() and not (tools.root / "pub/d").exists()


LINKED = f"""
    {SOURCES}
    {TOOLSETS}
    agents: {{ann: {{}}}}
    policy:
      - {{who: ann, may: "*", what: "**", approve: never}}
      - {{who: ann, may: "*", what: "file://hr/*", effect: deny%s}}
"""


@pytest.mark.parametrize("hide", ["", ", hide: true"], ids=["denied", "hidden"])
@pytest.mark.parametrize("way", [way for way in LOOKS if "move" not in way and "copy" not in way])
async def test_a_link_shows_nothing_of_what_it_leads_to_by_changing_it(serve: Any, way: str, hide: str) -> None:
    """The link's own address is allowed: a link inside the root is ordinary, and so is one in a repository."""
    tools = await serve(LINKED % hide, {"hr/x.md": f"{SECRET}\n", "pub/y.md": "y\n"})
    (tools.root / "pub/link.md").symlink_to("../hr/x.md")
    (tools.root / "pub/folder").symlink_to("../hr")
    tool, given = LOOKS[way]
    for path in ("pub/link.md", "pub/folder/x.md"):
        with pytest.raises(OctavoError) as refused:
            await tools(tool, who="ann", **asked(tool, given, path))
        assert SECRET[:6] not in f"{refused.value.message} {refused.value.data}"
        assert "line" not in refused.value.message and "place" not in refused.value.message
    assert (tools.root / "hr/x.md").read_text(encoding="utf-8") == f"{SECRET}\n"


async def test_nothing_tells_by_a_name_below_it_whether_a_hidden_file_is_there(serve: Any) -> None:
    """A file in the way was told as one, and where none was, the folder was made."""
    rules = LINKED.replace("file://hr/*", "file://sec*") % ", hide: true"
    tools = await serve(rules, {"sec1.md": "x\n", "pub/y.md": "y\n"})
    ways: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("write", {"content": "x"}, "target"),
        ("create_directory", {}, "target"),
        ("copy", {"target": "pub/y.md"}, "to"),
        ("move", {"target": "pub/y.md"}, "to"),
    )
    for tool, given, key in ways:
        said = set()
        for name in ("sec1.md", "sec9.md"):  # there, and not
            with pytest.raises(OctavoError) as refused:
                await tools(tool, who="ann", **given, **{key: f"{name}/n.md"})
            said.add(f"{type(refused.value)} {refused.value.message} {refused.value.data}".replace(name, ""))
        assert len(said) == 1, said
    assert not (tools.root / "sec9.md").exists()


HIDING = f"""
    {SOURCES}
    {TOOLSETS}
    agents: {{ann: {{}}}}
    policy:
      - {{who: ann, may: "*", what: "**"}}
      - {{who: ann, may: "*", what: "file://*/secret/*", effect: deny, HIDE}}
"""


@pytest.mark.parametrize("hide", ["hide: true", "why: not for you"])
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("delete", {"target": "DIR"}),
        ("move", {"target": "DIR", "to": "new"}),
        ("copy", {"target": "DIR", "to": "new"}),
        ("move_file", {"source": "DIR", "destination": "new"}),
        ("deleteFile", {"path": "DIR"}),
    ],
)
async def test_what_a_folder_holds_unseen_is_not_told_by_the_answer(
    serve: Any, hide: str, tool: str, given: dict[str, str]
) -> None:
    tools = await serve(HIDING.replace("HIDE", hide), {"full/a.md": "a", "full/secret/b.md": SECRET, "bare/a.md": "a"})
    said = []
    for folder in ("full", "bare"):
        with pytest.raises(OctavoError) as refused:
            await tools(tool, who="ann", **{key: value.replace("DIR", folder) for key, value in given.items()})
        said.append(repr((type(refused.value), refused.value.message, refused.value.data)).replace(folder, ""))
    assert said[0] == said[1] and "secret" not in said[0]
    await tools("delete", who="ann", target="full/a.md")  # one by one it goes


async def test_what_is_seen_may_be_named_as_the_reason(serve: Any) -> None:
    """Whoever may list all of a folder, or may take all of it, is answered by what is in it."""
    rules = HIDING.replace('may: "*", what: "file://*/secret/*"', 'may: delete, what: "file://*/keep.md"')
    tools = await serve(rules.replace(", HIDE", ""), {"full/keep.md": "a", "bare/a.md": "a"})
    with pytest.raises(Forbidden) as refused:
        await tools("delete", who="ann", target="full")
    assert refused.value.data["resource"] == "file://*/keep.md"
    await tools("delete", who="ann", target="bare")


async def test_files_that_are_never_served_are_one_of_several_reasons_why_a_folder_stays(serve: Any) -> None:
    tools = await serve(files={"a/.env": "x", "b/x.md": "x", "c/x.md": "x"})
    (tools.root / "b/x.md").chmod(0o444)
    said = set()
    for folder in ("a", "b"):
        with pytest.raises(Forbidden) as refused:
            await tools("delete", target=folder)
        said.add(f"{refused.value.message} {refused.value.data}".replace(f"file://{folder}", ""))
    assert len(said) == 1, said


LABELLED = f"""
    {SOURCES}
    agents: {{ann: {{}}}}
    labels:
      - {{what: "file://hr/*", confidentiality: confidential}}
      - {{what: "file://team/*", confidentiality: internal}}
      - {{what: "file://inbox/*", integrity: untrusted}}
"""
WEAKER = {
    "hr/x.md": ["team/x.md", "x.md", "inbox/x.md"],
    "hr": ["team/new", "new"],
    "team/x.md": ["x.md"],
    "inbox/x.md": ["x.md", "hr/new.md"],
}
AS_STRONG = {
    "hr/x.md": ["hr/y.md"],
    "team/x.md": ["hr/new.md"],
    "x.md": ["y.md", "hr/new.md", "inbox/new.md"],
    "inbox/x.md": ["inbox/y.md"],
}


@pytest.mark.parametrize("policy", ["", 'policy: [{who: "*", may: "*", what: "**", approve: never}]'])
@pytest.mark.parametrize("tool", ["move", "copy"])
async def test_a_place_with_a_weaker_label_is_asked_about(serve: Any, tool: str, policy: str) -> None:
    files = {"hr/x.md": SECRET, "team/x.md": "x", "x.md": "x", "inbox/x.md": "x"}
    tools = await serve(f"{LABELLED}    {policy}\n", files)
    for path, places in WEAKER.items():
        for to in places:
            with pytest.raises(ApprovalRequired):
                await tools(tool, who="ann", target=path, to=to, overwrite=True)
            assert not (tools.root / to).exists() or to in files
    waiting = await tools.octavo.approvals.standing()
    assert {one.wanted.rule for one in waiting} == {"labels"} and len(waiting) == 8
    assert any("confidentiality is confidential where it stands, and internal there" in one.shown() for one in waiting)


async def test_a_place_with_as_strong_a_label_is_not_asked_about_and_an_answer_counts_once(serve: Any) -> None:
    tools = await serve(LABELLED, {"hr/x.md": SECRET, "team/x.md": "x", "x.md": "x", "inbox/x.md": "x"})
    for path, places in AS_STRONG.items():
        for to in places:
            await tools("copy", who="ann", target=path, to=to, overwrite=True)
    for _ in range(2):
        with pytest.raises(ApprovalRequired):
            await tools("move", who="ann", target="hr/x.md", to="out.md")
    (one,) = await tools.octavo.approvals.standing()
    await tools.octavo.approvals.answer(one.id, "a person", allow=True)
    await tools("move", who="ann", target="hr/x.md", to="out.md")
    assert (tools.root / "out.md").read_text(encoding="utf-8") == SECRET


UNTRUSTED = f"""
    {SOURCES}
    {TOOLSETS}
    agents: {{ann: {{}}}}
    labels: [{{what: "file://inbox/*", integrity: untrusted}}]
    approval: {{after_untrusted: 8h}}
"""


@pytest.mark.parametrize("way", ["its dry run", "its error", "patch", "edit", "edit_file"])
async def test_what_an_edit_shows_counts_as_shown(serve: Any, way: str) -> None:
    tools = await serve(UNTRUSTED, {"inbox/x.md": f"{SECRET}\n", "plan.md": f"{SECRET}\n"})
    tool, given = LOOKS[way]
    for path in ("plan.md", "inbox/none.md", "inbox/x.md"):
        await tools("write", who="ann", target="new.md", content="nobody was asked")
        try:
            await tools(tool, who="ann", **asked(tool, given, path))
        except OctavoError as error:
            assert isinstance(error, NotFound) or way in ("its error", "patch"), error
    with pytest.raises(ApprovalRequired):
        await tools("write", who="ann", target="new.md", content="more")
