"""An edit is a value, and one function applies it."""

from __future__ import annotations

import msgspec
import pytest

from octavo.core.arguments import EditArguments
from octavo.core.edit import Edit, Revised, Revision, Words
from octavo.core.errors import InvalidParams
from octavo.core.preconditions import Shown, guarded
from octavo.text.revise import revise

PATCH = "@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n"


def test_edits_say_what_they_made_and_where() -> None:
    made = revise("one\ntwo\ntwo\n", Revision(edits=(Edit("one", "1"), Edit("two", "2", "all")), label="a.md"))
    assert made.text == "1\n2\n2\n"
    assert made.report.startswith("--- a.md\n+++ a.md\n") and (made.added, made.removed) == (3, 3)
    assert [place["line"] for place in made.places] == [1, 2, 3]


def test_a_patch_is_an_edit_as_well() -> None:
    made = revise("one\ntwo\n", Revision(patch=PATCH))
    assert made.text == "ONE\ntwo\n" and [*made.places] == [{"hunk": 1, "line": 1, "offset": 0}]


def test_what_the_arguments_are_called_is_how_a_refusal_speaks() -> None:
    with pytest.raises(InvalidParams, match="`oldText` is not in the text"):
        revise("one\n", Revision(edits=(Edit("nine", "1"),), words=Words("`oldText`", otherwise="")))


def test_a_mark_that_stands_for_a_secret_is_not_written() -> None:
    mark = "[redacted:password:00000001]"
    for wanted in (Revision(edits=(Edit("one", mark),)), Revision(patch=PATCH.replace("+ONE", f"+{mark}"))):
        with pytest.raises(InvalidParams, match="stands for a secret"):
            revise("one\ntwo\n", wanted)


@pytest.mark.parametrize("wanted", [Revision(edits=(Edit("one", "1"), Edit("two", "2", "all"))), Revision(patch=PATCH)])
def test_an_edit_can_be_written_down_and_read_again(wanted: Revision) -> None:
    assert msgspec.json.decode(msgspec.json.encode(wanted), type=Revision) == wanted


def test_a_human_is_told_what_an_edit_would_do() -> None:
    asked = EditArguments(revision=Revision(edits=(Edit("one", "1"),), label="a.md"), if_match="7")
    assert asked.told() == {"edits": [{"old": "one", "new": "1", "expected": 1}], "if_match": "7"}
    assert EditArguments(revision=Revision(patch=PATCH)).told() == {"patch": PATCH}


class _Hides:
    """From its caller, the first letter."""

    def check(self, before: Shown, after: Shown) -> None:
        pass

    def below(self, text: str, change: object) -> Revised:
        assert callable(change)
        made: Revised = change(text[1:])
        return Revised(text[:1] + made.text, made.report)


def test_an_edit_is_applied_below_what_is_hidden() -> None:
    with guarded(_Hides()):
        assert revise("sone\n", Revision(edits=(Edit("one", "1"),))).text == "s1\n"
        with pytest.raises(InvalidParams, match="not in the text"):
            revise("sone\n", Revision(edits=(Edit("sone", "1"),)))
