"""What Korean adds to a word, taken off again, and the letters that a syllable is made of.

No dictionary: a particle is taken off where the sound before it allows the particle (`전문가` keeps its `가`, since
the subject marker after a consonant would be `이`) and enough of the word is left. That is wrong now and then, in
the same way for a text and for a question about it; the whole word is kept beside it.
"""

from __future__ import annotations

from typing import Final, Literal

Before = Literal["consonant", "vowel", "any"]

_FIRST, _LAST = 0xAC00, 0xD7A3
_FINALS: Final = 28
_VOWELS: Final = 21
_RIEUL: Final = 8  # the final consonant that takes 로, not 으로

# By what must stand before them. Those that end many nouns too (제도, 회의, 나이) leave at least two syllables.
_AFTER_CONSONANT = (
    "은 을 이 과 으로 이나 이랑 이란 이라는 이라도 으로는 으로서 으로써 으로도 이며 이고 이다 이에요 인지 인가요 이랑은"
)
_AFTER_VOWEL = "는 를 가 와 로 나 랑 란 라는 라도 로는 로서 로써 로도 며 예요 와는 와의"
_AFTER_ANY = (
    "의 에 도 만 들 에서 에게 께서 께 한테 까지 부터 보다 처럼 마다 밖에 조차 대로 에는 에도 에서는 에서의 에게는 에의 "
    "까지는 까지의 부터는 만의 만을 만이 들이 들은 들을 들의 들에게 과는 과의 입니다 "
    "하다 하는 하기 하고 하면 하며 하여 하게 하지 하세요 하려면 하려고 하나요 하도록 할지 할까요 해서 해야 해요 "
    "했다 했던 했습니다 한다 합니다 합니까 한 할 함 해 되다 되는 되고 되면 되어 되지 되나요 "
    "된다 됩니다 됐다 되었다 된 될 됨 돼요"
)
_SHORT_STEMS: Final = frozenset(("은", "는", "을", "를", "에서", "에게", "까지", "부터", "으로", "보다", "처럼"))

# Behind one syllable they are more often the end of a native noun (정의, 강도): `stem` leaves them there.
_LEFT: Final = frozenset(["의", "에", "이", "과", "가", "와", "도", "만", "로", "들"])


def _endings() -> dict[str, Before]:
    found: dict[str, Before] = dict.fromkeys(_AFTER_ANY.split(), "any")
    found |= dict.fromkeys(_AFTER_CONSONANT.split(), "consonant")
    found |= dict.fromkeys(_AFTER_VOWEL.split(), "vowel")
    return found


_ENDINGS: Final = _endings()
_LONGEST: Final = max(map(len, _ENDINGS))


def is_syllable(character: str) -> bool:
    return _FIRST <= ord(character) <= _LAST


def is_ending(text: str) -> bool:
    """Whether it is nothing but a particle, as behind a word in other letters: `invoice가`."""
    return text in _ENDINGS


def stem(word: str) -> str:
    """The word without its particles and without the ending of a verb made of a noun; itself where there is none."""
    for _ in range(2):  # 담당자들 + 에게
        shorter = _shorter(word)
        if shorter == word:
            break
        word = shorter
    return word


def syllable(word: str) -> str:
    """The one syllable in front of what may be a particle and may be the end of a noun; empty for other words."""
    if len(word) != 2 or word[1] not in _LEFT or not _fits(word[0], _ENDINGS[word[1]], word[1]):
        return ""
    return word[0]


def _shorter(word: str) -> str:
    for size in range(min(_LONGEST, len(word) - 1), 0, -1):
        ending = word[-size:]
        before = _ENDINGS.get(ending)
        if before is None:
            continue
        rest = word[:-size]
        if len(rest) >= (1 if ending in _SHORT_STEMS else 2) and _fits(rest[-1], before, ending):
            return rest
    return word


def _fits(last: str, before: Before, ending: str) -> bool:
    if not is_syllable(last):
        return False
    final = (ord(last) - _FIRST) % _FINALS
    if ending.startswith("로") and final == _RIEUL:
        return True
    return before == "any" or (final != 0) is (before == "consonant")


def neighbours(word: str) -> list[str]:
    """What the word may have been meant to be: one letter of one syllable another, a syllable too many, or two
    syllables the other way round. A syllable that is missing is not guessed: there are 11,172."""
    found: dict[str, None] = {}
    for place, character in enumerate(word):
        before, after = word[:place], word[place + 1 :]
        if is_syllable(character):
            found |= dict.fromkeys(before + other + after for other in _near(character))
        if len(word) > 2:
            found[before + after] = None
        if after:
            found[before + after[0] + character + after[1:]] = None
    found.pop(word, None)
    return [*found]


def _near(syllable: str) -> list[str]:
    """Syllables that differ in the first consonant, in the vowel, or in the final consonant."""
    number = ord(syllable) - _FIRST
    first, rest = divmod(number, _VOWELS * _FINALS)
    vowel, final = divmod(rest, _FINALS)
    codes = [(other, vowel, final) for other in range(19)]
    codes += [(first, other, final) for other in range(_VOWELS)]
    codes += [(first, vowel, other) for other in range(_FINALS)]
    near = (chr(_FIRST + (a * _VOWELS + b) * _FINALS + c) for a, b, c in codes)
    return [one for one in near if one != syllable]
