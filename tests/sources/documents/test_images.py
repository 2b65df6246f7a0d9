"""Images: smaller, upright, still, and never more than was allowed."""

import io

import pytest
from tests.sources.documents.samples import needs_images

from octavo.core.errors import InvalidParams, TooLarge
from octavo.sources._shared.documents.converter import Converter
from octavo.sources._shared.documents.model import ConversionLimits

pytestmark = [pytest.mark.anyio, needs_images]
PIL = pytest.importorskip("PIL.Image", reason="needs the extra images")

PIXELS, BYTES = 10_000, 200_000


def packed(image, kind: str, **options) -> bytes:  # type: ignore[no-untyped-def]
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def opened(raw: bytes):  # type: ignore[no-untyped-def]
    return PIL.open(io.BytesIO(raw))


@pytest.mark.parametrize(
    ("mime", "kind", "result"),
    [
        ("image/png", "PNG", "image/png"),
        ("image/jpeg", "JPEG", "image/jpeg"),
        ("image/webp", "WEBP", "image/jpeg"),
        ("image/bmp", "BMP", "image/png"),
        ("image/gif", "GIF", "image/png"),
        ("image/tiff", "TIFF", "image/jpeg"),
    ],
)
async def test_every_kind_is_shrunk_in_proportion(converter: Converter, mime: str, kind: str, result: str) -> None:
    raw, told = await converter.shrink(
        packed(PIL.new("RGB", (400, 200), "red"), kind), mime, max_pixels=PIXELS, max_bytes=BYTES
    )
    image = opened(raw)
    assert told == result == f"image/{image.format.lower()}"
    assert image.width * image.height <= PIXELS and abs(image.width / image.height - 2) < 0.05
    red, green, blue = image.convert("RGB").getpixel((10, 10))
    assert red > 240 and green < 15 and blue < 15


async def test_what_fits_is_left_as_it_is(converter: Converter) -> None:
    raw = packed(PIL.new("RGB", (10, 10)), "PNG")
    assert await converter.shrink(raw, "image/png", max_pixels=100, max_bytes=BYTES) == (raw, "image/png")


async def test_an_image_is_turned_as_its_camera_says(converter: Converter) -> None:
    """Though it fits: a model sees the pixels, not the note beside them."""
    image = PIL.new("RGB", (60, 20), "black")
    image.paste("white", (0, 0, 30, 20))
    exif = PIL.Exif()
    exif[0x0112] = 6  # turn it a quarter to the right
    raw, _ = await converter.shrink(
        packed(image, "JPEG", exif=exif, quality=95), "image/jpeg", max_pixels=PIXELS, max_bytes=BYTES
    )
    turned = opened(raw)
    assert turned.size == (20, 60)
    assert turned.getpixel((10, 5))[0] > 200 and turned.getpixel((10, 55))[0] < 50
    assert 0x0112 not in turned.getexif()


async def test_transparency_is_kept(converter: Converter) -> None:
    raw, mime = await converter.shrink(
        packed(PIL.new("RGBA", (300, 300), (0, 0, 255, 0)), "WEBP", lossless=True),
        "image/webp", max_pixels=PIXELS, max_bytes=BYTES,
    )  # fmt: skip
    assert mime == "image/png" and opened(raw).getpixel((5, 5))[3] == 0


async def test_an_animation_becomes_its_first_picture(converter: Converter) -> None:
    frames = [PIL.new("RGB", (20, 20), colour) for colour in ("red", "blue", "green")]
    raw, _ = await converter.shrink(
        packed(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "image/gif", max_pixels=PIXELS, max_bytes=BYTES,
    )  # fmt: skip
    image = opened(raw)
    assert not getattr(image, "is_animated", False)
    assert image.convert("RGB").getpixel((5, 5)) == (255, 0, 0)


async def test_noise_is_made_smaller_until_it_fits(converter: Converter) -> None:
    noise = PIL.effect_noise((300, 300), 200)
    raw, mime = await converter.shrink(packed(noise, "PNG"), "image/png", max_pixels=90_000, max_bytes=8_000)
    assert len(raw) <= 8_000 and mime == "image/jpeg"
    with pytest.raises(TooLarge, match="does not fit into 20 bytes"):
        await converter.shrink(packed(noise, "PNG"), "image/png", max_pixels=90_000, max_bytes=20)


async def test_a_bomb_is_refused_before_it_is_decoded() -> None:
    bomb = packed(PIL.new("1", (8_000, 8_000)), "PNG")
    assert len(bomb) < 20_000
    async with Converter(ConversionLimits(pixels=1_000_000)) as converter:
        with pytest.raises(TooLarge, match="64000000 pixels; at most 1000000"):
            await converter.shrink(bomb, "image/png", max_pixels=PIXELS, max_bytes=BYTES)


async def test_an_image_that_needs_too_much_memory_is_refused() -> None:
    large = packed(PIL.new("RGB", (8_000, 8_000)), "PNG")
    async with Converter(ConversionLimits(memory_bytes=128 << 20)) as converter:
        with pytest.raises(TooLarge, match="memory"):
            await converter.shrink(large, "image/png", max_pixels=PIXELS, max_bytes=BYTES)


@pytest.mark.parametrize("raw", [b"", b"hello", packed(PIL.new("RGB", (50, 50)), "PNG")[:60]])
async def test_what_is_no_image_says_so(converter: Converter, raw: bytes) -> None:
    with pytest.raises(InvalidParams, match="Not a readable PNG image"):
        await converter.shrink(raw, "image/png", max_pixels=100, max_bytes=BYTES)


async def test_other_media_types_and_senseless_sizes_are_refused(converter: Converter) -> None:
    with pytest.raises(InvalidParams, match="these are: image/png"):
        await converter.shrink(b"<svg/>", "image/svg+xml", max_pixels=100, max_bytes=100)
    with pytest.raises(InvalidParams, match="at least one pixel"):
        await converter.shrink(b"x", "image/png", max_pixels=0, max_bytes=100)
