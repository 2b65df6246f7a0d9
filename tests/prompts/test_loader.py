"""Prompt files in the format of seed 002: what loads, and how a broken one is reported (P1, P3, P5)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.prompts.fuzz import run, starters

from octavo.core.tools import Image, PromptArgument
from octavo.prompts.jsonc import NotJson, parse
from octavo.prompts.loader import PromptProblem, load
from octavo.prompts.template import PromptTemplate, ResourcePart, TemplateMessage, TextPart
from octavo.tools.schema import compile_schema

# Seed 002, section 2.1, as it stands there.
GENERATE_DOCS = """\
// file: {allowedDir}/prompts/generate_docs.json
{
  "id": "generate_docs", // 프롬프트의 고유 ID
  "description": "주어진 코드 파일에 대한 문서를 생성합니다.", // 프롬프트 설명
  "inputSchema": {
    // 프롬프트 실행 시 필요한 인수 정의 (JSON Schema)
    "type": "object",
    "properties": {
      "codeFileUri": {
        // 인수의 이름
        "type": "string",
        "description": "문서를 생성할 코드 파일의 Resource URI (e.g., file://src/main.ts)"
      },
      "outputFormat": {
        "type": "string",
        "description": "생성할 문서 형식",
        "enum": ["markdown", "jsdoc"],
        "default": "markdown"
      }
    },
    "required": ["codeFileUri"] // 필수 인수 지정
  },
  "messages": [
    // LLM에게 전달될 메시지 구조 템플릿
    {
      "role": "system",
      "content": [
        {
          "type": "text",
          "text": "당신은 코드 문서를 생성하는 AI 어시스턴트입니다. 주어진 코드 파일 내용을 바탕으로 {{outputFormat}} 형식의 문서를 작성해주세요."
        }
      ]
    },
    {
      "role": "user",
      "content": [
        {
          "type": "text",
          "text": "다음 코드 파일에 대한 문서를 생성해주세요:"
        },
        {
          "type": "resource", // 리소스 참조 타입
          "uri": "{{codeFileUri}}" // inputSchema의 codeFileUri 인수가 여기에 치환됨
        }
      ]
    }
    // 필요에 따라 assistant 역할의 예시 등을 추가할 수 있음
  ]
}
"""  # noqa: E501


def loaded(folder: Path, **files: str) -> tuple[list[PromptTemplate], list[PromptProblem]]:
    for name, text in files.items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return load([folder], compile_schema)


def messages(template: PromptTemplate) -> list[TemplateMessage]:
    (variant,) = template.variants.values()
    return [message for message in variant.messages if isinstance(message, TemplateMessage)]


def prompt(**changes: Any) -> str:
    body = {"id": "p", "description": "d", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}
    return json.dumps({**body, **changes}, ensure_ascii=False, indent=1)


@pytest.mark.seed("P1")
def test_the_seeds_own_file_loads_as_it_stands(tmp_path: Path) -> None:
    templates, problems = loaded(tmp_path, generate_docs=GENERATE_DOCS)
    assert problems == []
    (template,) = templates
    assert template.info.name == "generate_docs"
    assert template.info.description == "주어진 코드 파일에 대한 문서를 생성합니다."
    assert template.info.arguments == (
        PromptArgument(
            name="codeFileUri",
            description="문서를 생성할 코드 파일의 Resource URI (e.g., file://src/main.ts)",
            required=True,
        ),
        PromptArgument(name="outputFormat", description="생성할 문서 형식", required=False),
    )
    system, user = messages(template)
    assert (system.role, len(system.parts)) == ("system", 1)
    said, resource = user.parts
    assert isinstance(said, TextPart) and said.fill({}) == "다음 코드 파일에 대한 문서를 생성해주세요:"
    assert isinstance(resource, ResourcePart) and resource.uri.whole == "codeFileUri"


@pytest.mark.seed("P5")
def test_a_broken_file_is_reported_and_the_others_load(tmp_path: Path) -> None:
    templates, problems = loaded(tmp_path, good=prompt(), broken='{\n  "id": "x",\n  "description" 1\n}')
    assert [template.info.name for template in templates] == ["p"]
    assert problems == [PromptProblem(str(tmp_path / "broken.json"), 3, "':' is missing")]
    assert str(problems[0]) == f"{tmp_path / 'broken.json'}:3: ':' is missing"


@pytest.mark.seed("P3", "P5")
def test_a_variable_that_is_not_declared_is_reported_with_its_line(tmp_path: Path) -> None:
    text = GENERATE_DOCS.replace("{{outputFormat}}", "{{ outputFromat }}")
    templates, problems = loaded(tmp_path, generate_docs=text)
    assert templates == []
    wanted = next(i for i, line in enumerate(text.splitlines(), 1) if "outputFromat" in line)
    reason = "the variable {{outputFromat}} is not declared in inputSchema"
    assert problems == [PromptProblem(str(tmp_path / "generate_docs.json"), wanted, reason)]


@pytest.mark.seed("P5")
@pytest.mark.parametrize(
    "changes, line_of, says",
    [
        ({"id": 3}, '"id"', "id must be text"),
        ({"id": " "}, '"id"', "id is empty"),
        ({"id": "a/b"}, '"id"', "an id is 1 to 128"),
        ({"id": ".."}, '"id"', "an id is 1 to 128"),
        ({"description": ""}, '"description"', "description is empty"),
        ({"messages": []}, '"messages"', "at least one element"),
        ({"messages": [{"role": "robot", "content": []}]}, '"role"', "role is one of system, user, assistant"),
        ({"messages": [{"role": "user", "content": "hi"}]}, '"content"', "content must be a list"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, '"type"', "type is one of"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "", "text is missing"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "", "uri": "x"}]}]}, '"uri"', "unknown"),
        ({"messages": [{"role": "user", "content": [{"type": "resource", "uri": "no"}]}]}, '"uri"', "Not a resource"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "data": "%", "mimeType": "image/png"}]}]},
            '"data"',
            "not base64",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "data": "", "mimeType": "audio/wav"}]}]},
            '"mimeType"',
            "begins with image/",
        ),
        ({"inputSchema": {"type": "array"}}, '"inputSchema"', 'needs "type": "object"'),
        ({"inputSchema": {"type": "object", "properties": {"x": {"$ref": "http://h/s"}}}}, '"inputSchema"', "schema"),
        ({"extra": 1}, '"extra"', "unknown key 'extra'"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_line(
    tmp_path: Path, changes: dict[str, Any], line_of: str, says: str
) -> None:
    text = prompt(**changes)
    templates, problems = loaded(tmp_path, p=text)
    assert templates == []
    (problem,) = problems
    assert says in problem.reason
    if line_of:
        assert line_of in text.splitlines()[problem.line - 1]


def test_two_files_with_one_id_are_reported_and_the_first_is_served(tmp_path: Path) -> None:
    templates, problems = loaded(tmp_path, a=prompt(description="first"), b=prompt(description="second"))
    assert [template.info.description for template in templates] == ["first"]
    assert problems == [
        PromptProblem(str(tmp_path / "b.json"), 1, f"the id 'p' is already that of {tmp_path / 'a.json'}")
    ]


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{\n"id": "caf\xe9"}')
    (tmp_path / "huge.json").write_bytes(b" " * (1 << 20) + b"{}")
    (tmp_path / "notes.txt").write_text("not a prompt", encoding="utf-8")
    templates, problems = load([tmp_path, tmp_path / "nowhere"], compile_schema)
    assert templates == []
    assert [(Path(p.path).name, p.line, p.reason) for p in problems] == [
        ("notes.txt", 1, "is no prompt file: those end with .json, .jsonc, .yaml, .yml, .md"),
        ("huge.json", 1, "the file is larger than 1048576 bytes"),
        ("latin.json", 2, "the file is not UTF-8"),
        ("nowhere", 1, "the directory cannot be read: No such file or directory"),
    ]


@pytest.mark.seed("P5")
def test_whatever_a_file_says_it_is_a_prompt_or_a_problem(tmp_path: Path) -> None:
    """A short form of `python -m tests.prompts.fuzz`."""
    good, _ = run(150, 7, tmp_path, {**starters(), "generate_docs.json": GENERATE_DOCS})
    assert 0 < good < 150


@pytest.mark.seed("P1", "P5")
@pytest.mark.parametrize(
    "text, line, says",
    [
        ("id: p\ndescription: d\nmessages: &a []\n", 3, "anchor or alias"),
        ("id: p\nid: p\n", 2, "is given twice"),
        ("id: p\ndescription: [\n", 2, "is no YAML"),
        ("a: !!python/object/apply:os.system [id]\n", 1, "has a tag"),
        ("", 1, "id is missing"),
        ("- id: p\n", 1, "must be keys and values"),
        ("id: p\n---\nid: q\n", 2, "second document"),
        ("id: p\ndescription: d\nmessages:\n  - role: user\n    content:\n      - type: text\n        text: |\n"
         "          one\n          two {{nope}}\n", 9, "{{nope}} is not declared"),
        ("id: p\ndescription: d\nmessages:\n  - role: user\n    content:\n      - type: text\n        text: >-\n"
         "          one\n          {% if %}\n", 7, "cannot stand here"),
        ("id: p\ndescription: d\nmessages:\n  - history: 0\n", 4, "history is the number of messages"),
        ("id: p\ndescription: d\nmessages:\n  - {history: 3, role: user}\n", 4, "unknown key 'role'"),
        ("id: p\ndescription: d\ninputSchema:\n  type: object\n  required: [b]\n  properties:\n    b: {type: string}\n"
         "    a: {type: integer,\n      default: x}\nmessages:\n  - {role: user, content: [{type: text, text: t}]}\n",
         9, "the default of a"),
    ],
)  # fmt: skip
def test_yaml_is_read_as_strictly_and_says_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    templates, problems = load([tmp_path], compile_schema)
    assert templates == []
    assert [(one.line, says in one.reason) for one in problems] == [(line, True)], problems


def test_an_image_is_decoded_once(tmp_path: Path) -> None:
    part = {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
    templates, _ = loaded(tmp_path, p=prompt(messages=[{"role": "user", "content": [part]}]))
    assert messages(templates[0])[0].parts == (Image(b"\x89PNG", "image/png"),)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, -2.5e3, true, null, "x", {}], "b": []}',
        '"// not a comment /* nor this */"',
        '{"\\u007b": "\\"// still text"}',
        "[]",
        " \r\n\t7 ",
    ],
)
def test_what_is_json_reads_as_json_does(text: str) -> None:
    assert parse(text).value == json.loads(text)


def test_comments_are_blank_and_lines_are_kept() -> None:
    document = parse('/* one\n two */ {\n // three\n "a": /* x */ [\n  1, // y\n  2\n ]\n}\n// end')
    assert document.value == {"a": [1, 2]}
    assert [document.line(path) for path in ((), ("a",), ("a", 0), ("a", 1), ("a", 9))] == [2, 4, 5, 6, 4]


@pytest.mark.parametrize(
    "text, line, reason",
    [
        ("", 1, "ends too early"),
        ("{", 1, "name in"),
        ('{"a": 1,}', 1, "comma before }"),
        ("[1,\n]", 2, "comma before ]"),
        ("[1 2]", 1, "',' is missing"),
        ('{"a": 1, "a": 2}', 1, "given twice"),
        ("[\nNaN]", 2, "no JSON value"),
        ("[-Infinity]", 1, "no JSON value"),
        ('"a\nb"', 1, "does not end"),
        ('["\\x"]', 1, "wrong escape"),
        ("1 2", 1, "after the end"),
        ("/* open", 1, "not closed"),
        ("[" * 100_000, 1, "nested deeper"),
        ("{a: 1}", 1, "name in"),
        ("[,]", 1, "value is missing"),
        ("1" * 5000, 1, "no JSON value"),
    ],
)
def test_what_is_no_json_is_said_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(NotJson, match=re.escape(reason)) as caught:
        parse(text)
    assert caught.value.line == line
