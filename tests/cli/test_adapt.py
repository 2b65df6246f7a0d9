"""`octavo adapt` carries the seeds' shapes over, lists what it cannot, and drops nothing silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from wcmatch.glob import GLOBSTAR, globmatch

from octavo.app.configuration import load
from octavo.sources.file.options import FileOptions

pytestmark = pytest.mark.seed("A14")


class Made:
    """What `octavo adapt` printed, once `octavo check` has accepted it."""

    def __init__(self, run: Run, folder: Path, text: str) -> None:
        (folder / "foreign").write_text(text, encoding="utf-8")
        result = run("adapt", folder / "foreign")
        assert result.exit_code == 0, result.stderr
        self.text = result.stdout
        self.left = [line.partition("not carried over: ")[2] for line in result.stderr.splitlines()]
        assert all(f"#   {one}" in self.text for one in self.left)
        (folder / "octavo.yaml").write_text(self.text, encoding="utf-8")
        checked = run("check", "--config", folder / "octavo.yaml")
        assert checked.exit_code == 0, checked.stderr
        self.config = load(folder / "octavo.yaml", environ={}).config

    @property
    def files(self) -> FileOptions:
        source = self.config.sources["files"]
        assert isinstance(source, FileOptions)
        return source


@pytest.mark.parametrize("wrapped", [False, True])
def test_allowed_directories_become_roots(run: Run, empty: Path, wrapped: bool) -> None:
    """000 and 001: as FileService takes them, or as the message server/config."""
    for name in ("work/allowed", "prompts"):
        (empty / name).mkdir(parents=True)
    asked: dict[str, Any] = {
        "allowedDirectories": ["./work", "./work/allowed"],
        "allowedExtensions": [".txt", "js"],
        "promptDirectory": "./prompts",
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "server/config", "params": asked}
    made = Made(run, empty, json.dumps(message if wrapped else asked))
    assert [root.path for root in made.files.roots] == [empty / "work"]
    assert made.files.extensions == (".txt", "js") and not made.files.write
    assert made.config.prompts.dirs == (empty / "prompts",)
    assert made.left == ["the folder ./work/allowed: stands in ./work, which serves it already"]
    (empty / "work/note.txt").write_text("x", encoding="utf-8")
    assert run("ls").stdout.split() == ["file://note.txt"]  # seed 000's own addresses


@pytest.mark.seed("F1")
def test_folders_of_one_name_are_told_apart_by_their_paths(run: Run, empty: Path) -> None:
    folders = [empty / "a/docs", empty / "b/docs", empty / "c/docs"]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "note.txt").write_text(folder.parent.name, encoding="utf-8")
    asked = [str(folders[0]), "./b/docs", "./c/docs/"]
    made = Made(run, empty, json.dumps({"allowedDirectories": asked, "allowedExtensions": ["*"]}))
    assert [root.shown for root in made.files.roots] == [str(folders[0]), "/b/docs", "/c/docs"]
    listed = run("ls").stdout.split()
    assert listed == ["file://note.txt", "file:///b/docs/note.txt", "file:///c/docs/note.txt"]
    assert [run("cat", uri).stdout for uri in listed] == ["a", "b", "c"]


CACHING = """
caching:
  enabled: true
  backend: "redis"
  policies:
    github_resources: {ttl: 300, invalidation: "webhook"}
    notion_resources: {ttl: 60, invalidation: "webhook"}
    drive_resources: {ttl: 300, invalidation: "polling"}
  cache_key_pattern: "mcp:resource:{namespace}:{path}"
"""
INVALIDATION = """
invalidation:
  github_webhook: {events: ["push", "pull_request.merged"], action: "invalidate matching resources"}
  notion_webhook: {events: ["page.updated"], action: "invalidate specific page"}
  manual: {endpoint: "POST /cache/invalidate", params: {pattern: "resource URI 패턴"}}
"""
SUBSCRIPTIONS = """
subscriptions:
  supported: true
  events: ["resource/created", "resource/updated", "resource/deleted"]
  granularity: ["namespace", "path", "resource"]
  notification: {format: {type: "resource/updated", uri: "sop://brand/campaign-brief"}}
"""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (CACHING, ["backend", "github_resources", "notion_resources", "drive_resources", "cache_key_pattern"]),
        (INVALIDATION, ["github_webhook", "notion_webhook", "manual"]),
        (SUBSCRIPTIONS, ["supported", "events", "granularity", "notification"]),
    ],
    ids=["caching", "invalidation", "subscriptions"],
)
def test_caching_invalidation_and_subscriptions_are_carried_or_listed(
    run: Run, empty: Path, text: str, left: list[str]
) -> None:
    """003: what is built in, and what belongs to sources that this configuration does not have."""
    made = Made(run, empty, text)
    assert [one.partition(":")[0].rpartition(".")[2] for one in made.left] == left


def test_the_time_of_copies_goes_to_the_files(run: Run, empty: Path) -> None:
    caching = {"policies": {"filesystem_resources": {"ttl": 300, "invalidation": "polling"}}}
    made = Made(run, empty, json.dumps({"caching": caching, "allowedDirectories": ["."]}))
    assert made.files.cache.ttl == 300
    assert made.left == [
        "caching.policies.filesystem_resources.invalidation: polling: changes of files are told by the system itself"
    ]
    assert Made(run, empty, '{"allowedDirectories": ["."], "caching": {"enabled": false}}').files.cache.ttl == 0


def test_resources_of_a_file_server_become_rules(run: Run, empty: Path) -> None:
    """004: mcpServers with command, args and resources."""
    project = empty / "project"
    project.mkdir()
    shape = f"""
