"""The data of the bench: 1 000 files of 2 KB, Korean and English, and a configuration with policy and audit on."""

import hashlib
import random
import socket
from dataclasses import dataclass
from pathlib import Path

SIZE = 2048
SEED = 20261115
AGENT = "bench"
AGENT_KEY = "bench-key-of-no-value"
DENIED = "secret-plan.md"  # no such file: the policy must refuse it before anybody looks

ENGLISH_WORDS = """access agent answer archive audit brand budget campaign change check client contract control customer
daily decision delivery design document draft editor engineer example figure folder guide handbook history index
invoice journal keeper ledger letter manager market meeting method monthly notice office order owner page partner
plan policy process product project quality quarter question record release report request review rule sample
schedule section service sheet source standard step summary supplier system table team template ticket topic training
update value vendor version weekly window work writer"""
KOREAN_WORDS = """검토 결재 계약 고객 공급 공지 관리 교육 구매 규정 기록 기준 납품 담당자 문서 발행 배포 변경 보고서
부서 분기 브랜드 사례 상품 설계 승인 시장 안내 업무 예산 요청 운영 원칙 월간 의견 일정 자료 절차
점검 정책 제안 조직 주간 지침 질문 책임 초안 캠페인 콘텐츠 편집 품질 프로젝트 협력사 확인 회의"""

ENGLISH, KOREAN = ENGLISH_WORDS.split(), KOREAN_WORDS.split()

CONFIG = """\
version: 1
sources:
  files: {{kind: file, roots: ["{root}"], extensions: [.md]}}
agents:
  {agent}: {{key_sha256: {digest}, roles: [reader]}}
  other: {{roles: [guest]}}
policy:
  - {{who: "role:reader", may: [list, read, search, watch], what: "file://*"}}
  - {{who: "role:guest", may: [read], what: "file://note-00*"}}
  - {{who: "{agent}", may: [complete], what: "file://*"}}
  - {{who: "*", may: "*", what: "file://secret*", effect: deny, why: "plans are not for agents"}}
  - {{who: "role:guest", may: [list], what: "**", effect: deny, why: "guests know what they look for"}}
limits: {{read: 1MiB, time: 10s, per_principal: 10000000/s}}
audit: {{sync: batch, fail_closed: true}}
serve: {{http: {{bind: "127.0.0.1:{port}"}}}}
"""


@dataclass(frozen=True)
class Corpus:
    home: Path
    files: dict[str, str]
    port: int  # for the servers that speak HTTP

    @property
    def root(self) -> Path:
        return self.home / "data"

    @property
    def config(self) -> Path:
        return self.home / "octavo.yaml"

    def path(self, name: str) -> Path:
        return self.root / name


def text(dice: random.Random) -> str:
    """Exactly 2 048 bytes of UTF-8, Korean and English lines in turn."""
    lines = [f"# {dice.choice(ENGLISH)} {dice.choice(KOREAN)}", ""]
    size = sum(len(line.encode()) + 1 for line in lines)
    while True:
        words = dice.choices(KOREAN if len(lines) % 2 else ENGLISH, k=10)
        line = " ".join(words)
        size += len(line.encode()) + 1
        if size > SIZE - 1:
            break
        lines.append(line)
    whole = "\n".join(lines) + "\n"
    return whole + "-" * (SIZE - 1 - len(whole.encode())) + "\n"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def make(home: Path, count: int = 1000) -> Corpus:
    dice = random.Random(SEED)
    corpus = Corpus(home, {f"note-{i:04}.md": text(dice) for i in range(count)}, free_port())
    corpus.root.mkdir(parents=True)
    for name, body in corpus.files.items():
        corpus.path(name).write_bytes(body.encode())
    digest = hashlib.sha256(AGENT_KEY.encode()).hexdigest()
    corpus.config.write_text(CONFIG.format(root=corpus.root, agent=AGENT, digest=digest, port=corpus.port))
    return corpus
