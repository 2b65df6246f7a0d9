"""`octavo install` and `octavo uninstall`: one entry in a client's file, and not a byte of the rest."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.test_terminal import terminal

from octavo.cli._words import catalogue
from octavo.cli.client_files import jsonc, toml
from octavo.cli.client_files.records import CLIENTS, place_of
from octavo.cli.install import HELD

URL = "http://127.0.0.1:8321/mcp"
COMMAND = ["serve", "DIR"]
# What add-mcp 2.4.0 writes for the same clients in an empty home, with the differences that docs/install.md explains:
# a variable as each client names it, `bearer_token_env_var` for Codex, and no key for Zed.
USER = {
    "claude-code": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "vscode": ".config/Code/User/mcp.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
    "gemini-cli": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.jsonc",
    "zed": ".config/zed/settings.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
}
PROJECT = {
    "claude-code": ".mcp.json",
    "vscode": ".vscode/mcp.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
    "gemini-cli": ".gemini/settings.json",
    "opencode": "opencode.jsonc",
    "zed": ".zed/settings.json",
}
PLAIN = {"command": "OCTAVO", "args": COMMAND}
LOCAL: dict[str, Any] = {
    **{
        name: {"mcpServers": {"octavo": PLAIN}}
        for name in ("claude-code", "claude-desktop", "cursor", "gemini-cli", "windsurf")
    },
    "vscode": {"servers": {"octavo": PLAIN}},
    "codex": {"mcp_servers": {"octavo": PLAIN}},
    "opencode": {
        "mcp": {
            "octavo": {"type": "local", "command": ["OCTAVO", *COMMAND], "environment": {}, "enabled": True},
        }
    },
    "zed": {"context_servers": {"octavo": {"source": "custom", **PLAIN, "env": {}}}},
}


def _bearer(reference: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {reference}"}}


REMOTE: dict[str, Any] = {
    "claude-code": {"mcpServers": {"octavo": {"type": "http", "url": URL, **_bearer("${OCTAVO_KEY}")}}},
    "vscode": {"servers": {"octavo": {"type": "http", "url": URL, **_bearer("${env:OCTAVO_KEY}")}}},
    "cursor": {"mcpServers": {"octavo": {"url": URL, **_bearer("${env:OCTAVO_KEY}")}}},
    "codex": {"mcp_servers": {"octavo": {"url": URL, "bearer_token_env_var": "OCTAVO_KEY"}}},
    "gemini-cli": {"mcpServers": {"octavo": {"type": "http", "url": URL, **_bearer("${OCTAVO_KEY}")}}},
    "opencode": {
        "mcp": {"octavo": {"type": "remote", "url": URL, **_bearer("{env:OCTAVO_KEY}"), "enabled": True}},
    },
    "windsurf": {"mcpServers": {"octavo": {"serverUrl": URL, **_bearer("${env:OCTAVO_KEY}")}}},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of one's own, with a folder to serve and a project as the working directory."""
    made = tmp_path / "home"
    (made / "notes").mkdir(parents=True)
    (made / "project").mkdir()
    monkeypatch.setenv("HOME", str(made))
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
        "LC_ALL",
        "LC_MESSAGES",
        "LANG",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(made / "project")
    return made


def read(file: Path) -> Any:
    text = file.read_text(encoding="utf-8-sig")
    return tomllib.loads(text) if file.suffix == ".toml" else jsonc.read(text)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder but the state."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if ".local" not in path.relative_to(folder).parts
    }


def as_written(value: Any, home: Path) -> Any:
    """An expectation, with this program and folder in it."""
    command = str(Path(sys.executable).parent / "octavo")
    text = json.dumps(value).replace('"OCTAVO"', json.dumps(command)).replace('"DIR"', json.dumps(str(home / "notes")))
    return json.loads(text)


@pytest.mark.seed("F1")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_folder_is_put_where_the_client_looks_and_taken_back(client: str, home: Path, run: Run) -> None:
    before = snapshot(home)
    done = run("install", client, home / "notes", "--yes")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("--- /dev/null\n+++ ")
    assert read(home / USER[client]) == as_written(LOCAL[client], home)
    assert f"octavo: to take it back: octavo uninstall {client}\n" in done.stderr
    assert run("uninstall", client, "--yes").exit_code == 0
    assert snapshot(home) == before


@pytest.mark.parametrize("client", PROJECT)
def test_a_project_has_a_file_of_its_own(client: str, home: Path, run: Run) -> None:
    before = snapshot(home)
    done = run("install", client, "--url", URL, "--project", "--yes")
    assert done.exit_code == 0, done.stderr
    assert "octavo" in str(read(home / "project" / PROJECT[client]))
    assert run("uninstall", client, "--project", "--yes").exit_code == 0
    assert snapshot(home) == before


