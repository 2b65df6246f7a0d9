"""Texts of a corpus are read in their own encoding; what was read exactly is written back to the byte."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import InvalidParams
from octavo.sources._shared.text import Decoded, decode, decoded, encode

KOREAN = """\
안녕
예산
가격표
똠방각하 안녕
홍길동 과장
주문 번호: 20241105-17
재택근무 신청은 최소 하루 전까지 팀장에게 알려야 합니다.
# 환불 절차
이름,부서,직급,내선\n김민수,인사팀,대리,1234\n박서연,개발팀,사원,5678
출장비는 영수증을 첨부하여 월말까지 정산하며, 한도를 넘는 금액은 본부장의 승인을 받아야 합니다.
ㅋㅋㅋ 네 알겠습니다~
배송이 늦어져 죄송합니다. 고객님의 소중한 의견을 바탕으로 더 나은 서비스를 제공하겠습니다.
[서버] 127.0.0.1 포트 8080 연결 실패: 시간 초과
// 사용자 입력을 확인한다\nint main() { return 0; }
大韓民國 憲法 제1조 ① 대한민국은 민주공화국이다.
뷁뷁 쀍 테스트 문서입니다
값
제목: 2026년 상반기 마케팅 계획(안)
<p>회원 가입을 환영합니다.</p>
어제 친구랑 떡볶이 먹고 왔는데 진짜 맛있었음
휴가
견적서
점심 메뉴 추천
퇴근합니다
서울특별시 강남구 테헤란로 152
총무팀 공지사항
비밀번호를 잊으셨나요?
나는 오늘 아침에 일찍 일어나서 운동을 했다.
품질 검사 결과 보고서
계좌번호 110-234-567890
월요일 오전 10시 회의
매출 증가율 12.5%
문제가 계속되면 관리자에게 문의하세요
동해물과 백두산이 마르고 닳도록 하느님이 보우하사 우리나라 만세
설치 방법은 아래와 같습니다
죄송하지만 다시 시도해 주세요
꿈
닭갈비
읽기 쉬운 코드
log.txt 파일 삭제됨""".splitlines()

JAPANESE = """\
こんにちは
お問い合わせ
カタログ
在宅勤務の申請は、前日までに上長へ連絡してください。
出張費は領収書を添付して月末までに精算し、上限を超える場合は部長の承認が必要です。
東京都千代田区丸の内一丁目
会議室の予約について
お客様各位\nいつも大変お世話になっております。株式会社山田商事の鈴木です。
エラー: ファイルが見つかりません (code 404)
吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。
// 入力を検証する\nreturn true;
請求書\n品名,数量,単価\nりんご,3,120
設定を変更した後、サーバーを再起動してください。
ありがとうございました
おはよう
見積書
テスト
パスワードを忘れた方はこちら
明日の会議は十時からです
株式会社
データベース接続に失敗しました
大阪市北区梅田
売上が前年比で増加した
少々お待ちください
品質管理報告書
この関数は値を返さない""".splitlines()

SIMPLIFIED = """\
你好世界
居家办公申请须至少提前一天告知主管。
差旅费应附发票并于月底前报销，超出限额的部分须经部门经理批准。
客户咨询原则上应在两小时内回复。
姓名,部门,电话\n王小明,技术部,1234
系统错误：无法连接到服务器，请稍后再试。
中华人民共和国
这是一个测试文件，用来检查编码是否正确。
// 检查用户输入的内容\nreturn 0;
我们的产品在市场上很受欢迎，感谢大家的支持。
北京市海淀区中关村大街1号
春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。
早上好
密码错误
数据库连接失败
上海市浦东新区
本季度销售额同比增长
请联系管理员
会议纪要
产品说明书
此函数不返回任何值
我今天早上很早就起床去跑步了
合同编号
用户名不能为空""".splitlines()

TRADITIONAL = """\
你好世界
居家辦公申請須至少提前一天告知主管。
差旅費應附發票並於月底前報銷，超出限額的部分須經部門經理批准。
客戶諮詢原則上應在兩小時內回覆。
姓名,部門,電話\n王小明,技術部,1234
系統錯誤：無法連接到伺服器，請稍後再試。
這是一個測試檔案，用來檢查編碼是否正確。
// 檢查使用者輸入的內容\nreturn 0;
臺北市中正區重慶南路一段122號
我們的產品在市場上很受歡迎，感謝大家的支持。
中華民國一百一十五年
早安
密碼錯誤
資料庫連線失敗
高雄市前鎮區
本季銷售額較去年成長
請聯絡管理員
會議紀錄
產品說明書
此函式不回傳任何值
我今天早上很早就起床去跑步了
合約編號
使用者名稱不可為空""".splitlines()

WESTERN = """\
café
A naïve résumé
Les demandes de télétravail doivent être présentées à l'avance.
Für größere Änderungen genügt eine kurze Bestätigung per E-Mail.
El año pasado, ¿cuántos pedidos recibió la compañía?
A informação não está disponível; as condições são as seguintes.
Perché la città è così bella
Språket är svårt på många sätt: å, ä, ö
“Smart quotes” and an em dash — it’s typical of Windows…
Prix : 12 € (TVA à 20 %)
Jörg Müller, Straße 5, Köln
© 2024 Société Générale. Tous droits réservés.
Temperatur 21 °C, Toleranz
Señor Muñoz
Größe;Stück\nÄpfel;3
déjà vu
Crème brûlée
Mañana será otro día
Übergrößen
l'été à la plage
Fußgängerübergänge
Más información
Você não tem permissão
Älä unohda
Smørrebrød på bryggen
Ça va très bien
naïveté
L’équipe a décidé
Il menù è già disponibile
coöperatie
Zürich""".splitlines()

CYRILLIC = """\
Заявки на удалённую работу подаются не позднее чем за день до начала.
Командировочные расходы возмещаются до конца месяца при наличии чеков.
Уважаемые коллеги! Просим вас до пятницы заполнить анкету и отправить её в отдел кадров.""".splitlines()

LANGUAGES = [
    ("cp949", KOREAN), ("cp932", JAPANESE), ("euc_jp", JAPANESE), ("gb18030", SIMPLIFIED), ("big5", TRADITIONAL),
    ("cp1252", WESTERN), ("cp1251", CYRILLIC), ("koi8_r", CYRILLIC),
]  # fmt: skip
# Three or four ideographs of Japanese are as many rare syllables of Korean, and Korean goes first.
MISTAKEN = {("euc_jp", "請求書"), ("euc_jp", "見積書"), ("euc_jp", "株式会社")}


@pytest.mark.parametrize(("name", "texts"), LANGUAGES, ids=[name for name, _ in LANGUAGES])
def test_short_texts_are_read_in_their_own_encoding(name: str, texts: list[str]) -> None:
    wrong = {
        (name, text)
        for text in texts
        if (found := decode(text.encode(name), "text/plain")) is None or found.text != text
    }
    assert wrong == {(encoding, text) for encoding, text in MISTAKEN if encoding == name}


@pytest.mark.parametrize(("name", "texts"), LANGUAGES, ids=[name for name, _ in LANGUAGES])
def test_long_texts_are_read_in_their_own_encoding(name: str, texts: list[str]) -> None:
    text = "key = value\n" * 2000 + "\n".join(texts) * 40
    assert decode(text.encode(name), "text/x-ini") == Decoded(text, name, bom=False, exact=True)


@pytest.mark.parametrize("name", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_byte_order_mark_decides_and_is_remembered(name: str) -> None:
    raw = encode("안녕 hi", name, bom=True)
    assert decode(raw, "application/octet-stream") == Decoded("안녕 hi", name, bom=True, exact=True)
    assert encode("안녕 hi", name, bom=True) == raw


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    "text", ["Hello, world\n", "안녕하세요 여러분\n", "価格は100円です。\r\n", "\n".join(KOREAN) * 300 + "🎉"]
)
def test_wide_text_without_a_mark_is_told_by_statistics_under_a_name_that_promises_text(name: str, text: str) -> None:
    raw = text.encode(name)
    assert decode(raw, "text/plain") == Decoded(text, name, bom=False, exact=True)
    assert decode(raw, "application/octet-stream") is None


def test_tables_of_numbers_and_scraps_are_not_wide_text() -> None:
    dice = random.Random(1)
    numbers = b"".join(dice.randrange(2000).to_bytes(2, "little") for _ in range(500))
    for raw in (
        b"a\0b\0",
        b"a\0b",
        bytes(64),
        b"\1\0" * 50,
        numbers,
        b"abc\0def\0ghi\0jk",
        b"a\0\0\0" * 3 + b"\0\0\x11\0" * 9,
    ):
        assert decode(raw, "text/plain") is None


def test_noise_is_no_text() -> None:
    dice = random.Random(7)
    told = [decode(bytes(dice.choices(range(1, 256), k=64)), "text/plain") for _ in range(500)]
    assert [found for found in told if found is not None] == []


def test_a_name_that_promises_no_text_is_not_guessed_at() -> None:
    raw = "\n".join(KOREAN).encode("cp949")
    assert decoded(raw, "application/octet-stream") == raw
    assert decoded(b"plain", "image/png") == b"plain"
    assert decoded(bytearray("그냥 텍스트".encode()), "application/octet-stream") == "그냥 텍스트"


def test_the_first_of_the_order_wins_where_the_bytes_say_too_little() -> None:
    raw = "값".encode("cp949")
    assert decode(raw, "text/plain", order=["cp949", "big5"]) == Decoded("값", "cp949", bom=False, exact=True)
    assert decode(raw, "text/plain", order=["big5", "cp949"]) == Decoded("高", "big5", bom=False, exact=True)
    assert decode(raw, "text/plain", order=[]) is None
    with pytest.raises(InvalidParams, match="Unknown encoding"):
        decode(raw, "text/plain", order=["klingon"])


def test_a_chosen_encoding_is_taken_at_its_word_or_refused() -> None:
    raw = "請求書".encode("euc_jp")
    assert decode(raw, "text/plain", chosen="EUC-JP") == Decoded("請求書", "euc_jp", bom=False, exact=True)
    assert decode(b"\xfe\xff\0a", "text/plain", chosen="utf-16") == Decoded("a", "utf-16-be", bom=True, exact=True)
    with pytest.raises(InvalidParams, match="not in utf-8"):
        decode(raw, "text/plain", chosen="utf8")
    for name in ("rot13", "base64", "idna", "unicode_escape", "utf-7", ""):
        with pytest.raises(InvalidParams, match="Unknown encoding"):
            decode(raw, "text/plain", chosen=name)


def test_an_encoding_that_would_change_bytes_on_the_way_back_is_not_called_exact() -> None:
    raw = "設定を変更してください。".encode("cp932") + b"\x87\x90"  # a second code of the sign U+2252
    found = decode(raw, "text/plain")
    assert found is not None
    assert (found.text[-1], found.encoding, found.exact) == ("≒", "cp932", False)


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("안녕\n안녕 🎉", "cp949", r"cp949, which has no U\+1F389 PARTY POPPER \(line 2\)"),
        ("a\r\nb\rc 漢", "latin-1", r"U\+6F22 .*\(line 3\)"),
        ("価格 ¥100", "euc_jp", r"U\+00A5 YEN SIGN \(line 1\)"),
        ("価格 ¥100", "shift_jis", r"U\+00A5 YEN SIGN"),
        ("a\ud800", "utf-8", r"U\+D800"),
    ],
)
def test_a_character_that_the_encoding_lacks_is_named_with_its_line(text: str, name: str, says: str) -> None:
    with pytest.raises(InvalidParams, match=says):
        encode(text, name, bom=False)


def test_only_unicode_has_a_byte_order_mark() -> None:
    with pytest.raises(InvalidParams, match="no byte order mark"):
        encode("a", "cp949", bom=True)
    with pytest.raises(InvalidParams, match="Unknown encoding"):
        encode("a", "rot13", bom=False)


ALL = [
    "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "cp949", "cp932", "euc_jp", "gb18030", "big5", "cp950", "cp1252",
]  # fmt: skip
ENCODED = st.builds(
    lambda text, name, mark: mark + text.encode(name, "ignore"),
    st.text(
        st.sampled_from("ab \n\r가힣똠かカ漢请éüЖ≒€🎉") | st.characters(exclude_categories=["Cs"]),
        max_size=40,
    ),
    st.sampled_from(ALL),
    st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]),
)


@given(st.binary(max_size=40) | ENCODED, st.sampled_from([None, *ALL]))
def test_what_was_read_exactly_is_written_back_to_the_byte(raw: bytes, chosen: str | None) -> None:
    try:
        found = decode(raw, "text/plain", chosen=chosen)
    except InvalidParams:
        return
    if found is not None:
        assert not found.exact or encode(found.text, found.encoding, bom=found.bom) == raw
        assert found.exact or found.encoding in ("cp932", "big5", "cp950")
