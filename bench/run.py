"""`make bench`: Octavo with policy and audit on against its peers, in one interleaved run. See README.md beside it."""

import argparse
import contextlib
import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import corpus as data
import report
from candidates import BESIDE, HERE, NAMES, OCTAVO, OCTAVO_HTTP, Candidate, Json, candidate, of_checkout

import wire


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    unit: str
    conc: int = 1
    walk: bool = False
    start: bool = False
    http: bool = False

    def options(self, seconds: float) -> list[object]:
        """The bounds of client.c. Every key is read once before the clock starts; slow servers get up to 3 s for it."""
        if self.start:
            return ["--start"]
        warm_n = 20 if self.walk else 1000
        least = max(20, 6 * self.conc)  # answers come in bursts: a window must hold several
        bounds: list[object] = ["--conc", self.conc, "--warm-n", warm_n, "--warm-s", seconds / 4, "--warm-max", 3]
        bounds += ["--n", least, "--s", seconds, "--max", 5 * seconds]
        return [*bounds, "--walk"] if self.walk else bounds


WORKLOADS = (
    Workload("read-c1", "read a 2 KB file, 1 in flight", "read"),
    Workload("read-c32", "read a 2 KB file, 32 in flight", "read", conc=32),
    Workload("list-c1", "complete listing of 1,000 entries, 1 in flight", "listing", walk=True),
    Workload("list-c32", "complete listing of 1,000 entries, 32 in flight", "listing", conc=32, walk=True),
    Workload("start", "spawn to the answer of the first read", "start", start=True),
    Workload("http-c32", "read a 2 KB file over HTTP, modern era, 32 connections", "read", conc=32, http=True),
)


def once(one: Candidate, workload: Workload, corpus: data.Corpus, seconds: float, log: Path) -> Json:
    requests = wire.listing(one, corpus) if workload.walk else wire.reads(one, corpus)
    answer = wire.measure(one, requests, log, *workload.options(seconds))
    run = answer.pop("run", {})
    if run.get("errors") or answer.get("strays") or answer.get("unanswered"):
        raise wire.Wrong(f"{one.name}, {workload.name}: errors or lost answers: {run | answer}")
    if workload.unit == "read" and run["bytes"] < data.SIZE:
        raise wire.Wrong(f"{one.name}, {workload.name}: answers of {run['bytes']} bytes cannot hold the file")
    if workload.unit == "listing" and run["bytes"] < sum(map(len, corpus.files)):
        raise wire.Wrong(f"{one.name}, {workload.name}: {run['bytes']} bytes cannot hold all names")
    answered = run.get("answers", 1)
    if one.name.startswith("octavo") and (kept := audit_records(corpus)) < answered:
        raise wire.Wrong(f"{one.name}, {workload.name}: {answered} answers, but {kept} audit records")
    return answer | run | {"load": os.getloadavg()[0]}


def trim_audit(corpus: data.Corpus) -> None:
    """Every request leaves a record, gigabytes in a whole run: between two processes the old files go."""
    for path in corpus.home.glob(".octavo/audit/*"):
        path.unlink()


def audit_records(corpus: data.Corpus) -> int:
    """Records on disk, without the lines that seal them."""
    count = 0
    for path in corpus.home.glob(".octavo/audit/*.jsonl"):
        text = path.read_bytes()
        count += text.count(b"\n") - text.count(b'\n{"chain"') - text.startswith(b'{"chain"')
    return count


def commit(checkout: Path = HERE) -> str:
    ask = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    done = subprocess.run(ask, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def machine() -> Json:
    with open("/proc/cpuinfo", encoding="utf-8") as rows:
        model = next((row.partition(":")[2].strip() for row in rows if row.startswith("model name")), "unknown")
    return {
        "when": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "command": " ".join([Path(sys.executable).name, *sys.argv]),
        "cpu": f"{os.cpu_count()} x {model}",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "load": " ".join(f"{value:.2f}" for value in os.getloadavg()),
    }


@contextlib.contextmanager
def workplace(keep: bool) -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="octavo-bench-"))
    try:
        yield home
    finally:
        if keep:
            print(f"kept: {home}")
        else:
            shutil.rmtree(home, ignore_errors=True)


def log_of(home: Path, one: Candidate) -> Path:
    return home / f"{one.name}.log"


def check(field: list[Candidate], corpus: data.Corpus, logs: Path, sample: int, facts: Json) -> list[Candidate]:
    """Leaves out whoever does not answer with the data, and says so."""
    good: list[Candidate] = []
    for one in field:
        try:
            seen = wire.verify(one, corpus, log_of(logs, one), sample)
            if one.name.startswith("octavo") and not audit_records(corpus):
                raise wire.Wrong(f"{one.name}: no audit was written under {corpus.home}/.octavo")
        except (wire.Wrong, OSError) as wrong:
            said = log_of(logs, one).read_text(errors="replace")[-800:].strip() if log_of(logs, one).exists() else ""
            print(f"LEFT OUT {wrong}\n{said}".strip(), flush=True)
            facts.setdefault("left_out", {})[one.name] = str(wrong)
            continue
        compared = "answered" if one.constant else "equal to the file"
        listed = "" if one.port else f", {seen['listed']} entries in {seen['pages']} page(s)"
        print(f"{one.name:<14} {one.software}: {seen['reads']} reads {compared}{listed}", flush=True)
        good.append(one)
    return good


