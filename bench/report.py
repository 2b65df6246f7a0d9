"""From runs to tables. A ratio is taken inside each round, where both sides met the same machine, then the median."""

from dataclasses import dataclass
from statistics import median
from typing import Any

Json = dict[str, Any]
Turns = list[list[Json]]  # rounds, and inside a round one or more processes
PEERS = ("official", "mcp", "mcp-modern", "fastmcp", "floor")


def per_round(turns: Turns, key: str) -> list[float]:
    return [median(run[key] for run in turn) for turn in turns if turn and key in turn[0]]


def middle(turns: Turns, key: str) -> float | None:
    values = per_round(turns, key)
    return median(values) if values else None


def spread(turns: Turns, key: str) -> float | None:
    """Widest difference between rounds as a share of the median."""
    values = per_round(turns, key)
    return (max(values) - min(values)) / median(values) if len(values) > 1 and median(values) else None


def ratio(left: Turns, right: Turns, key: str) -> list[float]:
    pairs = zip(per_round(left, key), per_round(right, key), strict=False)
    return [a / b for a, b in pairs if b]


KEYS = ("rps", "p50_us", "p99_us", "cpu_us", "client_cpu_us", "bytes", "rss_kb", "first_ms", "init_ms")


def summary(turns: Turns) -> Json:
    seen = {key: middle(turns, key) for key in KEYS}
    wide = spread(turns, "rps") if seen["rps"] else spread(turns, "first_ms")
    return {key: value for key, value in seen.items() if value is not None} | {"spread": wide}


def _cell(value: float | None, form: str = ",.0f") -> str:
    return "" if value is None else format(value, form)


def grid(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def align(row: list[str]) -> str:
        first, *rest = zip(row, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)])

    return "\n".join([align(head), "  ".join("-" * width for width in widths), *map(align, rows)])


def table(name: str, title: str, unit: str, runs: dict[str, Turns]) -> str:
    ours = [n for n in runs if n.startswith("octavo")]
    rows: list[list[str]] = []
    if name == "start":
        head = ["start", "first answer ms", "handshake ms", "spread", "RSS MB", *(f"vs {n}" for n in ours)]
        for who, turns in runs.items():
            s = summary(turns)
            row = [who, _cell(s.get("first_ms")), _cell(s.get("init_ms")), _cell(s["spread"], ".0%")]
            row.append(_cell(s["rss_kb"] / 1024))
            rows.append(row + [_over(turns, runs[n], "first_ms", who == n) for n in ours])
    else:
        head = [f"per {unit}", "rate/s", "spread", "p50 us", "p99 us", "CPU us", "client us", "bytes", "RSS MB"]
        head += [f"rate vs {n}" for n in ours] + [f"CPU vs {n}" for n in ours]
        for who, turns in runs.items():
            s = summary(turns)
            row = [who, _cell(s["rps"]), _cell(s["spread"], ".0%"), _cell(s["p50_us"]), _cell(s["p99_us"])]
            row += [_cell(s["cpu_us"], ",.1f"), _cell(s["client_cpu_us"], ",.1f"), _cell(s["bytes"])]
            row.append(_cell(s["rss_kb"] / 1024))
            row += [_over(runs[n], turns, "rps", who == n) for n in ours]
            rows.append(row + [_over(turns, runs[n], "cpu_us", who == n) for n in ours])
    return f"\n{title}\n{grid(head, rows)}"


def _over(left: Turns, right: Turns, key: str, same: bool) -> str:
    values = [] if same else ratio(left, right, key)
    return f"{median(values):.1f} x" if values else ""


@dataclass(frozen=True)
class Verdict:
    claim: str
    required: float
    found: float | None
    low: float | None
    high: float | None
    passed: bool | None  # None: not measured in this run


def _verdict(claim: str, required: float, values: list[float]) -> Verdict:
    if not values:
        return Verdict(claim, required, None, None, None, None)
    found = median(values)
    return Verdict(claim, required, found, min(values), max(values), found >= required)


def required(runs: dict[str, dict[str, Turns]]) -> list[Verdict]:
    """What is promised, for each era of Octavo that took part; plain `mcp` is met in the same era."""
    out: list[Verdict] = []
    for ours, plain in (("octavo", "mcp"), ("octavo-modern", "mcp-modern")):

        def versus(workload: str, peer: str, key: str, rate: bool, ours: str = ours) -> list[float]:
            seen = runs.get(workload, {})
            if ours not in seen or peer not in seen:
                return []
            return ratio(seen[ours], seen[peer], key) if rate else ratio(seen[peer], seen[ours], key)

        out += [
            _verdict(f"{ours}: read c32, rate against official", 8, versus("read-c32", "official", "rps", True)),
            _verdict(f"{ours}: read c32, rate against {plain}", 30, versus("read-c32", plain, "rps", True)),
            _verdict(
                f"{ours}: complete listing c32, CPU saved against official",
                4,
                versus("list-c32", "official", "cpu_us", False),
            ),
            _verdict(f"{ours}: first answer against {plain}", 1, versus("start", plain, "first_ms", False)),
        ]
    return out


def verdict_table(verdicts: list[Verdict]) -> str:
    rows = [
        [
            v.claim,
            f">= {v.required:g} x",
            "" if v.found is None else f"{v.found:.1f} x",
            "" if v.low is None or v.high is None else f"{v.low:.1f} to {v.high:.1f}",
            "PASS" if v.passed else "FAIL",
        ]
        for v in verdicts
        if v.passed is not None
    ]
    if not rows:
        return "\nrequired: nothing of it was measured in this run"
    return "\nrequired\n" + grid(["claim", "required", "found", "rounds", ""], rows)
