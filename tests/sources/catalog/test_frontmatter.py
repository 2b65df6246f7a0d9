"""Front matter is foreign text: read within bounds, its faults told with their lines."""

import pytest

from octavo.text.frontmatter import MAX_CHARACTERS, MAX_DEPTH, MAX_NODES, of_markdown, of_yaml


def test_markdown_has_its_front_matter_and_its_body() -> None:
    text = "---\r\nid: sop-1\r\n제목: 캠페인 브리프\r\ntags: [브랜드, b]\r\n---\r\n# 본문\r\n"
    matter = of_markdown(text)
    assert (matter.data, matter.faults) == ({"id": "sop-1", "제목": "캠페인 브리프", "tags": ["브랜드", "b"]}, ())
    assert text[matter.body :] == "# 본문\r\n"
    assert (matter.line(("제목",)), matter.line(("tags", 1)), matter.line(("absent",))) == (3, 4, 2)


@pytest.mark.parametrize("text", ["", "# title\n", "----\na: 1\n", " ---\na: 1\n---\n", "--- x\na: 1\n---\n"])
def test_text_without_front_matter_has_none(text: str) -> None:
    matter = of_markdown(text)
    assert (matter.found, matter.data, matter.faults, matter.body) == (False, {}, (), 0)


def test_a_byte_order_mark_is_no_part_of_it() -> None:
    text = "\ufeff---\nid: x\n---\nbody"
    assert of_markdown(text).data == {"id": "x"}
    assert text[of_markdown(text).body :] == "body"
    assert of_yaml("\ufeffid: x\n").data == {"id": "x"}


def test_words_are_those_of_yaml_1_2_and_dates_stay_text() -> None:
    text = "a: no\nb: true\nc: 012\nd: 0x1f\ne: 1.5\nf: ~\ng: 2025-01-25\nh: 12:30:45\ni: 'true'\nj: \"1\"\nk: -3\n"
    assert of_yaml(text).data == {
        "a": "no", "b": True, "c": 12, "d": 31, "e": 1.5, "f": None, "g": "2025-01-25", "h": "12:30:45", "i": "true",
        "j": "1", "k": -3,
    }  # fmt: skip


def test_keys_that_are_text_keep_what_is_written() -> None:
    text = "version: 1.10\ntags: [2025, 1.0, yes]\nsize: 1.10\nmore: {version: 1.10}\ntitle:\n"
    read = of_yaml(text, texts=frozenset({"version", "tags", "title"})).data
    assert read == {
        "version": "1.10", "tags": ["2025", "1.0", "yes"], "size": 1.1, "more": {"version": 1.1}, "title": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\nb: *x\n", 2, "b has an anchor or alias"),
        ("a: &x 1\n", 1, "a has an anchor or alias"),
        ("a: 1\n&k b: 1\n", 2, "a key has an anchor or alias"),
        ("a: !!python/object:os.system x\n", 1, "a has a tag"),
        ("a: {b: !x [1]}\n", 1, "a.b has a tag"),
        ("x: 1\n<<: {a: 1}\n", 2, "merge keys"),
        ("a: 1\nb: 2\na: 3\n", 3, "a is given twice"),
        ("a:\n  - b: 1\n    b: 2\n", 3, "a[0].b is given twice"),
        ("? [a]\n: 1\n", 1, "a key must be plain text"),
        ("a: 1\n---\nb: 1\n", 2, "begins a second document"),
        ("- a\n- b\n", 1, "must be keys and values"),
        ("just text\n", 1, "must be keys and values"),
        ("a: [1, 2\nb: 1\n", 2, "is no YAML"),
        ("a: b: c\n", 1, "is no YAML"),
        ("a: 1\n\tb: 1\n", 2, "is no YAML"),
        ("a: 1\nb: \x01\n", 2, "holds a character that YAML does not allow"),
        ("a: .inf\n", 1, "a is a number that cannot be used"),
        ("a: 1e999\n", 1, "a is a number that cannot be used"),
        (f"a: {'9' * 5000}\n", 1, "a is a number that cannot be used"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, said: str) -> None:
    for read, first in ((of_yaml(text), line), (of_markdown(f"---\n{text}---\n"), line + 1)):
        if read.found and "---" not in text:
            assert [(fault.line, fault.message[: len(said)]) for fault in read.faults] == [(first, said)]
    assert of_yaml(text).faults


def test_what_can_be_read_beside_a_fault_is_kept() -> None:
    assert of_yaml("id: x\nid: y\ntitle: t\n").data == {"id": "x", "title": "t"}
    assert of_yaml("id: x\nbad: *a\n").data == {"id": "x"}


def test_front_matter_that_does_not_end_is_told() -> None:
    assert [fault.message for fault in of_markdown("---\na: 1\n").faults] == [
        "the front matter begins with --- and does not end"
    ]
    assert [fault.message for fault in of_markdown("---\na: 1\n", whole=False).faults] == [
        "the front matter is too long"
    ]


@pytest.mark.parametrize(
    "bomb",
    [
        "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(9)),
        "a: " + "[" * 100_000,
        "a: " + "{a: " * 50_000,
        "a:\n" + "".join(" " * n + "- \n" for n in range(1, 300)),
        "".join(f"k{n}: 1\n" for n in range(MAX_NODES)),
        "a: [" + "1," * 100_000 + "]",
        "a: '" + "x" * MAX_CHARACTERS + "'",
        "- " * 50_000,
        "? " * 50_000,
        "a: |\n" + " " * 100_000,
    ],
    ids=["aliases", "lists", "mappings", "items", "keys", "values", "long", "dashes", "questions", "spaces"],
)
def test_a_bomb_is_told_and_does_not_go_off(bomb: str) -> None:
    for matter in (of_yaml(bomb), of_markdown(f"---\n{bomb}\n---\n")):
        assert len(matter.faults) <= 20
        assert len(str(matter.data)) <= 2 * len(bomb)
        assert matter.faults or bomb.startswith("a: |")


def test_the_depth_that_is_allowed_is_read() -> None:
    depth = MAX_DEPTH - 1
    assert of_yaml("a: " + "[" * depth + "]" * depth).faults == ()
    assert of_yaml("a: " + "[" * (depth + 1) + "]" * (depth + 1)).faults


def test_no_fault_repeats_a_value() -> None:
    for text in ("a: !hunter2 x\n", "a: &hunter2 x\n", "a: 'hunter2\n", "a: *hunter2\n", "a: [hunter2\n", "hunter2"):
        assert "hunter2" not in str(of_yaml(text).faults)
