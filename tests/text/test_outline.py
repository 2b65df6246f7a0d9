"""Outlines say what a text contains and where; a section is found by its name, its path or its anchor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import InvalidParams
from octavo.text.outline import outline, section

MARKDOWN = """---
title: x
# no heading: front matter
---
# Guide #
Text
## Install
### Linux
```sh
# no heading: fenced code
```
### macOS
## Use

Long
title
-----
- item
---
<!--
# no heading: comment
-->
    # no heading: indented
~~~
## no heading
~~~~
Install
=======
### Linux
end
"""


def told(text: str, mime: str) -> list[tuple[str, int, int]]:
    return [("/".join(symbol.path), symbol.line, symbol.last) for symbol in outline(text, mime)]


def refusal(text: str, name: str, mime: str = "text/markdown") -> str:
    with pytest.raises(InvalidParams) as caught:
        section(text, name, mime)
    return str(caught.value)


def test_headings_of_markdown_nest_and_code_front_matter_and_comments_have_none() -> None:
    assert told(MARKDOWN, "text/markdown") == [
        ("Guide", 5, 26),
        ("Guide/Install", 7, 12),
        ("Guide/Install/Linux", 8, 11),
        ("Guide/Install/macOS", 12, 12),
        ("Guide/Use", 13, 14),
        ("Guide/Long title", 15, 26),
        ("Install", 27, 30),
        ("Install/Linux", 29, 30),
    ]


def test_a_section_is_found_by_path_by_anchor_and_in_any_case() -> None:
    assert section(MARKDOWN, "Guide > Install > Linux", "text/markdown") == (8, 11)
    assert section(MARKDOWN, "use", "text/markdown") == (13, 14)
    assert section(MARKDOWN, "## Use", "text/markdown") == (13, 14)
    assert section(MARKDOWN, "#long-title", "text/markdown") == (15, 26)
    assert section(MARKDOWN, "#linux-1", "text/markdown") == (29, 30)
    assert section(MARKDOWN, "Install", "text/markdown") == (27, 30)
    assert section("# 설치 방법!\na\n# 사용\n", "#설치-방법", "text/markdown") == (1, 2)


def test_an_ambiguous_or_unknown_section_lists_the_candidates() -> None:
    assert "2 sections" in refusal(MARKDOWN, "Linux")
    assert "Guide > Install > Linux (line 8); Install > Linux (line 29)" in refusal(MARKDOWN, "Linux")
    assert "There are: Guide > Install > macOS (line 12)" in refusal(MARKDOWN, "mac OS")
    assert "Guide (line 5)" in refusal(MARKDOWN, "nothing alike at all")
    assert "no sections" in refusal("plain", "x", "text/plain")


PYTHON = '''@decorated
class A:
    """def no(): pass"""

    def f(self) -> None:
        def inner() -> int:
            return 1

    async def g(self): ...


if True:
    def h(): pass
'''


def test_python_is_read_by_its_own_parser() -> None:
    assert told(PYTHON, "text/x-python") == [
        ("A", 1, 9), ("A/f", 5, 7), ("A/f/inner", 6, 7), ("A/g", 9, 9), ("h", 13, 13),
    ]  # fmt: skip
    assert section(PYTHON, "A.f", "text/x-python") == (5, 7)


def test_python_that_does_not_parse_is_read_by_its_looks() -> None:
    broken = "class A:\n    def f(self):\n        return (\n\ndef g():\n    pass\n"
    assert told(broken, "text/x-python") == [("A", 1, 3), ("A/f", 2, 3), ("g", 5, 6)]


@pytest.mark.parametrize("text", ["-" * 50_000 + "1", "a" + ".a" * 100_000, "(" * 10_000, "x\0y", "'\\d'"])
def test_a_python_text_that_is_a_trap_is_none(text: str) -> None:
    assert list(outline(text, "text/x-python")) == []


@pytest.mark.parametrize(
    ("mime", "text", "names"),
    [
        ("text/typescript", "export default class A<T> {\n  private async f(a: number): Promise<void> {\n"
         "    if (a) {\n    }\n"
         "    call(() => {\n    });\n  }\n}\nexport const g = async (x: number) => {\n};\ninterface I {\n}\n"
         "type T = string;\nfunction* h() {\n}\n// function no() {}\n", "A A/f g I T h"),
        ("text/x-java", "public class A extends B {\n    @Override\n    public List<String> f(int a) throws E {\n"
         "        return g(a);\n        for (int i = 0; i < 1; i++) {\n        }\n    }\n    public A() {\n    }\n}\n"
         "interface I {\n    void no();\n}\n", "A A/f A/A I"),
        ("text/x-go", "package p\n\ntype S struct {\n}\n\nfunc (s *S) F(a int) error {\n\treturn g(a)\n}\n\n"
         "func g() {\n}\n", "S F g"),
        ("text/x-rust", "pub(crate) struct S<T> {\n}\n\nimpl<T> Display for S<T> {\n"
         "    pub async fn f(&self) {\n    }\n}\n"
         "macro_rules! m {\n}\nmod tests {\n    fn t() {}\n}\n", "S S S/f m tests tests/t"),
        ("text/x-c++", "#define MAX(a, b) a\nstatic int f(int a,\n             int b)\n{\n    return g(a);\n}\n"
         "void A::h(int x = 1) {\n    int y = f(1, 2);\n    f(1,\n      2);\n}\n"
         "class A : public B {\n};\nstruct S;\n", "MAX f h A"),
        ("text/x-kotlin", "data class P(val a: Int)\nfun String.f(a: Int): Int = 1\n", "P f"),
        ("text/x-csharp", "namespace N\n{\n    public sealed class C\n    {\n        public async Task<int> F(int a)\n"
         "        {\n        }\n    }\n}\n", "N N/C N/C/F"),
        ("text/x-ruby", "module M\n  class C\n    def ok?\n    end\n  end\nend\n", "M M/C M/C/ok?"),
        ("text/x-php", "final class C {\n  public function f() {\n  }\n}\n", "C C/f"),
        ("text/x-shellscript", "f() {\n  echo 1\n}\nfunction g {\n}\n", "f g"),
    ],
)  # fmt: skip
def test_classes_and_functions_are_seen_by_their_looks(mime: str, text: str, names: str) -> None:
    assert " ".join("/".join(symbol.path) for symbol in outline(text, mime)) == names


def test_a_block_ends_at_its_brace() -> None:
    assert told("function f() {\n  a();\n}\n\nlet x = 1;\n\nclass A {\n  m() {\n  }\n}\n", "text/javascript") == [
        ("f", 1, 3), ("A", 7, 10), ("A/m", 8, 9),
    ]  # fmt: skip


def test_top_level_keys_of_json_have_their_lines() -> None:
    text = '{\n  "a": {"x": "}"},\n  "b": [\n    1\n  ],\n  "\\u0063": 3\n}\n'
    assert told(text, "application/json") == [("a", 2, 2), ("b", 3, 5), ("c", 6, 6)]
    assert told('{\n  // comment\n  "a": {\n    "x": 1\n  },\n  "b": 2\n}\n', "application/json") == [
        ("a", 3, 5),
        ("b", 6, 7),
    ]
    assert (
        told("[1]", "application/json") == told("", "application/json") == told("[" * 100_000, "application/json") == []
    )


def test_top_level_keys_of_yaml_and_sections_of_toml() -> None:
    text = "# c: no\na: 1\nb:\n  c: 2\n  d: |\n    e: 3\n'f g':\n- h: 4\nurl: http://x\n"
    assert told(text, "application/yaml") == [("a", 2, 2), ("b", 3, 6), ("f g", 7, 8), ("url", 9, 9)]
    assert told("x = 1\n[tool.ruff]\na = [1]\n[[items]]\n", "application/toml") == [
        ("tool.ruff", 2, 3),
        ("items", 4, 4),
    ]


MIMES = [
    "text/markdown",
    "application/json",
    "application/yaml",
    "application/toml",
    "text/x-python",
    "text/typescript",
    "text/x-java",
]


@given(
    st.text(st.sampled_from("ab#-=`~ \n\r\t{}()[]:\"'<>!한;."), max_size=60) | st.text(max_size=40),
    st.sampled_from(MIMES),
)
def test_any_text_has_an_outline_within_its_lines(text: str, mime: str) -> None:
    symbols = outline(text, mime)
    total = len(text.splitlines()) + text.count("\r") + 1
    assert all(1 <= symbol.line <= symbol.last <= total for symbol in symbols)
    assert [symbol.line for symbol in symbols] == sorted(symbol.line for symbol in symbols)
