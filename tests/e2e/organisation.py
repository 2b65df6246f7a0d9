"""A small organisation with a policy: who may read, list and watch what, and what nobody is told of."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.harness import Place

BRAND, OPS = "octavo_brand-key-for-tests-0123456789", "octavo_ops-key-for-tests-0123456789"
KEYS = {"agent-brand": BRAND, "agent-ops": OPS}
WHY = "HR records are not for the brand agent (인사 기록)"

CONFIGURATION = f"""\
version: 1
sources:
  handbook: {{kind: file, roots: [./root]}}
agents:
  agent-brand: {{key: "file:keys/agent-brand", roles: [marketing]}}
  agent-ops:   {{key: "file:keys/agent-ops", roles: [operations]}}
policy:
  - {{who: "*", may: [list, read, watch, complete], what: "file://*"}}
  - {{who: agent-brand, may: "*", what: "file://hr/*", effect: deny, why: "{WHY}"}}
  - {{who: agent-brand, may: "*", what: "file://board/*", effect: deny, hide: true}}
limits: {{per_principal: 100000/s, page: 3}}
"""
# The same, but the brand agent may read what HR writes; and the same, but with another key for the brand agent.
OPENED = CONFIGURATION.replace('may: "*", what: "file://hr/*"', 'may: write, what: "file://hr/*"')
REVOKED = CONFIGURATION.replace('key: "file:keys/agent-brand"', f'key_sha256: "{"0" * 64}"')
assert len({CONFIGURATION, OPENED, REVOKED}) == 3


def organisation(place: Place) -> Path:
    """The configuration file, with everything that it speaks of."""
    place.edit("docs/guide.md", "# Guide\n")
    place.edit("docs/한국/소개.md", "안녕하세요, 옥타보입니다.\n")
    place.edit("notes/plan.txt", "plan\n")
    place.edit("hr/salary.md", "# Salaries, 급여\n")
    place.edit("board/merger.md", "# Merger\n")
    keys = place.base / "keys"
    keys.mkdir(mode=0o700)
    for agent, key in KEYS.items():
        (keys / agent).write_text(f"{key}\n", encoding="utf-8")
        (keys / agent).chmod(0o600)
    return configure(place, CONFIGURATION)


def configure(place: Place, text: str) -> Path:
    """Puts the configuration in its place at once."""
    draft, file = place.base / "octavo.yaml.draft", place.base / "octavo.yaml"
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)
    return file