@pytest.mark.parametrize("client", sorted(set(CLIENTS) - set(PROJECT)))
def test_a_client_without_project_files_says_so(client: str, home: Path, run: Run) -> None:
    done = run("install", client, home / "notes", "--project", "--yes")
    assert done.exit_code == 1
    assert "has no file for a project; leave out --project" in done.stderr


@pytest.mark.parametrize("client", REMOTE)
def test_a_key_is_named_and_never_written(client: str, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_KEY", "a-key-that-nobody-shall-see")
    done = run("install", client, "--url", URL, "--key-env", "OCTAVO_KEY", "--yes")
    assert done.exit_code == 0, done.stderr
    assert read(home / USER[client]) == REMOTE[client]
    assert b"nobody-shall-see" not in b"".join(data or b"" for data in snapshot(home).values())
    assert "the key is not in the file: OCTAVO_KEY must be in the environment of" in done.stderr


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("zed", "--url", URL, "--key-env", "OCTAVO_KEY"), "Zed reads no variables in headers"),
        (("claude-desktop", "--url", URL), "Claude Desktop starts servers from its file"),
    ],
)
def test_what_a_client_cannot_be_told_is_refused(args: tuple[str, ...], sentence: str, home: Path, run: Run) -> None:
    before = snapshot(home)
    done = run("install", *args, "--yes")
    assert (done.exit_code, snapshot(home)) == (1, before)
    assert sentence in done.stderr


_RANDOM = "q7Rt2LxWv9ZkB4mNc8Yp3HdJf6Gs1TaQ0UeXi5Ow"
_OURS = "Vb3-xK9_mQ2wErT7yUiOp4aSdFgH8jKlZxC1vBnM5qW"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        *(
            (url, "not a plain address")
            for url in (
                "http://127.0.0.1/mcp\n[x]",
                'http://127.0.0.1/mcp"\nx = "y',
                'http://127.0.0.1/"mcp"',
                "http://127.0.0.1/a b",
                "http://127.0.0.1/mcp\t",
                " http://127.0.0.1/mcp",
                "http://127.0.0.1/mcp\x1b[2J",
                "http://127.0.0.1/mcp\u202e",
                "http://127.0.0.1\\mcp",
                "http://127.0.0.1:99999/mcp",
                "http://127.0.0.1:x/mcp",
                "http://[::1/mcp",
                "http:///mcp",
                "http:127.0.0.1/mcp",
                "ws://127.0.0.1/mcp",
                "file:///etc/passwd",
                "javascript:alert(1)",
                f"http://127.0.0.1/mcp#token={_RANDOM}",
            )
        ),
        *(
            (f"https://mcp.example.com/{rest}", "holds a secret")
            for rest in (
                f"mcp?key={_RANDOM[:32]}",
                *(f"mcp?{name}=kX7" for name in ("key", "api_key", "apiKey", "access-token", "TOKEN", "secret", "sig")),
                *(f"mcp?{name}=kX7" for name in ("password", "pwd", "auth", "code", "X-Session", "client%5fsecret")),
                "mcp?k%65y=kX7",
                "mcp?a=b;key=kX7",
                f"mcp?x={_RANDOM[:32]}",
                f"s/{_RANDOM}/mcp",
                f"s/{_RANDOM.lower()}/mcp",
                "s/1f0c9a7e5b2d4e8f9a6c3b7d1e0f2a4c/mcp",
                "s/5b2d4e8f-9a6c-4b7d-8e0f-2a4c1f0c9a7e/mcp",
                f"mcp;{_RANDOM}",
                f"octavo_1f0c9a7e_{_OURS}/mcp",
                f"mcp?x=octavo_1f0c9a7e_{_OURS}",
                f"mcp?x=octavo_{_OURS}",
                f"octavo_{_OURS}",
            )
        ),
    ],
)
@pytest.mark.parametrize("client", ["codex", "cursor"])
def test_what_is_no_address_or_holds_a_secret_is_not_written(
    client: str, url: str, sentence: str, home: Path, run: Run
) -> None:
    before = snapshot(home)
    done = run("install", client, "--url", url, "--yes")
    assert (done.exit_code, snapshot(home)) == (2, before)
    assert sentence in " ".join(done.stderr.split()), done.stderr
    assert not any(part in done.stdout + done.stderr for part in (_RANDOM[:20], _OURS[:20], "kX7", "1f0c9a7e"))


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8321/mcp",
        "http://[::1]:8321/mcp",
        "HTTPS://MCP.example.com",
        "https://mcp.example.com/model-context-protocol-2025-11-25/mcp",
        "https://mcp.example.com/teams/octavo-prod-eu-west-1-cluster-2-v3/mcp",
        "https://mcp.example.com/release-2025-11-25-v2-rc1/mcp",
        "https://mcp.example.com/MyCompanyInternalToolsServer2025/mcp",
        "https://mcp.example.com/internationalization/%ED%9A%8C%EC%82%AC/mcp",
        "https://mcp.example.com/mcp?team=marketing&version=2026-07-28&page=12",
        "https://mcp.example.com/accounts/12345678901234567890/mcp?key=",
    ],
)
def test_addresses_that_only_name_a_server_are_written(url: str, home: Path, run: Run) -> None:
    done = run("install", "cursor", "--url", url, "--yes")
    assert done.exit_code == 0, done.stderr
    assert read(home / USER["cursor"])["mcpServers"]["octavo"]["url"] == url