def rounds(
    field: list[Candidate], chosen: list[Workload], corpus: data.Corpus, args: argparse.Namespace, logs: Path
) -> Json:
    """All candidates in turn, a fresh process each; the order rotates, so nobody is always second."""
    runs: dict[str, dict[str, report.Turns]] = {
        w.name: {c.name: [] for c in field if bool(c.port) is w.http} for w in chosen
    }
    for turn in range(args.rounds):
        order = field[turn % len(field) :] + field[: turn % len(field)]
        print(f"round {turn + 1} of {args.rounds}, load {os.getloadavg()[0]:.2f}", flush=True)
        for workload in chosen:
            turns = runs[workload.name]
            for each in turns.values():
                each.append([])
            for _ in range(args.starts if workload.start else 1):
                for one in (c for c in order if c.name in turns):
                    trim_audit(corpus)
                    answer = once(one, workload, corpus, args.seconds, log_of(logs, one))
                    turns[one.name][turn].append(answer)
    return runs


def taking_part(corpus: data.Corpus, args: argparse.Namespace) -> list[Candidate]:
    return [candidate(name, corpus, args.octavo, args.octavo_http) for name in args.candidates.split(",") if name]


def both(beside: Path, corpus: data.Corpus, args: argparse.Namespace) -> list[Candidate]:
    """Ours of this checkout, and of the other under names that say so."""
    field: list[Candidate] = []
    for name in (one for one in NAMES if one.startswith("octavo")):
        for checkout, more in ((HERE.parent, ""), (beside.absolute(), BESIDE)):
            commands = (of_checkout(one, checkout) for one in (args.octavo, args.octavo_http))
            software = f"octavo {commit(checkout)}"
            field.append(replace(candidate(name, corpus, *commands), name=name + more, software=software))
    return field


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: shows that it works, proves nothing")
    parser.add_argument("--only", default="", help="workloads that begin with this: read, list, start, http, read-c32")
    parser.add_argument("--candidates", default=",".join(NAMES), help=f"comma-separated, of {', '.join(NAMES)}")
    parser.add_argument("--octavo", default=OCTAVO, help="Octavo's command; {octavo} {python} {config} {agent}")
    parser.add_argument("--octavo-http", default=OCTAVO_HTTP, help="the same for its HTTP server")
    parser.add_argument("--beside", type=Path, help="another checkout: Octavo of both, in turns, and nobody else")
    parser.add_argument("--rounds", type=int, default=0, help="default 5, quick 1")
    parser.add_argument("--seconds", type=float, default=0, help="of a measured run; default 2, quick 0.4")
    parser.add_argument("--starts", type=int, default=0, help="processes started a round; default 3, quick 1")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the JSON results")
    args = parser.parse_args()
    if args.beside and not (args.beside / "src" / "octavo").is_dir():
        parser.error(f"--beside {args.beside}: no checkout of Octavo")
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.seconds = args.seconds or (0.4 if args.quick else 2.0)
    args.starts = args.starts or (1 if args.quick else 3)
    return args


def main() -> int:
    args = arguments()
    chosen = [w for w in WORKLOADS if w.name.startswith(args.only)]
    if not chosen:
        raise SystemExit(f"--only {args.only}: there are {', '.join(w.name for w in WORKLOADS)}")
    wire.build()
    facts = machine()
    with workplace(args.keep) as home:
        print("\n".join(f"{key:<14} {value}" for key, value in facts.items()), flush=True)
        corpus = data.make(home)
        field = both(args.beside, corpus, args) if args.beside else taking_part(corpus, args)
        facts["software"] = {c.name: c.software for c in field}
        facts["octavo_command"] = args.octavo
        field = [one for one in field if any(w.http is bool(one.port) for w in chosen)]
        field = check(field, corpus, home, 50 if args.quick else 1000, facts)
        runs = rounds(field, chosen, corpus, args, home)
    facts["load_after"] = os.getloadavg()[0]
    medians = {w.name: {name: report.summary(turns) for name, turns in runs[w.name].items()} for w in chosen}
    for workload in chosen:
        print(report.table(workload.name, f"{workload.name}: {workload.title}", workload.unit, runs[workload.name]))
    verdicts = report.required(runs)
    print(report.verdict_table(verdicts))
    args.out.mkdir(parents=True, exist_ok=True)
    kind = "quick" if args.quick else "bench"
    path = args.out / f"{kind}-{facts['when'].replace(':', '').replace('+0000', 'Z')}.json"
    shown = {"facts": facts, "medians": medians, "required": [asdict(v) for v in verdicts], "runs": runs}
    path.write_text(json.dumps(shown, indent=1))
    print(f"written: {path}")
    missed = any(v.passed is False for v in verdicts) and not args.quick
    return 1 if missed or "left_out" in facts else 0


if __name__ == "__main__":
    sys.exit(main())
