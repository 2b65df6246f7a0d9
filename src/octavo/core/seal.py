"""Signs and encrypts text that a client keeps for us, such as a cursor.

A cursor names the place where a listing goes on, and that place may be something its bearer may not see.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

_TAG = 16


class Seal:
    """The tag is a keyed digest of the text, and the text is hidden under a stream made of key and tag: a synthetic
    initialisation vector. The same text is sealed alike, so that answers stay equal."""

    def __init__(self, key: bytes) -> None:
        self._tagging = hashlib.blake2b(b"tag", key=key, digest_size=32).digest()
        self._hiding = hashlib.blake2b(b"hide", key=key, digest_size=32).digest()

    def seal(self, text: bytes, bound: str) -> str:
        """`bound` says for whom and for what: it must be the same when it is opened."""
        tag = self._tag(text, bound)
        return base64.urlsafe_b64encode(tag + self._hidden(text, tag)).rstrip(b"=").decode("ascii")

    def digest(self, text: bytes) -> str:
        """The same for the same text, and told by nobody who has not the key."""
        return hashlib.blake2b(text, key=self._tagging, digest_size=16).hexdigest()

    def open(self, sealed: str, bound: str) -> bytes | None:
        """None for what was not sealed so."""
        try:
            raw = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
        except ValueError:
            return None
        tag, text = raw[:_TAG], self._hidden(raw[_TAG:], raw[:_TAG])
        return text if hmac.compare_digest(tag, self._tag(text, bound)) else None

    def _tag(self, text: bytes, bound: str) -> bytes:
        whom = bound.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(b"%d:%b%b" % (len(whom), whom, text), key=self._tagging, digest_size=_TAG).digest()

    def _hidden(self, text: bytes, tag: bytes) -> bytes:
        stream = hashlib.shake_256(self._hiding + tag).digest(len(text))
        return (int.from_bytes(text, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(text), "big")