@pytest.mark.parametrize(
    "args",
    [
        ("--url", "http://user:word@127.0.0.1/mcp"),
        ("--url", "http://127.0.0.1/mcp?key=ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ("--url", "127.0.0.1:8321"),
        ("--url", URL, "--key-env", "ghp_16C7e42F-292c6912E7710c838347Ae178B4a"),
        ("--url", URL, "--write"),
        ("--url", URL, "--name", "a b"),
        ("--url", "http://127.0.0.1:8321/${env:HOME}"),
        ("--url", "http://127.0.0.1:8321/$HOME"),
        ("--url", "http://127.0.0.1:8321/{env:HOME}"),
        ("--config", "${env:HOME}/octavo.yaml"),
        ("--config", "$HOME/octavo.yaml"),
        ("--config", "{file:x}/octavo.yaml"),
        ("${HOME}",),
        ("notes", "--key-env", "OCTAVO_KEY"),
        ("nowhere",),
        (),
    ],
)
def test_wrong_usage_changes_nothing_and_shows_no_secret(args: tuple[str, ...], home: Path, run: Run) -> None:
    if "--config" in args:
        folder = Path(args[-1]).parent
        folder.mkdir(parents=True)
        text = f"sources: {{n: {{kind: file, roots: [{home}/notes]}}}}\n"
        (folder / "octavo.yaml").write_text(text, encoding="utf-8")
    elif args and args[0].startswith("$"):
        Path(args[0]).mkdir()
    before = snapshot(home)
    done = run("install", "cursor", *(str(home / one) if one == "notes" else one for one in args), "--yes")
    assert (done.exit_code, snapshot(home)) == (2, before)
    assert "16C7e42F" not in done.output


JSON_FILES = {
    "remarks": '// mine\n{\n // servers\n  "mcpServers": {\n    "a": {"url": "x"} // last\n    /* end */\n  },\n}\n',
    "a comma at the end": '{\n\t"mcpServers": {\n\t\t"a": {"command": "x"},\n\t},\n}\n',
    "windows": '\ufeff{\r\n    "mcpServers": {\r\n        "b": {\r\n            "url": "u"\r\n        }\r\n    }\r\n}',
    "one line": '{"mcpServers":{"a":{"command":"x"}},"z":1}',
    "empty object": "{}",
    "empty servers": '{\n   "theme": "dark",\n   "mcpServers": {}\n}\n',
    "empty with a remark": '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
    "other keys": '{"theme": "다크",\n "n": [1, 2.50, 1e3, {"deep": {}}]}',
    "empty": "",
    "only a remark": "// nothing yet",
    "own entry": '{\n  "mcpServers": {\n    "octavo": {"command": "old"},\n    "z": {}\n  }\n}\n',
}


@pytest.mark.parametrize("text", JSON_FILES.values(), ids=JSON_FILES)
def test_everything_else_in_a_file_stays_and_comes_back_to_the_byte(text: str, home: Path, run: Run) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes(text.encode())
    file.chmod(0o640)
    assert run("install", "cursor", home / "notes", "--yes").exit_code == 0
    installed = file.read_bytes()
    others = {**jsonc.read(text.removeprefix("\ufeff"))}
    expected = as_written(LOCAL["cursor"], home)["mcpServers"]
    assert read(file) == {**others, "mcpServers": {**others.get("mcpServers", {}), **expected}}
    assert installed.startswith(b"\xef\xbb\xbf") is text.startswith("\ufeff")
    assert (b"\r\n" in installed, installed.count(b"\n") - installed.count(b"\r\n")) == (
        "\r\n" in text,
        0 if "\r\n" in text else installed.count(b"\n"),
    )
    for remark in ("// mine", "// servers", "// last", "/* end */", "// none yet", "// nothing yet"):
        assert (remark.encode() in installed) is (remark in text)
    assert file.stat().st_mode & 0o777 == 0o640
    again = run("install", "cursor", home / "notes", "--yes")
    assert "has this entry already; nothing to do" in again.stderr and file.read_bytes() == installed
    assert run("install", "cursor", "--url", URL, "--yes").exit_code == 0
    assert run("uninstall", "cursor", "--yes").exit_code == 0
    assert file.read_bytes() == text.encode()


@pytest.mark.parametrize("text", JSON_FILES.values(), ids=JSON_FILES)
def test_taking_out_by_spans_gives_the_text_back_too(text: str) -> None:
    """As for a file that somebody else has changed since, where no copy helps."""
    text = text.removeprefix("\ufeff")
    entry = {"command": "octavo", "args": ["serve"]}
    put = jsonc.put(text, ("mcpServers", "new"), entry)
    assert jsonc.read(put)["mcpServers"]["new"] == entry
    taken = jsonc.take(put, ("mcpServers", "new"))
    if "mcpServers" in text and text != JSON_FILES["empty with a remark"]:
        assert taken == text
    assert {**jsonc.read(taken), "mcpServers": 0} == {**jsonc.read(text), "mcpServers": 0}


@pytest.mark.parametrize(
    "text",
    [
        'model = "o"  # m\n\n[mcp_servers.a]\ncommand = "x"\n\n# of b\n[mcp_servers."b c"]\nargs = [\n"1", # one\n]\n',
        'model = "o"\r\n[projects."/srv"]\r\ntrust_level = "trusted"\r\n',
        "",
        'text = """\n[mcp_servers.octavo]\n"""',
        '[mcp_servers.octavo]\ncommand = "old"\n[mcp_servers.octavo.env]\nA = "1"\n[tui]\nx = 1\n',
    ],
    ids=["remarks", "windows", "empty", "a header in a text", "own entry"],
)
def test_tables_of_toml_too(text: str, home: Path, run: Run) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_bytes(text.encode())
    done = run("install", "codex", home / "notes", "--yes")
    assert done.exit_code == 0, done.stderr
    others = tomllib.loads(text)
    expected = as_written(LOCAL["codex"], home)["mcp_servers"]
    assert read(file) == {**others, "mcp_servers": {**others.get("mcp_servers", {}), **expected}}
    assert run("uninstall", "codex", "--yes").exit_code == 0
    assert file.read_bytes() == text.encode()


def test_when_somebody_else_has_written_since_only_the_entry_goes(home: Path, run: Run) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{\n  "mcpServers": {\n    "a": {}\n  }\n}\n', encoding="utf-8")
    run("install", "cursor", home / "notes", "--yes")
    changed = file.read_text(encoding="utf-8").replace('"a": {}', '"a": {"env": {}}, // changed')
    file.write_text(changed.replace("\n}\n", ',\n  "more": 1\n}\n'), encoding="utf-8")
    assert run("uninstall", "cursor", "--yes").exit_code == 0
    text = '{\n  "mcpServers": {\n    "a": {"env": {}} // changed\n  },\n  "more": 1\n}\n'
    assert read(file) == jsonc.read(text)
    assert "// changed" in file.read_text(encoding="utf-8")


def test_a_table_that_somebody_has_written_into_goes_with_what_is_below_it(home: Path, run: Run) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text("# mine\n[tui]\nx = 1\n", encoding="utf-8")
    run("install", "codex", home / "notes", "--yes")
    with file.open("a", encoding="utf-8") as more:
        more.write('\n[mcp_servers.octavo.tools.read]\nmode = "approve"\n\n# of z\n[z]\ny = 2\n')
    assert run("uninstall", "codex", "--yes").exit_code == 0
    assert file.read_text(encoding="utf-8") == "# mine\n[tui]\nx = 1\n\n# of z\n[z]\ny = 2\n"


def test_the_file_as_it_was_is_kept_for_the_user_alone(home: Path, run: Run) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {}}', encoding="utf-8")
    done = run("install", "cursor", home / "notes", "--yes")
    backup = Path(done.stderr.partition("the file as it was: ")[2].partition("\n")[0])
    assert backup.read_text(encoding="utf-8") == '{"mcpServers": {}}'
    assert backup.stat().st_mode & 0o077 == backup.parent.stat().st_mode & 0o077 == 0
    run("uninstall", "cursor", "--yes")
    assert not backup.exists()


