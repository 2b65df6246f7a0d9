"""The shape of `limits` where it is about one caller, one tool or one source."""

from __future__ import annotations

from pydantic import Field

from octavo.config.strict import Strict
from octavo.config.units import ByteLimit, Limit
from octavo.config.words import Count


class Allowance(Strict):
    """What is not given is as for everybody."""

    rate: Limit = Field(default=None, description='Requests, such as 200/s; "off" for no limit.')
    bytes: ByteLimit = Field(default=None, description='Content, such as 20MB/s; "off" for no limit.')
    in_flight: Count | None = Field(default=None, description="Requests that may be worked on at once.")
    subscriptions: Count | None = Field(default=None, description="Subscriptions.")
    sessions: Count | None = Field(default=None, description="Sessions over HTTP.")


class ToolLimit(Strict):
    rate: Limit = Field(default=None, description="Calls of one agent, such as 10/m.")
    in_flight: Count | None = Field(default=None, description="Calls of one agent that may run at once.")


class SourceLimit(Strict):
    rate: Limit = Field(
        default=None, description="Requests of everybody that reach the source, such as 3/s. More wait for their turn."
    )
    concurrency: Count = Field(default=32, description="How many of them the source works on at once.")
