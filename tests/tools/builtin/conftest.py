"""A house over a folder, and its tools called as a client would have them called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.arguments import OwnArguments
from octavo.core.ref import Ref
from octavo.core.tools import Text, ToolResult
from octavo.core.values import Call, Trail

WRITABLE = 'sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"], write: true}}'


class Tools:
    """Calls tools by name; `root` is the folder that is served."""

    def __init__(self, octavo: Octavo, root: Path) -> None:
        self.octavo, self.root = octavo, root

    async def __call__(self, name: str, /, *, who: str | None = None, **arguments: Any) -> ToolResult:
        works = self.octavo.works
        call = Call(
            "invoke",
            Ref.of("tool", (name,)),
            works.identity.launched(who),
            Trail(),
            f"tool://{name}",
            OwnArguments(arguments),
        )
        with anyio.fail_after(30):
            result: ToolResult = await works.ask(call)
        return result

    async def data(self, name: str, /, *, who: str | None = None, **arguments: Any) -> dict[str, Any]:
        return dict((await self(name, who=who, **arguments)).structured or {})

    async def text(self, name: str, /, *, who: str | None = None, **arguments: Any) -> str:
        first = (await self(name, who=who, **arguments)).content[0]
        assert isinstance(first, Text)
        return first.text

    def put(self, path: str, body: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body.encode() if isinstance(body, str) else body)
        return file


Serve = Callable[..., Awaitable[Tools]]


@pytest.fixture
async def serve(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:

        async def serve(configuration: str = WRITABLE, files: dict[str, str | bytes] | None = None) -> Tools:
            root = tmp_path / "work"
            root.mkdir(exist_ok=True)
            for path, body in (files or {}).items():
                file = root / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(body.encode() if isinstance(body, str) else body)
            file = tmp_path / "octavo.yaml"
            file.write_text("version: 1\n" + dedent(configuration), encoding="utf-8")
            return Tools(await stack.enter_async_context(Octavo(load(file, environ={}))), root)

        yield serve
