"""Thousands of addresses that want out of a root, and a tree to try them on. The same ones every time.

Used by the tests of the file source and by those of the transports: whatever takes a URI meets them.
"""

import os
import random
from pathlib import Path
from urllib.parse import quote, unquote

CANARY = "CANARY-7f3a9c-this-text-is-outside-the-root"
INSIDE = "inside\n"

DOTS = (
    "..", "%2e%2e", "%2E%2e", ".%2e", "%2e.", "%252e%252e", "%25252e%25252e", "..%00", "%00..", "..;", "...", "....",
    "..%20", "%20..", "..%09", "..%0a", "%c0%ae%c0%ae", "%c0%2e%c0%2e", "%e0%80%ae%e0%80%ae",
    "%f0%80%80%ae%f0%80%80%ae",
    "%uff0e%uff0e", "\uff0e\uff0e", "\u2024\u2024", "\u2025", ".\u200b.", ".\u2060.", "\u202e..", ".\u00ad.",
    "%ef%bc%8e%ef%bc%8e", ".%e2%80%8b.", "%ff%2e%2e", "~", "~root", "$HOME", "$(cd ..)", "{..}", "*/..",
)  # fmt: skip
SLASHES = (
    "/", "%2f", "%2F", "%252f", "%25252f", "\\", "%5c", "%255c", "//", "/./", "/%2e/", "%c0%af", "%e0%80%af", "%c1%9c",
    "\u2215", "\u2044", "\uff0f", "%ef%bc%8f", "\u29f8", "%u2215", "/;/", "/%00/", "%0d%0a", "|",
)  # fmt: skip
HEADS = (
    "file://", "file:///", "file:////", "FILE://", "File:///", "file://localhost/", "file://LOCALHOST/",
    "file://%6cocalhost/", "file://127.0.0.1/", "file://[::1]/", "file://.", "file://./", "file:/", "file:",
    "file://%2f", "file://user@localhost/", "file://localhost:80/", "file\\://", "file://\\\\server\\share\\",
)  # fmt: skip
STARTS = ("", "docs", "docs/deep", "nope", "docs/a.md", "loop", "inside-dir", "한글")
SYSTEM = (
    "/etc/passwd", "/proc/self/root", "/proc/self/cwd", "/proc/self/environ", "/proc/self/fd/0", "/proc/self/fd/3",
    "/proc/1/root/etc/passwd", "/dev/stdin", "/dev/fd/0", "/dev/shm", "/", "//", "/.", "/..", "/root/.ssh/id_rsa",
    "C:\\Windows\\win.ini", "C:/Windows/win.ini", "\\\\?\\C:\\x", "CON", "NUL.md", "aux.md::$DATA",
)  # fmt: skip
TAILS = (
    "", "/", "/.", "/..", "%00", "%00.md", "%00.png", "?", "?root=1", "?root=2", "?root=0", "?root=-1", "?root=..",
    "?root=1&root=2", "?path=../outside/canary.md", "#", "#/../..", ";.md", "%20", ".", "::$DATA", "%0a.md", "~", ".md",
    "/../docs/a.md", "?view=raw", "%3froot=2",
)  # fmt: skip


def plant(base: Path) -> tuple[Path, Path]:
    """A root with links out of it at every depth, and what is outside. Gives both."""
    root, outside = base / "root", base / "outside"
    (outside / "below").mkdir(parents=True)
    for place in (outside / "canary.md", outside / "below" / "canary.md", base / "canary.md"):
        place.write_text(CANARY, encoding="utf-8")
    for sibling in ("root-evil", "root2", "rootcanary.md.d", "roo"):
        (base / sibling).mkdir()
        (base / sibling / "canary.md").write_text(CANARY, encoding="utf-8")
    folder = root
    for depth, name in enumerate(("docs", "deep", "deeper", "deepest")):
        folder = folder / name
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(INSIDE, encoding="utf-8")
        up = "/".join([".."] * (depth + 2))
        links = {
            "out": str(outside), "out-relative": f"{up}/outside", "out.md": str(outside / "canary.md"),
            "out-relative.md": f"{up}/outside/canary.md", "up": up, "far-up": f"{up}/../../../../../../..",
            "self": ".", "dangling.md": f"{up}/outside/nothing.md", "sibling": f"{up}/root-evil",
            "proc": "/proc/self/root", "cwd": "/proc/self/cwd", "fd.md": "/proc/self/fd/0",
        }  # fmt: skip
        for link, target in links.items():
            (folder / link).symlink_to(target)
    (root / "out").symlink_to(outside)
    (root / "out.md").symlink_to("../outside/canary.md")
    (root / "chain.md").symlink_to("docs/chain.md")
    (root / "docs" / "chain.md").symlink_to("deep/out.md")
    (root / "loop").symlink_to("loop")
    (root / "inside-dir").symlink_to("docs/deep")
    (root / "inside.md").symlink_to("docs/a.md")
    (root / "한글").mkdir()
    (root / "한글" / "밖.md").symlink_to("../../outside/canary.md")
    return root, outside


