"""The shape of `search`: the index over all sources, and who may be asked what its texts mean."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from octavo.config.reference import Secret
from octavo.config.sections.web import check_network, not_public
from octavo.config.strict import Strict, written
from octavo.config.units import Size, Timeout, parse_size, parse_timeout
from octavo.config.words import Count, Flag, check_url


class Embedder(Strict):
    url: Annotated[str, AfterValidator(check_url)] = Field(
        description="The whole address that takes texts and gives vectors, such as https://host/v1/embeddings."
    )
    model: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="The model, as the endpoint calls it."
    )
    key: Secret | None = Field(
        default=None, description="Sent as a bearer token, as ${NAME} or file:PATH. Not given: none is sent."
    )
    inside: tuple[Annotated[str, AfterValidator(check_network)], ...] = Field(
        default=(), description="Networks that are not public and may be reached nevertheless, such as 127.0.0.0/8."
    )
    time: Timeout = written("5s", parse_timeout, "How long it may take; then words alone decide.")

    @model_validator(mode="after")
    def _leads_where_it_may(self) -> Embedder:
        parts = urlsplit(self.url)
        if self.key is not None and parts.scheme != "https":
            raise ValueError("key is a secret: it needs an https address")
        if parts.username is not None or not parts.hostname:
            raise ValueError("url needs a host, and no name or password in it")
        if hint := not_public(self.url, self.inside):
            raise ValueError(hint)
        return self


class Search(Strict):
    enabled: Flag = Field(default=True, description="Whether there is a ranked search over all sources, with an index.")
    documents: Count = Field(default=100_000, description="How many documents it may be about; catalogs come first.")
    text: Size = written("1MiB", parse_size, "Larger documents are found by their names and metadata alone.")
    embedder: Embedder | None = Field(
        default=None,
        description="An endpoint of yours that says what texts mean: redacted texts and questions are sent to it.",
    )
