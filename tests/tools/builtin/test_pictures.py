"""Pictures that are larger than an answer may be: made smaller, in a process of its own, or refused with a reason."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import pytest
from PIL import Image as Picture

from octavo.core.errors import InvalidParams, Timeout, TooLarge
from octavo.core.tools import Image, Link, Text

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A5", "B5")]

SOURCE = 'sources: {work: {kind: file, roots: [./work], extensions: ["*"]}}\ntoolsets: [files, filesystem]\n'
TIGHT = f"{SOURCE}limits: {{media: 60KB, read: 200KB}}"


def _noise(size: tuple[int, int], kind: str, **options: Any) -> bytes:
    packed = io.BytesIO()
    Picture.effect_noise(size, 90).convert("RGB").save(packed, kind, **options)
    return packed.getvalue()


def _size(image: Image) -> tuple[int, int]:
    with Picture.open(io.BytesIO(image.data)) as picture:
        return picture.size


async def test_a_small_picture_is_given_as_it_is_and_a_large_one_smaller_with_a_word(serve: Any) -> None:
    small, large = _noise((40, 30), "PNG"), _noise((450, 350), "JPEG", quality=95)
    over_the_read_limit = _noise((900, 700), "JPEG", quality=98)
    assert len(large) < 200_000 < len(over_the_read_limit)
    tools = await serve(TIGHT, {"small.png": small, "large.jpg": large, "huge.jpg": over_the_read_limit})
    assert (await tools("read", target="small.png")).content == (Image(small, "image/png"),)
    for name in ("large.jpg", "huge.jpg"):
        for called, asked in (("read", {"target": name}), ("read_media_file", {"path": name})):
            picture, note, link = (await tools(called, **asked)).content
            assert isinstance(picture, Image) and len(picture.data) <= 60_000
            assert _size(picture)[0] < 900 and picture.mime_type == "image/jpeg"
            assert isinstance(note, Text) and note.text.startswith("[made smaller:") and isinstance(link, Link)


async def test_a_smaller_picture_can_be_asked_for(serve: Any) -> None:
    turned = _noise((2000, 1000), "JPEG", quality=60, exif=_exif(orientation=6))
    tools = await serve(f"{SOURCE}limits: {{read: 4MB, media: 3MB}}", {"turned.jpg": turned, "a.txt": "x"})
    assert (await tools("read", target="turned.jpg")).content == (Image(turned, "image/jpeg"),)
    picture = (await tools("read", target="turned.jpg", **{"as": "image"})).content[0]
    assert isinstance(picture, Image)
    width, height = _size(picture)
    assert width * height <= 1_200_000 and height > width  # upright now
    with pytest.raises(TooLarge, match="media type"):
        await tools("read", target="a.txt", **{"as": "image"})


async def test_of_an_animation_the_first_picture(serve: Any) -> None:
    packed = io.BytesIO()
    frames = [Picture.effect_noise((400, 300), 90).convert("P") for _ in range(3)]
    frames[0].save(packed, "GIF", save_all=True, append_images=frames[1:])
    tools = await serve(TIGHT, {"a.gif": packed.getvalue()})
    picture = (await tools("read", target="a.gif")).content[0]
    assert isinstance(picture, Image) and picture.mime_type in ("image/png", "image/jpeg")


async def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded(serve: Any) -> None:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 90_001 * 900, 9))
    tools = await serve(TIGHT, {"bomb.png": bomb + b"\0" * 70_000, "damaged.png": b"\x89PNG" + b"x" * 70_000})
    with pytest.raises(TooLarge, match=r"made smaller: .*900000000 pixels"):
        await tools("read", target="bomb.png")
    with pytest.raises(TooLarge, match="damaged, cut off or of another kind"):
        await tools("read", target="damaged.png")


async def test_without_the_extra_the_refusal_says_how(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def absent(*_: Any, **__: Any) -> Any:
        raise InvalidParams("Images are shrunk by an extra: install Octavo with its extra images")

    monkeypatch.setattr("octavo.sources._shared.documents.converter.ConverterTurn.shrink", absent)
    tools = await serve(TIGHT, {"large.jpg": _noise((500, 400), "JPEG", quality=95)})
    with pytest.raises(TooLarge, match="install Octavo with its extra images"):
        await tools("read", target="large.jpg")


async def test_a_document_that_takes_too_long_is_no_sign_of_an_outage(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(*_: Any, **__: Any) -> Any:
        import asyncio

        await asyncio.Event().wait()

    monkeypatch.setattr("octavo.sources._shared.documents.converter.ConverterTurn.convert", endless)
    tools = await serve(f"{SOURCE}limits: {{time: 400ms}}", {"a.pdf": b"%PDF-1.4", "b.txt": "here"})
    for _ in range(5):
        with pytest.raises(Timeout, match="ask for a part"):
            await tools("read", target="a.pdf", **{"as": "text"})
    assert await tools.text("read", target="b.txt") == "here"


def _exif(*, orientation: int) -> Any:
    exif = Picture.Exif()
    exif[0x0112] = orientation
    return exif
