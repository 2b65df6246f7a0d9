"""The error tree is part of the API: the docstring lists it, and every class is told apart."""

import inspect
import re

import pytest

from octavo.core import errors
from octavo.core.errors import ALL, Forbidden, NotFound, OctavoError, RateLimited, SourceUnavailable


def test_the_docstring_lists_every_class_and_no_other() -> None:
    listed = re.findall(r"^ +x (\w+)", errors.__doc__ or "", re.MULTILINE)
    defined = [
        name for name, cls in vars(errors).items() if inspect.isclass(cls) and issubclass(cls, OctavoError)
    ]  # in the order of the module
    assert ["OctavoError", *listed] == defined
    assert [cls.__name__ for cls in ALL] == listed


def test_every_listed_class_says_what_it_means() -> None:
    assert all(re.search(rf"x {cls.__name__}\s{{2,}}\S", errors.__doc__ or "") for cls in ALL)


def test_every_class_has_its_own_reason() -> None:
    """The base shares `internal` with InternalError on purpose: an error nobody placed is a fault of ours."""
    reasons = [cls.reason for cls in ALL]
    assert len(set(reasons)) == len(reasons)
    assert OctavoError.reason == errors.InternalError.reason
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", reason) for reason in reasons)


@pytest.mark.seed("F8", "A12")
def test_the_names_of_the_seeds_are_kept() -> None:
    assert {"NotFound", "Forbidden", "InvalidParams", "InternalError"} <= {cls.__name__ for cls in ALL}


def test_an_error_shows_its_message_and_keeps_its_data() -> None:
    error = NotFound("Resource not found: x://a", uri="x://a")
    assert (str(error), error.message, error.data) == ("Resource not found: x://a",) * 2 + ({"uri": "x://a"},)
    assert repr(error) == "NotFound('Resource not found: x://a')"


def test_what_steers_a_caller_is_no_data() -> None:
    assert (RateLimited(retry_after=1.5).retry_after, RateLimited(retry_after=1.5).data) == (1.5, {})
    assert str(RateLimited(retry_after=1)) == "Rate limit exceeded"
    assert (SourceUnavailable("x").retry_after, SourceUnavailable("x", retry_after=2).retry_after) == (None, 2)
    assert (Forbidden("x").hidden, Forbidden("x", hidden=True, agent="a").data) == (False, {"agent": "a"})
