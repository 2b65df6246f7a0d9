"""What identifies or reaches a person, in groups that the configuration names.

`identity` is on unless somebody turns it off: such a number is as dangerous as a password. The others are what
many handbooks are full of, on purpose.
"""

from __future__ import annotations

from typing import Final

from octavo.pipeline.redact.rules import numbers
from octavo.pipeline.redact.rules.rule import PatternRule

_LABEL = "(?:주민등록번호|주민번호|외국인등록번호|resident registration number|rrn|frn)(?:[ ]is)?"
_PHONE = (
    r"(?:\b(?:tel|telephone|phone|mobile|mob|cellphone|fax|whatsapp|hotline|call (?:me|us|him|her)|t[eé]l[eé]phone"
    r"|t[eé]l|telefon|tel[eé]fono|handy|gsm)\b|전화|연락처|휴대폰|핸드폰|팩스|電話|电话|手机|携帯)"
    r"(?: number| no| nr| 번호|번호)?\.?(?: is| at| on)?[:=]?\s{0,2}"
)
_CARD = r"(?:\bcards?\b|카드|\bcc\b|visa|master|maestro|amex|diners|jcb|unionpay)"
_REGION = (
    "(?:서울특별시|서울시|서울|부산광역시|부산시|부산|대구광역시|대구시|대구|인천광역시|인천시|인천|광주광역시|광주시|광주"
    "|대전광역시|대전시|대전|울산광역시|울산시|울산|세종특별자치시|세종시|세종|경기도|경기|강원특별자치도|강원도|강원"
    "|충청북도|충북|충청남도|충남|전북특별자치도|전라북도|전북|전라남도|전남|경상북도|경북|경상남도|경남"
    "|제주특별자치도|제주도|제주)"
)
_PLACE = r"(?:[가-힣]{1,10}(?:시|군|구)[ \t]+){0,2}(?:[가-힣]{1,8}(?:읍|면)[ \t]+)?"
_ROAD = r"[가-힣A-Za-z0-9·.]{1,20}(?:대로|로|길)(?:[ ]?\d{1,4}(?:번|가|나|다)?길)?[ \t]*\d{1,5}(?:-\d{1,4})?(?:번지)?"
_LOT = r"[가-힣]{1,8}\d{0,2}(?:동|리|가)[ \t]+(?:산[ \t]?)?\d{1,5}(?:-\d{1,4})?(?:번지)?"
_REST = r"(?:,?[ \t]*(?:\d{1,4}동|\d{1,5}호|\d{1,3}층|[가-힣A-Za-z0-9]{2,16}(?:아파트|빌딩|타워|오피스텔|빌라)))*"

