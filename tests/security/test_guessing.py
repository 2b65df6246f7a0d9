"""Whoever may read and write a file learns nothing of what is hidden in it: not by guessing with edits, not by changing
what stands beside it, not by a byte that is no text, not by another name."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Pipe
from tests.gate.twins import META, frame
from tests.security.guessing import attack

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A6")]

SECRET = "".join(("Tr0ub", "4dor_", "9zkQx"))
OTHER = "".join(("Kp7wm", "6sha_", "2vbHr"))  # of the same shape
CONFIGURATION = """
version: 1
sources:
  files: {kind: file, roots: [./files], extensions: ["*"], write: true}
  said: {kind: memory, scheme: said, templates: {"at/{what}": {text: "password: {what}"}}}
agents: {brand: {}, guest: {roles: [guest]}}
policy: [{who: "*", may: "*", what: "**"}]
limits: {per_principal: 100000/s}
redact: {principals: {"role:guest": [phone]}}
"""
NOTE = f"# Deploy\n\nuser: deploy\npassword: {SECRET}\nhost: db.internal\n"


class Client:
    def __init__(self, pipe: Pipe, files: Path) -> None:
        self._pipe, self.files = pipe, files

    async def ask(self, method: str, **params: Any) -> str:
        (answer,) = await self._pipe.ask(frame(method, {**params, "_meta": META}))
        return answer.text

    async def call(self, tool: str, **arguments: Any) -> str:
        return await self.ask("tools/call", name=tool, arguments=arguments)

    async def edit(self, old: str, new: str, target: str = "note.md", **more: Any) -> str:
        return await self.call("edit", target=target, edits=[{"old": old, "new": new}], **more)

    async def read(self, target: str = "note.md") -> str:
        """All that reading it in any way gives, with what is in base64 laid open."""
        told = [
            await self.ask("resources/read", uri=f"file://{target}"),
            await self.ask("resources/read", uri=f"file://{target}?range=0-10000"),
            await self.ask("resources/read", uri=f"file://{target}?range=1-70"),
            await self.call("read", target=target),
            await self.call("read", target=target, lines=[1, 4]),
            await self.call("search", query="s", target=f"file://{target}", kind="content"),
        ]
        return "\n".join(told + [opened(one) for one in told])


def opened(answer: str) -> str:
    return "\n".join(
        raw.decode("latin-1").replace("\0", "") for raw in map(base64.b64decode, _blobs(json.loads(answer)))
    )


def _blobs(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [
            found
            for key, one in value.items()
            for found in ([one] if key in ("blob", "data") and isinstance(one, str) else _blobs(one))
        ]
    return [found for one in value for found in _blobs(one)] if isinstance(value, list) else []


@asynccontextmanager
async def served(base: Path, files: Mapping[str, str | bytes], who: str = "brand") -> AsyncIterator[Client]:
    for name, body in files.items():
        (base / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (base / "files" / name).write_bytes(body.encode() if isinstance(body, str) else body)
    (base / "state").mkdir(mode=0o700, exist_ok=True)
    loaded = load_text(CONFIGURATION, file=base / "octavo.yaml", environ={})
    async with (
        Octavo(loaded, state=StateDirectory(base / "state", b"s" * 32)) as octavo,
        Pipe(octavo, octavo.works.identity.launched(who), lane=True) as pipe,
    ):
        yield Client(pipe, base / "files")


def refused(answer: str) -> bool:
    return json.loads(answer)["result"].get("isError", False)


async def told_apart(client: Client, tool: str, **arguments: Any) -> bool:
    """Whether the answer says which of two files it is about that are the same but for what is hidden."""
    answers = [await client.call(tool, target=target, **arguments) for target in ("a.md", "b.md")]
    assert all(map(refused, answers)), answers
    return answers[0] != answers[1].replace("b.md", "a.md")


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_right_guess_by_edit_is_answered_as_a_wrong_one(tmp_path: Path, dry_run: bool) -> None:
    files = {"a.md": NOTE, "b.md": NOTE.replace(SECRET, OTHER)}
    async with served(tmp_path, files) as client:
        for size in range(1, len(SECRET) + 1, 1 if dry_run else 5):
            for shape in ("password: {}", "rd: {}", "{}\nhost", "login {} now", *(["{}"] if size > 1 else [])):
                old = shape.format(SECRET[:size] if shape != "{}\nhost" else SECRET[-size:])
                edits = [{"old": old, "new": f"{old}x"}]
                assert not await told_apart(client, "edit", edits=edits, dry_run=dry_run)
        assert {name: (client.files / name).read_text(encoding="utf-8") for name in files} == files


async def test_the_nearest_place_is_looked_for_in_what_the_caller_sees(tmp_path: Path) -> None:
    async with served(tmp_path, {"a.md": NOTE, "b.md": NOTE.replace(SECRET, OTHER)}) as client:
        for old in (f"my {SECRET} is", f"password: {SECRET[:9]}", "pasword: [redacted:password:00000001]"):
            assert not await told_apart(client, "edit", edits=[{"old": old, "new": "x"}])
        told = await client.edit("pasword: [redacted:password:00000001]", "x", "a.md")
        assert "nearest place is line 4" in told and "- password: [redacted:password:00000001]" in told


async def test_a_patch_is_no_way_to_guess(tmp_path: Path) -> None:
    async with served(tmp_path, {"a.md": NOTE, "b.md": NOTE.replace(SECRET, OTHER)}) as client:
        for line in ("4,2 +4,2", "1,2 +1,2"):
            patch = f"@@ -{line} @@\n password: {SECRET}\n-host: db.internal\n+host: db\n"
            assert not await told_apart(client, "edit", patch=patch)
        patch = "@@ -5,1 +5,1 @@\n-host: db.internal\n+host: db\n"
        assert not refused(await client.call("edit", target="a.md", patch=patch))


async def test_no_mark_says_whether_a_value_was_guessed(tmp_path: Path) -> None:
    """Whoever may write can have any value hidden: marks of equal values must not be equal."""
    async with served(tmp_path, {"a.md": NOTE, "b.md": NOTE.replace(SECRET, OTHER)}) as client:
        for name in ("a.md", "b.md"):
            await client.call("write", target=name, content=f"password: {SECRET}\n", mode="append")
        first, second = [(await client.ask("resources/read", uri=f"file://{name}")) for name in ("a.md", "b.md")]
        assert json.loads(first)["result"]["contents"][0]["text"] == json.loads(second)["result"]["contents"][0]["text"]
        assert first.count("[redacted:password:") == 2
        told = [await client.ask("resources/read", uri=f"said://at/{value}") for value in (SECRET, OTHER)]
        assert all("[redacted:password:00000001]" in one for one in told)


UNCOVERING = (
    ("password:", "note:"),
    ("user: deploy\npassword:", "note:"),
    ("\nhost", "changeme\nhost"),
    ("\nhost", "-host"),
    ("# Deploy", "\x00# Deploy"),
    ("# Deploy", "\ufeff\u202e# Deploy"),
)


async def test_no_edit_makes_a_hidden_value_show(tmp_path: Path) -> None:
    async with served(tmp_path, {f"{k}/note.md": NOTE for k in range(len(UNCOVERING))}) as client:
        for k, (old, new) in enumerate(UNCOVERING):
            path = f"{k}/note.md"
            for dry_run in (True, False):
                assert SECRET not in await client.edit(old, new, path, dry_run=dry_run)
                assert SECRET not in await client.read(path)


async def test_an_edit_that_would_show_a_hidden_value_is_refused_and_says_what_to_do(tmp_path: Path) -> None:
    async with served(tmp_path, {"note.md": NOTE}) as client:
        told = await client.edit("password:", "note:")
        assert refused(told)
        assert "[redacted:password:" in told and "hidden_data" in told
        assert (client.files / "note.md").read_text(encoding="utf-8") == NOTE
        assert not refused(await client.edit("db.internal", "db.example"))
        assert not refused(await client.edit("password: ", "passwd: "))
        assert (client.files / "note.md").read_text(encoding="utf-8") == NOTE.replace("internal", "example").replace(
            "password", "passwd"
        )


async def test_a_private_key_is_no_more_shown_by_the_diff_of_an_edit_inside_of_its_lines(tmp_path: Path) -> None:
    lines = [f"MIIE{n:02}{SECRET[:9]}AbCdEfGhIjKlMnOpQrStUvWxYz0123456789+/ab" for n in range(20)]
    pem = "\n".join(("-----BEGIN " + "PRIVATE KEY-----", *lines, "-----END " + "PRIVATE KEY-----"))
    async with served(tmp_path, {"key.md": f"before\n{pem}\nafter\n"}) as client:
        told = await client.edit("after", "behind", "key.md")
        assert not refused(told)
        assert SECRET[:9] not in told
        for line in (lines[3], lines[3][::-1]):
            assert refused(await client.edit(line, "x", "key.md"))
            assert refused(await client.edit(f"{line}\n", "", "key.md"))


async def test_a_byte_that_is_no_text_does_not_turn_redaction_off(tmp_path: Path) -> None:
    body, strays = NOTE.encode(), (b"\0", b"\xff", b"\xff\xfe", b"\x80\0\0")
    names = ("note.md", "app.log", "app.log.1", "conf.yaml", "notes", "a.json", "a.py")
    bodies = {f"{k}/behind/{name}": body + stray for name in names for k, stray in enumerate(strays)}
    bodies |= {f"{k}/before/{name}": stray + body for name in names[::3] for k, stray in enumerate(strays)}
    async with served(tmp_path, bodies) as client:
        for path in bodies:
            assert SECRET not in await client.read(path), path


async def test_nor_does_another_encoding(tmp_path: Path) -> None:
    text = f"배포 계정 안내입니다\n비밀번호: {SECRET}\n호스트: db.internal\n"
    encodings = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp949", "utf-8-sig")
    bodies = {
        f"{encoding}-{len(stray)}/{name}": text.encode(encoding) + stray
        for name in ("note.md", "a.foo")
        for encoding in encodings
        for stray in (b"", b"\0", b"\xff\xff")
    }
    async with served(tmp_path, bodies) as client:
        for path in bodies:
            assert SECRET not in await client.read(path), path
            for chosen in ("latin-1", "utf-16-le", "utf-16-be", "cp949"):
                assert SECRET not in await client.ask("resources/read", uri=f"file://{path}?encoding={chosen}"), path


async def test_an_append_is_no_way_to_show_it(tmp_path: Path) -> None:
    bodies = (NOTE, NOTE.partition("\nhost")[0])  # in one of them the secret ends the file
    added = (b"\0", b"\xff", b"\xff\xfe\xff", b"\0" * 500, b"x", b"changeme")
    files = {
        f"{k}{m}/{name}": body
        for name in ("note.md", "a.foo", "a.png")
        for k, body in enumerate(bodies)
        for m in range(len(added))
    }
    async with served(tmp_path, files) as client:
        for path in files:
            more = base64.b64encode(added[int(path[1])]).decode()
            await client.call("write", target=path, base64=more, mode="append")
            assert SECRET not in await client.read(path), path


async def test_an_append_on_a_line_of_its_own_is_allowed(tmp_path: Path) -> None:
    async with served(tmp_path, {"note.md": NOTE, "end.md": NOTE.partition("\nhost")[0]}) as client:
        assert not refused(await client.call("write", target="note.md", content="more\n", mode="append"))
        assert not refused(await client.call("write", target="end.md", content="\nmore\n", mode="append"))
        joined = await client.call("write", target="end.md", content="more\n", mode="append")
        assert not refused(joined)
        assert refused(await client.call("write", target="new.md", content=f"password: {SECRET}")) is False
        assert refused(await client.call("write", target="new.md", content="more", mode="append"))


@pytest.mark.parametrize("tool", ["move", "copy"])
async def test_another_name_shows_nothing(tmp_path: Path, tool: str) -> None:
    files = {
        f"{k}/{ending}/note.md": NOTE.encode() + stray
        for ending in ("png", "pdf", "zip", "foo", "db")
        for k, stray in enumerate((b"", b"\xff", b"\0"))
    }
    async with served(tmp_path, files) as client:
        for path in files:
            to = f"{path[: -len('/note.md')]}/a.{path.split('/')[1]}"
            told = await client.call(tool, target=path, to=to)
            shown = await client.read(path if refused(told) else to)
            if not refused(told):
                await client.call("undo")
                shown += await client.read(path)
            assert SECRET not in shown, to


async def test_what_is_hidden_from_one_caller_alone_he_cannot_guess_either(tmp_path: Path) -> None:
    phone = "010-" + "9284-" + "7713"
    async with served(tmp_path, {"note.md": f"name: Kim\nphone: {phone}\nend\n"}, "guest") as client:
        assert phone not in await client.read()
        answers = [
            (await client.edit(f"phone: {guess}", "x")).replace(guess, "*") for guess in (phone, "010-9284-7714")
        ]
        assert refused(answers[0]) and answers[0] == answers[1]
        told = await client.edit("phone: +82", "x")
        assert refused(told) and phone not in told


async def test_an_attacker_who_may_write_learns_nothing(tmp_path: Path) -> None:
    """A small count of `python -m tests.security.guessing`."""
    figures = await attack(tmp_path, requests=120, most=30)
    assert (figures.leaked, figures.told_apart) == (0, 0)
    assert figures.secrets == 30
    assert 10 < figures.refused < figures.requests - 10
