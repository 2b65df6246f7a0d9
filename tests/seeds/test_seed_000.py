"""Seed 000: file resources. What its FileService and ResourceManager promise, asked over the protocol."""

from __future__ import annotations

import base64
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

WORKSPACE = """
sources:
  files: {kind: file, uris: relative, roots: [./workspace],
    extensions: [js, .py, .json, .yaml, MD, .txt, .csv, .png, .jpg, .pdf]}
"""
TWO = """
sources:
  files: {kind: file, uris: relative, roots: [./first, ./second], extensions: [.md]}
"""


@pytest.mark.seed("F1")
async def test_an_address_is_relative_to_an_allowed_directory(serve: Any, put: Any) -> None:
    put("workspace/documents/spec.md", "# Spec\n")
    async with serve(WORKSPACE) as wire:
        assert [entry["uri"] for entry in await wire.listed()] == ["file://documents/spec.md"]
        assert (await wire.read("file://documents/spec.md"))["text"] == "# Spec\n"


@pytest.mark.seed("F1")
async def test_the_absolute_spelling_of_the_same_file_is_understood(serve: Any, put: Any, tmp_path: Path) -> None:
    put("workspace/documents/spec.md", "# Spec\n")
    address = f"file://{tmp_path}/workspace/documents/spec.md"
    async with serve(WORKSPACE) as wire:
        content = await wire.read(address)
    assert (content["uri"], content["text"]) == (address, "# Spec\n")


@pytest.mark.seed("F7")
@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("src/utils.js", "text/javascript"),
        ("src/main.py", "text/x-python"),
        ("settings.json", "application/json"),
        ("settings.yaml", "application/yaml"),
        ("notes.md", "text/markdown"),
        ("notes.txt", "text/plain"),
        ("rows.csv", "text/csv"),
    ],
)
async def test_text_files_of_every_sort_are_read_as_text(serve: Any, put: Any, name: str, mime: str) -> None:
    put(f"workspace/{name}", "내용 content\n")
    async with serve(WORKSPACE) as wire:
        content = await wire.read(f"file://{name}")
    assert (content["mimeType"], content["text"]) == (mime, "내용 content\n")


@pytest.mark.seed("F7")
@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("documents/report.pdf", "application/pdf"),
        ("image.png", "image/png"),
        ("photo.jpg", "image/jpeg"),
    ],
)
async def test_binary_files_are_read_as_base64(serve: Any, put: Any, name: str, mime: str) -> None:
    put(f"workspace/{name}", b"%PDF-1.7 \xff\x00")
    async with serve(WORKSPACE) as wire:
        content = await wire.read(f"file://{name}")
    assert (content["mimeType"], base64.b64decode(content["blob"])) == (mime, b"%PDF-1.7 \xff\x00")


@pytest.mark.seed("F2")
async def test_extensions_count_with_or_without_the_dot_in_any_case(serve: Any, put: Any) -> None:
    for name in ("a.js", "b.JS", "c.Md", "d.exe", "e.js.exe", "README"):
        put(f"workspace/{name}", "x")
    async with serve(WORKSPACE) as wire:
        assert [entry["name"] for entry in await wire.listed()] == ["a.js", "b.JS", "c.Md"]
        for name in ("d.exe", "e.js.exe", "README", "absent.exe"):
            error = await wire.refused("resources/read", uri=f"file://{name}")
            assert error["code"] == -32003, f"{name}: by its name alone, whether it is there or not"


@pytest.mark.seed("F2")
@pytest.mark.parametrize(
    ("extensions", "seen"),
    [
        ('["*"]', ["Makefile", "a.md", "b.exe"]),
        ("[]", ["Makefile", "a.md"]),
        ("[Makefile]", ["Makefile"]),
    ],
    ids=["all", "none said", "by name"],
)
async def test_a_star_allows_all_and_an_empty_list_what_is_harmless(
    serve: Any, put: Any, extensions: str, seen: list[str]
) -> None:
    for name in ("Makefile", "a.md", "b.exe", ".env", "key.pem"):
        put(f"workspace/{name}", "x")
    async with serve(
        f"sources: {{f: {{kind: file, uris: relative, roots: [./workspace], extensions: {extensions}}}}}"
    ) as wire:
        assert [entry["name"] for entry in await wire.listed()] == seen


@pytest.mark.seed("F3", "F8")
@pytest.mark.parametrize(
    "address",
    [
        "file://../forbidden.txt",
        "file://documents/../../forbidden.txt",
        "file://%2e%2e/forbidden.txt",
        "file:///etc/passwd",
        "file:///etc/shadow.txt",
    ],
)
async def test_traversal_and_paths_outside_are_forbidden(serve: Any, put: Any, address: str) -> None:
    put("workspace/documents/spec.md", "x")
    put("forbidden.txt", "secret")
    async with serve(WORKSPACE) as wire:
        error = await wire.refused("resources/read", uri=address)
    assert (error["code"], error["message"]) == (-32003, f"Access denied to resource: {address}")
    assert "secret" not in json.dumps(error)


@pytest.mark.seed("F3", "F8")
async def test_a_missing_file_is_not_found(serve: Any, put: Any) -> None:
    put("workspace/documents/spec.md", "x")
    async with serve(WORKSPACE) as wire:
        error = await wire.refused("resources/read", uri="file://documents/none.md")
    assert (error["code"], error["message"]) == (-32002, "Resource not found: file://documents/none.md")
    assert error["data"] == {"uri": "file://documents/none.md"}


@pytest.mark.seed("F8", "A12")
@pytest.mark.parametrize("address", ["http:/x", "documents/spec.md", "", "file:documents", "://x"])
async def test_text_that_is_no_address_is_invalid(serve: Any, put: Any, address: str) -> None:
    put("workspace/documents/spec.md", "x")
    async with serve(WORKSPACE) as wire:
        assert (await wire.refused("resources/read", uri=address))["code"] == -32602