def _installed(home: Path, run: Run) -> tuple[Path, Path, Path]:
    """The client's file, its receipt and its copy."""
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"a": {"command": "mine"}}}', encoding="utf-8")
    assert run("install", "cursor", home / "notes", "--yes").exit_code == 0
    kept = home / ".local/state/octavo/clients"
    (receipt,), (copy,) = kept.glob("*.json"), kept.glob("*.before")
    return file, receipt, copy


FORGED = b'{"mcpServers": {"a": {"command": "theirs"}}}'


def _forge(receipt: Path, copy: Path) -> None:
    """As somebody would who can write there, and cannot read the secret."""
    told = json.loads(receipt.read_bytes())
    said = told.get("receipt", told)
    said["before"] = hashlib.sha256(FORGED).hexdigest()
    receipt.write_text(json.dumps(told, separators=(",", ":")), encoding="utf-8")
    copy.write_bytes(FORGED)


def _plain(receipt: Path, copy: Path) -> None:
    told = json.loads(receipt.read_bytes())
    receipt.write_text(json.dumps(told.get("receipt", told)), encoding="utf-8")


def _given_away(receipt: Path, copy: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(receipt, 65534, 65534)


def _without_secret(receipt: Path, copy: Path) -> None:
    (receipt.parent / "secret").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "harm",
    [
        _forge,
        _plain,
        _given_away,
        _without_secret,
        lambda receipt, copy: receipt.chmod(0o666),
        lambda receipt, copy: copy.chmod(0o622),
        lambda receipt, copy: copy.write_bytes(FORGED),
        lambda receipt, copy: (copy.rename(copy.with_name("x")), copy.symlink_to("x")),
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_what_others_could_have_kept_is_not_given_back(harm: Any, again: bool, home: Path, run: Run) -> None:
    """Then only the entry goes; after another installation, what that one found comes back."""
    file, receipt, copy = _installed(home, run)
    harm(receipt, copy)
    if again:
        assert run("install", "cursor", home / "notes", "--as", "local", "--yes").exit_code == 0
    assert run("uninstall", "cursor", "--yes").exit_code == 0
    servers = json.loads(file.read_bytes())["mcpServers"]
    assert servers.pop("a") == {"command": "mine"}
    assert again or not servers
    assert not receipt.exists() and not copy.exists()


def test_where_others_may_write_nothing_is_kept_and_nothing_done(home: Path, run: Run) -> None:
    file, receipt, _ = _installed(home, run)
    receipt.parent.chmod(0o777)
    before = file.read_bytes()
    for command in (("uninstall", "cursor"), ("install", "cursor", home / "notes", "--write")):
        done = run(*command, "--yes")
        assert (done.exit_code, file.read_bytes()) == (1, before)
        assert "others may write" in done.stderr and "chmod 700" in done.stderr


def test_something_at_the_name_of_the_new_file_is_left_with_a_next_step(home: Path, run: Run) -> None:
    (home / ".cursor/.mcp.json.octavo-new/mine").mkdir(parents=True)
    before = snapshot(home)
    done = run("install", "cursor", home / "notes", "--yes")
    assert (done.exit_code, snapshot(home)) == (1, before)
    assert ".mcp.json.octavo-new is in the way; move it elsewhere and run the command again" in done.stderr


def test_the_difference_is_shown_without_secrets_of_neighbours_and_nothing_is_written(home: Path, run: Run) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(
        '{\n  "mcpServers": {\n    "a": {"env": {"T": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}}\n  }\n}\n',
        encoding="utf-8",
    )
    before = snapshot(home)
    done = run("install", "cursor", home / "notes", "--dry-run")
    assert (done.exit_code, snapshot(home)) == (0, before)
    assert not (home / ".local").exists()
    assert '+    "octavo": {' in done.stdout
    assert "16C7e42F" not in done.stdout
    asked = run("install", "cursor", home / "notes")
    assert (asked.exit_code, snapshot(home)) == (1, before)
    assert "there is no terminal to ask at" in asked.stderr


NEIGHBOURS = {
    "json": """{"mcpServers": {
      "a": {"command": "plain", "env": {"SL": "word-one", // "OLD": "word-two"
        "deep": {"list": ["word-three", {"x": 1234567}]}}},
      "b": {"url": "http://h", "headers": {"X": "word-four"}, "more": [{"Env": {"Y": "word-five"}}]}
    }}""",
    "one line": '{"mcpServers": {"a": {"env": {"SL": "word-one", "T": "word-two"}, "command": "plain"}}}',
    "own": '{"mcpServers": {"octavo": {"command": "plain", "headers": {"X": "word-one"}}}}',
}
TABLES = """[mcp_servers.a]
command = "plain"
env = { SL = "word-one" }
http_headers.X = "word-two"
[mcp_servers.b.env]
S = "word-three" # word-four
# OLD = "word-five"
MANY = \"\"\"
[mcp_servers.c]
word-six = 1
\"\"\"
"quoted = name" = ["word-seven",
  "word-eight"]
[mcp_servers.c]
command = "plain"
"""


@pytest.mark.parametrize("form", NEIGHBOURS)
def test_what_neighbours_are_given_is_not_shown_whatever_it_looks_like(form: str, home: Path, run: Run) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(NEIGHBOURS[form], encoding="utf-8")
    done = run("install", "cursor", "--url", URL, "--key-env", "OCTAVO_KEY", "--yes")
    assert done.exit_code == 0 and "plain" in done.stdout and "[hidden]" in done.stdout
    assert "word-" not in done.stdout and "1234567" not in done.stdout
    assert "Bearer ${env:OCTAVO_KEY}" in done.stdout or form == "one line"  # cut
    assert "[hidden]" not in file.read_text(encoding="utf-8")
    gone = run("uninstall", "cursor", "--yes")
    assert gone.exit_code == 0 and "word-" not in gone.stdout
    assert file.read_text(encoding="utf-8") == NEIGHBOURS[form]


def test_what_neighbours_are_given_in_tables_is_not_shown(home: Path, run: Run) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(TABLES, encoding="utf-8")
    done = run("install", "codex", home / "notes", "--yes")
    assert done.exit_code == 0 and "+[mcp_servers.octavo]" in done.stdout and "word-" not in done.stdout
    assert run("uninstall", "codex", "--yes").exit_code == 0
    assert file.read_text(encoding="utf-8") == TABLES
    shown = toml.veiled(TABLES, HELD, ())
    assert re.findall("word-[a-z]+", shown) == [] and shown.count("plain") == 2 and "[mcp_servers.c]" in shown
    assert tomllib.loads(shown)["mcp_servers"]["b"]["env"]["quoted = name"] == "[hidden]"


@pytest.mark.parametrize(("keys", "code", "wrote"), [(b"y\n", 0, True), (b"n\n", 0, False), (b"\x03n\n", 130, False)])
def test_a_person_sees_the_difference_and_is_asked(keys: bytes, code: int, wrote: bool, home: Path) -> None:
    with terminal("install", "cursor", home / "notes", columns=20) as person:
        person.wait_for(r"Write this\? \[y/N\]")  # a line after Ctrl-C: it may come before the program reads
        assert '"octavo": {' in person.shown
        person.type(keys)
        assert person.ends() == code
        assert "Traceback" not in person.shown
    assert (home / ".cursor" / "mcp.json").exists() is wrote


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"mcpServers": {', "line 1: a name in double quotes is missing"),
        ('{\n"a": 1 "b": 2}', "line 2: a comma or } is missing"),
        ('{"a": 1, "a": 2}', '"a" stands twice in one object'),
        ('{"mcpServers": {"x": {}, "x": {}}}', '"x" stands twice in one object'),
        ("[1]", "it is no JSON object"),
        ("{} {}", "something follows the end"),
        ('{"a": ' + "[" * 5000, "nested too deeply"),
        ('{"a": "\\ud8"}', "broken"),
        ('{"mcpServers": null}', "something else than an object at mcpServers"),
        ('{"a": /* never closed', "a value is missing"),
    ],
)
def test_a_broken_file_is_left_with_a_sentence(text: str, why: str, home: Path, run: Run) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    before = snapshot(home)
    done = run("install", "cursor", home / "notes", "--yes")
    assert (done.exit_code, snapshot(home)) == (1, before)
    assert "is left as it is" in done.stderr and why in done.stderr, done.stderr


@pytest.mark.parametrize("client", ["cursor", "opencode", "vscode", "zed"])
@pytest.mark.parametrize("value", ["true", "false", "0", '"text"', '""', "[1]", "[]", "[{}]", "null"])
def test_what_is_no_object_in_the_place_of_servers_is_left(client: str, value: str, home: Path, run: Run) -> None:
    file = home / USER[client]
    file.parent.mkdir(parents=True)
    key = CLIENTS[client].key[0]
    file.write_text(f'{{"{key}": {value}}}', encoding="utf-8")
    _left_with_a_sentence(client, f"something else than an object at {key}", home, run)


@pytest.mark.parametrize(
    "text",
    [
        *(f"mcp_servers = {value}\n" for value in ("true", "false", "0", "'text'", "''", "[1]", "[]", "1979-05-27")),
        "[[mcp_servers]]\n",
        "[[mcp_servers]]\n[mcp_servers.octavo]\ncommand = 'x'\n",
    ],
)
def test_what_is_no_table_in_the_place_of_servers_is_left(text: str, home: Path, run: Run) -> None:
    file = home / USER["codex"]
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    _left_with_a_sentence("codex", "something else than an object at mcp_servers", home, run)


def test_a_number_that_is_too_long_to_be_read_is_said(home: Path, run: Run) -> None:
    file = home / USER["codex"]
    file.parent.mkdir()
    file.write_text(f"n = {'1' * 5000}\n", encoding="utf-8")
    _left_with_a_sentence("codex", "cannot be read", home, run)


def _left_with_a_sentence(client: str, why: str, home: Path, run: Run) -> None:
    before = snapshot(home)
    done = run("install", client, home / "notes", "--yes")
    assert (done.exit_code, snapshot(home)) == (1, before)
    assert "is left as it is" in done.stderr and why in done.stderr, done.stderr
    assert run("uninstall", client, "--yes").exit_code == (0 if "object" in why else 1)
    assert snapshot(home) == before


@pytest.mark.parametrize(
    "text",
    ["[a]\n[a]\n", "x = 1\nx = 2\n", "mcp_servers = {a = {command = 'x'}}\n", "mcp_servers.octavo.command = 'x'\n"],
)
def test_a_table_in_another_form_is_left(text: str, home: Path, run: Run) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    done = run("install", "codex", home / "notes", "--yes")
    assert (done.exit_code, file.read_text(encoding="utf-8")) == (1, text)
    assert "left as it is" in done.stderr


def _linked(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def _folder_linked(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))
    file.parent.symlink_to("elsewhere")


def _two_names(file: Path) -> None:
    file.with_name("other").hardlink_to(file)


def _no_file(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _latin(file: Path) -> None:
    file.write_bytes('{"a": "é"}'.encode("utf-16"))


def _foreign(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(file, 65534, 65534)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (_linked, "is a link to elsewhere and is left as it is"),
        (_folder_linked, "is a link to elsewhere and is left as it is"),
        (_two_names, "has a second name"),
        (_no_file, "is not a plain file"),
        (_latin, "is not UTF-8"),
        (_foreign, "belongs to another user"),
        (lambda file: file.chmod(0o444), "is read-only and is left as it is"),
        (lambda file: file.parent.chmod(0o555), "cannot be written; nothing was changed"),
    ],
)
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_files_that_are_not_plainly_the_users_own_are_left(
    make: Any, sentence: str, command: str, home: Path, run: Run
) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"octavo": {}}}', encoding="utf-8")
    make(file)
    before = snapshot(home)
    done = run(command, "cursor", *([home / "notes"] if command == "install" else []), "--yes")
    assert (done.exit_code, snapshot(home)) == (1, before)
    assert sentence in done.stderr, done.stderr


