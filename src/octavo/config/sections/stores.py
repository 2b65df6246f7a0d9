"""The sections `store` and `shared`: where state is kept, and what several servers share and may lose."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Discriminator, Field, SecretStr

from octavo.config.reference import Secret
from octavo.config.strict import Strict, written
from octavo.config.units import Timeout, parse_timeout

POSTGRES = ("postgresql://", "postgres://")
REDIS = ("redis://", "rediss://", "unix://")


def _leads_to(schemes: tuple[str, ...], what: str) -> AfterValidator:
    def check(url: SecretStr) -> SecretStr:
        if not url.get_secret_value().startswith(schemes):  # a message never repeats what is there instead
            raise ValueError(f"must lead to {what}: an address that begins with {' or '.join(schemes)}")
        return url

    return AfterValidator(check)


class SQLite(Strict):
    """One file in the state folder, for all processes of this machine."""

    kind: Literal["sqlite"] = Field(description="What the store is: a file.")


class Postgres(Strict):
    """A PostgreSQL, for several servers on one state."""

    kind: Literal["postgres"] = Field(description="What the store is: a database.")
    url: Annotated[Secret, _leads_to(POSTGRES, "a PostgreSQL")] = Field(
        description="Its address with user and password, as ${NAME} or file:PATH. Never the address itself."
    )
    # `schema` is a method of pydantic's models.
    tables: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,39}$")] = Field(
        default="octavo", alias="schema", description="The schema in which its tables stand; made if it is not there."
    )
    time: Timeout = written("10s", parse_timeout, "How long one call, or one transaction, may take.")


class Redis(Strict):
    """A Redis or Valkey."""

    kind: Literal["redis"] = Field(description="A Redis or Valkey.")
    url: Annotated[Secret, _leads_to(REDIS, "a Redis or Valkey")] = Field(
        description="Its address with the password, as ${NAME} or file:PATH. Never the address itself."
    )
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")] = Field(
        default="octavo", description="What all its keys begin with, for several installations in one."
    )
    time: Timeout = written("5s", parse_timeout, "How long one call may take.")


Store: TypeAlias = Annotated[SQLite | Postgres, Discriminator("kind")]
Shared: TypeAlias = Redis
