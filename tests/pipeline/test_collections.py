"""Of an answer that tells of several resources, each caller sees those that it may see."""

import json
from typing import Any

import pytest

from octavo.core.errors import InternalError
from octavo.core.ref import Ref
from octavo.core.values import Content, Entry
from octavo.pipeline.policy.collections import Sees, visible


def content(data: Any) -> Content:
    body = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return Content(entry=Entry(ref=Ref("x"), name="x", version="1"), body=body, composed=True)


OPEN_ONLY = Sees(lambda ref: ref.segments[:1] != ("hidden",), lambda pattern: "hidden" not in pattern)


def shown(data: Any) -> Any:
    return json.loads(visible(content(data), OPEN_ONLY).body)


def test_what_may_all_be_seen_is_the_very_same_text() -> None:
    whole = content({"entries": [{"uri": "sop://a/b"}], "more": [{"n": [1, None, "x"]}]})
    assert visible(whole, OPEN_ONLY).body is whole.body


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([{"uri": "sop://hidden/b"}, {"uri": "sop://a"}], [{"uri": "sop://a"}]),
        ({"a": {"uri": "sop://hidden"}, "b": 1}, {"b": 1}),
        ({"g": [{"uri": "sop://hidden"}], "h": []}, {"g": [], "h": []}),
        ([[{"uri": "sop://a", "of": [{"uri": "sop://hidden/x"}]}]], [[{"uri": "sop://a", "of": []}]]),
        ({"uri": "sop://hidden"}, {}),
        ([{"uri": "no address"}, {"uri": None}, {"uri": ["sop://a"]}, {"uri": "sop://a/../hidden"}], []),
        ([{"uri": "sop://%68idden/b"}, {"uri": "sop://hidden/b?x=1"}], []),
        ([{"what": "sop://hidden/*"}, {"what": "sop://a/*"}], [{"what": "sop://a/*"}]),
        (
            {"relations": {"metadata": [{"uri": "sop://hidden"}], "declared": []}},
            {"relations": {"metadata": [], "declared": []}},
        ),
        ({"relations": {"what": [{"uri": "sop://hidden"}, 1]}}, {"relations": {"what": [1]}}),
        ({"at_most": 2, "a": [{"uri": "sop://hidden"}, 1, 2, 3]}, {"at_most": 2, "a": [1, 2]}),
    ],
)
def test_objects_whose_uri_may_not_be_seen_are_left_out(data: Any, expected: Any) -> None:
    assert shown(data) == expected


@pytest.mark.parametrize(
    "data",
    [
        [{"uri": "sop://a", "metadata": {"uri": "no address", "what": {"uri": "sop://hidden"}}}],
        {"permissions": {"declared": {"uri": 5, "what": "hidden"}, "live": []}},
    ],
)
def test_what_an_author_wrote_is_shown_whatever_keys_it_has(data: Any) -> None:
    assert shown(data) == data


def test_size_and_version_are_those_of_what_is_left() -> None:
    left = visible(content([{"uri": "sop://hidden/b"}]), OPEN_ONLY)
    assert (left.body, left.entry.size, left.entry.version != "1", left.composed) == ("[]", 2, True, True)


@pytest.mark.parametrize("body", ["no JSON", "", "[" * 100_000])
def test_what_cannot_be_checked_is_not_given(body: str) -> None:
    with pytest.raises(InternalError):
        visible(content(body), OPEN_ONLY)
