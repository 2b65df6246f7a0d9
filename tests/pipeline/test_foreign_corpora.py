"""The readers of other people's corpora, each on a small one of its shape: what they count is what stands there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from bench import foreign
from bench.foreign.case import Case
from bench.foreign.score import print_corpus, print_ordinary, tallies
from tests.pipeline.secrets_corpus import positives

from octavo.pipeline.redact.redactor import Redactor
from octavo.pipeline.redact.rules.book import BY_LOOK

HEX = "9f8e1d2c3b4a5f6e7d8c9b0a1f2e3d4c"
SECRET = "acme_" + HEX
SHORT = "acme_9f8e1d2c"
PATTERN = r"\b(acme_[0-9a-f]{32})\b"
NEEDS_NAME = "4c3d2e1f0a9b8c7d6e5f4a3b2c1d8e9f"

# What a reader says of one case: kind, family, whether it is a near miss, and what must be hidden.
Told = tuple[str, str, bool, tuple[str, ...]]


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def _gitleaks(folder: Path) -> set[Told]:
    rules = "".join(
        f"[[rules]]\nid = \"{name}\"\nregex = '''{pattern}'''\n"
        for name, pattern in (("acme", PATTERN), ("zeta", r"zeta.{0,5}\b([0-9a-f]{32})\b"))
    )
    code = """package rules
func Acme() *config.Rule {
        r := config.Rule{RuleID: "acme", Regex: x}
        tps := utils.GenerateSampleSecrets("acme", "%s")
        fps := []string{"%s", `zeta = "%s"`}
        return utils.Validate(r, tps, fps)
    }
func Zeta() *config.Rule {
        r := config.Rule{RuleID: "zeta", Regex: x}
        tps := []string{"zeta = " + "%s"}
        return utils.Validate(r, tps, nil)
    }"""
    frames = 'samples := map[string]string{"go": "{i} := \\"{s}\\"", "env": "{I}={s}"}'
    _write(
        folder,
        {
            "config/gitleaks.toml": rules,
            "cmd/generate/config/rules/acme.go": code % (SECRET, SHORT, NEEDS_NAME, NEEDS_NAME),
            "cmd/generate/config/utils/generate.go": f"package utils\nfunc F() {{ {frames} }}",
        },
    )
    # Both frames; what is for another rule to be found is no near miss.
    return {
        ("published", "acme", False, (SECRET,)),
        ("published", "acme", True, ()),
        ("named", "zeta", False, (NEEDS_NAME,)),
    }


def _trufflehog(folder: Path) -> set[Told]:
    code = f"package acme\nvar (\n keyPat = regexp.MustCompile(`{PATTERN}`)\n)"
    test = """package acme
    var valid = "%s"
    func TestIt(t *testing.T) {
        tests := []struct{ name string; input string; want []string }{
            {name: "found", input: fmt.Sprintf("token = '%%s'", valid), want: []string{valid}},
            {name: "none", input: "token = '%s'", want: nil},
        }
    }"""
    _write(folder, {"pkg/detectors/acme/acme.go": code, "pkg/detectors/acme/acme_test.go": test % (SECRET, SHORT)})
    return {("published", "acme", False, (SECRET,)), ("published", "acme", True, ())}


def _detect_secrets(folder: Path) -> set[Told]:
    test = f"""
