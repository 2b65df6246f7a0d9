"""A bilingual handbook of forty topics among thousands of other pages, and what a good search finds in it.

Every topic has a page in Korean and a page in English. The other pages are made of common words of both languages,
so that no word of a question is rare by accident. The questions were written before the search was tuned on them;
`expect` says k for the Korean page, e for the English one.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from corpus import ENGLISH, KOREAN

Page = tuple[str, str, str]  # address, title, text


class Judged(NamedTuple):
    kind: str
    query: str
    expect: tuple[str, ...]


# The name, then title and text in Korean and in English.
TOPICS = """
travel-cost
출장비 지급 기준 | 국내 출장과 해외 출장에서 쓴 교통비와 숙박비를 지급한다. 일비는 하루 3만 원이다.
Travel cost rules | Flights, trains and hotels on business trips are refunded. The per diem is 25 dollars.

password-reset
비밀번호 초기화 | 계정이 잠기면 본인 확인을 거쳐 비밀번호를 초기화한다. 임시 비밀번호는 24시간 뒤에 만료된다.
Resetting a password | When an account is locked, identity is verified and a temporary password is issued.

fabric-defect
원단 불량 처리 | 입고된 원단에서 이염과 찢김이 보이면 사진을 찍고 협력사에 알린다. 불량률이 2퍼센트를 넘으면 반송한다.
Handling fabric defects | Dye transfer and tears in new fabric are photographed. Above two percent the lot goes back.

photo-shoot
화보 촬영 준비 | 촬영 이틀 전까지 의상과 소품을 스튜디오로 보낸다. 모델의 초상권 계약서를 확인한다.
Preparing a photo shoot | Garments and props reach the studio two days ahead. Release forms of the models are checked.

customer-refund
고객 환불 절차 | 상품을 받은 날부터 7일 안에 환불을 신청할 수 있다. 카드 취소는 영업일 3일이 걸린다.
Refunding customers | Customers may ask for a refund within seven days. Card reversals take three working days.

warehouse-audit
창고 재고 조사 | 분기마다 창고의 재고를 세고 장부와 맞춘다. 차이가 있으면 원인을 적는다.
Warehouse stocktaking | Stock is counted each quarter and reconciled with the ledger. Differences are explained.

new-hire
신입사원 첫 주 안내 | 첫날에는 노트북과 출입증을 받는다. 멘토가 한 주 동안 함께한다.
A new hire's first week | Laptop and badge are handed out on day one. A mentor stays along for a week.

leave-request
연차 휴가 신청 | 연차는 사흘 전까지 신청하고 팀장이 승인한다. 반차는 당일에도 쓸 수 있다.
Requesting annual leave | Leave is requested three days ahead and approved by the team lead. Half days work at once.

data-breach
개인정보 유출 대응 | 유출을 알게 되면 72시간 안에 신고한다. 정보주체에게 알리고 기록을 남긴다.
Responding to a data breach | A breach is reported within 72 hours. People concerned are informed and records are kept.

server-outage
서버 장애 대응 | 장애가 나면 당직자가 등급을 정하고 상황방을 연다. 복구 뒤에 회고를 쓴다.
Responding to a server outage | The engineer on call sets the severity and opens a war room. A postmortem follows.

tax-invoice
세금계산서 발행 | 세금계산서는 공급한 달의 다음 달 10일까지 발행한다. 수정 발행은 재무팀에 요청한다.
Issuing tax invoices | Tax invoices are issued by the tenth of the following month. Corrections go through finance.

contract-review
계약서 법무 검토 | 천만 원이 넘는 계약은 법무팀이 검토한다. 독소 조항이 있는지 살핀다.
Legal review of contracts | Contracts above ten million won are reviewed by counsel. Unfair clauses are looked for.

meeting-minutes
회의록 작성 요령 | 회의록에는 결정과 담당자와 기한을 적는다. 당일에 공유한다.
Writing meeting minutes | Minutes list decisions, owners and due dates. They are shared the same day.

brand-tone
브랜드 말투 안내 | 우리는 짧고 다정하게 말한다. 느낌표와 과장을 쓰지 않는다.
Tone of voice | We speak briefly and kindly. No exclamation marks, no exaggeration.

logo-usage
로고 사용 규칙 | 로고 둘레에는 글자 높이만큼 여백을 둔다. 그림자와 기울임은 금지한다.
Using the logo | Clear space around the logo equals the cap height. Shadows and slants are forbidden.

size-chart
사이즈 표 만들기 | 가슴둘레와 어깨너비를 평평하게 놓고 잰다. 오차는 1센티미터까지 허용한다.
Making a size chart | Chest and shoulder are measured flat. A tolerance of one centimetre is fine.

