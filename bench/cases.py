"""What file servers are asked, and how their deeds are told: facts, taken from the bytes on disk afterwards."""

import os
import stat
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dialogue import Answer, CannotBeAsked, Dialogue

BUDGET = 64_000  # bytes: what many clients take as one answer of a tool
LARGE = 400_000_000
TOGETHER = 20


@dataclass(frozen=True)
class Scene:
    """One server, running, and the folder that it serves."""

    talk: Dialogue
    root: Path
    outside: Path

    def after(self, name: str) -> bytes:
        return (self.root / name).read_bytes()


Prepare = Callable[[Path, Path], None]  # the served folder, and one outside of it
Judge = Callable[[Scene], str]


@dataclass(frozen=True)
class Case:
    group: str
    title: str
    prepare: Prepare
    judge: Judge
    seconds: float = 10.0


def files(**content: bytes) -> Prepare:
    """Files by their names; `a__b` stands for `a.b`."""

    def put(root: Path, outside: Path) -> None:
        for name, body in content.items():
            (root / name.replace("__", ".")).write_bytes(body)

    return put


def refused(answer: Answer) -> str:
    return f"refused: {answer.complaint}"


# -- edits


def edited(before: bytes, edits: Sequence[tuple[str, str]], wanted: bytes, others: dict[bytes, str]) -> Judge:
    """`others` names the results that are known to happen."""

    def judge(scene: Scene) -> str:
        answer = scene.talk.edit("a.txt", *edits)
        after = scene.after("a.txt")
        if after == before:
            return refused(answer) if not answer.ok else "said success, changed nothing"
        told = "as asked" if after == wanted else others.get(after, f"the file became {_shown(after)}")
        return told if answer.ok else f"said failure, but: {told}"

    return judge


def _shown(body: bytes) -> str:
    return repr(body if len(body) < 60 else body[:57] + b"...")[1:].replace("|", "/")


def edit_case(title: str, before: bytes, edits: Sequence[tuple[str, str]], wanted: bytes,
              others: dict[bytes, str] | None = None) -> Case:  # fmt: skip
    return Case("edits", title, files(a__txt=before), edited(before, edits, wanted, others or {}))


def all_or_nothing(scene: Scene) -> str:
    answer = scene.talk.edit("a.txt", ("one", "1"), ("three", "3"))
    kept = scene.after("a.txt") == b"one\ntwo\n"
    said = "refused" if not answer.ok else "said success"
    return f"{said}, {'nothing changed' if kept else 'the first edit was written'}"


def at_the_same_time(scene: Scene) -> str:
    wanted = [scene.talk.peer.editing("a.txt", [(f"key{n:02}=old", f"key{n:02}=new")]) for n in range(TOGETHER)]
    answers = scene.talk.ask_together(wanted)
    kept = scene.after("a.txt").count(b"=new")
    said = sum(answer.ok for answer in answers)
    told = f"{said} said success, {kept} are in the file" + (f": {said - kept} lost" if kept < said else "")
    refusals = [answer.complaint for answer in answers if not answer.ok]
    return told + (f"; {len(refusals)} refused: {refusals[0]}" if refusals else "")


def mode_kept(scene: Scene) -> str:
    answer = scene.talk.edit("a.txt", ("one", "1"))
    mode = stat.S_IMODE((scene.root / "a.txt").stat().st_mode)
    if not answer.ok:
        return refused(answer)
    return "kept" if mode == 0o750 else f"0750 became {mode:04o}"


def _with_mode(root: Path, outside: Path) -> None:
    (root / "a.txt").write_bytes(b"one\n")
    (root / "a.txt").chmod(0o750)


# -- encodings

KOREAN = "안녕하세요. 오늘 회의는 세 시에 시작합니다.\n둘째 줄에는 2025년 예산이 있습니다.\n"
FRENCH = "Le café était fermé, à côté du théâtre.\nDeuxième ligne : été 2025, où êtes-vous ?\n"


OLD, NEW = "2025", "2026"  # text that every encoding spells alike: an edit finds it even in text read wrong


def encoded(text: str, encoding: str, mark: bytes) -> Judge:
    def judge(scene: Scene) -> str:
        answer = scene.talk.read("a.txt")
        right = all(row in answer.text for row in text.splitlines())
        reading = ("read right" if right else "read as other text") if answer.ok else f"not read: {answer.complaint}"
        before = scene.after("a.txt")
        answer = scene.talk.edit("a.txt", (OLD, NEW))
        after = scene.after("a.txt")
        if after == before:
            done = "edit refused" if not answer.ok else "edit said success, changed nothing"
        elif after == mark + text.replace(OLD, NEW).encode(encoding):
            done = "edit kept the encoding"
        elif after == text.replace(OLD, NEW).encode():
            done = "edit made it UTF-8" + (" without its BOM" if mark else "")
        else:
            done = "edit damaged the file"
        return f"{reading}; {done}"

    return judge


