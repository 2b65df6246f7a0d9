"""libphonenumber: of every country an example of each kind of number, in the forms in which it is written there."""

from __future__ import annotations

import re
import xml.etree.ElementTree as tree
from collections.abc import Iterator
from pathlib import Path

from bench.foreign.case import Case

METADATA = "resources/PhoneNumberMetadata.xml"
_KINDS = ("fixedLine", "mobile")


def cases(folder: Path) -> Iterator[Case]:
    for country in tree.parse(folder / METADATA).iter("territory"):
        name, code = country.get("id", ""), country.get("countryCode", "")
        forms = list(country.iter("numberFormat"))
        trunk = country.get("nationalPrefix", "")
        for kind in _KINDS:
            number = country.findtext(f"{kind}/exampleNumber") or ""
            if not number:
                continue
            written = _written(number, forms)
            yield Case("phones +", name, f"Tel: +{code} {written}", (f"+{code} {written}",), split=f"{name}{kind}")
            bare = f"+{code}{number}"
            yield Case("phones + without gaps", name, f"call {bare} now", (bare,), split=f"{name}{kind}")
            home = f"{trunk}{written}" if trunk else written
            yield Case("phones at home, labelled", name, f"Phone: {home}", (home,), split=f"{name}{kind}")


def _written(number: str, forms: list[tree.Element]) -> str:
    for form in forms:
        pattern = re.sub(r"\s", "", form.get("pattern", ""))
        leading = [re.sub(r"\s", "", one.text or "") for one in form.iter("leadingDigits")]
        shown = form.findtext("intlFormat") or form.findtext("format") or ""
        if shown == "NA" or not re.fullmatch(pattern, number):
            continue
        if not leading or re.match(leading[-1], number):
            return re.sub(pattern, re.sub(r"\$(\d)", r"\\\1", shown.strip()), number)
    return number
