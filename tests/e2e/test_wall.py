"""The second wall, around a real server: the kernel refuses what Octavo never asks for, and nothing else suffers."""

from __future__ import annotations

import json
import logging
import signal
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import Place, audit_records
from tests.sources.git.clones import Clone

from octavo.app import confinement
from octavo.app.configuration import load_text
from octavo.core.errors import SourceUnavailable
from octavo.sandbox import landlock
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.slow, pytest.mark.seed("F10")]
walled = pytest.mark.skipif(landlock.version() < 2, reason="this kernel has no Landlock, or an old one")

PLUGIN = """
import os, subprocess
from octavo.core.tools import Hints

def attempt(what, path):
    if what == "read":
        return open(path).read()
    if what == "list":
        return " ".join(sorted(os.listdir(path)))
    if what == "write":
        open(path, "w").write("x")
    elif what == "delete":
        os.unlink(path)
    elif what == "link":
        os.symlink("/etc", path)
    elif what == "move":
        os.rename(path, path + ".moved")
    else:
        return subprocess.run([path], capture_output=True, check=True).stdout.decode()
    return "done"

def register(octavo):
    hints = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
    @octavo.tool("attempt", description="Does without asking.", input_schema={"type": "object"}, hints=hints)
    async def tool(ctx, arguments):
        try:
            return attempt(arguments["what"], arguments["path"])
        except OSError as error:
            return f"errno {error.errno}"
"""
CONFIGURATION = """
sources:
  docs: {kind: file, roots: [./root]}
  work: {kind: file, scheme: work, roots: [./work], write: true}
plugins: [{path: ./plugins/attempt.py}]
serve: {landlock: require}
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "inside").mkdir()
    made = Place(tmp_path / "inside")
    made.edit("a.md", "needle\n")
    for folder in ("work", "plugins"):
        (made.base / folder).mkdir()
    (made.base / "plugins/attempt.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    return made


def said(answer: Any) -> str:
    text: str = answer["result"]["content"][0]["text"]
    return text


@walled
def test_the_kernel_refuses_what_no_configuration_names(place: Place) -> None:
    (place.base / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    outside, docs, work = place.base.parent, place.root, place.base / "work"
    refused = [
        ("read", outside / "secret.txt"),
        ("list", outside),
        ("write", outside / "new.txt"),
        ("read", "/etc/shadow"),
        ("write", docs / "a.md"),
        ("write", docs / "new.md"),
        ("delete", docs / "a.md"),
        ("move", docs / "a.md"),
        ("write", place.base / "octavo.yaml"),
        ("write", place.base / "plugins/attempt.py"),
        ("link", docs / "link"),
        ("run", "/bin/ls"),
        ("run", "/bin/sh"),
    ]
    allowed = [("read", docs / "a.md"), ("write", work / "w.md"), ("move", work / "w.md"), ("list", work)]
    with place.pipe("--config", "octavo.yaml") as pipe:
        for what, path in refused:
            answer = pipe.ask("tools/call", {"name": "attempt", "arguments": {"what": what, "path": str(path)}})
            assert said(answer) == "errno 13", (what, path)
        for what, path in allowed:
            answer = pipe.ask("tools/call", {"name": "attempt", "arguments": {"what": what, "path": str(path)}})
            assert "errno" not in said(answer), (what, path)
    assert (docs / "a.md").read_text(encoding="utf-8") == "needle\n"


@walled
def test_everything_that_is_served_works_behind_it(place: Place) -> None:
    """Writing, moving, undoing, searching, documents in a process of their own, and the audit."""
    with zipfile.ZipFile(place.root / "note.odt", "w") as odt:
        space = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        text = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
        body = "<office:body><office:text><text:p>inside the note</text:p></office:text></office:body>"
        odt.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        odt.writestr("content.xml", f"<office:document-content {space} {text}>{body}</office:document-content>")

    with place.pipe(place.root, "--write") as pipe:

        def call(name: str, **arguments: Any) -> str:
            return said(pipe.ask("tools/call", {"name": name, "arguments": arguments}))

        pipe.ask("resources/list")
        status = Path(f"/proc/{pipe.process.pid}/status").read_text(encoding="ascii")
        assert "NoNewPrivs:\t1" in status
        document = pipe.ask("resources/read", {"uri": "file://note.odt?as=text"})
        assert "inside the note" in document["result"]["contents"][0]["text"]
        for name, arguments in (
            ("write", {"target": "sub/b.md", "content": "one\n"}),
            ("write", {"target": "sub/b.md", "content": "two needles\n"}),
            ("move", {"target": "sub/b.md", "to": "c.md"}),
        ):
            assert "error" not in call(name, **arguments).lower(), name
        assert "c.md" in call("search", query="needle")
        assert call("undo")
        assert (place.root / "sub/b.md").read_text(encoding="utf-8") == "two needles\n"
        assert call("undo")
        assert (place.root / "sub/b.md").read_text(encoding="utf-8") == "one\n"
    done = [record for record in audit_records(place.base / "state") if record["outcome"] != "intent"]
    assert [record["op"] for record in done].count("undo") == 2


@walled
def test_old_versions_of_a_folder_are_read_from_the_repository_above_it(place: Place, tmp_path: Path) -> None:
    clone = Clone(tmp_path / "clone")
    clone.commit({"handbook/docs/a.md": "# old\n"})
    clone.git("tag", "v1")
    clone.commit({"handbook/docs/a.md": "# new\n"})
    text = """
sources:
  store: {kind: file, roots: [../clone/handbook], expose: false, history: refs}
  docs: {kind: doc, store: store}