LINE = 'key = "{{}}"'
@pytest.mark.parametrize("line, flagged", [("{SECRET}", True), ("{SHORT}", False), (LINE.format("{SECRET}"), True)])
def test_it(line, flagged): ...
"""
    _write(
        folder, {"tests/plugins/stripe_key_test.py": test, "tests/plugins/ibm_key_test.py": f'X = [("{HEX}", "{HEX}")]'}
    )
    return {
        ("published", "stripe_key", False, (SECRET,)),
        ("published", "stripe_key", True, ()),
        ("published", "stripe_key", False, (f'key = "{SECRET}"',)),
        ("named", "ibm_key", False, (HEX,)),
    }


def _credsweeper(folder: Path) -> set[Told]:
    def found(line: int, value: str) -> dict[str, object]:
        return {"rule": "Acme", "line_data_list": [{"path": "tests/samples/a", "line_num": line, "value": value}]}

    rule = {"name": "Acme", "type": "pattern", "values": [PATTERN.replace("(", "(?P<value>", 1)]}
    both = [found(2, SECRET), found(6, SHORT)]
    _write(
        folder,
        {
            "tests/samples/a": f"one\nkey = {SECRET}\nthree\nfour\nfive\nkey = {SHORT}\n",
            "tests/data/output.json": json.dumps(both[:1]),
            "tests/data/no_filters_no_ml.json": json.dumps(both),
            "tests/data/doc.json": "[]",
            "tests/data/depth_3_pedantic.json": "[]",
            "credsweeper/rules/config.yaml": yaml.safe_dump([rule]),
        },
    )
    return {("published", "Acme", False, (SECRET,)), ("published", "Acme", True, ())}


def _noseyparker(folder: Path) -> set[Told]:
    rules = [
        {
            "name": "Acme", "id": "np.acme.1", "pattern": f"(?x)\n  {PATTERN}  # the key", "categories": ["secret"],
            "examples": [f"x = '{SECRET}'"], "negative_examples": [SHORT, f"zeta: {NEEDS_NAME}"],
        },
        {
            "name": "Zeta", "id": "np.zeta.1", "pattern": "(?i)(zeta).{0,5}([0-9a-f]{32})", "categories": ["fuzzy"],
            "examples": [f"ZETA: {NEEDS_NAME}"], "negative_examples": None,
        },
        {
            "name": "Id", "id": "np.id.1", "pattern": "(AcmeId-[0-9]{4})", "categories": ["identifier"],
            "examples": ["AcmeId-4711"],
        },
    ]  # fmt: skip
    _write(folder, {"crates/noseyparker/data/default/builtin/rules/acme.yml": yaml.safe_dump({"rules": rules})})
    return {
        ("published", "Acme", False, (SECRET,)),
        ("published", "Acme", True, ()),
        ("named", "Zeta", False, (NEEDS_NAME,)),
        ("public by design", "Id", False, ("AcmeId-4711",)),
    }


def _secretlint(folder: Path) -> set[Told]:
    def snapshot(text: str, *values: str) -> str:
        places = [
            {"messageId": "TOKEN", "range": [text.index(value), text.index(value) + len(value)]} for value in values
        ]
        return json.dumps({"sourceContent": text, "messages": places})

    rule = "packages/@secretlint/secretlint-rule-"
    text = f"a {SECRET} b {NEEDS_NAME}"
    _write(
        folder,
        {
            f"{rule}acme/test/snapshots/ng.key/output.json": snapshot(text, SECRET, NEEDS_NAME),
            f"{rule}acme/test/snapshots/ok.short/output.json": snapshot(SHORT),
            f"{rule}acme/test/snapshots/ok.allowed/output.json": snapshot(f"other {SECRET}"),
            f"{rule}acme/test/snapshots/ok.allowed/options.ts": "export default {}",
            f"{rule}acme/test/snapshots/ok.turned-off/output.json": snapshot(f"one more {SECRET}"),
            f"{rule}acme/test/snapshots/ok.turned-off/.secretlintrc.json": "{}",
            f"{rule}basicauth/test/snapshots/ng.url/output.json": snapshot(f"//kim:{HEX}@x", HEX),
            f"{rule}preset-all/test/snapshots/ng.key/output.json": snapshot(text, SECRET),
        },
    )
    return {
        ("published", "acme", False, (SECRET, NEEDS_NAME)),
        ("published", "acme", True, ()),
        ("generic", "basicauth", False, (HEX,)),
    }


def _recognisers(folder: Path) -> set[Told]:
    test = """
