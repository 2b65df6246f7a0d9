"""Values below their name, and values that a notebook keeps in pieces."""

from __future__ import annotations

import json

import pytest
from tests.pipeline import secrets_corpus as corpus

from octavo.pipeline.redact.redactor import Redactor

VEIL = Redactor(b"k" * 32)
WORD = "tr0ub4dor" + "3xyZ"
TOKEN = corpus.ALL["github-token"](corpus.Maker(3))[1]


@pytest.mark.parametrize(
    "text",
    [
        "name,password,city\nkim,{},seoul\nlee,{},busan\n",
        "password;name\r\n{};kim\r\n",
        'name\tdb_password\n"kim"\t"{}"\n',
        'id,"비밀번호"\n1,"{}"\n',
        'name,note,secret\nkim,"two\nlines",x\nlee,fine,{}\n',
        "name,password\nkim,{}",
        'name,password,note\nkim,{},"a\nb"\n',
        'name,password,note\nkim,{},"a\nb"\nlee,{},c\n',
        'name,password,note\r\nkim,"{}","a ""b"",\r\n\r\nc"\r\nlee,{},c\r\n',
        'name,note,password\nkim,"a\nb",{}\n',
        "name,password\nkim,{},extra\n",
        "name,password,note\nkim,{}\n",
        'name,password,note\nkim,{},"never closed\nlee,{},c\n',
        'name,password,note\nkim,{},a"b\n',
        "name|password\nkim|{}\n",
        'id|"api_key"|city\r\n1|"{}"|seoul\r\n',
    ],
)
def test_a_column_with_a_sensitive_name_is_hidden(text: str) -> None:
    shown = VEIL.text(text.replace("{}", WORD))
    assert WORD not in shown and "[redacted:column:" in shown
    assert shown.startswith(text.partition("{}")[0])
    assert VEIL.text(shown) is shown
    assert len(shown.splitlines()) == len(text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "token,count\nthe,120\nMississippi,3\n",
        "We keep a password, a key, and patience.\nMonday, 2026-07-28, 10:30\n",
        "name,password\nkim,changeme123\nlee,<secret>\n",
        "| field | token |\n|---|---|\n| kind | the word itself |\n",
        "name,city,password\nR2-D2-c3po99,tatooine7,x\n",
        'name,password,note\nkim,x,"R2-D2-c3po99,tatooine7,R2-D2-c3po98\nR2-D2-c3po99,tatooine7,R2-D2-c3po98"\n',
    ],
)
def test_a_table_without_secrets_stays(text: str) -> None:
    assert VEIL.text(text) is text


def notebook(source: list[str]) -> str:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}
    return json.dumps({"cells": [cell], "nbformat": 4, "nbformat_minor": 5}, indent=1)


def test_a_secret_in_two_pieces_of_a_notebook_is_hidden_and_it_stays_one() -> None:
    text = notebook(["key = '" + TOKEN[:20], TOKEN[20:] + "'\n", "print(key)\n"])
    shown = VEIL.text(text, "application/json")
    assert TOKEN[:20] not in shown and TOKEN[20:] not in shown
    assert json.loads(shown)["cells"][0]["source"][-1] == "print(key)\n"
    assert VEIL.text(shown, "application/json") is shown


def test_a_notebook_without_secrets_stays() -> None:
    text = notebook(["import os\n", "token = os.environ['TOKEN']\n", 'print("a, b")\n'])
    assert VEIL.text(text, "application/json") is text
