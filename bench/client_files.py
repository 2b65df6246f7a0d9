"""Installs into real files of clients and takes it back: python bench/client_files.py DIR

DIR holds files under the paths that clients use, such as REPOSITORY/.cursor/mcp.json or HOME/.config/zed/settings.json.
Each is copied into a home of its own. After `octavo install` it must say the same and the entry, with every remark that
it had; after `octavo uninstall` it must be what it was, to the byte: once from the copy that was kept, and once by
taking the entry out of the text, as for a file that somebody else has written into since.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from octavo.cli.client_files.records import CLIENTS, Client, place_of
from octavo.cli.group import octavo

LINUX = {name: place_of(client, {}, Path("/"), system="linux") for name, client in CLIENTS.items()}
REMARK = re.compile(r"^[ \t]*(?://|#).*$", re.MULTILINE)
URL = "http://127.0.0.1:8321/mcp"


def known(file: Path) -> Client | None:
    """By the end of its path; a project's file where it can be either."""
    path = f"/{file.as_posix()}"
    for client in CLIENTS.values():
        for place in (*client.project, *(str(one) for one in LINUX[client.name])):
            tail = place.lstrip("/").removeprefix(".config/")
            if path.endswith(f"/{tail}"):
                return client
    return None


def tried(client: Client, data: bytes, home: Path) -> Iterator[str]:
    """What became of one file."""
    place = place_of(client, {}, home)[0]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    done = CliRunner().invoke(octavo, ["install", client.name, "--url", URL, "--yes", "--name", "octavo-try"])
    if client.remote is None:
        done = CliRunner().invoke(octavo, ["install", client.name, str(home), "--yes", "--name", "octavo-try"])
    if done.exit_code:
        why = "no_utf8" if "UTF-8" in done.stderr else "broken" if "cannot be read" in done.stderr else "other form"
        yield f"left ({why})" if place.read_bytes() == data else "DAMAGED"
        return
    after = place.read_bytes()
    before_says, says = (client.format.read(one.decode("utf-8-sig")) for one in (data, after))
    servers = dict(says[client.key[0]])
    entry = servers.pop("octavo-try", None)
    rest = {**says, client.key[0]: servers}
    expected = {**before_says, client.key[0]: before_says.get(client.key[0], {})}
    yield "installed" if entry and rest == expected else "WRONG"
    remarks = Counter(REMARK.findall(data.decode("utf-8-sig")))
    if remarks:
        yield "with remarks" if not remarks - Counter(REMARK.findall(after.decode("utf-8-sig"))) else "REMARK LOST"
    by_text = client.format.take(after.decode("utf-8-sig"), (*client.key, "octavo-try"))
    if client.key[0] not in before_says:
        by_text = client.format.take(after.decode("utf-8-sig"), client.key)
    yield "by text to the byte" if by_text == data.decode("utf-8-sig") else "by text, the same but for spaces"
    CliRunner().invoke(octavo, ["uninstall", client.name, "--yes", "--name", "octavo-try"])
    yield "back to the byte" if place.read_bytes() == data else "NOT BACK"


def main(folder: Path) -> None:
    seen: set[tuple[str, bytes]] = set()
    table: dict[str, Counter[str]] = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        client, data = known(file.relative_to(folder)), file.read_bytes()
        if client is None or (client.name, data) in seen:
            continue
        seen.add((client.name, data))
        with tempfile.TemporaryDirectory() as home:
            os.environ.update(HOME=home, XDG_STATE_HOME=f"{home}/state")
            for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
                os.environ.pop(name, None)
            ends = [*tried(client, data, Path(home))]
        table.setdefault(client.title, Counter()).update(["files", *ends])
        if any(end.isupper() or end.split()[0].isupper() for end in ends):
            print(f"{file}: {', '.join(ends)}")
    for title, counts in (*table.items(), ("all", sum(table.values(), Counter()))):
        print(f"{title:16}", "  ".join(f"{what} {count}" for what, count in counts.most_common()))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