def test_a_home_that_is_not_there_is_said(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home / "gone"))
    done = run("install", "cursor", home / "notes", "--yes")
    assert done.exit_code == 1
    assert f"{home / 'gone'} is not there; nothing was written" in done.stderr
    assert not (home / "gone").exists()


def test_without_a_place_for_the_copy_nothing_is_written(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "state").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    done = run("install", "cursor", home / "notes", "--yes")
    assert done.exit_code == 1
    assert "a file is not changed without a copy; nothing was written" in done.stderr
    assert not (home / ".cursor").exists()


def test_a_configuration_whose_path_is_not_utf8_is_refused(home: Path, run: Run) -> None:
    folder = Path(os.fsdecode(os.fsencode(home) + b"/\xff"))
    folder.mkdir()
    text = f"version: 1\nsources: {{n: {{kind: file, roots: [{home}/notes]}}}}\n"
    (folder / "octavo.yaml").write_text(text, encoding="utf-8")
    done = run("install", "cursor", "--config", folder / "octavo.yaml", "--yes")
    assert done.exit_code == 1
    assert "is not UTF-8 and cannot stand in" in done.stderr
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize("name", [b"\xff", b"a\\b"])
@pytest.mark.parametrize("command", [("install", "cursor"), ("serve",)], ids=" ".join)
def test_a_folder_that_is_no_address_is_refused(command: tuple[str, ...], name: bytes, home: Path, run: Run) -> None:
    folder = Path(os.fsdecode(os.fsencode(home) + b"/" + name))
    folder.mkdir()
    done = run(*command, folder)
    assert done.exit_code == 2
    assert "this path cannot be told as an address (rename it" in done.stderr