def encoding_case(title: str, text: str, encoding: str, mark: bytes = b"") -> Case:
    return Case("encodings", title, files(a__txt=mark + text.encode(encoding)), encoded(text, encoding, mark))


# -- parts


def _lines_file(count: int, end: str) -> Prepare:
    def put(root: Path, outside: Path) -> None:
        with (root / "a.txt").open("w", encoding="utf-8", newline="") as file:
            file.writelines(f"line {number:07} of the file{end}" for number in range(1, count + 1))

    return put


def part(*, at_end: bool, count: int) -> Judge:
    def judge(scene: Scene) -> str:
        peer = scene.talk.peer
        answer = scene.talk.ask((peer.ending if at_end else peer.beginning)("a.txt", 3))
        if not answer.ok:
            return refused(answer)
        wanted = range(count - 2, count + 1) if at_end else range(1, 4)
        lines = [row.rstrip("\r") for row in answer.text.split("\n") if row.startswith("line ")]
        right = lines == [f"line {number:07} of the file" for number in wanted]
        return "3 right lines" if right else f"{len(lines)} lines, not the right three: {_shown(answer.text.encode())}"

    return judge


# -- finding


def _project(root: Path, outside: Path) -> None:
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("build/\n*.log\n", encoding="utf-8")
    (root / "build").mkdir()
    (root / "src").mkdir()
    (root / "src" / "kept.txt").write_text("a needle here\n", encoding="utf-8")
    (root / "build" / "made.txt").write_text("a needle here\n", encoding="utf-8")


def found_names(scene: Scene) -> str:
    return _found(scene, scene.talk.ask(scene.talk.peer.named("*.txt")))


def found_contents(scene: Scene) -> str:
    return _found(scene, scene.talk.ask(scene.talk.peer.containing("needle")))


def _found(scene: Scene, answer: Answer) -> str:
    if not answer.ok:
        return refused(answer)
    kept = "found" if "kept.txt" in answer.text else "missed the file"
    return f"{kept}, ignored file {'given too' if 'made.txt' in answer.text else 'left out'}"


def _many(root: Path, outside: Path) -> None:
    for folder in range(50):
        (root / f"folder-{folder:02}").mkdir()
        for number in range(100):
            (root / f"folder-{folder:02}" / f"document-{number:03}.md").write_bytes(b"")


def tree_size(scene: Scene) -> str:
    answer = scene.talk.ask(scene.talk.peer.tree())
    if not answer.ok:
        return refused(answer)
    fits = "fits" if answer.size <= BUDGET else "does not fit"
    names = answer.text.count("document-")
    rest = ", says how to go on" if answer.more else ""
    return f"{names:,} file names in {answer.size:,} bytes: {fits}{rest}"


# -- names

Form = Literal["NFC", "NFD"]
NAME = "한글 문서.txt"


def _named(form: Form) -> Prepare:
    def put(root: Path, outside: Path) -> None:
        (root / unicodedata.normalize(form, NAME)).write_text("text of it\n", encoding="utf-8")

    return put


def other_form(asked: Form) -> Judge:
    def judge(scene: Scene) -> str:
        answer = scene.talk.read(unicodedata.normalize(asked, NAME))
        read = "read" if answer.ok and "text of it" in answer.text else f"not read: {answer.complaint}"
        answer = scene.talk.ask(scene.talk.peer.named(unicodedata.normalize(asked, "한글*")))
        hit = unicodedata.normalize("NFC", "문서.txt") in unicodedata.normalize("NFC", answer.text)
        return f"{read}; {'found' if answer.ok and hit else 'not found'} by name"

    return judge


# -- what should not be read


def _large(root: Path, outside: Path) -> None:
    block = b"a line of a rather large file, as logs are\n" * 25_000
    with (root / "a.txt").open("wb") as file:
        while file.tell() < LARGE:
            file.write(block)


def large(scene: Scene) -> str:
    answer = scene.talk.read("a.txt")
    what = f"answered {answer.size:,} bytes" + (", says how to go on" if answer.more else "")
    return f"{what if answer.ok else refused(answer)}; peak {scene.talk.peak_mb()} MB"


def _link_out(root: Path, outside: Path) -> None:
    (outside / "secret.txt").write_text("a secret\n", encoding="utf-8")
    (root / "a.txt").symlink_to(outside / "secret.txt")


def link_out(scene: Scene) -> str:
    answer = scene.talk.read("a.txt")
    if answer.ok:
        return "served the file outside" if "a secret" in answer.text else "answered something else"
    return "refused" + (", naming the path outside" if str(scene.outside) in answer.text else "")


