"""Smaller images, by the extra `images`: upright, still, and within what a reader can take."""

from __future__ import annotations

import copy  # noqa: F401  Pillow wants it for some GIFs, when no file can be opened any more
import io
from typing import Final

from octavo.core.errors import InvalidParams, TooLarge
from octavo.sources._shared.documents.model import ConversionLimits

try:
    from PIL import Image, ImageOps, TiffImagePlugin, UnidentifiedImageError, WebPImagePlugin  # noqa: F401
except ImportError:
    raise InvalidParams("Images are shrunk by an extra: install Octavo with its extra images") from None

Image.preinit()  # the other formats, for the same reason
Image.MAX_IMAGE_PIXELS = None  # our own limit is stricter, and raises our own error

FORMATS: Final = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
}
_ORIENTATION: Final = 0x0112
_TRIES: Final = 6
_MIN_SIDE: Final = 16


def shrink(raw: bytes, mime: str, *, max_pixels: int, max_bytes: int, limits: ConversionLimits) -> tuple[bytes, str]:
    """The image with at most so many pixels and bytes, as it is when it already fits.

    An animation becomes its first picture. What is turned by its EXIF data is turned for good. PNG and JPEG
    come out; which of them depends on transparency. Raises InvalidParams for what is no such image and
    TooLarge for one of more pixels than the limits allow, before any of them is decoded.
    """
    kind = FORMATS.get(mime)
    if kind is None:
        raise InvalidParams(f"Images of this media type are not shrunk; these are: {', '.join(FORMATS)}")
    try:
        with Image.open(io.BytesIO(raw), formats=(kind,)) as image:
            return _shrink(image, raw, mime, max_pixels, max_bytes, limits)
    except (UnidentifiedImageError, OSError, ValueError, ArithmeticError, LookupError, SyntaxError, TypeError):
        raise InvalidParams(f"Not a readable {kind} image: it is damaged, cut off or of another kind") from None


def _shrink(
    image: Image.Image, raw: bytes, mime: str, max_pixels: int, max_bytes: int, limits: ConversionLimits
) -> tuple[bytes, str]:
    pixels = image.width * image.height
    if pixels > limits.pixels:
        raise TooLarge(f"The image has {pixels} pixels; at most {limits.pixels} are decoded")
    upright = image.getexif().get(_ORIENTATION, 1) == 1
    still = not getattr(image, "is_animated", False)
    if upright and still and pixels <= max_pixels and len(raw) <= max_bytes:
        return raw, mime
    if image.format == "JPEG":  # decodes at a fraction of the size where that is enough
        scale = (max_pixels / pixels) ** 0.5
        image.draft(None, (max(int(image.width * scale), 1), max(int(image.height * scale), 1)))
    picture = ImageOps.exif_transpose(image)
    clear = picture.has_transparency_data
    picture = picture.convert("RGBA" if clear else "RGB")
    lossless = clear or mime in ("image/png", "image/gif", "image/bmp")
    target = max_pixels
    for _ in range(_TRIES):
        picture = _fitted(picture, target)
        packed = _packed(picture, "PNG" if lossless else "JPEG")
        if len(packed) <= max_bytes:
            return packed, "image/png" if lossless else "image/jpeg"
        if lossless and not clear:  # a photograph in the clothes of a drawing
            lossless = False
            continue
        target = int(picture.width * picture.height * max_bytes / len(packed) * 0.8)
        if target < _MIN_SIDE**2:
            break
    raise TooLarge(f"The image does not fit into {max_bytes} bytes")


def _fitted(picture: Image.Image, max_pixels: int) -> Image.Image:
    pixels = picture.width * picture.height
    if pixels <= max_pixels:
        return picture
    scale = (max_pixels / pixels) ** 0.5
    size = (max(int(picture.width * scale), 1), max(int(picture.height * scale), 1))
    return picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def _packed(picture: Image.Image, kind: str) -> bytes:
    packed = io.BytesIO()
    picture.save(packed, kind, quality=85, optimize=kind == "PNG")
    return packed.getvalue()
