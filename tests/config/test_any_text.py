"""Whatever stands in the file, it loads or it is refused with a place: nothing else ever comes out."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from octavo.app.configuration import load_text
from octavo.config.problems import ConfigError

GOOD = """\
version: 1
sources:
  docs: {kind: file, roots: [docs, {path: more, as: /more}], templates: [{uri: "file://{x}", name: X}]}
  notes: {kind: memory, scheme: note, resources: {a: {text: A, metadata: {k: [1, 2.5, true, null]}}}}
agents: {a: {key: "${A_KEY}", roles: [r]}}
policy: [{who: [a, "role:r"], may: [read, list], what: ["file://*", "note://a"], effect: allow, why: w}]
resources: [{uri: "note://a", name: A, annotations: {priority: 1}}]
prompts: {dirs: [docs]}
limits: {read: 1MB, time: 10s, page: 10, per_principal: 5/s}
redact: {rules: default, extra: [{name: x, pattern: "x+"}]}
serve: {http: {bind: "127.0.0.1:80", allowed_hosts: [h], allowed_origins: ["https://o"]}, lane: true}
"""
BASE = Path(tempfile.gettempdir())
PIECES = [
    "", " ", "\n", "\t", "{", "}", "[", "]", ":", ": ", "- ", "&a ", "*a", "!t ", "'", '"', "#", "null", "~", "-1", "0",
    "1e999", "true", "<<", "|", ">", "%", "@", "한글", "\x00", "\ud7ff", "\U0001f600", "{}", "[]", "..", "://", "*",
]  # fmt: skip


def attempt(text: str, name: str) -> None:
    try:
        load_text(text, file=BASE / name, environ={"A_KEY": "a-long-enough-key"})
    except ConfigError as error:
        assert error.problems
        assert all(problem.line and problem.line <= text.count("\n") + 2 for problem in error.problems), error


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    attempt(text, "octavo.yaml")
    attempt(text, "octavo.toml")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, len(GOOD)), st.integers(0, 12), st.sampled_from(PIECES)), min_size=1, max_size=3)
)
@example([(0, 0, "&a "), (75, 0, "&a ")])
def test_a_good_configuration_with_damage(cuts: list[tuple[int, int, str]]) -> None:
    text = GOOD
    for start, length, piece in cuts:
        text = text[:start] + piece + text[start + length :]
    attempt(text, "octavo.yaml")