def _fifo(root: Path, outside: Path) -> None:
    os.mkfifo(root / "a.txt")
    (root / "b.txt").write_text("b\n", encoding="utf-8")


def fifo(scene: Scene) -> str:
    answer = scene.talk.read("a.txt")
    return refused(answer) if not answer.ok else f"answered {_shown(answer.text.encode())}"


KEYS = b"".join(b"key%02d=old\n" % number for number in range(TOGETHER))
CRLF = b"one\r\ntwo\r\nthree\r\n"
MIXED = b"one\r\ntwo\nthree\r\n"

CASES = (
    edit_case("text that stands in two places", b"one\ntwo\none\n", [("one", "1")], b"",
              {b"1\ntwo\none\n": "changed the first of 2, said nothing", b"1\ntwo\n1\n": "changed both"}),
    edit_case("one line of a CRLF file", CRLF, [("two", "2")], b"one\r\n2\r\nthree\r\n",
              {b"one\n2\nthree\n": "CRLF became LF"}),
    edit_case("two lines of a CRLF file, asked with LF", CRLF, [("one\ntwo", "1\n2")], b"1\r\n2\r\nthree\r\n",
              {b"1\n2\nthree\n": "CRLF became LF", b"1\n2\r\nthree\r\n": "LF among CRLF"}),
    edit_case("one line of a file with mixed ends", MIXED, [("two", "2")], b"one\r\n2\nthree\r\n",
              {b"one\n2\nthree\n": "every end became LF", b"one\r\n2\r\nthree\r\n": "every end became CRLF"}),
    edit_case("no newline at the end", b"one\ntwo", [("one", "1")], b"1\ntwo", {b"1\ntwo\n": "a newline was added"}),
    edit_case("a newline at the end", b"one\ntwo\n", [("two", "2")], b"one\n2\n", {b"one\n2": "the newline was lost"}),
    edit_case("`$&` and `$1` in the new text", b"price: x\n", [("x", "$& $1 $$")], b"price: $& $1 $$\n",
              {b"price: x $1 $\n": "taken as a pattern"}),
    edit_case("indentation in the new text", b"def f():\n    return 1\n", [("    return 1", "  return 2")],
              b"def f():\n  return 2\n", {b"def f():\n    return 2\n": "indented in another way"}),
    edit_case("empty text to be replaced", b"one\n", [("", "x")], b"", {b"xone\n": "prepended the new text"}),
    edit_case("two edits that overlap", b"abc\n", [("ab", "X"), ("bc", "Y")], b""),
    edit_case("an edit that finds what another wrote", b"one\n", [("one", "two"), ("two", "three")], b"three\n",
              {b"three\n": "applied one after the other"}),
    Case("edits", "two edits, the second fits nowhere", files(a__txt=b"one\ntwo\n"), all_or_nothing),
    Case("edits", f"{TOGETHER} edits at the same time", files(a__txt=KEYS), at_the_same_time),
    Case("edits", "mode of the file", _with_mode, mode_kept),
    encoding_case("CP949", KOREAN, "cp949"),
    encoding_case("UTF-16 with BOM", KOREAN, "utf-16-le", b"\xff\xfe"),
    encoding_case("UTF-8 with BOM", KOREAN, "utf-8", b"\xef\xbb\xbf"),
    encoding_case("Latin-1", FRENCH, "latin-1"),
    Case("parts", "first 3 lines of 27 MB", _lines_file(1_000_000, "\n"), part(at_end=False, count=1_000_000)),
    Case("parts", "last 3 lines of 27 MB", _lines_file(1_000_000, "\n"), part(at_end=True, count=1_000_000)),
    Case("parts", "first 3 lines, CRLF", _lines_file(10, "\r\n"), part(at_end=False, count=10)),
    Case("parts", "last 3 lines, CRLF", _lines_file(10, "\r\n"), part(at_end=True, count=10)),
    Case("finding", "names, with a .gitignore", _project, found_names),
    Case("finding", "contents, with a .gitignore", _project, found_contents),
    Case("finding", f"tree of 5,000 files, {BUDGET:,} bytes wanted", _many, tree_size),
    Case("names", "NFD on disk, asked in NFC", _named("NFD"), other_form("NFC")),
    Case("names", "NFC on disk, asked in NFD", _named("NFC"), other_form("NFD")),
    Case("limits", "a text of 400 MB", _large, large, seconds=30.0),
    Case("limits", "a link that leads outside", _link_out, link_out),
    Case("limits", "a FIFO that nobody writes", _fifo, fifo, seconds=5.0),
)  # fmt: skip


def judged(case: Case, scene: Scene) -> str:
    try:
        return case.judge(scene)
    except CannotBeAsked:
        return "no tool for it"
