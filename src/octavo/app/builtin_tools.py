"""The tools that come with Octavo, as the configuration asks for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from octavo.app.narrowing import WHOLE, Narrowing, public_folders
from octavo.config.model import Config
from octavo.config.sections.source import Options
from octavo.core.ref import Ref
from octavo.core.tools import Conversations
from octavo.tools.aliases import FILESYSTEM, SEED
from octavo.tools.registry import Tool

_GENERAL = (
    "list",
    "read",
    "info",
    "search",
    "changes",
)  # need no grant: they only ask for what the caller may read anyway

_CHANGING = ("write", "edit", "move", "copy", "delete", "create_directory", "undo")
_DATA = ("validate", "convert", "profile", "query")
WEB = ("http_request", "websocket")
_LONG = frozenset(  # whose answers may be as long as an answer can be
    (
        "list", "read", "search", "file-reader", "readFile", "read_file", "read_text_file",
        "read_multiple_files", "list_directory", "list_directory_with_sizes", "directory_tree", "search_files",
        "edit_file", "convert", "query", "validate", "profile", "get_prompt", "conversation", "run_command",
        "read_output", "http_request", "websocket",
    )
)  # fmt: skip
_OFFERED: Mapping[str, Iterable[str]] = {
    "files": (*_GENERAL, *_CHANGING),
    "filesystem": FILESYSTEM,
    "seed": SEED,
    "data": _DATA,
    "people": ("ask_user", "feedback", "notify"),
    "process": ("run_command", "start_process", "read_output", "write_input", "stop_process", "list_processes"),
    "prompts": ("get_prompt", "conversation"),
    "web": WEB,
}


def built_in_tools(
    config: Config,
    narrowing: Narrowing = WHOLE,
    conversations: Conversations | None = None,
    *,
    exposed: Collection[str],
) -> list[Tool]:
    """`exposed` are schemes. Those that work on sources only where one is exposed, and of these those that change
    something only where the configuration lets one be changed."""
    tools: list[Tool] = []
    if "people" in toolsets(config):
        from octavo.tools.builtin.people import people_tools

        tools += people_tools()
    if "prompts" in toolsets(config):
        from octavo.tools.builtin.prompts import prompt_tools

        tools += prompt_tools(conversations, config.limits.answer)
    if not exposed:
        return tools
    files = _file_sources(config)
    from octavo.tools.builtin.answer_budget import Budget, Media

    limits, write = config.limits, _writes(config)
    budget, media = Budget(limits.answer, limits.answer_tokens), Media(limits.media)
    for name in toolsets(config):
        if name == "files":
            from octavo.tools.builtin import SearchKinds, file_tools

            # Where there are only files, words are looked for in their lines, as ever.
            lines = frozenset(one.scheme for one in config.sources.values() if one.expose and one.record.lines)
            only_files = lines.issuperset(exposed)
            searches = SearchKinds(config.search.enabled, lines, "content" if only_files else "ranked")
            tools += file_tools(write=write, budget=budget, media=media, searches=searches)
        elif name == "filesystem":
            from octavo.tools.builtin.filesystem import filesystem_tools

            roots = public_folders(files, narrowing)
            tools += filesystem_tools(write=write, budget=budget, media=media, roots=roots)
        elif name == "data":
            from octavo.tools.builtin.data import data_tools

            tools += data_tools(write=write, budget=budget, max_input=limits.read, seconds=limits.time)
        elif name == "seed":
            tools += _seeds(config, write)
    first = [*{tool.info.name: tool for tool in reversed(tools)}.values()][::-1]  # of two with one name
    return [_tried(tool) for tool in first]


def telling(tool: Tool, config: Config) -> Tool:
    """With the size of its answers in its definition, where they may be long."""
    if tool.info.name not in _LONG:
        return tool
    return replace(tool, info=replace(tool.info, answer=config.limits.answer))


def toolsets(config: Config) -> dict[str, None]:
    """Those that are configured, and where tools are named one by one, all that have one of them."""
    further = [name for name, tools in _OFFERED.items() if any(tool in config.tools.only for tool in tools)]
    return dict.fromkeys((*config.toolsets, *further))


def unlisted_tools(config: Config) -> tuple[Sequence[str], Callable[[], Sequence[Tool]]]:
    """Names that are always understood, though only the toolset `seed` lists them, and how to make their tools."""
    files, write = _file_sources(config), _writes(config)
    names = [name for name, tool in SEED.items() if files and (write or tool in _GENERAL)]
    return names, lambda: _seeds(config, write)


def aliases(names: Sequence[str]) -> dict[Ref, Ref]:
    """Further names among these, and the tools that they stand for: a rule on one of those holds for them too."""
    stands_for = {**FILESYSTEM, **SEED}
    return {Ref.of("tool", (name,)): Ref.of("tool", (stands_for[name],)) for name in names if name in stands_for}


def general_tools(tools: Sequence[Tool], unlisted: Sequence[str]) -> list[Ref]:
    """Those that anybody who may read anything may call: the rules on what they read are enough."""
    reading = [
        tool.info.name
        for tool in tools
        if tool.info.hints.read_only and tool.info.task == "never" and tool.info.name not in _DATA
    ]
    return [Ref.of("tool", (name,)) for name in (*reading, *(name for name in unlisted if SEED[name] in _GENERAL))]


def composed_tools(tools: Sequence[Tool], unlisted: Sequence[str]) -> list[str]:
    """Those whose answers only pass on what their child calls gave, in which nothing is left to hide."""
    known = {*_GENERAL, *_CHANGING, *FILESYSTEM, *SEED}
    return [*(tool.info.name for tool in tools if tool.info.name in known), *unlisted]


def _file_sources(config: Config) -> list[Options]:
    """Whose folders clients know."""
    return [one for one in config.sources.values() if one.expose and any(root.shown for root in one.folders)]


def _writes(config: Config) -> bool:
    return any(one.expose and "write" in one.can for one in config.sources.values())


def _seeds(config: Config, write: bool) -> list[Tool]:
    from octavo.tools.builtin.answer_budget import Budget
    from octavo.tools.builtin.seeds import seed_tools

    made = seed_tools(write=write, budget=Budget(config.limits.answer, config.limits.answer_tokens))
    return [_tried(telling(tool, config)) for tool in made]


def _tried(tool: Tool) -> Tool:
    """What changes something by child calls alone can be tried without an effect, up to the first of them."""
    changes = tool.info.name in (*_CHANGING, *FILESYSTEM, *SEED) and not tool.info.hints.read_only
    return replace(tool, rehearses=True) if changes else tool