care-label
세탁 라벨 표기 | 섬유 혼용률과 세탁 기호를 표기한다. 드라이클리닝 여부를 적는다.
Care labels | Fibre composition and washing symbols are printed. Dry cleaning is stated.

store-open
매장 개점 점검 | 문을 열기 전에 조명과 음악과 시재금을 확인한다. 마네킹의 옷을 정리한다.
Opening the store | Lights, music and cash float are checked before doors open. Mannequins are dressed.

vip-event
우수 고객 초청 행사 | 연 2회 우수 고객을 초청해 신상품을 먼저 보여 준다. 초대장은 손글씨로 쓴다.
Inviting loyal customers | Loyal customers see new arrivals first, twice a year. Invitations are handwritten.

press-kit
보도자료 배포 | 보도자료는 오전 10시에 배포한다. 엠바고가 있으면 제목에 적는다.
Sending press releases | Press releases go out at ten in the morning. An embargo stands in the subject line.

influencer-fee
인플루언서 원고료 정산 | 게시 뒤 30일 안에 원고료를 정산한다. 광고 표시를 확인한다.
Paying influencers | Fees are settled within thirty days of posting. Advertising disclosure is checked.

budget-transfer
예산 전용 신청 | 부서 사이에서 예산을 옮기려면 전용 신청서를 낸다. 한도는 분기 예산의 10퍼센트다.
Transferring budget | Moving money between departments needs a form. The ceiling is ten percent of a quarter.

purchase-order
구매 발주 절차 | 견적을 세 곳에서 받고 발주서를 보낸다. 납기를 시스템에 적는다.
Placing purchase orders | Three quotes are collected before an order is placed. Lead times are recorded.

vendor-check
협력사 실사 | 새 협력사는 공장을 방문해 안전과 노동 시간을 확인한다.
Vendor due diligence | Factories of new vendors are visited for safety and working hours.

sample-approval
샘플 승인 | 1차 샘플과 양산 전 샘플을 나누어 승인한다. 수정 사항은 사진에 표시한다.
Approving samples | First and pre-production samples are approved separately. Remarks go on the photo.

shipping-delay
배송 지연 안내 | 이틀 넘게 늦어지면 고객에게 문자로 알린다. 쿠폰을 함께 보낸다.
Announcing late delivery | Customers get a text message when parcels are more than two days late, with a coupon.

return-fraud
반품 악용 대처 | 반복해서 착용한 옷을 반품하는 고객은 기록한다. 세 번이면 거절한다.
Abuse of returns | Customers who return worn clothes repeatedly are noted. The third time is declined.

newsletter
뉴스레터 발송 | 수신 동의한 사람에게만 보낸다. 수신 거부 링크를 아래에 둔다.
Sending the newsletter | Only people who opted in receive it. The unsubscribe link stands at the bottom.

ab-test
상세페이지 실험 | 전환율을 두 주 동안 비교한다. 표본이 모자라면 결론을 내지 않는다.
Product page experiments | Conversion is compared for two weeks. Without enough samples nothing is concluded.

api-key
API키 발급 | 외부 연동용 API키는 보안팀이 발급한다. access_token 은 90일마다 바꾼다.
Issuing API keys | Keys for integrations come from security. Rotate every access_token in time; see rotateCredentials().

backup-restore
백업과 복원 | 매일 새벽에 백업하고 달마다 복원을 연습한다. pg_restore 로그를 남긴다.
Backup and restore | Backups run nightly and a restore is rehearsed monthly. Keep the pg_restore log.

access-card
출입증 분실 신고 | 출입증을 잃어버리면 바로 총무팀에 신고한다. 재발급비는 5천 원이다.
Lost badges | A lost badge is reported at once. A replacement costs five dollars.

performance-review
성과 평가 일정 | 상반기 평가는 6월에 시작한다. 동료 피드백을 두 명에게 받는다.
Performance appraisal calendar | The first appraisal begins in June. Two peers give feedback.

salary-day
급여 지급일 | 급여는 매달 25일에 지급한다. 휴일이면 하루 먼저 준다.
Payday | Salaries are paid on the 25th, a day earlier on holidays.

remote-work
재택근무 지침 | 재택근무는 주 2일까지 가능하다. 코어 시간에는 메신저에 접속한다.
Working from home | Up to two days a week from home. Be reachable during core hours.

fire-drill
소방 훈련 | 비상구로 대피하고 인원을 센다. 소화기 위치를 확인한다.
Fire drill | Evacuate by the emergency exit and count heads. Know where extinguishers hang.

