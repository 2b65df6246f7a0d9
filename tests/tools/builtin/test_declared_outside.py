"""Tools of YAML that reach out: by the same runner and the same client as the toolsets, within what is listed (T10)."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.tools.builtin.conftest import Serve
from tests.tools.builtin.test_web import Site

from octavo.core.errors import Forbidden, InternalError, InvalidParams
from octavo.core.surface import Text

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T10", "T7")]

COUNT = """
name: count
description: Counts characters.
arguments: {word: {type: string}}
command: [count, "--", "{word}"]
stdin: "{word}"
"""
ISSUE = """
name: file_issue
description: Files an issue.
arguments: {title: {type: string}, where: {type: string, default: issues}}
http:
  method: POST
  url: %s/{where}
  json: {title: "{title}"}
"""


def _tool(folder: Path, name: str, text: str) -> None:
    (folder / "tools").mkdir(exist_ok=True)
    (folder / "tools" / f"{name}.yaml").write_text(text, encoding="utf-8")


async def test_a_command_is_run_by_its_listed_name_without_the_toolset(tmp_path: Path, serve: Serve) -> None:
    _tool(tmp_path, "count", COUNT)
    _tool(tmp_path, "other", COUNT.replace("name: count", "name: other").replace("[count,", "[rm,"))
    program = tmp_path / "count.py"
    program.write_text("import sys\nprint(sys.argv[1:], len(sys.stdin.read()))\n", encoding="utf-8")
    reads = ", ".join((str(program), sys.prefix, sys.base_prefix))
    text = f"""
        sources: {{work: {{kind: file, roots: [./work]}}}}
        tools: {{dirs: [./tools]}}
        commands: {{programs: {{count: {{run: [{sys.executable}, -I, {program}], reads: [{reads}]}}}}}}
        policy: [{{who: local, may: "*", what: "**", approve: never}}]
    """
    tools = await serve(text)
    assert await tools.text("count", word="$(id); 한글") == "['--', '$(id); 한글'] 9\n"
    with pytest.raises(InvalidParams, match="Unknown tool: other"):  # it would run what is not listed
        await tools("other", word="-rf")
    with pytest.raises(InvalidParams, match="Unknown tool"):
        await tools("run_command", program="count")


async def test_a_request_goes_out_by_the_guarded_client_to_listed_hosts_alone(tmp_path: Path, serve: Serve) -> None:
    async with AsyncExitStack() as stack:
        site = Site()
        url = await site.open(stack)
        site.ok("/issues", b"filed", "201 Created")
        _tool(tmp_path, "issue", ISSUE % url)
        _tool(tmp_path, "elsewhere", ISSUE.replace("file_issue", "elsewhere") % "http://127.0.0.2")
        tools = await serve(
            f"""
            sources: {{work: {{kind: file, roots: [./work]}}}}
            tools: {{dirs: [./tools]}}
            web:
              hosts: [{{host: 127.0.0.1, methods: [POST], ports: [{site.port}], plain: true}}]
              inside: [127.0.0.1/32]
            policy: [{{who: local, may: "*", what: "**", approve: never}}]
            """
        )
        result = await tools("file_issue", title='a "quoted" one')
        assert result.content == (Text("filed"),)
        assert site.asked[-1].endswith('{"title":"a \\"quoted\\" one"}')
        with pytest.raises(InternalError) as refused:
            await tools("file_issue", title="x", where="a/admin?x=1#f")
        assert refused.value.data["externalErrorCode"] == 404
        assert site.asked[-1].startswith("POST /a%2Fadmin%3Fx%3D1%23f ")
        with pytest.raises(Forbidden):
            await tools("elsewhere", title="x")
