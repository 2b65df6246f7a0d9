"""The sections `store` and `shared`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError, create_model

from octavo.config.reference import Context
from octavo.config.sections.stores import Postgres, Redis, Shared, SQLite, Store
from octavo.config.strict import Strict

PASSWORD = "correct-horse"
ENVIRON = {
    "DATABASE_URL": f"postgresql://octavo:{PASSWORD}@db/octavo",
    "REDIS_URL": f"rediss://:{PASSWORD}@cache:6380/0",
}


def parsed(kind: Any, given: object) -> Any:
    """As a section of a configuration."""
    model: Any = create_model("Sections", __base__=Strict, section=(kind, ...))
    return model.model_validate({"section": given}, context=Context(Path("/etc/octavo"), ENVIRON)).section


def refused(kind: Any, given: object) -> str:
    with pytest.raises(ValidationError) as caught:
        parsed(kind, given)
    return str(caught.value)


def test_a_store_is_one_of_its_kinds() -> None:
    assert isinstance(parsed(Store, {"kind": "sqlite"}), SQLite)
    store = parsed(Store, {"kind": "postgres", "url": "${DATABASE_URL}", "schema": "acme", "time": "2s"})
    assert isinstance(store, Postgres)
    assert store.url.get_secret_value() == ENVIRON["DATABASE_URL"]
    assert (store.tables, store.time) == ("acme", 2.0)
    shared = parsed(Shared, {"kind": "redis", "url": "${REDIS_URL}"})
    assert isinstance(shared, Redis)
    assert (shared.name, shared.time) == ("octavo", 5.0)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (Store, {"kind": "redis", "url": "${REDIS_URL}"}, "'sqlite', 'postgres'"),
        (Store, {"kind": "sqlite", "url": "${DATABASE_URL}"}, "url"),
        (Store, {"kind": "postgres"}, "url"),
        (Store, {"kind": "postgres", "url": "${REDIS_URL}"}, "must lead to a PostgreSQL"),
        (Store, {"kind": "postgres", "url": ENVIRON["DATABASE_URL"]}, "only referred to"),
        (Store, {"kind": "postgres", "url": "${ABSENT}"}, "ABSENT is not set"),
        (Store, {"kind": "postgres", "url": "${DATABASE_URL}", "schema": "Acme; drop"}, "schema"),
        (Store, {"kind": "postgres", "url": "${DATABASE_URL}", "time": 0}, "above zero"),
        (Shared, {"kind": "redis", "url": "${DATABASE_URL}"}, "must lead to a Redis"),
        (Shared, {"kind": "redis", "url": "${REDIS_URL}", "name": "{a}"}, "name"),
        (Shared, {"kind": "sqlite"}, "redis"),
    ],
)
def test_what_does_not_hold_together_is_said_and_no_address_is_shown(kind: Any, given: object, said: str) -> None:
    message = refused(kind, given)
    assert said in message
    assert PASSWORD not in message


@pytest.mark.parametrize(
    ("kind", "given"),
    [(Store, {"kind": "postgres", "url": "${DATABASE_URL}"}), (Shared, {"kind": "redis", "url": "${REDIS_URL}"})],
)
def test_an_address_never_shows(kind: Any, given: object) -> None:
    model = parsed(kind, given)
    assert PASSWORD not in repr(model)
    assert PASSWORD not in str(model.model_dump())
    assert PASSWORD not in model.model_dump_json()