GROUPS: Final[dict[str, tuple[PatternRule, ...]]] = {
    "identity": (
        PatternRule(
            "kr-registration-number",
            r"\b\d{6}-\d{7}\b",
            clue=r"\d{6}-\d{7}",
            accept=numbers.is_registration_number,
        ),
        PatternRule(
            # Thirteen digits alone are as often a time in milliseconds. A number without quotes behind a quoted
            # name is JSON's, which a mark would break where nobody knows that it is JSON.
            "kr-registration-number-bare",
            rf"""(?i){_LABEL}(?:(?:\\?["'])?[ \t]*[:=][ \t]*\\?["'](\d{{13}})\\?["']|[ \t]*[:=]?[ \t]*(\d{{13}})\b)""",
            ("주민", "외국인등록번호", "registration number", "rrn", "frn"),
            accept=numbers.is_registration_number,
        ),
    ),
    "business": (
        PatternRule(
            "kr-business-number",
            r"\b\d{3}-\d{2}-\d{5}\b",
            clue=r"\d{3}-\d{2}-\d{5}",
            accept=numbers.is_business_number,
        ),
        PatternRule(
            "kr-business-number-bare",
            r"(?:사업자[ ]?등록[ ]?번호|사업자[ ]?번호)[\"']?[ \t]*[:=]?[ \t]*[\"']?(\d{10})\b",
            ("사업자",),
            accept=numbers.is_business_number,
        ),
    ),
    "payment": (
        PatternRule(
            "card-number",
            # Not behind a point: the digits of a fraction.
            r"(?:^|[^\w.+-])(\d{4}[ -]\d{4}[ -]\d{4}[ -]\d{4}|3[47]\d{2}[ -]\d{6}[ -]\d{5}|\d{15,16})\b",
            clue=r"\d{4}[ -]?\d{4,6}[ -]?\d{4,5}",
            accept=numbers.is_card_number,
        ),
        PatternRule(
            "card-number-labelled",
            rf"(?i){_CARD}[^\r\n\d]{{0,40}}(\d(?:[ -]?\d){{11,18}})\b",
            clue=r"\d{4}[ -]?\d{4}[ -]?\d{4}",
            accept=numbers.is_said_to_be_card,
        ),
        PatternRule(
            "iban",
            r"\b[A-Z]{2}\d{2}[A-Z0-9]{11,30}\b|\b[A-Z]{2}\d{2}(?:[ -][A-Z0-9]{4}){2,7}(?:[ -][A-Z0-9]{1,3})?\b"
            r"|(?i:\biban\b[^\r\n\d]{0,20}\b([a-z]{2}\d{2}[a-z0-9]{11,30})\b)",
            clue=r"[A-Z]{2}\d{2}[ -]?[A-Z0-9]{4}[ -]?[A-Z0-9]{4}|(?i:\biban\b)",
            accept=numbers.is_iban,
        ),
    ),
    "email": (
        PatternRule(
            "email",
            # Who logs in at a host has no mailbox there: an empty group takes part, and nothing is replaced.
            r"://[^\s/@\"'<>]*()@[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._%+-]*@(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,24}\b",
            clue=r"[A-Za-z0-9._%+-]@[A-Za-z0-9]",
            accept=numbers.is_email,
        ),
    ),
    "phone": (
        PatternRule(
            "kr-phone",
            r"(?:\+82[ -]?(?:\(0\)[ ]?)?|\b0)(?:1[016789]|2|3[1-3]|4[1-4]|5[1-5]|6[1-4]|70|50\d?)\)?"
            r"[ .-]?\d{3,4}[ .-]?\d{4}\b",
            clue=r"\+82[ .()-]*\d|0(?:1[016789]|2|[3-6]\d|70|50\d)\)?[ .-]?\d{3,4}[ .-]?\d{4}",
            accept=numbers.is_korean_phone,
        ),
        PatternRule(
            "phone",
            r"\+[1-9](?:[ .()/-]{0,2}\d){6,14}\b|\(\d{3}\)[ ]?\d{3}-\d{4}\b|\b[2-9]\d{2}-[2-9]\d{2}-\d{4}\b",
            clue=r"\+[1-9]\d{0,2}[ .(-]?\d|\(\d{3}\)[ ]?\d{3}-\d{4}|\d{3}-\d{3}-\d{4}",
            accept=numbers.is_phone,
        ),
        PatternRule(
            "phone-home",
            r"(?:^|[^\w.,+-])(0\d{1,4}(?:(?: \d{2,4}){2,4}|(?:-\d{2,4}){2,4}|(?:\.\d{2,4}){2,4}))\b",
            clue=r"(?:^|[^\w.,+-])0\d{1,4}(?: \d{2,4} |-\d{2,4}-|\.\d{2,4}\.)\d{2}",
            accept=numbers.is_home_phone,
        ),
        PatternRule(
            "phone-labelled",
            rf"(?i){_PHONE}(\(?\+?\d(?:[ .()/-]{{0,2}}\d){{5,14}})\b",
            clue=rf"(?i){_PHONE}\(?\+?\d",
            accept=numbers.is_said_to_be_phone,
        ),
    ),
    "network": (
        PatternRule(
            "ip-address",
            # A version is no address: an empty group takes part, and nothing is replaced.
            r"(?i)(?:\bv|version|release|버전|ver\.?)[ \t:=]*()\d+(?:\.\d+)+"
            r"|\b(?:\d{1,3}\.){3}\d{1,3}\b|(?:[0-9a-fA-F]{1,4}:){2,7}(?::?[0-9a-fA-F]{1,4})+\b",
            clue=r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d|[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}:",
            accept=numbers.is_public_address,
        ),
    ),
    "address": (
        PatternRule(
            "kr-address",
            rf"{_REGION}[ \t]+{_PLACE}(?:{_ROAD}|{_LOT}){_REST}",
            clue=rf"{_REGION}[ \t]+[가-힣]{{1,10}}(?:시|군|구|읍|면|동|리|로|길)",
        ),
    ),
}  # fmt: skip