@pytest.mark.seed("F6", "F8")
async def test_another_scheme_is_invalid_and_says_so(serve: Any, put: Any) -> None:
    put("workspace/documents/spec.md", "x")
    async with serve(WORKSPACE) as wire:
        error = await wire.refused("resources/read", uri="gopher://documents/spec.md")
    assert (error["code"], error["data"]["reason"]) == (-32602, "unknown_scheme")


@pytest.mark.seed("F1")
async def test_of_several_directories_the_first_that_has_a_file_wins(serve: Any, put: Any) -> None:
    put("first/both.md", "from the first")
    put("second/both.md", "from the second")
    put("second/only.md", "only in the second")
    async with serve(TWO) as wire:
        assert (await wire.read("file://both.md"))["text"] == "from the first"
        assert (await wire.read("file://only.md"))["text"] == "only in the second"
        assert [entry["uri"] for entry in await wire.listed()] == [
            "file://both.md",
            "file:///second/both.md",
            "file://only.md",
        ]
        for address in ("file:///second/both.md", "file://both.md?root=2"):
            assert (await wire.read(address))["text"] == "from the second"


@pytest.mark.seed("F6")
async def test_a_listing_gives_name_and_address_of_allowed_files_only(serve: Any, put: Any) -> None:
    put("workspace/resources/guide.md", "x")
    put("workspace/resources/tool.exe", "x")
    put("workspace/resources/deep/more.md", "x")
    put("workspace/elsewhere.md", "x")
    one_folder = WORKSPACE.replace("}", ", list: {under: resources, recursive: false}}")
    async with serve(one_folder) as wire:
        listed = [(entry["name"], entry["uri"]) for entry in await wire.listed()]
        assert listed == [("guide.md", "file://resources/guide.md")]
        assert (await wire.read("file://elsewhere.md"))["text"] == "x", "it limits the list, not what can be read"


@pytest.mark.seed("F6")
async def test_a_directory_that_is_missing_is_an_empty_list(serve: Any, put: Any) -> None:
    put("workspace/guide.md", "x")
    async with serve(WORKSPACE.replace("}", ", list: {under: resources}}")) as wire:
        assert await wire.listed() == []


@pytest.mark.seed("F9", "A7")
async def test_every_attempt_good_or_bad_is_recorded_once(serve: Any, put: Any) -> None:
    put("workspace/guide.md", "x")
    async with serve(WORKSPACE) as wire:
        await wire.read("file://guide.md")
        for address in ("file://none.md", "file://../x.md", "file://tool.exe", "nonsense"):
            await wire.refused("resources/read", uri=address)
        records = [(record["uri"], record["outcome"]) for record in wire.records() if record["op"] == "read"]
    assert records == [
        ("file://guide.md", "ok"),
        ("file://none.md", "not_found"),
        ("file://../x.md", "forbidden"),
        ("file://tool.exe", "forbidden"),
        ("nonsense", "invalid_params"),
    ]


@pytest.mark.seed("F11", "B2")
async def test_a_prompt_cannot_show_a_file_that_its_caller_may_not_read(serve: Any, put: Any) -> None:
    put("workspace/src/utils.js", "export {}\n")
    put("workspace/private/utils.js", "secret\n")
    template = {
        "id": "look",
        "description": "Shows a file.",
        "inputSchema": {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]},
        "messages": [{"role": "user", "content": [{"type": "resource", "uri": "{{file}}"}]}],
    }
    put("prompts/look.json", json.dumps(template))
    policy = """
policy:
  - {who: local, may: [list, read, render], what: ["file://*", "prompt://*"]}
  - {who: "*", may: "*", what: "file://private/*", effect: deny}
"""
    async with serve(WORKSPACE + policy) as wire:
        shown = await wire.ask("prompts/get", name="look", arguments={"file": "file://src/utils.js"})
        assert shown["messages"][0]["content"]["resource"]["text"] == "export {}\n"
        refused = {"file://private/utils.js": -32003, "file://../x.js": -32003, "file://no.js": -32002}
        for address, code in refused.items():
            error = await wire.refused("prompts/get", name="look", arguments={"file": address})
            assert error["code"] == code and "secret" not in json.dumps(error)


@pytest.mark.seed("F3", "B1")
@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="wants Linux")
async def test_swapping_a_folder_for_a_link_never_shows_what_is_outside(serve: Any, put: Any, tmp_path: Path) -> None:
    """A short form of `make race`."""
    put("workspace/real/a.txt", "inside")
    put("outside/a.txt", "outside")
    here, there = tmp_path / "workspace" / "swap", tmp_path / "workspace" / "aside"
    (tmp_path / "workspace" / "swap").mkdir()
    put("workspace/swap/a.txt", "inside")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            here.rename(there)
            here.symlink_to(tmp_path / "outside")
            here.unlink()
            there.rename(here)

    swapper = threading.Thread(target=swap)
    seen: set[str] = set()
    async with serve(WORKSPACE.replace("}", ", cache: {ttl: 0}}")) as wire:
        seen.add((await wire.read("file://swap/a.txt"))["text"])
        swapper.start()
        try:
            for number in range(500):
                params = {"uri": "file://swap/a.txt"}
                message = {"jsonrpc": "2.0", "id": number, "method": "resources/read", "params": params}
                answer = await wire.send(message)
                seen.add(answer["result"]["contents"][0]["text"] if "result" in answer else "refused")
        finally:
            done.set()
            swapper.join()
    assert "inside" in seen and seen <= {"inside", "refused"}
