"""The tools that come with Octavo, as the configuration asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from octavo.app.narrowing import WHOLE, Narrowing, public_folders
from octavo.config.model import Config, FileOptions
from octavo.core.ref import Ref
from octavo.tools.registry import Tool


def built_in_tools(config: Config, narrowing: Narrowing = WHOLE) -> list[Tool]:
    """None without a source that they could work on; those that change something only where one may be changed."""
    files = [one for one in config.sources.values() if isinstance(one, FileOptions) and one.expose]
    if not files:
        return []
    write = any(one.write for one in files)
    tools: list[Tool] = []
    for name in dict.fromkeys(config.toolsets):
        if name == "files":
            from octavo.tools.builtin import file_tools

            tools += file_tools(write=write)
        elif name == "filesystem":
            from octavo.tools.builtin.filesystem import filesystem_tools

            tools += filesystem_tools(write=write, roots=public_folders(files, narrowing))
        else:
            from octavo.tools.builtin.seeds import seed_tools

            tools += seed_tools(write=write)
    return list({tool.info.name: tool for tool in reversed(tools)}.values())[::-1]  # of two with one name the first


def aliases(config: Config, tools: Sequence[Tool]) -> dict[Ref, Ref]:
    """Further names, and the tools that they stand for: a rule on one of those holds for them too."""
    if set(config.toolsets) <= {"files"}:
        return {}
    from octavo.tools.builtin import filesystem, seeds

    stands_for = {**filesystem.CANONICAL, **seeds.CANONICAL}
    names = {tool.info.name for tool in tools}
    return {Ref.of("tool", (name,)): Ref.of("tool", (stands_for[name],)) for name in names & stands_for.keys()}


def general_tools(tools: Sequence[Tool]) -> list[Ref]:
    """Those that need no grant of their own: they only ask for what the caller may read anyway."""
    return [Ref.of("tool", (tool.info.name,)) for tool in tools if tool.info.hints.read_only]
