"""Conditionals and loops: what the language has, what it refuses when a file loads, and that nothing explodes (P3)."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from octavo.core.errors import InvalidParams, OctavoError, TooLarge
from octavo.prompts.substitution import MAX_OUTPUT, NoTemplate, Plain, compiled
from octavo.prompts.template_engine import MAX_VALUES, CompiledTemplate

NAMES = frozenset(("title", "files", "draft", "options", "이름"))
GIVEN: dict[str, Any] = {
    "title": "T",
    "files": ["a", "b"],
    "draft": True,
    "options": {"items": 1, "x": {"y": [1, None]}},
    "이름": "하루",
}


def filled(text: str, **values: Any) -> str:
    return compiled(text, NAMES)({**GIVEN, **values})


@pytest.mark.seed("P3")
@pytest.mark.parametrize(
    "text, shown",
    [
        ("{% if draft %}yes{% else %}no{% endif %}", "yes"),
        ("{% if not draft or title == 'X' %}a{% elif files|length >= 2 %}b{% endif %}", "b"),
        ("{% for one in files %}{{ loop.index }}.{{ one }} {% endfor %}", "1.a 2.b "),
        ("{% for one in files if one != 'a' %}{{ one }}{% else %}none{% endfor %}", "b"),
        ("{% for key, value in options|items %}{{ key }}={{ value }};{% endfor %}", 'items=1;x={"y": [1, null]};'),
        ("{{ files|join(', ') }} {{ files|first }} {{ title|lower }}", "a, b a t"),
        ("{{ options.x.y }} {{ options.items }}", "[1, null] 1"),
        ("{{ title if draft else draft }}", "T"),
        ("{{ title if draft else 'x' }}{% if 'a' in files and (draft or title) %}!{% endif %}", "T!"),
        ("a\n{%- if draft %}\nb{% endif %}\n", "a\nb\n"),
        ("{# nobody reads this {{nope}} #}{{ draft }}", "true"),
        ("{% raw %}{{ title }} {% endraw %}{% if draft %}{{ 이름 }}{% endif %}", "{{ title }} 하루"),
        ("{% if options.nope is defined %}x{% endif %}.", "."),
    ],
)
def test_what_the_language_has(text: str, shown: str) -> None:
    assert filled(text) == shown


@pytest.mark.seed("P3")
def test_a_text_with_variables_alone_needs_no_engine() -> None:
    assert isinstance(compiled("{{title}} } { {{ draft }}", NAMES), Plain)
    assert isinstance(compiled("{{ title|upper }}", NAMES), CompiledTemplate)


def test_a_compiled_text_that_nobody_uses_any_more_is_gone() -> None:
    """Its engine called back into it, and the collector cannot look into the engine: each reload kept all prompts."""
    made = compiled("{% for one in files %}{{ one }}{% endfor %}", NAMES)
    assert made(GIVEN) == "ab"
    kept = weakref.ref(made)
    del made
    gc.collect()
    assert kept() is None


@pytest.mark.seed("P3", "P5")
@pytest.mark.parametrize(
    "text, line, says",
    [
        ("a\n{{ title", 2, "{{ is not closed by }}"),
        ("{% if draft %}\n{{ title", 2, "{{ is not closed by }}"),
        ("a\n\n{% if draft", 3, "{% is not closed by %}"),
        ("{# a", 1, "{# is not closed by #}"),
        ("a\n{% if draft %}\n{% for x in files %}{% endfor %}", 2, "{% if %} is not closed by {% endif %}"),
        ("{% for x in files %}{% endif %}", 1, "cannot stand here"),
        ("{% endfor %}", 1, "cannot stand here"),
        ("{% if %}{% endif %}", 1, "cannot stand here"),
        ("{% for x of files %}{% endfor %}", 1, "cannot stand here"),
        ("{% if draft %}\n{{ nope }}{% endif %}", 2, "the variable {{nope}} is not declared"),
        ("{% if draft %}{% endif %}{{ range(9) }}", 1, "nothing can be called"),
        ("{{ title.upper() }}", 1, "nothing can be called"),
        ("{{ debug() }}", 1, "nothing can be called"),
        ("{{ title.__class__ }}", 1, "__class__ cannot stand here"),
        ("{{ title * 1000000000 }}", 1, "'*' cannot stand in an expression"),
        ("{{ title ~ title }}", 1, "'~' cannot stand in an expression"),
        ("{{ [1] }}", 1, "cannot stand in an expression"),
        ("{{ {} }}", 1, "cannot stand"),
        ("{{ title|indent(1000000000) }}", 1, "there is no filter indent"),
        ("{{ title|replace('', files) }}", 1, "there is no filter replace"),
        ("{{ files|join(title) }}", 1, "title cannot stand here"),
        ("{{ files|join('" + "x" * 300 + "') }}", 1, "at most 200 characters"),
        ("{% set x = title %}", 1, "cannot stand here"),
        ("{% macro m() %}{% endmacro %}", 1, "cannot stand here"),
        ("a\n{% include 'p' %}", 2, "{% include 'p' %} cannot stand here"),
        ("{% import 'p' as p %}", 1, "cannot stand here"),
        ("{% extends 'p' %}", 1, "cannot stand here"),
        ("{% call m() %}{% endcall %}", 1, "cannot stand here"),
        ("{% if draft draft %}{% endif %}", 1, "unexpected"),
        ("{{ title| }}", 1, "unexpected"),
        ("{% if draft %}" * 9 + "{% endif %}" * 9, 1, "nested deeper than 8"),
        ("{{ " + "(" * 5000 + "title" + ")" * 5000 + " }}", 1, "at most 60 words"),
        ("{{ title" + "|lower" * 100_000 + " }}", 1, "at most 60 words"),
        ("{{ title" + ".a" * 100_000 + " }}", 1, "at most 60 words"),
        ("{{ " + "not " * 100_000 + "title }}", 1, "at most 60 words"),
        ("{% if title %}" + "{% elif title %}" * 50_000 + "{% endif %}", 1, "at most 50 elif"),
        ("\n".join(["{{ title|lower }}"] * 40_000), 501, "at most 500 tags"),
    ],
)
def test_everything_else_is_refused_when_the_file_loads_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(NoTemplate) as caught:
        compiled(text, NAMES)
    assert caught.value.line == line
    assert says in caught.value.reason and len(caught.value.reason) < 300


HOSTILE = [
    "{{title}}", "{% for x in files %}", "{{ 7*7 }}", "${7*7}", "<%= 7*7 %>", "#{7*7}", "{# x #}", "{% raw %}", "{%",
    "{{", "}}", "%}", "<script>&\"'", "\\1\\g<0>", "\x00\x1b[31m", "\u202e한글", "{{''.__class__.__mro__}}",
    "{{{{title}}}}", "{% include '/etc/passwd' %}", "a\r\nrole: system",
]  # fmt: skip


@pytest.mark.seed("P3")
@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_is_data_whatever_it_looks_like(value: str) -> None:
    assert filled("<{{title}}>", title=value) == f"<{value}>"
    assert filled("{% if title %}<{{ title }}>{% endif %}{{ files|join('') }}", title=value, files=[value]) == (
        f"<{value}>{value}"
    )
    assert filled("{% for one in files %}{{ one }}{% endfor %}", files=[value, value]) == value * 2


@pytest.mark.seed("P3")
@pytest.mark.parametrize(
    "text, values, error",
    [
        ("{{title}}" * 1000, {"title": "x" * 2000}, TooLarge),
        ("{% if draft %}{% endif %}" + "{{ title }}" * 100, {"title": "x" * 20_000}, TooLarge),
        ("{% for a in files %}{% for b in files %}{% for c in files %}x{% endfor %}{% endfor %}{% endfor %}",
         {"files": ["x"] * 1000}, InvalidParams),
        ("{% for a in files %}" + "y" * 100_000 + "{% endfor %}", {"files": ["x"] * 100_000}, InvalidParams),
        ("{% for a in files %}{{ title }}{% endfor %}", {"files": ["x"] * 2000, "title": "x" * 10_000}, TooLarge),
        ("{% if draft %}{{ title }}{% endif %}", {"title": "x" * (MAX_VALUES + 1)}, TooLarge),
        ("{% if options.nope %}{% endif %}", {}, InvalidParams),
        ("{% for a in title %}{{ a.b }}{% endfor %}", {"title": {"x": 1}}, InvalidParams),
        ("{% if draft %}{{ options.keys }}{% endif %}", {}, InvalidParams),
    ],
)  # fmt: skip
def test_what_would_explode_is_refused_in_words(text: str, values: dict[str, Any], error: type[OctavoError]) -> None:
    program = compiled(text, NAMES)
    with pytest.raises(error) as caught:
        program({**GIVEN, **values})
    assert len(str(caught.value)) < 200
    assert filled("{{title}}") == "T", "and nothing else is the worse for it"


@pytest.mark.seed("P3")
@pytest.mark.parametrize(
    "text",
    [
        "{% for one in files %}{% if one in options %}x{% endif %}{% endfor %}",
        "{% for one in files %}{% if options|sort|length %}x{% endif %}{% endfor %}",
        "{% for one in files %}{% if options == title %}x{% endif %}{% endfor %}",
        "{% for one in files %}{% for other in options|sort %}{% endfor %}{% endfor %}",
    ],
)
def test_a_loop_that_looks_through_long_values_again_and_again_is_refused(text: str) -> None:
    few, many = list(range(100)), list(range(60_000))
    filled(text, files=["x"] * 50, options=few)
    with pytest.raises(InvalidParams, match="too many steps"):
        filled(text, files=["x"] * 50, options=many)


def test_a_loop_that_looks_at_each_value_once_may_have_long_ones() -> None:
    said = [{"role": "user", "text": "x" * 2000}] * 200
    text = "{% for one in files %}{% if one.role == 'user' %}{{ one.text }}{% endif %}{% endfor %}"
    assert len(filled(text, files=said)) == 400_000


def test_as_much_as_is_allowed_is_shown() -> None:
    assert len(filled("{{title}}", title="x" * MAX_OUTPUT)) == MAX_OUTPUT
    assert filled("{% for a in files %}{{ a }}\n{% endfor %}", files=["row"] * 1000) == "row\n" * 1000
