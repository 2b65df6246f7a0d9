"""Tools of YAML that reach out: by the same runner and the same client as the toolsets, within what is listed (T10)."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.tools.builtin.conftest import Serve, Tools
from tests.tools.builtin.test_web import Site

from octavo.core.errors import Forbidden, InternalError, InvalidParams, NotFound
from octavo.core.tools import Text

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


COUNTS = """
name: counts
description: Counts the lines of files that hold a word.
arguments:
  word: {type: string}
  files: {type: array, items: {type: string}}
paths: [files]
command: [grep, "{word}", --, "{files}"]
read_only: true
"""
SHOWS = """
name: shows
description: Shows a file, whatever it is called.
arguments: {file: {type: string}}
command: [cat, --, "{file}"]
read_only: true
"""
FINDS = """
name: finds
description: Finds a word in the reports.
arguments: {word: {type: string}, file: {type: string, default: .}}
paths: [file]
folder: reports
command: [grep, "{word}", --, "{file}"]
read_only: true
"""
REACH = """
    sources: {{work: {{kind: file, roots: [./work, ./more]}}}}
    tools: {{dirs: [./tools]}}
    agents: {{ann: {{}}}}
    commands: {{programs: {{grep: {{run: [grep, -r, -h]}}, cat: {{run: cat}}}}}}
    policy:
      - {{who: ann, may: "*", what: "**", approve: never}}
      - {{who: ann, may: "*", what: "file://hr/*", effect: deny}}
      - {{who: ann, may: "*", what: "file://board/*", effect: deny, hide: true}}
      {more}
"""
FILES = {
    "hr/pay.md": "word canary",
    "board/plan.md": "word canary",
    "a.md": "word one\n",
    "reports/-b.md": "word two\n",
    "reports/\u1112\u1161\u11ab.md": "word three\n",
    "keys/.env": "word canary",
}


@pytest.mark.skipif(sys.platform != "linux", reason="programs of Linux")
class TestFiles:
    async def tools(self, tmp_path: Path, serve: Serve, more: str = "") -> Tools:
        for name, text in (("counts", COUNTS), ("shows", SHOWS), ("finds", FINDS)):
            _tool(tmp_path, name, text)
        (tmp_path / "more").mkdir()
        (tmp_path / "more/other.md").write_text("word four\n", encoding="utf-8")
        return await serve(REACH.format(more=more), FILES)

    async def test_a_command_is_given_the_files_that_its_caller_may_read(self, tmp_path: Path, serve: Serve) -> None:
        """By every spelling of their addresses, and by the names that they have on disk."""
        tools = await self.tools(tmp_path, serve)
        (tools.root / "link.md").symlink_to("a.md")

        async def counts(*files: str) -> list[str]:
            return (await tools.text("counts", who="ann", word="word", files=[*files])).split("\n")[:-1]

        assert await counts("a.md") == ["word one"]
        assert await counts(f"file://{tools.root}/a.md", "file://link.md") == ["word one"] * 2
        assert await counts("reports/-b.md", "reports/한.md") == ["word two", "word three"]
        assert sorted(await counts("reports/", "a.md")) == ["word one", "word three", "word two"]
        assert await counts("other.md") == ["word four"]
        with pytest.raises(InvalidParams, match="below one root"):
            await counts("a.md", "other.md")

    @pytest.mark.parametrize("named", ["hr/pay.md", "hr/none.md", "file://hr/pay.md", "hr"])
    async def test_what_the_caller_may_not_read_is_refused_there_or_not(
        self, tmp_path: Path, serve: Serve, named: str
    ) -> None:
        tools = await self.tools(tmp_path, serve)
        with pytest.raises(Forbidden):
            await tools("counts", who="ann", word="word", files=["a.md", named])

    @pytest.mark.parametrize("named", ["file://hr/pay.md", "file://{root}/hr/pay.md"])
    async def test_a_refusal_names_what_the_caller_wrote(self, tmp_path: Path, serve: Serve, named: str) -> None:
        tools = await self.tools(tmp_path, serve)
        asked = named.format(root=tools.root)
        for tool, arguments in (
            ("counts", {"word": "word", "files": [asked]}),
            ("read", {"target": asked, "as": "text"}),
            ("read", {"target": asked, "encoding": "cp949"}),
        ):
            with pytest.raises(Forbidden) as caught:
                await tools(tool, who="ann", **arguments)
            assert str(caught.value) == f"Access denied to resource: {asked}"
            assert "range" not in str(caught.value.data) and "as=" not in str(caught.value.data)

    @pytest.mark.parametrize("named", ["board/plan.md", "none.md", "keys/.env", "out.md", "pay.md"])
    async def test_what_is_hidden_is_not_found(self, tmp_path: Path, serve: Serve, named: str) -> None:
        tools = await self.tools(tmp_path, serve)
        (tmp_path / "secret.md").write_text("word canary", encoding="utf-8")
        (tools.root / "out.md").symlink_to(tmp_path / "secret.md")
        (tools.root / "pay.md").symlink_to("hr/pay.md")  # which is denied
        with pytest.raises(NotFound):
            await tools("counts", who="ann", word="word", files=[named])

    async def test_beside_what_is_named_nothing_can_be_opened(self, tmp_path: Path, serve: Serve) -> None:
        tools = await self.tools(tmp_path, serve)
        for file in ("a.md", str(tools.root / "a.md"), str(tools.root / "hr/pay.md")):
            told = await tools("shows", who="ann", file=file)
            assert told.is_error and "word" not in str(told.content)
        # A folder of which something is withheld is given as far as it may be read.
        assert (await tools.text("counts", who="ann", word="word", files=["."])).count("canary") == 0

    async def test_the_example_of_the_handbook_counts_what_is_there_and_what_is_not(
        self, tmp_path: Path, serve: Serve
    ) -> None:
        page = (Path(__file__).parents[3] / "docs/writing-a-tool.md").read_text(encoding="utf-8")
        (example,) = (text for text in page.split("```yml\n") if text.startswith("name: count_matches"))
        _tool(tmp_path, "count_matches", example.partition("```")[0])
        tools = await self.tools(tmp_path, serve)
        assert await tools.text("count_matches", who="ann", word="word", files=["a.md"]) == "1\n"
        assert await tools.text("count_matches", who="ann", word="absent", files=["a.md"]) == "0\n"

    async def test_a_tool_that_names_a_folder_works_there(self, tmp_path: Path, serve: Serve) -> None:
        tools = await self.tools(tmp_path, serve)
        assert "word two" in await tools.text("finds", who="ann", word="word", file="-b.md")
        for outside in ("../a.md", "file://a.md"):
            with pytest.raises(InvalidParams, match="below the working folder"):
                await tools("finds", who="ann", word="word", file=outside)
        with pytest.raises(NotFound):
            await tools("finds", who="ann", word="word", file="none.md")

    async def test_a_tool_in_a_folder_that_its_caller_may_not_list_finds_nothing(
        self, tmp_path: Path, serve: Serve
    ) -> None:
        more = '- {who: ann, may: "*", what: "file://reports/*", effect: deny}'
        tools = await self.tools(tmp_path, serve, more)
        with pytest.raises(NotFound):
            await tools("finds", who="ann", word="word")


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
