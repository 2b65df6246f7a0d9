"""Whether a decoded text looks like the language of its encoding.

The East Asian encodings share their bytes: Korean read as Chinese is valid and nonsense. What tells them apart is how
often the characters that come out are ones that people write. Each character of a sample weighs between -1 and 1;
the mean is the score of the encoding.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from octavo.sources._shared.text.sample import high_bytes, telling

_SAMPLE: Final = 4096  # bytes
_MARGIN: Final = 0.25  # by which another encoding must look better than the first of the order
_LEAST_OF_ALL: Final = 0.2  # below which a text looks like no language
_LEAST: Final = {"cp1252": 0.5, "latin-1": 0.5}  # which have few bytes that they refuse
_CONTROLS: Final = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")

_HANGUL: Final = frozenset(
    "이다는의에을가은로하고를지한대서기도사인자들어시있아나해그리정부과라만수일제스게공주원상전보적동구장세성여선조국경으면된되며위무관할안생마오없신유내방실용"
    "우연분식심개법결최소모비현미거물단체행후등발학회교화중통호당양간출저계설재문치차입민반강급데때려까금두말바러권월트포달진산직추능종명목점표규질업청복본운음"
    "드린합니습요네죠것않같년불하더와레야크르임영파남노래변알작느평타품난태집매받참형환준증건워터류너각니코버테카활외토배약석새번브예합확박피조메디완관론역"
    "베초근독견술키저름쪽살함황살길째머심손히올언군백특향존든량책히험광감람런김천족육늘따눈께습답익키프판저님뒤먼점열독별접절돈못료논송글팀곳"
)
_KANJI: Final = frozenset(
    "日一国人年大十二本中長出三時行見月後前生五間上東四今金九入学高円子外八六下来気小七山話女北午百書先名川千水半男西電校語土木聞食車何南万毎白天母火右読友左休父雨"
    "会同事自社発者地業方新場員立開手力問代明動京目通言理体田主題意不作用度強公持野以思家世多正安院心界教文元重近考画海売知道集別物使品計死特私始朝運終台広住無真有"
    "口少町料工建空急止送切転研足究楽起着店病質待試族銀早映親験英医仕去味写字答夜音注帰古歌買悪図週室歩風紙黒花春赤青館屋色走秋夏習駅洋旅服夕借曜飲肉貸堂鳥飯勉冬"
    "昼茶弟牛魚兄犬妹姉漢務申請勤続費領収精算承認必要確認対応変更部長課報告資料設定管理登録情報機能処理実次第全内回当合可能関成約数表権限期限変法利引連絡相談様"
)
_SIMPLIFIED: Final = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还"
    "进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产"
    "或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受"
    "目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死"
    "张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运费请须办审批客户咨询复申提超额限经附票旅差底月销"
)
_TRADITIONAL: Final = frozenset(
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還"
    "進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產"
    "或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結反受"
    "目太量再感建務做接必場件計管期市直德資命山金指克許統區保至隊形社便空決治展馬科司五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品住告類求據程北邊死"
    "張該交規萬取拉格望覺術領共確傳師觀清今切院讓識候帶導爭運費請須辦審批客戶諮詢復回覆申超額限附票旅差底銷"
)
_ACCENTED: Final = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüßœÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜŒ")
_WESTERN: Final = frozenset("‘’‚“”„–—…•€£¢©®™°«»·§¿¡ºª²³½¼´\xa0×")
_WITHIN_WORDS: Final = frozenset("’·\xad")
_LETTER: Final = re.compile(r"[A-Za-z0-9]")
_RUN: Final = re.compile(r"[^\x00-\x7f]+")


def ranked(raw: bytes | bytearray, order: Sequence[str]) -> Sequence[str]:
    """The encodings of `order` that the bytes may be in, the likeliest first. The first of the order gives way only
    to one that looks clearly better."""
    sample = telling(raw, _SAMPLE)
    scores = {name: score for name in order if (score := _score(sample, name)) >= _LEAST.get(name, _LEAST_OF_ALL)}
    if order and order[0] in scores:
        few = 1.2 / max(high_bytes(sample), 1)  # the fewer bytes, the less a score says
        scores[order[0]] += _MARGIN + few
    return sorted(scores, key=scores.__getitem__, reverse=True)


def _score(sample: bytes, name: str) -> float:
    try:
        text = codecs.getincrementaldecoder(name)().decode(sample, final=len(sample) < _SAMPLE)
    except UnicodeDecodeError:
        return -1.0
    if _CONTROLS.search(text):
        return -1.0
    weights = list(_WEIGHTS.get(name, _by_letters)(text))
    return sum(weights) / len(weights) if weights else -1.0


def _by_character(weight: Callable[[str], float]) -> Callable[[str], Iterator[float]]:
    def weights(text: str) -> Iterator[float]:
        return (weight(character) for run in _RUN.findall(text) for character in run)

    return weights


def _korean(character: str) -> float:
    if character in _HANGUL:
        return 1.0
    if "가" <= character <= "힣":
        return 0.22 if _lead(character, "euc_kr") else -0.6
    if "ㄱ" <= character <= "ㆎ":
        return 0.2
    return -0.2 if _is_ideograph(character) else _sign(character)


def _japanese(character: str) -> float:
    if "ぁ" <= character <= "ん":
        return 1.0
    if character in _KANJI or "ァ" <= character <= "ー":
        return 0.8
    if _is_ideograph(character):
        return 0.2 if 0xB0 <= _lead(character, "euc_jp") <= 0xCF else -0.6
    return -0.6 if "｡" <= character <= "ﾟ" else _sign(character)


def _simplified(character: str) -> float:
    if character in _SIMPLIFIED:
        return 1.0
    if _is_ideograph(character):
        lead = _lead(character, "gb2312")
        return 0.3 if 0xB0 <= lead <= 0xD7 else -0.4 if lead else -0.8
    return _sign(character)


def _traditional(character: str) -> float:
    if character in _TRADITIONAL:
        return 1.0
    if _is_ideograph(character):
        return 0.3 if 0xA4 <= _lead(character, "big5") <= 0xC6 else -0.5
    return _sign(character)


def _western(text: str) -> Iterator[float]:
    """Accents stand alone or in pairs between letters, signs do not stand inside of words, and without any letter
    of ASCII there is no word."""
    if not _LETTER.search(text):
        return
    for run in _RUN.finditer(text):
        before, after = text[run.start() - 1 : run.start()].isalpha(), text[run.end() : run.end() + 1].isalpha()
        alone = f" {run[0]} " == text[run.start() - 1 : run.end() + 1]  # the French "à", the Italian "è"
        for character in run[0]:
            if len(run[0]) > 3:
                yield -1.0
            elif character in _ACCENTED:
                shouted = character.isupper() and text[run.start() - 1 : run.start()].islower()
                yield -0.5 if shouted else 1.0 if before or after else 0.6 if alone else -0.5
            elif character in _WESTERN:
                yield 0.6 if not (before and after) or character in _WITHIN_WORDS else -0.7
            else:
                yield -0.5


def _by_letters(text: str) -> Iterator[float]:
    """For an encoding that the operator has configured and we know nothing of."""
    return (0.4 if character.isalpha() else 0.0 if character.isprintable() else -1.0 for character in text)


def _is_ideograph(character: str) -> bool:
    return "\u4e00" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff"


def _sign(character: str) -> float:
    """Punctuation that all these languages share, and full-width forms."""
    if character in "、。「」『』，．・：；？！（）《》【】〈〉“”‘’…—·　～￦":
        return 0.3
    return 0.0 if "\u2000" <= character <= "\u27ff" or "\u3000" <= character <= "\u303f" else -0.5


def _lead(character: str, name: str) -> int:
    """The first byte in an encoding; 0 where it is not in it."""
    raw = character.encode(name, "ignore")
    return raw[0] if len(raw) == 2 else 0


_WEIGHTS: Final[dict[str, Callable[[str], Iterator[float]]]] = {
    "cp949": _by_character(_korean),
    "cp932": _by_character(_japanese),
    "euc_jp": _by_character(_japanese),
    "gb18030": _by_character(_simplified),
    "big5": _by_character(_traditional),
    "cp950": _by_character(_traditional),
    "cp1252": _western,
    "latin-1": _western,
}
