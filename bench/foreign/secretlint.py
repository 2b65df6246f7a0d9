"""secretlint: snapshots of what each of its rules says of a file, with the places; nothing for a near miss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from bench.foreign.case import Case, Kind, judged

RULES = "packages/@secretlint"
_RULE = "secretlint-rule-"
_SETS = ("preset-",)  # the others' snapshots once more
_NOT_OURS = ("no-homedir", "no-dotenv", "no-k8s-kind-secret", "filter-comments", "example", "pattern")
_GENERIC = ("basicauth", "database-connection-string")
_NUMBERS = ("AccountID", "TenantId", "ClientId")  # of who has a secret: no credentials
_NAMED = ("secp256k1-privatekey",)
_ALLOWED = ("options.*", ".secretlintrc*")  # beside a text: somebody allows what the rule itself finds in it


def cases(folder: Path) -> Iterator[Case]:
    for path in sorted((folder / RULES).glob(f"{_RULE}*/test/snapshots/*/output.json")):
        family = path.parts[-5].removeprefix(_RULE)
        told = json.loads(path.read_text(encoding="utf-8"))
        text = told.get("sourceContent", "")
        if not text or family.startswith(_SETS):
            continue  # an archive of keys, or what stands elsewhere
        said = [(message["messageId"], text[slice(*message["range"])]) for message in told["messages"]]
        hidden = tuple(value for name, value in said if not name.endswith(_NUMBERS))
        if hidden:
            yield judged(_kind(family), family, text, hidden)
        elif said:
            yield Case("public by design", family, text, tuple(value for _, value in said))
        elif not any(any(path.parent.glob(name)) for name in _ALLOWED):
            yield Case(_kind(family), family, text)


def _kind(family: str) -> Kind:
    if family in _NOT_OURS:
        return "not ours"
    return "generic" if family in _GENERIC else "named" if family in _NAMED else "published"
