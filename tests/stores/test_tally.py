"""What is counted for /metrics."""

from __future__ import annotations

import json

from octavo.core.metrics import Measure
from octavo.stores.audit.tally import Tally


def counted(*records: tuple[str, str]) -> dict[str, Measure]:
    tally = Tally()
    for op, outcome in records:
        tally.add(json.dumps({"op": op, "outcome": outcome, "who": "agent-ann"}).encode())
    return {measure.name: measure for measure in tally.measures()}


def test_steps_of_an_approval_are_no_requests_that_failed() -> None:
    found = counted(("invoke", "approval_required"), ("approval", "asked"), ("approval", "asked"), ("approval", "used"))
    (request,) = found["octavo_requests_total"].samples
    assert request.labels == (("op", "invoke"), ("scheme", ""), ("outcome", "approval_required"))
    steps = {sample.labels: sample.value for sample in found["octavo_approvals_total"].samples}
    assert steps == {(("step", "asked"),): 2, (("step", "used"),): 1}


def test_a_word_that_is_no_step_is_no_label() -> None:
    (step,) = counted(("approval", "whatever"))["octavo_approvals_total"].samples
    assert step.labels == (("step", "other"),)
