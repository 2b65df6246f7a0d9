"""What is asked, taken apart: words with the ways to find each, and phrases that must be there.

Whatever stands in a question is data: only tokens reach the index, each in quotes, and no token has a quote in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from octavo.core.errors import InvalidParams
from octavo.search import english
from octavo.search import tokens as t

MAX_CHARACTERS: Final = 20_000  # of a question that are looked at
MAX_UNITS: Final = 24
LONG_WORD: Final = 12  # syllables; a longer word is looked for as it is

_QUOTED: Final = re.compile(r'["“”「]([^"“”「」]{1,500})["“”」]')
_SPACE: Final = re.compile(r"\s+")
# What people put around what they look for. They count only where there is nothing else.
_ENGLISH = (
    "a an the of in on at for to from by with and or is are was be do does did how what which who whom when where why "
    "can could should i we our us my me you your he she they them their it its this that these those there here any "
    "about as but not no so than then will am were been being please find show tell"
)
_KOREAN = (
    "어떻게 무엇 무엇인가요 뭐 뭔가요 어디 어디서 누구 누가 언제 왜 그 이 저 것 수 및 등 또는 그리고 대한 대해 관한 "
    "관련 위한 있는 있나요 하나요 되나요 인가요 알려줘 알려주세요 찾아줘 보여줘 주세요"
)
_FILLERS: Final = frozenset(_ENGLISH.split() + _KOREAN.split())
# What people ask with, not about. A page may be called so, and they count next to nothing.
_ASKING_ENGLISH = (
    "make makes making made get gets getting got go goes use uses using used need needs want wants would must may "
    "might have has had happen happens mean means difference between vs way ways thing things something someone "
    "somebody know ask asks asked say give given take takes if when whether most best possible"
)
_ASKING_KOREAN = (
    "만들기 만드는 만들려면 만들고 하기 하는 하려면 하면 해야 하나 방법 방식 무엇인가 무엇일까 무엇을 어떤 어느 "
    "차이 차이점 이유 경우 때 쓰기 쓰는 쓸 써야 쓰려면 싶어요 싶습니다 싶다 없나요 없어요 있어요 있을까요 될까요 "
    "할까요 주기 주는 주려면 알기 되는 되면 하고 합니다 좋을까요 좋은가요 다른가요 뭐예요 무슨 안에서 계속 바로"
)
_ASKING: Final = frozenset(_ASKING_ENGLISH.split() + _ASKING_KOREAN.split())
_ASKED_WITH: Final = 0.1  # of what another word counts

EXACT: Final = 1.0
STEM: Final = 0.9
TOGETHER: Final = 0.8  # the pieces of a compound, anywhere in the document
INSIDE: Final = 0.6  # inside a longer word
BEGINNING: Final = 0.5  # of a longer word
APART: Final = 0.3  # a piece of a compound
LOAN: Final = 0.8  # the same word in the other script
SYNONYM: Final = 0.7


class Term(NamedTuple):
    token: str
    begins: bool = False  # any word that begins with it will do

    def expression(self, field: str) -> str:
        return f'"{field}{self.token}"*' if self.begins else f'"{field}{self.token}"'


class SearchWay(NamedTuple):
    """One way to find something: any of several groups of terms, each group as a whole. `weight` is what it is
    worth. `exact` ways find words; the others find what may be the word, and the text has to confirm it."""

    weight: float
    groups: tuple[tuple[Term, ...], ...]
    exact: bool = True

    @property
    def vague(self) -> bool:
        return any(term.begins and len(term.token) == 1 for group in self.groups for term in group)

    def expression(self, field: str = "") -> str:
        return " OR ".join(f"({' AND '.join(term.expression(field) for term in group)})" for group in self.groups)


class Spelling(NamedTuple):
    """How it may stand in a text: these strings, all of them."""

    weight: float
    strings: tuple[str, ...]


class Unit(Struct, frozen=True):
    """One word of the question, or one phrase."""

    surface: str
    ways: tuple[SearchWay, ...]
    spellings: tuple[Spelling, ...]
    pattern: str  # where it stands in a text, as a regular expression
    stem: str = ""  # of a plain word, which may be misspelt
    token: str = ""  # the whole of it, a compound too: as it may be written in another script
    phrase: bool = False
    share: float = 1.0  # of what it counts, where it is a word of asking

    def with_others(self, others: Iterable[Unit], weight: float) -> Unit:
        ways, spellings, patterns = [*self.ways], [*self.spellings], [self.pattern]
        for other in others:
            ways += [way._replace(weight=way.weight * weight) for way in other.ways]
            spellings += [one._replace(weight=one.weight * weight) for one in other.spellings]
            patterns.append(other.pattern)
        return replace(self, ways=tuple(ways), spellings=tuple(spellings), pattern="|".join(patterns))


class ParsedQuery(Struct, frozen=True):
    units: tuple[Unit, ...]
    plain: str  # folded, without spaces: to be compared with a title
    ignored: int


def question(text: str) -> ParsedQuery:
    """Raises InvalidParams where there is no word in it."""
    cut = t.normal(text[:MAX_CHARACTERS])
    phrases = [unit for quoted in _QUOTED.findall(cut) if (unit := _phrase(quoted)) is not None]
    words = list(dict.fromkeys(t.runs(_QUOTED.sub(" ", cut))))
    telling = [word for word in words if english.fold(word) not in _FILLERS]
    units = {unit.surface: unit for unit in phrases}
    for word in telling or ([] if phrases else words):
        unit = word_unit(word)
        units.setdefault(unit.surface, replace(unit, share=_ASKED_WITH) if _is_asking(unit) else unit)
    for date in dict.fromkeys(t.dates(cut)):
        units[date] = Unit(date, (SearchWay(EXACT, ((Term(date),),)),), (), re.escape(date))
    if not units:
        raise InvalidParams("The query has no word to search for: write at least one letter or digit")
    kept = tuple(units.values())[:MAX_UNITS]
    ignored = len(units) - len(kept) + (len(text) > MAX_CHARACTERS)
    return ParsedQuery(kept, squeezed(" ".join(words)), ignored)


def _is_asking(unit: Unit) -> bool:
    return unit.surface in _ASKING or (unit.stem in _ASKING and t.is_syllabic(unit.stem))


def folded(text: str) -> str:
    return text.lower()


def squeezed(text: str) -> str:
    return "".join(folded(text).split())


def word_unit(run: str) -> Unit:
    """One word, or a compound in one piece."""
    pieces = t.parts(run)
    if len(pieces) > 1:
        return _compound(run, pieces)
    (piece,) = pieces or [run]
    return _syllabic(piece) if t.is_syllabic(piece) else _latin(piece)


def _latin(piece: str) -> Unit:
    fold = english.fold(piece)
    (stem,) = t.word_tokens(piece)
    ways = [SearchWay(EXACT, ((Term(stem),),))]
    if len(stem) >= 4 and stem.isalpha():
        ways.append(SearchWay(BEGINNING, ((Term(stem, begins=True),),)))
    told = f"{stem[:-1]}[yi]" if stem.endswith("y") and stem != fold else re.escape(stem)
    spellings = tuple(Spelling(EXACT, (one,)) for one in dict.fromkeys((stem, fold)))
    rest = r"[^\W_]*" if stem.isalpha() else r"(?!\d)"
    return Unit(fold, tuple(ways), spellings, rf"(?<![^\W_]){told}{rest}", stem, stem)


def _syllabic(piece: str) -> Unit:
    stem, *longer = t.word_tokens(piece)
    ways = [SearchWay(EXACT, ((Term(whole),),)) for whole in longer or [stem]]
    ways += [SearchWay(STEM, ((Term(stem),),))] if longer else []
    if len(stem) == 1:
        ways.append(SearchWay(BEGINNING, ((Term(stem, begins=True),),)))
    else:
        ways.append(SearchWay(INSIDE, _inside(stem), exact=False))
    halves = [(stem[:cut], stem[cut:]) for cut in _cuts(stem)]
    spellings = [Spelling(EXACT, (stem,)), *(Spelling(APART, pair) for pair in halves)]
    loose = (r"\s?" if halves else "").join(stem)
    pattern = "|".join([loose, *(half for pair in halves for half in pair)])
    return Unit(piece, tuple(ways), tuple(spellings), pattern, stem, stem)


def _cuts(word: str) -> range:
    """Where a text may have a space in it that the question has not: between two syllables and two."""
    return range(2, len(word) - 1) if len(word) <= LONG_WORD else range(0)


def _inside(word: str) -> tuple[tuple[Term, ...], ...]:
    """All its pairs of syllables, but for the one that a space would part."""
    pairs = [Term(gram) for gram in t.grams(word)]
    return tuple(tuple(pairs[: cut - 1] + pairs[cut:]) for cut in _cuts(word)) or (tuple(pairs),)


def _compound(run: str, pieces: Sequence[str]) -> Unit:
    whole = t.whole([*pieces])
    inner = [word_unit(piece) for piece in pieces]
    terms = [unit.ways[0].groups[0][0] for unit in inner]
    ways = [SearchWay(EXACT, ((Term(whole),),)), SearchWay(TOGETHER, (tuple(terms),))]
    found = [way for unit in inner for way in unit.ways if not way.exact]
    if found:  # 캠페인 of AI캠페인 in a longer word
        rest = tuple(term for term in terms if not t.is_syllabic(term.token))
        ways.append(SearchWay(INSIDE, tuple(group + rest for group in found[-1].groups), exact=False))
    telling = [term for term in terms if len(term.token) > 1]
    ways += [SearchWay(APART, tuple((term,) for term in telling))] if telling else []
    strings = tuple(unit.spellings[0].strings[0] for unit in inner)
    spellings = (
        Spelling(EXACT, (english.fold(run),)),
        Spelling(EXACT, ("".join(strings),)),
        Spelling(TOGETHER, strings),
        *(Spelling(APART, (string,)) for string in strings if len(string) > 1),
    )
    joined = r"[\W_]?".join(map(re.escape, strings))
    long = [unit.pattern for unit in inner if len(unit.surface) > 1]
    return Unit(english.fold(run), tuple(ways), spellings, "|".join([rf"{joined}[^\W_]*", *long]), token=whole)


def _phrase(quoted: str) -> Unit | None:
    """Found by its words, and then it must stand in the text as it is quoted, but for spaces and capitals."""
    terms: list[Term] = []
    for piece in (piece for run in t.runs(quoted) for piece in t.parts(run)):
        if not t.is_syllabic(piece):
            terms.append(Term(t.word_tokens(piece)[0]))
        elif len(piece) > 1:
            terms += map(Term, t.grams(piece))
        else:
            terms.append(Term(piece, begins=True))
    if not terms:
        return None
    literal = _SPACE.sub(" ", folded(quoted)).strip()
    pattern = r"\s+".join(map(re.escape, literal.split(" ")))
    return Unit(
        literal, (SearchWay(EXACT, (tuple(terms[:64]),)),), (Spelling(EXACT, (literal,)),), pattern, phrase=True
    )
