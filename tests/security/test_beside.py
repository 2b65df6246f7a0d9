"""What stands beside what is served and decides which programs run, or is kept for other folders: another server's
state, what `octavo install` keeps, and the files in which clients name the programs that they start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.security.test_takeover import ask, use

from octavo.app import Octavo
from octavo.app.configuration import load_text, zero
from octavo.config.load import Loaded
from octavo.config.problems import ConfigError
from octavo.core.errors import Forbidden, NotFound, OctavoError

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F3", "A8")]

OTHER = "0123456789abcdef"
KEPT = {
    f"{OTHER}/secret": "the secret of another server",
    f"{OTHER}/audit/1.jsonl": "{}\n",
    f"{OTHER}/journal/files/kept/1": "an earlier text",
    "clients/aaaa.json": "{}",
    "clients/aaaa.before": '{"account": "kim@corp.example"}',
}


def write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    write(home, {"notes/a.md": "# A\n", "octavo/guide.md": "# Guide\n"})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return home


def configured(root: Path, environ: Mapping[str, str] | None = None) -> Loaded:
    text = (
        f"sources: {{files: {{kind: file, roots: ['{root}'], write: true, extensions: ['*'], uris: relative}}}}\n"
        f"state: {{path: '{root.parent / 'mine'}'}}\n"
    )
    return load_text(text, file=root.parent / "octavo.yaml", environ=environ or {})


@pytest.mark.parametrize("where", [".local/state/octavo", "elsewhere/octavo"])
@pytest.mark.parametrize("configuration", [True, False])
async def test_the_state_of_every_server_is_kept_from_every_server(where: str, configuration: bool, home: Path) -> None:
    """In the folder of the user, or where XDG_STATE_HOME says; a folder of the same name elsewhere is ordinary."""
    write(home / where, KEPT)
    (home / "way").symlink_to(where)
    environ = {} if where.startswith(".local") else {"XDG_STATE_HOME": str((home / where).parent)}
    loaded = configured(home, environ) if configuration else zero(home, write=True, environ=environ)
    async with Octavo(loaded) as house:
        listed = await ask(house, "list", "file://")
        names = sorted("/".join(one.ref.segments[-2:]) for one in listed.items if one.mime_type != "inode/directory")
        assert names == ["notes/a.md", "octavo/guide.md"]
        for path in KEPT:
            for uri in (f"file://{where}/{path}", f"file://{home}/{where}/{path}", f"file://way/{path}"):
                with pytest.raises(NotFound):
                    await ask(house, "read", uri)
            for tool, more in (
                ("write", {"content": "forged", "mode": "overwrite"}),
                ("delete", {}),
                ("copy", {"to": "notes/copy.txt"}),
                ("move", {"to": "notes/moved.txt"}),
            ):
                with pytest.raises(OctavoError):
                    await use(house, tool, target=f"{where}/{path}", **more)
        with pytest.raises(OctavoError):
            await use(house, "write", target=f"{where}/fresh/secret", content="x")
        with pytest.raises(OctavoError):
            await use(house, "move", target="notes/a.md", to=f"{where}/clients/aaaa.before", overwrite=True)
        above = [*Path(where).parents][:-1]
        for folder in (where, f"{where}/{OTHER}", *map(str, above)):
            for tool, more in (("delete", {}), ("move", {"to": "notes/away"}), ("copy", {"to": "notes/copy"})):
                with pytest.raises(OctavoError):
                    await use(house, tool, target=folder, **more)
        found = await use(house, "search", query="kim@corp", kind="content")
        assert "aaaa" not in str(found)
    assert {path: (home / where / path).read_text(encoding="utf-8") for path in KEPT} == KEPT


async def test_the_state_of_other_users_and_in_copies_of_homes_is_hidden_too(home: Path) -> None:
    write(home / "backup/kim/.local/state/octavo", KEPT)
    async with Octavo(zero(home / "backup", write=True, environ={})) as house:
        assert (await ask(house, "list", "file://")).items == ()
        with pytest.raises(NotFound):
            await ask(house, "read", f"file://kim/.local/state/octavo/{OTHER}/secret")
        with pytest.raises(OctavoError):
            await use(house, "delete", target="kim/.local")


@pytest.mark.parametrize("below", ["", OTHER, "clients"])
def test_no_folder_in_the_home_of_all_state_is_served(below: str, home: Path) -> None:
    write(home / ".local/state/octavo", KEPT)
    with pytest.raises(ConfigError) as refused:
        zero(home / ".local/state/octavo" / below, environ={})
    assert "is never served" in str(refused.value)


# -- files of clients

STARTS = (
    ".mcp.json",
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".zed/settings.json",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".codeium/windsurf/mcp_config.json",
    ".config/Claude/claude_desktop_config.json",
    ".config/Code/User/mcp.json",
    ".config/zed/settings.json",
)
EVIL = '{"mcpServers": {"octavo": {"command": "octavo", "args": ["serve", "/", "--write"]}}}'


@pytest.mark.parametrize("folder", ["", "apps/web/"])
@pytest.mark.parametrize("path", STARTS)
async def test_a_file_that_starts_programs_is_read_and_never_changed(path: str, folder: str, home: Path) -> None:
    """In any folder: a client may be opened in each."""
    at = f"{folder}{path}"
    write(home, {at: "{}\n", "notes/evil.json": EVIL, "notes/here/b.md": "b\n"})
    above = str(Path(at).parent) if Path(path).parent != Path() else ""
    async with Octavo(configured(home)) as house:
        assert (await ask(house, "read", f"file://{at}")).body == "{}\n"
        for tool, more in (
            ("write", {"target": at, "content": EVIL, "mode": "overwrite"}),
            ("write", {"target": at.upper(), "content": EVIL}),
            ("write", {"target": at, "content": EVIL, "mode": "append"}),
            ("edit", {"target": at, "edits": [{"old": "{}", "new": EVIL}]}),
            ("delete", {"target": at}),
            ("move", {"target": at, "to": "notes/away.json"}),
            ("move", {"target": "notes/evil.json", "to": at, "overwrite": True}),
            ("copy", {"target": "notes/evil.json", "to": at, "overwrite": True}),
            *((("delete", {"target": above}), ("move", {"target": above, "to": "notes/away"})) if above else ()),
        ):
            with pytest.raises(Forbidden) as refused:
                await use(house, tool, **more)
            assert "programs" in refused.value.data["why"] and "by hand" in refused.value.data["why"]
    assert (home / at).read_text(encoding="utf-8") == "{}\n"


@pytest.mark.parametrize("path", STARTS)
async def test_a_file_that_starts_programs_is_not_put_in_place(path: str, home: Path) -> None:
    """Neither as a file, nor in a folder that gets the name, nor as a folder, nor by an undo."""
    name = Path(path).name
    (home / "sub").mkdir()
    async with Octavo(configured(home)) as house:
        for tool, more in (
            ("write", {"target": path, "content": EVIL}),
            ("write", {"target": f"sub/{path}", "content": EVIL}),
            ("create_directory", {"target": f"sub/{path}"}),
        ):
            with pytest.raises(Forbidden):
                await use(house, tool, **more)
        if Path(path).parent != Path():
            first, *rest = Path(path).parts
            made = Path("notes/made", *rest)
            write(home, {str(made): EVIL})
            for tool in ("move", "copy"):
                with pytest.raises(Forbidden):
                    await use(house, tool, target="notes/made", to=f"sub/{first}")
            with pytest.raises(Forbidden):
                await use(house, "move", target=str(made.parent), to=f"sub/{Path(path).parent}")
            assert not list((home / "sub").rglob(name))
        assert not (home / path).exists()


async def test_what_stands_beside_it_is_changed_as_before(home: Path) -> None:
    write(home, {".vscode/mcp.json": "{}\n", ".vscode/settings.json": "{}\n", "src/config.toml": "a = 1\n"})
    write(home, {"a/.vscode/tasks.md": "x\n"})
    async with Octavo(configured(home)) as house:
        await use(house, "write", target=".vscode/settings.json", content='{"a": 1}\n', mode="overwrite")
        await use(house, "write", target="src/config.toml", content="a = 2\n", mode="overwrite")
        await use(house, "write", target="src/settings.json", content="{}\n")
        await use(house, "write", target="src/mcp.json", content="{}\n")
        await use(house, "create_directory", target="b/.vscode")
        await use(house, "move", target="a/.vscode", to="c/.vscode")
        await use(house, "delete", target="c")


async def test_a_root_may_be_such_a_folder_and_a_link_may_lead_to_such_a_file(home: Path) -> None:
    write(home / "app", {".cursor/rules.md": "r\n", "shared/mcp.txt": "{}\n", ".mcp.txt": ""})
    (home / "app/.mcp.json").symlink_to("shared/mcp.txt")
    (home / "app/c").symlink_to(".cursor")
    for root, target in (("app/.cursor", "mcp.json"), ("app", "shared/mcp.txt"), ("app", "c/mcp.json")):
        async with Octavo(configured(home / root)) as house:
            mode = "overwrite" if "txt" in target else "create"
            with pytest.raises(OctavoError):
                await use(house, "write", target=target, content=EVIL, mode=mode)
    assert (home / "app/shared/mcp.txt").read_text(encoding="utf-8") == "{}\n"
    assert not (home / "app/.cursor/mcp.json").exists()
