"""Numbers in the text format that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from octavo.core.metrics import Measure, Sample

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(measures: Iterable[Measure]) -> bytes:
    return "".join(line + "\n" for measure in measures for line in _lines(measure)).encode("utf-8")


def _lines(measure: Measure) -> Iterator[str]:
    yield f"# HELP {measure.name} {measure.about}"
    yield f"# TYPE {measure.name} {measure.kind}"
    for sample in measure.samples:
        yield f"{measure.name}{sample.suffix}{_labels(sample)} {sample.value:.12g}"


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
