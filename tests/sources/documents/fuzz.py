"""Damages documents at random and converts them: a document or a typed error, whatever happens.

    python -m tests.sources.documents.fuzz --count 20000 --seed 1

Prints one line of JSON with the number of each outcome.
"""

import argparse
import asyncio
import io
import json
import random
import zipfile
from collections import Counter

from tests.sources.documents.build import archive
from tests.sources.documents.samples import SAMPLES

from octavo.core.errors import InvalidParams, Timeout, TooLarge
from octavo.sources._shared.documents.converter import Converter
from octavo.sources._shared.documents.model import ConversionLimits

EXPECTED = (InvalidParams, TooLarge, Timeout)


def damaged(raw: bytes, chance: random.Random) -> bytes:
    """Anywhere; or, half of the time, inside of an archive that is whole again afterwards."""
    if raw.startswith(b"PK") and chance.random() < 0.5:
        with zipfile.ZipFile(io.BytesIO(raw)) as opened:
            members: dict[str, str | bytes] = {name: opened.read(name) for name in opened.namelist()}
        name = chance.choice([*members])
        content = members[name]
        assert isinstance(content, bytes)
        members[name] = _damaged(content, chance)
        return archive(members)
    return _damaged(raw, chance)


def _damaged(raw: bytes, chance: random.Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(5):
            case 0:
                changed[at : at + 1] = chance.randbytes(1)
            case 1:
                del changed[at : at + chance.randint(1, 64)]
            case 2:
                changed[at:at] = changed[at : at + chance.randint(1, 200)] * chance.randint(1, 20)
            case 3:
                changed[at:at] = chance.randbytes(chance.randint(1, 16))
            case _:
                changed = changed[:at] if chance.random() < 0.2 else changed
    return bytes(changed)


async def run(count: int, seed: int) -> Counter[str]:
    chance = random.Random(seed)
    usable = [sample for sample in SAMPLES.values() if sample.readable]
    outcomes: Counter[str] = Counter()
    async with Converter(ConversionLimits(seconds=10.0)) as converter:
        for _ in range(count):
            sample = chance.choice(usable)
            try:
                document = await converter.convert(damaged(sample.raw, chance), sample.mime)
                document.markdown.encode("utf-8")
                outcomes["Document"] += 1
            except EXPECTED as error:
                crashed = "its reader gave up" in str(error)
                outcomes["crash" if crashed else type(error).__name__] += 1
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(run(given.count, given.seed))))
