"""Neither an error nor a repr ever shows a secret, wherever in the file it was written by mistake."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from octavo.app.configuration import load_text
from octavo.config.problems import ConfigError

SECRET = "xq7-hidden-value-41"

MISTAKES = (
    f"agents: {{a: {{key: {SECRET}}}}}",
    f"agents: {{a: {{key: [{SECRET}]}}}}",
    f"agents: {{a: {{key: {{value: {SECRET}}}}}}}",
    f"agents: {{a: {{key_sha256: {SECRET}}}}}",
    f"agents: {{a: {{key: {SECRET}, key: {SECRET}}}}}",
    f"agents: {{a: {{kye: {SECRET}}}}}",
    f"agents: {{a: {SECRET}}}",
    f"agents: {{a: {{key: *{SECRET}}}}}",
    f"agents: {{a: {{key: &{SECRET} x}}}}",
    f"agents: {{a: {{key: !{SECRET} x}}}}",
    f"agents: {{a: {{key: !{SECRET}!x x}}}}",
    f"agents: {{a: {{key: '{SECRET}}}}}",
    f'agents: {{a: {{key: "\\q{SECRET}"}}}}',
    f"agents: {{a: {{key: %{SECRET}}}}}",
    f"agents: {{a: {{key: @{SECRET}}}}}",
    f"agents: {{a: {{key: `{SECRET}}}}}",
    f"agents: {{a: {{key: x: {SECRET}}}}}",
    f"agents: {{a: {{key: ${{{SECRET}}}}}}}",
    f"agents:\n  a:\n    key: {SECRET}\n   roles: []",
    f"agents:\n\ta: {SECRET}",
    f"sources: {{a: {{kind: {SECRET}}}}}",
    f"audit: {{sync: {SECRET}}}",
    f"limits: {{read: {SECRET}}}",
    f"state: {SECRET}",
    f"{SECRET}",
)


@pytest.mark.parametrize("text", MISTAKES)
def test_a_secret_in_the_wrong_place_is_not_repeated(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(text, file=tmp_path / "octavo.yaml", environ={})
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(caught.value.problems)
    assert SECRET not in shown


@pytest.mark.parametrize(
    "text",
    (
        f'[agents.a]\nkey = "{SECRET}"',
        f"[agents.a]\nkey = {SECRET}",
        f'[agents.a]\nkey = "{SECRET}',
        f"key = '{SECRET}' x",
    ),
)
def test_a_secret_in_toml_is_not_repeated(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(text, file=tmp_path / "octavo.toml", environ={})
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(caught.value.problems)


def test_a_resolved_secret_does_not_show_in_what_was_loaded(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET + "2\n", encoding="utf-8")
    text = 'agents: {a: {key: "${A_KEY}"}, b: {key: "file:key"}}'
    loaded = load_text(text, file=tmp_path / "octavo.yaml", environ={"A_KEY": SECRET})
    agent = loaded.config.agents["a"]
    assert agent.key is not None and agent.key.get_secret_value() == SECRET
    shown = repr(loaded) + str(loaded.config) + loaded.config.model_dump_json() + repr(agent) + repr(loaded.warnings)
    assert SECRET not in shown
    assert agent.digest is not None and agent.digest not in repr(loaded)


def test_a_short_key_is_told_without_the_key(tmp_path: Path) -> None:
    loaded = load_text('agents: {a: {key: "${A_KEY}"}}', file=tmp_path / "octavo.yaml", environ={"A_KEY": "hunter2"})
    told = "\n".join(map(str, loaded.warnings))
    assert "agents.a.key: is shorter than 16 characters" in told
    assert "hunter2" not in told