serve: {landlock: require}
"""
    (place.base / "octavo.yaml").write_text(text, encoding="utf-8")
    with place.pipe("--config", place.base / "octavo.yaml") as pipe:
        for address, body in (("doc://a", "# new\n"), ("doc://a?version=v1", "# old\n")):
            answer = pipe.ask("resources/read", {"uri": address})
            assert answer["result"]["contents"][0]["text"] == body


@walled
def test_a_reload_that_needs_more_says_restart_and_keeps_the_old_configuration(place: Place) -> None:
    other = place.base.parent / "other"
    other.mkdir()
    (other / "o.md").write_text("other\n", encoding="utf-8")
    (place.base / "work/w.md").write_text("w\n", encoding="utf-8")
    file = place.base / "octavo.yaml"

    def configured(*roots: Path, more: str = "") -> None:
        fresh = file.with_suffix(".new")
        fresh.write_text(
            f"sources: {{docs: {{kind: file, roots: {json.dumps([str(root) for root in roots])}{more}}}}}\n",
            encoding="utf-8",
        )
        fresh.replace(file)

    configured(place.root)
    with place.serve("--config", file, "--no-auth") as server:
        asking = server.asking()

        def names() -> list[str]:
            return [one["name"] for one in asking.ask("resources/list").result["resources"]]

        def reload() -> int:
            begun = len(server.log)
            server.process.send_signal(signal.SIGHUP)
            return begun

        for more in ((other, ""), (place.base / "work", ", write: true")):
            configured(place.root, more[0], more=more[1])
            server.log.wait_for("restart needed", after=reload())
            assert names() == ["a.md"]
        configured(place.root, place.base / "work")  # beside the configuration, and only to be read
        server.log.wait_for("configuration reloaded", after=reload())
        assert names() == ["a.md", "w.md"]


@walled
@pytest.mark.seed("F12")
def test_a_root_that_is_a_link_may_lead_to_the_folder_beside_and_any_other_needs_a_restart(place: Place) -> None:
    """`current -> releases/1`: the release after it was not there when the wall was raised."""
    releases = place.base.parent / "releases"
    for name in ("1", "2"):
        (releases / name).mkdir(parents=True)
        (releases / name / "a.md").write_text(f"release {name}\n", encoding="utf-8")
    elsewhere = place.base.parent / "elsewhere"
    elsewhere.mkdir()
    current = place.base.parent / "current"
    current.symlink_to(releases / "1")

    def lead_to(folder: Path) -> None:
        fresh = current.with_name("fresh")
        fresh.symlink_to(folder)
        fresh.replace(current)

    with place.serve(current, "--no-auth", "--write") as server:
        asking = server.asking()

        def read() -> Any:
            return asking.ask("resources/read", {"uri": "file://a.md"}).body

        assert read()["result"]["contents"][0]["text"] == "release 1\n"
        lead_to(releases / "2")
        server.log.wait_for("it is served from now on")
        assert read()["result"]["contents"][0]["text"] == "release 2\n"
        wrote = asking.ask("tools/call", {"name": "write", "arguments": {"target": "b.md", "content": "b"}}).body
        assert not wrote["result"].get("isError"), wrote
        assert (releases / "2/b.md").exists()
        lead_to(elsewhere)
        server.log.wait_for("restart needed")
        assert read()["error"]["data"]["reason"] == "source_unavailable"
        assert asking.get("/readyz").body == {"status": "ready", "degraded": 1}


@walled
@pytest.mark.seed("F12")
def test_a_folder_in_the_place_of_one_that_may_be_written_is_read_and_what_it_lacks_is_said(place: Place) -> None:
    """Below the folder of the configuration it can be read. It was told as forbidden by a rule, and as healthy."""
    (place.base / "octavo.yaml").write_text(
        "sources: {work: {kind: file, roots: [./work], write: true}}\n", encoding="utf-8"
    )
    (place.base / "work/a.md").write_text("old\n", encoding="utf-8")
    (place.base / "next").mkdir()
    (place.base / "next/a.md").write_text("new\n", encoding="utf-8")
    with place.serve("--config", "octavo.yaml", "--no-auth") as server:
        asking = server.asking()

        def call(method: str, **params: Any) -> Any:
            return asking.ask(method, params).body["result"]

        assert call("resources/read", uri="file://a.md")["contents"][0]["text"] == "old\n"
        (place.base / "work").rename(place.base / "old")
        (place.base / "next").rename(place.base / "work")
        server.log.wait_for("restart needed")
        assert call("resources/read", uri="file://a.md")["contents"][0]["text"] == "new\n"
        wrote = call("tools/call", name="write", arguments={"target": "b.md", "content": "b"})
        assert wrote["isError"] and wrote["_meta"]["dev.octavo/error"]["data"]["reason"] == "source_unavailable"
        assert asking.get("/readyz").body == {"status": "ready", "degraded": 1}
    assert sorted(file.name for file in (place.base / "old").iterdir()) == ["a.md"]


def test_where_the_kernel_has_none_it_is_said_or_the_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    caplog.set_level(logging.INFO)
    text = "sources: {{docs: {{kind: file, roots: [.]}}}}\nserve: {{landlock: {}}}\n"
    for how in ("auto", "off"):
        loaded = load_text(text.format(how), file=tmp_path / "octavo.yaml", environ={})
        assert confinement.raise_wall(loaded, StateDirectory.in_memory()) is None
    assert "without Landlock: this kernel has none" in caplog.text
    required = load_text(text.format("require"), file=tmp_path / "octavo.yaml", environ={})
    with pytest.raises(SourceUnavailable, match="cannot be used: this kernel has none"):
        confinement.raise_wall(required, StateDirectory.in_memory())
