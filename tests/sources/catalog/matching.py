"""How well requests find their skill: `python -m tests.sources.catalog.matching HANDBOOK`.

The handbook is that of the example organisation. The requests were written for the names of its skills, not for their
triggers.
"""

import argparse
import asyncio
from pathlib import Path

from octavo.core.ref import Ref
from octavo.sources.catalog import DECLARATIONS, CatalogSource
from octavo.sources.file import FileRoot, FileSource

REQUESTS = {
    "brand/brief-writing": [
        "가을 캠페인 브리프 초안을 만들어 줘",
        "신제품 출시 기획서를 한 장으로 정리해 주세요",
        "Draft a creative brief for our holiday campaign",
        "I need a one-page campaign plan",
    ],
    "brand/caption-writing": [
        "인스타그램에 올릴 캡션 써 줘",
        "이 사진에 어울리는 문구가 필요해요",
        "Write an Instagram caption for this photo",
        "social media post text for the new jacket",
    ],
    "brand/tone-check": [
        "이 글이 우리 말투에 맞는지 봐 줘",
        "금지 표현이 있는지 확인해 줘",
        "Does this text fit our tone of voice?",
    ],
    "brand/translation": [
        "이 상품 설명을 영어로 번역해 줘",
        "영문 보도자료를 한국어로 옮겨 주세요",
        "Translate this into Korean",
    ],
    "finance/budget-check": [
        "이번 분기 마케팅 예산이 얼마나 남았어?",
        "이 지출이 예산 안에 들어가나요?",
        "Is there enough budget left for the shoot?",
        "check whether the spend is within budget",
    ],
    "finance/expense-review": [
        "출장 경비 청구서를 검토해 줘",
        "영수증이 규정에 맞는지 봐 주세요",
        "Review my expense claim",
        "can I get this taxi receipt reimbursed",
    ],
    "finance/invoice-matching": [
        "세금계산서와 발주서를 대조해 줘",
        "거래처 인보이스 금액이 맞는지 확인",
        "Match this invoice with the purchase order",
    ],
    "hr/job-post": [
        "디자이너 채용 공고를 써 줘",
        "구인 글 초안이 필요해요",
        "Write a job posting for a store manager",
    ],
    "hr/leave-calculation": [
        "제 연차가 며칠 남았나요?",
        "육아휴직 기간을 계산해 줘",
        "How many vacation days do I have left?",
        "calculate annual leave",
    ],
    "hr/onboarding-plan": [
        "다음 주 입사자 온보딩 계획을 세워 줘",
        "신입 사원 첫 주 일정 만들어 줘",
        "Prepare an onboarding plan for a new hire",
    ],
    "ops/delay-notice": [
        "배송이 늦어진다고 고객에게 안내문 써 줘",
        "배송 지연 사과 문자",
        "Tell customers that their order will arrive late",
    ],
    "ops/incident-triage": [
        "결제가 안 돼요, 장애인가요?",
        "사고 등급을 정해 줘",
        "The site is down, how severe is this incident?",
    ],
    "ops/request-routing": [
        "이 문의를 어느 팀에 보내야 하나요?",
        "누구에게 물어봐야 할지 모르겠어요",
        "Which agent should handle this request?",
    ],
    "ops/return-decision": [
        "착용한 옷도 반품되나요?",
        "환불해 줘도 되는지 판단해 줘",
        "Can this customer return the item?",
    ],
    "ops/stock-alert": [
        "재고가 부족한 상품을 알려 줘",
        "품절 임박 목록",
        "Which products are running low on stock?",
    ],
    "product/care-instruction": [
        "이 니트 세탁 방법을 알려 줘",
        "드라이클리닝 해야 하나요?",
        "How do I wash this wool coat?",
    ],
    "product/sample-comment": [
        "샘플 피팅 코멘트를 정리해 줘",
        "공장에 보낼 샘플 수정 의견",
        "Write fit comments for the second sample",
    ],
    "product/size-advice": [
        "키 165인데 어떤 사이즈가 맞을까요?",
        "사이즈 추천해 줘",
        "What size should I buy?",
        "between S and M, which fits me",
    ],
}


async def judge(handbook: Path) -> tuple[float, float]:
    """The share of requests whose skill comes first, and among the first three."""
    first = among_three = total = 0
    async with FileSource([FileRoot(handbook)], secret=b"secret") as store:
        skills = CatalogSource(DECLARATIONS["skill"], store)
        for name, requests in REQUESTS.items():
            for request in requests:
                scope = Ref.of("skill", (), [("match", request)])
                page = await skills.list(scope, cursor=None, limit=3)
                found = [entry.ref.path for entry in page.items]
                total += 1
                first += found[:1] == [name]
                among_three += name in found
                if found[:1] != [name]:
                    print(f"  {request}: {name} is not the first of {', '.join(found) or 'nothing'}")
    return first / total, among_three / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("handbook", type=Path)
    first, three = asyncio.run(judge(parser.parse_args().handbook))
    print(f"{sum(map(len, REQUESTS.values()))} requests: first {first:.3f}, among three {three:.3f}")


if __name__ == "__main__":
    main()