def test_a_file_of_a_project_with_paths_of_this_machine_is_said(home: Path, run: Run) -> None:
    done = run("install", "cursor", home / "notes", "--project", "--yes")
    assert "belongs to a project and names paths of this machine" in done.stderr
    shared = run("install", "cursor", "--url", URL, "--project", "--yes")
    assert shared.exit_code == 0 and "paths of this machine" not in shared.stderr


def test_two_entries_stand_beside_each_other_and_go_in_any_order(home: Path, run: Run) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{\n  // mine\n  "mcpServers": {\n    "a": {}\n  }\n}\n', encoding="utf-8")
    before = file.read_bytes()
    for name in ("one", "two"):
        assert run("install", "cursor", home / "notes", "--name", name, "--yes").exit_code == 0
    assert [*read(file)["mcpServers"]] == ["a", "one", "two"]
    for name in ("one", "two"):
        assert run("uninstall", "cursor", "--name", name, "--yes").exit_code == 0
    assert file.read_bytes() == before


DYING = """
import os, signal, sys
from click.testing import CliRunner
import octavo.cli.install, octavo.config.load, octavo.pipeline.redact.redactor
from octavo.cli.group import octavo

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "os.rmdir")
file, ends = sys.argv[1], []

def run(die_at, *args):
    '''In a process of its own, which is killed at so many touches of the file system.'''
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    seen = 0
    def hook(event, details):
        nonlocal seen
        if event in EVENTS and any(".cursor" in str(one) or "clients" in str(one) for one in details):
            seen += 1
            if seen == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    result = CliRunner().invoke(octavo, [*args, "--yes"])
    os._exit(result.exit_code)

before = open(file, "rb").read()
for step in range(1, 100):
    status = run(step, "install", "cursor", sys.argv[2])
    now = open(file, "rb").read()
    assert now == before or b'"octavo"' in now and now.endswith(b"}\\n"), (step, now)
    ends.append(now == before)
    assert run(0, "uninstall", "cursor") == 0, step
    assert open(file, "rb").read() == before, step
    assert sorted(os.listdir(os.path.dirname(file))) == ["mcp.json"] or now == before, step
    if status == 0:
        break
assert run(0, "install", "cursor", sys.argv[2]) == 0 and run(0, "uninstall", "cursor") == 0
assert os.listdir(os.path.dirname(file)) == ["mcp.json"]
print(step, ends.count(True), ends.count(False))
"""


def test_an_installation_that_is_killed_at_any_step_leaves_the_old_file_or_the_new(home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{\n  "mcpServers": {\n    "a": {}\n  }\n}\n', encoding="utf-8")
    command = [sys.executable, "-c", DYING, str(file), str(home / "notes")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    steps, old, new = map(int, done.stdout.split())
    assert steps > 8 and old > 4 and new > 1


def test_a_configuration_is_named_by_its_full_path(home: Path, run: Run) -> None:
    (home / "project" / "octavo.yaml").write_text(
        f"version: 1\nsources: {{n: {{kind: file, roots: [{home}/notes]}}}}\nagents: {{me: {{roles: [a]}}}}\n"
        "policy: [{who: '*', may: '*', what: '**'}]\n",
        encoding="utf-8",
    )
    done = run("install", "cursor", "--as", "me", "--yes")
    assert done.exit_code == 0, done.stderr
    entry = read(home / ".cursor" / "mcp.json")["mcpServers"]["octavo"]
    assert entry["args"] == ["serve", "--config", str(home / "project" / "octavo.yaml"), "--as", "me"]
    assert run("install", "cursor", "--as", "nobody", "--yes").exit_code == 2


def test_what_was_installed_can_be_started(home: Path, run: Run) -> None:
    (home / "notes" / "a.md").write_text("# One\n", encoding="utf-8")
    assert run("install", "claude-code", home / "notes", "--project", "--yes").exit_code == 0
    entry = read(home / "project" / ".mcp.json")["mcpServers"]["octavo"]
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"_meta": meta}}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    with subprocess.Popen([entry["command"], *entry["args"]], cwd="/", **pipes) as started:
        assert started.stdin is not None and started.stdout is not None
        started.stdin.write(json.dumps(asked) + "\n")
        started.stdin.flush()
        assert "a.md" in started.stdout.readline()
        started.stdin.close()
        assert started.wait(30) == 0


def test_the_places_of_other_systems() -> None:
    home = Path("/home/me")
    mac = {name: str(place_of(one, {}, home, system="darwin")[0]) for name, one in CLIENTS.items()}
    assert mac["claude-desktop"] == "/home/me/Library/Application Support/Claude/claude_desktop_config.json"
    assert mac["zed"] == "/home/me/.config/zed/settings.json"
    assert mac["claude-code"] == "/home/me/.claude.json"
    environ = {"XDG_CONFIG_HOME": "/etc/me", "CODEX_HOME": "/srv/codex", "APPDATA": "/app"}
    assert str(place_of(CLIENTS["opencode"], environ, home)[0]) == "/etc/me/opencode/opencode.jsonc"
    assert str(place_of(CLIENTS["codex"], environ, home)[0]) == "/srv/codex/config.toml"
    assert str(place_of(CLIENTS["vscode"], environ, home, system="win32")[0]) == "/app/Code/User/mcp.json"


def test_in_korean_where_the_terminal_is(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ko_KR.UTF-8")
    assert "되돌리려면: octavo uninstall cursor" in run("install", "cursor", home / "notes", "--yes").stderr
    english, korean = ({key for key in catalogue(code) if key.startswith("install.")} for code in ("en", "ko"))
    assert english == korean


@pytest.mark.parametrize("word", ["a\x7fb", "a\x00b", "é\u2028", "a\\b", '"', "two\nlines", "😀"])
def test_whatever_a_value_holds_is_written_into_toml_so_that_it_is_read_again(word: str) -> None:
    text = toml.put("# mine\n", ("mcp_servers", word), {"command": word, "args": [word, "x"]})
    assert text.startswith("# mine\n") and tomllib.loads(text)["mcp_servers"] == {
        word: {"command": word, "args": [word, "x"]}
    }
    assert toml.take(text, ("mcp_servers", word)) == "# mine\n"
