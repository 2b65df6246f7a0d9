"""What waits for people: one small file in the state directory, replaced as a whole and by one process at a time.

That is what makes an answer count once, however many processes ask for it. A damaged file says nothing, and nobody
overwrites it. Without a state directory all is kept in memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from octavo.core.errors import SourceUnavailable
from octavo.core.sizes import MIB
from octavo.stores.state import read_whole, turn, write_whole

MOST_OF_ONE: Final = 32  # that one principal may have at a time
MOST: Final = 1000
MAX_BYTES: Final = 64 * MIB
PATIENCE: Final = 10.0  # seconds for which the turn of another process is waited for

One = TypeVar("One", bound=msgspec.Struct)


class WaitingFile(Generic[One]):
    def __init__(self, state: Path | None, what: str, kind: type[One]) -> None:
        """`what` is the plural: the file's name, its one member, and the word for it in errors."""
        self._state, self._what = state, what
        self._kind = kind
        self._memory: list[One] = []

    @contextlib.contextmanager
    def turn(self) -> Generator[None]:
        """While it is held nobody else can change the file. Raises SourceUnavailable when somebody else holds it for
        too long."""
        if self._state is None:
            yield
            return
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(turn(self._state / "lock", seconds=PATIENCE))
            except TimeoutError:
                raise SourceUnavailable(
                    f"The {self._what} cannot be changed: another process holds them", retry_after=PATIENCE
                ) from None
            yield

    def read(self) -> list[One]:
        """Raises SourceUnavailable for a file that cannot be read, or is damaged."""
        if self._state is None:
            return self._memory
        try:
            body = read_whole(self._state / self._name, MAX_BYTES)
        except OSError as error:
            raise SourceUnavailable(f"The {self._what} cannot be read: {error.strerror}") from None
        if body is None:
            return []
        try:
            document = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
            if msgspec.json.decode(document["version"], type=int) != 1:
                raise SourceUnavailable(f"The {self._what} were written by a newer Octavo")
            return [msgspec.convert(one, self._kind) for one in msgspec.json.decode(document[self._what], type=list)]
        except (msgspec.MsgspecError, KeyError):
            raise SourceUnavailable(
                f"The file {self._name} of the state folder is damaged; remove it, and what waits is asked for again"
            ) from None

    def write(self, waiting: list[One]) -> None:
        """Raises SourceUnavailable; then the file is as it was."""
        if self._state is None:
            self._memory = waiting
            return
        body = msgspec.json.encode({"version": 1, self._what: waiting}) + b"\n"
        if len(body) > MAX_BYTES:  # it could not be read again
            raise SourceUnavailable(f"Too much waits in the {self._what} already; wait until some of it is answered")
        try:
            write_whole(self._state / self._name, body)
        except OSError as error:
            raise SourceUnavailable(f"The {self._what} cannot be written: {error.strerror}") from None

    @property
    def _name(self) -> str:
        return f"{self._what}.json"