def hostile_uris(root: Path, outside: Path, seed: int = 20_260_728) -> list[str]:
    """At least five thousand, each once."""
    chance = random.Random(seed)
    goals = [
        "outside/canary.md", "canary.md", "root-evil/canary.md", "root2/canary.md", "outside/below/canary.md",
        "etc/passwd",
    ]  # fmt: skip
    uris: dict[str, None] = {}

    def add(*more: str) -> None:
        uris.update((uri, None) for uri in more)

    for dots in DOTS:
        for slash in SLASHES:
            for start in STARTS:
                climb = slash.join([dots] * chance.randint(1, 7))
                goal = chance.choice(goals)
                add(f"file://{start}{slash if start else ''}{climb}{slash}{goal}")
            add(f"{chance.choice(HEADS)}{dots}{slash}{chance.choice(goals)}{chance.choice(TAILS)}")
    for place in [
        outside / "canary.md",
        outside.parent / "canary.md",
        outside.parent / "root-evil" / "canary.md",
        root,
    ]:
        for head in HEADS:
            path = str(place)
            for text in (
                path,
                path.lstrip("/"),
                quote(path, safe=""),
                quote(quote(path, safe=""), safe=""),
                path + "/.",
            ):
                add(f"{head}{text}", f"{head}{text}{chance.choice(TAILS)}")
    inside = str(root)
    for lure in ("/../outside/canary.md", "-evil/canary.md", "2/canary.md", "/out/canary.md", "/out.md", "//canary.md"):
        for tail in TAILS:
            add(f"file://{inside}{lure}{tail}", f"file://{quote(inside)}{quote(lure)}{tail}")
    for path in SYSTEM:
        for head in HEADS:
            add(f"{head}{path}", f"{head}{path.lstrip('/')}", f"{head}{quote(path, safe='')}")
    links = ("out", "out-relative", "up/outside", "far-up" + str(outside), "sibling", "proc" + str(outside), "self/out")
    folders = ["", "docs/", "docs/deep/", "docs/deep/deeper/", "docs/deep/deeper/deepest/", "inside-dir/", "한글/"]
    for folder in folders:
        for name in (*links, *(f"self/{link}" for link in links)):
            for goal in ("canary.md", "below/canary.md", "missing.md", "below/missing.md", ""):
                add(f"file://{folder}{name}/{goal}{chance.choice(TAILS)}", f"file://{folder}{name}/{goal}")
        for name in ("out.md", "out-relative.md", "dangling.md", "chain.md", "fd.md", "밖.md", "loop", "loop/x.md"):
            for tail in TAILS:
                add(f"file://{folder}{name}{tail}")
    pieces = [
        *DOTS,
        *SLASHES,
        *goals,
        *STARTS,
        *links,
        *TAILS,
        "canary.md",
        "docs",
        "\x00",
        "\ud800",
        "%",
        "%zz",
        "é" * 300,
    ]
    while len(uris) < 12_000:
        add(chance.choice(HEADS) + "".join(chance.choice(pieces) for _ in range(chance.randint(1, 9))))
    return list(uris)


def leaks_to_a_naive_reader(root: Path, uri: str) -> bool:
    """Whether joining the decoded path to the root and opening it gives the canary: what must never work."""
    path = unquote(uri.split("://", 1)[-1].split("?")[0])
    try:
        with open(os.path.join(root, path.lstrip("/")), encoding="utf-8") as file:
            return CANARY in file.read(4096)
    except (OSError, ValueError):
        return False