@pytest.mark.parametrize("text, expected_len, expected_positions", [
    ("my card 4539578763621486 and 371449635398431", 2, ((8, 24), (29, 44))),
    ("4539578763621487", 0, ()),
])
def test_it(text, expected_len, expected_positions): ...
"""
    _write(folder, {"presidio-analyzer/tests/test_credit_card_recognizer.py": test})
    return {
        ("cards", "credit_card", False, ("4539578763621486", "371449635398431")),
        ("cards", "credit_card", True, ()),
    }


def _research(folder: Path) -> set[Told]:
    sentences = [
        {
            "full_text": "write to kim@acme.io",
            "spans": [{"entity_type": "EMAIL_ADDRESS", "entity_value": "kim@acme.io"}],
        },
        {"full_text": "call Kim", "spans": [{"entity_type": "PERSON", "entity_value": "Kim"}]},
    ]
    _write(folder, {"data/synth_dataset_v2.json": json.dumps(sentences)})
    return {("email", "EMAIL_ADDRESS", False, ("kim@acme.io",)), ("sentences without any", "", True, ())}


def _phones(folder: Path) -> set[Told]:
    country = """<territory id="XX" countryCode="999" nationalPrefix="0"><availableFormats>
      <numberFormat pattern="(\\d{2})(\\d{4})"><leadingDigits>5</leadingDigits><format>$1 0000</format></numberFormat>
      <numberFormat pattern="(\\d{2})(\\d{4})"><leadingDigits>2</leadingDigits><format>$1-$2</format></numberFormat>
    </availableFormats><mobile><exampleNumber>214567</exampleNumber></mobile></territory>"""
    _write(folder, {"resources/PhoneNumberMetadata.xml": f"<phoneNumberMetadata>{country}</phoneNumberMetadata>"})
    return {
        ("phones +", "XX", False, ("+999 21-4567",)),
        ("phones + without gaps", "XX", False, ("+999214567",)),
        ("phones at home, labelled", "XX", False, ("021-4567",)),
    }


SHAPES: dict[str, Callable[[Path], set[Told]]] = {
    "gitleaks": _gitleaks,
    "trufflehog": _trufflehog,
    "detect-secrets": _detect_secrets,
    "CredSweeper": _credsweeper,
    "Nosey Parker": _noseyparker,
    "secretlint": _secretlint,
    "Presidio's recognisers": _recognisers,
    "Presidio's research set": _research,
    "libphonenumber": _phones,
}


@pytest.mark.seed("A6")
@pytest.mark.parametrize("name", SHAPES)
def test_a_reader_says_what_a_corpus_says(name: str, tmp_path: Path) -> None:
    expected = SHAPES[name](tmp_path)
    read = foreign.read(tmp_path)
    assert read is not None and read[0] == name
    assert {(case.kind, case.family, not case.hidden, case.hidden) for case in read[1]} == expected
    assert len(read[1]) == len(expected) + (name == "gitleaks")  # the one secret in two frames
    assert all(one in case.text for case in read[1] for one in case.hidden)


def test_what_is_found_and_what_is_taken_wrongly_are_counted(tmp_path: Path) -> None:
    _noseyparker(tmp_path)
    read = foreign.read(tmp_path)
    assert read is not None
    acme = Redactor(bytes(32), secrets=False, extra=[{"name": "acme", "pattern": PATTERN}])
    wide = Redactor(
        bytes(32), secrets=False, extra=[{"name": "jwt", "pattern": "acme_[0-9a-f]+"}]
    )  # the name of a form
    half = Redactor(bytes(32), secrets=False, extra=[{"name": "acme", "pattern": "acme_[0-9a-f]{12}"}])
    counted = {
        who: [
            sum(getattr(tally, what) for (kind, _), tally in tallies(read[1], redactor).items() if kind == "published")
            for what in ("cases", "found", "near", "taken", "named")
        ]
        for who, redactor in (("acme", acme), ("wide", wide), ("half", half))
    }
    # A secret whose second half can be read is not found.
    assert counted == {"acme": [1, 1, 1, 0, 0], "wide": [1, 1, 1, 1, 0], "half": [1, 0, 1, 0, 0]}


@pytest.mark.parametrize("line", [SECRET, f'key = "{SECRET}"'], ids=["a value", "a line"])
def test_a_near_miss_around_what_the_corpus_holds_to_be_a_secret_is_counted_apart(line: str) -> None:
    """What is wrong stands beside the secret, which nobody should read."""
    cases = [
        Case("published", "acme", line, (line,), whole=line != SECRET),
        Case("published", "acme", f"not-so={SECRET}"),
        Case("published", "acme", f"token={SHORT}"),
    ]
    named = Redactor(
        bytes(32), secrets=False, extra=[{"name": "any", "pattern": "=(.+)"}, {"name": "acme", "pattern": PATTERN}]
    )
    (tally,) = tallies(cases, named).values()
    assert (tally.cases, tally.found, tally.near, tally.whole, tally.hidden) == (1, 1, 1, 1, 1)


def test_the_figures_of_a_corpus_and_of_ordinary_texts_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _secretlint(tmp_path / "corpus")
    read = foreign.read(tmp_path / "corpus")
    assert read is not None
    print_corpus(*read, show=True, show_held_out=True)
    shown = capsys.readouterr().out
    assert shown.startswith("secretlint\n") and "0 of 1" in shown and "missed published: 'acme:" in shown
    _write(tmp_path / "plain", {"a.md": "password: " + "Tr0ub4dor9zk\n", "b.md": "nothing\n", "c.png": "password: x"})
    assert foreign.read(tmp_path / "plain") is None
    print_ordinary(tmp_path / "plain", show=True)
    shown = capsys.readouterr().out
    assert "password a.md:1" in shown and "plain: 2 texts" in shown and " 1 hits" in shown


@pytest.mark.seed("A6")
def test_near_misses_are_printed_by_form_and_with_those_hidden_for_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    looks = {rule.name for rule in BY_LOOK}
    form = next(one.text for one in positives(1) if one.rule in looks)
    named = f'api_token = "{NEEDS_NAME}"'
    cases = [Case("published", "acme", text) for text in (form, named, "nothing", "nothing else")]
    print_corpus("made", cases, show=False, show_held_out=False)
    shown = capsys.readouterr().out
    assert "near misses hidden, published: 1 of 4 by form (25.0%), 2 in all (50.0%); for a name: 1 random\n" in shown