mcpServers:
  filesystem:
    command: "mcp-server-filesystem"
    args: ["--root", "{project}"]
    resources:
      - "file://{project}/src/**/*.ts"
      - "file://{project}/package.json"
"""
    made = Made(run, empty, shape)
    assert made.left == [] and not made.files.write
    assert [root.path for root in made.files.roots] == [project] and made.files.extensions == ("*",)
    assert made.config.policy[0].what == (f"file://{project}/src/**/*.ts", f"file://{project}/package.json")
    everything = Made(run, empty, shape.partition("    resources:")[0] + '    resources: "*"\n')
    assert everything.config.policy == ()


@pytest.mark.parametrize("way", ["real", "link"])
def test_the_filter_of_a_client_finds_in_lists_what_it_allows(run: Run, empty: Path, way: str) -> None:
    """004: the client sifts resources/list by its own patterns, which are absolute; so lists have to be too."""
    real, project = empty / "real/project", empty / way / "project"
    (empty / "link").symlink_to("real")
    for name in ("src/index.ts", "src/deep/er/x.ts", "src/x.js", "test/x.ts", "package.json", "config.json"):
        (real / name).parent.mkdir(parents=True, exist_ok=True)
        (real / name).write_text(name, encoding="utf-8")
    resources = [f"file://{project}/src/**/*.ts", f"file://{project}/package.json"]
    server = {"command": "mcp-server-filesystem", "args": ["--root", f"{project}/"], "resources": resources}
    Made(run, empty, json.dumps({"mcpServers": {"filesystem": server}}))
    listed = run("ls").stdout.split()
    assert listed == [f"file://{project}/{name}" for name in ("package.json", "src/deep/er/x.ts", "src/index.ts")]
    assert [uri for uri in listed if any(globmatch(uri, one, flags=GLOBSTAR) for one in resources)] == listed
    for uri in listed:
        assert run("cat", uri).stdout == uri.removeprefix(f"file://{project}/")
    for name in ("config.json", "src/x.js", "test/x.ts"):
        refused = run("cat", f"file://{project}/{name}")
        assert refused.exit_code != 0 and "Access denied" in refused.stderr


@pytest.mark.parametrize(
    "command", [["npx", "-y", "@modelcontextprotocol/server-filesystem@2025.8.21"], ["mcp-server-filesystem"]]
)
def test_the_official_file_server_is_replaced_with_its_tools(run: Run, empty: Path, command: list[str]) -> None:
    entry = {"command": command[0], "args": [*command[1:], str(empty)], "env": {"TOKEN": "s3cret"}, "type": "stdio"}
    other = {"command": "uvx", "args": ["mcp-server-git", "--token=s3cret"]}
    servers = {"mcpServers": {"filesystem": entry, "git": other}, "theme": "dark"}
    made = Made(run, empty, json.dumps(servers, indent="\t"))
    assert made.files.write and made.config.toolsets == ("filesystem",) and made.config.policy == ()
    assert [one.partition(": ")[0] for one in made.left] == [
        "mcpServers.filesystem.env",
        "mcpServers.filesystem.type",
        "mcpServers.git",
        "theme",
    ]
    assert "s3cret" not in made.text


def test_nothing_becomes_writable_that_a_resource_list_only_lets_be_read(run: Run, empty: Path) -> None:
    for name in ("a", "b"):
        (empty / name).mkdir()
    official = {"command": "npx", "args": ["@modelcontextprotocol/server-filesystem", str(empty / "a")]}
    reading = {**official, "args": [official["args"][0], str(empty / "b")], "resources": [f"file://{empty}/b/*.md"]}
    made = Made(run, empty, json.dumps({"mcpServers": {"a": official, "b": reading}}))
    assert not made.files.write and any("writing: off for all" in one for one in made.left)
    assert made.config.policy[0].what == (f"file://{empty}/b/*.md", f"file://{empty}/a/*")


def test_a_foreign_name_stays_inside_its_comment(run: Run, empty: Path) -> None:
    made = Made(run, empty, json.dumps({"allowedDirectories": ["."], "x\nsources: {evil: {}}": 1}))
    assert set(made.config.sources) == {"files"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "must be a mapping"),
        ('{"theme": "dark"}', "none of the known shapes"),
        ("a: [", "error"),
        ("just text", "mapping"),
    ],
)
def test_text_of_no_known_shape_is_refused(run: Run, empty: Path, text: str, says: str) -> None:
    (empty / "foreign").write_text(text, encoding="utf-8")
    result = run("adapt", empty / "foreign")
    assert (result.exit_code, result.stdout) == (2, "") and says in result.stderr


@pytest.mark.parametrize(
    "shape",
    [
        {"allowedDirectories": "x", "allowedExtensions": 1, "promptDirectory": [], "caching": 1},
        {"mcpServers": {"a": 1, "b": {"command": 1, "args": "x"}, "c": {}}},
        {"mcpServers": [], "invalidation": None, "subscriptions": {"supported": False}},
        {"allowedDirectories": ["${workspaceFolder}", 1], "promptDirectory": "${x}", "allowedExtensions": ["/"]},
        {"caching": {"policies": {"file_resources": 1}, "enabled": False, "odd": 1}},
    ],
)
def test_odd_values_are_listed_and_never_fatal(run: Run, empty: Path, shape: dict[str, Any]) -> None:
    assert Made(run, empty, json.dumps(shape)).left