sustainability
친환경 소재 목표 | 2027년까지 재생 폴리에스터 비율을 절반으로 높인다.
Sustainable materials | Half of the polyester will be recycled by 2027.

trend-report
24SS 트렌드 보고서 | 24SS 시즌의 색은 복숭아와 하늘색이다. 리넨이 늘어난다.
Trend report 24SS | Colours of the 24SS season are peach and sky. More linen.

ai-campaign
AI캠페인 검수 | AI캠페인 문구는 사람이 두 번 검수한다. 생성 이미지는 표시한다.
Reviewing AI campaigns | Copy made by models is proofread twice by people. Generated images are labelled.

crm-segment
고객 세그먼트 정의 | 최근 구매일과 횟수로 고객을 나눈다. customer_segment 표를 쓴다.
Customer segments | Recency and frequency divide customers. See the table customer_segment and buildSegmentQuery.
"""

# kind | question | slug and page (k, e), more of them separated by commas
QUESTIONS = """
word | 출장비 | travel-cost:k
particle | 출장비를 어떻게 지급하나요 | travel-cost:k
word | per diem | travel-cost:e
misspelt | 출장배 지급 | travel-cost:k
compound | 출장비지급기준 | travel-cost:k
word | 비밀번호 초기화 | password-reset:k
compound | 비밀 번호 초기화 | password-reset:k
word | reset password | password-reset:e
misspelt | temporary pasword | password-reset:e
particle | 비밀번호가 만료되면 | password-reset:k
short | 이염 | fabric-defect:k
word | 원단 불량률 | fabric-defect:k
word | fabric defect | fabric-defect:e
misspelt | 원단 볼량 | fabric-defect:k
particle | 원단을 반송하려면 | fabric-defect:k
short | 화보 | photo-shoot:k
word | 초상권 계약서 | photo-shoot:k
word | photo shoots studio props | photo-shoot:e
particle | 촬영에서 소품은 | photo-shoot:k
short | 환불 | customer-refund:k
question | 환불은 며칠 안에 신청할 수 있나요? | customer-refund:k
word | refunds | customer-refund:e
misspelt | custmer refund | customer-refund:e
compound | 카드취소 | customer-refund:k
word | 창고 재고 | warehouse-audit:k
compound | 재고조사 | warehouse-audit:k
word | stocktaking | warehouse-audit:e
word | reconcile stock ledger | warehouse-audit:e
word | 신입사원 | new-hire:k
compound | 신입 사원 안내 | new-hire:k
question | how do I get my badge on day one | new-hire:e
particle | 멘토와 노트북은 | new-hire:k
short | 연차 | leave-request:k
short | 반차 | leave-request:k
particle | 휴가를 신청 | leave-request:k
word | annual leave request | leave-request:e
misspelt | anual leave | leave-request:e
word | 개인정보 유출 | data-breach:k
compound | 개인 정보 유출 신고 | data-breach:k
word | data breaches | data-breach:e
word | 정보주체 | data-breach:k
word | 서버 장애 | server-outage:k
particle | 장애가 나면 당직자는 | server-outage:k
word | server outage postmortem | server-outage:e
misspelt | postmortum | server-outage:e
word | 세금계산서 | tax-invoice:k
compound | 세금 계산서 수정 | tax-invoice:k
word | tax invoices | tax-invoice:e
misspelt | 세금게산서 | tax-invoice:k
particle | 계약서에서 독소 조항을 | contract-review:k
short | 법무 | contract-review:k
word | legal review contract | contract-review:e
word | unfair clause | contract-review:e
word | 회의록 | meeting-minutes:k
particle | 회의록에는 무엇을 적나요 | meeting-minutes:k
word | meeting minute | meeting-minutes:e
short | 말투 | brand-tone:k
word | 느낌표 | brand-tone:k
word | tone of voice | brand-tone:e
misspelt | exageration | brand-tone:e
short | 로고 | logo-usage:k
word | 로고 여백 | logo-usage:k
word | logo clear space | logo-usage:e
particle | 로고에 그림자는 | logo-usage:k
word | 가슴둘레 | size-chart:k
compound | 어깨 너비 | size-chart:k
word | size charts | size-chart:e
word | 혼용률 | care-label:k
compound | 세탁라벨 | care-label:k
word | washing symbol | care-label:e
misspelt | 드라이크리닝 | care-label:k
word | 시재금 | store-open:k
particle | 매장을 개점 | store-open:k
word | cash float | store-open:e
word | mannequin | store-open:e
word | 초대장 손글씨 | vip-event:k
compound | 우수고객 초청행사 | vip-event:k
word | loyal customer invitation | vip-event:e
word | 보도자료 | press-kit:k
word | 엠바고 | press-kit:k
misspelt | 앰바고 | press-kit:k
word | embargo | press-kit:e
word | 원고료 | influencer-fee:k
particle | 인플루언서에게 원고료를 | influencer-fee:k
misspelt | infuencer | influencer-fee:e
word | 예산 전용 | budget-transfer:k
particle | 예산을 옮기려면 | budget-transfer:k
word | transfer budget between departments | budget-transfer:e
short | 발주 | purchase-order:k
word | 견적 세 곳 | purchase-order:k
word | purchase orders | purchase-order:e
misspelt | purchse order | purchase-order:e
word | 협력사 실사 | vendor-check:k
word | due diligence | vendor-check:e
short | 양산 | sample-approval:k
word | 샘플 승인 | sample-approval:k
word | pre-production samples | sample-approval:e
compound | preproduction | sample-approval:e
particle | 배송이 지연되면 | shipping-delay:k
compound | 배송지연안내 | shipping-delay:k
word | late delivery coupon | shipping-delay:e
short | 악용 | return-fraud:k
word | 반품 거절 | return-fraud:k
word | worn clothes return | return-fraud:e
word | 수신 거부 | newsletter:k
compound | 수신거부링크 | newsletter:k
word | unsubscribe | newsletter:e
misspelt | unsubcribe link | newsletter:e
word | 전환율 | ab-test:k
word | conversion experiment | ab-test:e
mixed | API키 | api-key:k
mixed | API 키 발급 | api-key:k
identifier | access_token | api-key:k,api-key:e
identifier | accessToken | api-key:k,api-key:e
identifier | rotate credentials | api-key:e
identifier | pg_restore | backup-restore:k,backup-restore:e
identifier | pg-restore | backup-restore:k,backup-restore:e
word | 백업 복원 | backup-restore:k
word | nightly backups | backup-restore:e
word | 출입증 분실 | access-card:k
compound | 재발급 비 | access-card:k
word | lost badge | access-card:e
word | 성과 평가 | performance-review:k
compound | 성과평가일정 | performance-review:k
word | peer feedback appraisal | performance-review:e
short | 급여 | salary-day:k
question | 급여는 언제 지급하나요 | salary-day:k
word | payday holiday | salary-day:e
word | 재택근무 | remote-work:k
compound | 재택 근무 | remote-work:k
word | core hours | remote-work:e
misspelt | 재택근무 지칭 | remote-work:k
short | 대피 | fire-drill:k
word | 소화기 | fire-drill:k
word | fire extinguisher | fire-drill:e
word | 재생 폴리에스터 | sustainability:k
misspelt | 폴리에스타 | sustainability:k
word | recycled polyester 2027 | sustainability:e
mixed | 24SS 트렌드 | trend-report:k
mixed | 24SS | trend-report:k,trend-report:e
mixed | AI캠페인 | ai-campaign:k
mixed | AI 캠페인 검수 | ai-campaign:k
word | generated images labelled | ai-campaign:e
identifier | customer_segment | crm-segment:k,crm-segment:e
identifier | customerSegment | crm-segment:k,crm-segment:e
identifier | build segment query | crm-segment:e
mixed | 고객 segment | crm-segment:k
phrase | "코어 시간에는 메신저" | remote-work:k
phrase | "two days a week" | remote-work:e
"""


def pages(others: int = 3000, seed: int = 11) -> list[Page]:
    made: list[Page] = []
    for topic in TOPICS.strip().split("\n\n"):
        slug, *versions = topic.split("\n")
        for scheme, version in zip(("sop", "doc"), versions, strict=True):
            title, text = version.split(" | ")
            made.append((f"{scheme}://handbook/{slug}", title, f"# {title}\n\n{text}\n"))
    chance = random.Random(seed)
    for number in range(others):
        words = chance.choice((KOREAN, ENGLISH))
        title = " ".join(chance.choices(words, k=3))
        text = ". ".join(" ".join(chance.choices(words, k=chance.randint(5, 12))) for _ in range(chance.randint(4, 20)))
        made.append((f"doc://other/page-{number}", title, f"# {title}\n\n{text}\n"))
    chance.shuffle(made)
    return made


def questions() -> list[Judged]:
    found: list[Judged] = []
    for line in QUESTIONS.strip().splitlines():
        kind, query, expect = (part.strip() for part in line.split("|"))
        targets = [target.strip().rpartition(":") for target in expect.split(",")]
        found.append(Judged(kind, query, tuple(f"{_SCHEMES[page]}://handbook/{slug}" for slug, _, page in targets)))
    return found


_SCHEMES = {"k": "sop", "e": "doc"}
