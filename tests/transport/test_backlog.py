"""Overload is seen by what requests cost, and refused by who sends most."""

from __future__ import annotations

import pytest

from octavo.transport.http.backlog import BURST, CROWD, ENOUGH, FLOOR, INTERVAL, OLD, TARGET, WINDOW, Backlog

pytestmark = pytest.mark.seed("T7")

SOON = 0.0  # nobody waits for that: each has its share


def costing(seconds: float) -> Backlog:
    """As it is after requests that took so much processor time each."""
    backlog = Backlog()
    backlog.look(0.0, 0.0)
    for _ in range(ENOUGH):
        backlog.leave(backlog.enter("warm"))
    backlog.look(INTERVAL, seconds * ENOUGH)
    assert backlog.cost == pytest.approx(seconds)
    return backlog


def entered(backlog: Backlog, who: str, times: int, patience: float = SOON) -> int:
    return sum(not backlog.full(who, patience) and backlog.enter(who) is not None for _ in range(times))


def test_cheap_requests_are_never_refused() -> None:
    assert entered(costing(0.0001), "a", 1000) == 1000


def test_costly_ones_are_refused_above_what_can_be_done_in_time() -> None:
    backlog = costing(0.01)
    room = round(TARGET / 0.01)
    assert FLOOR < entered(backlog, "a", 100) <= room
    assert backlog.refused > 0


def test_a_few_are_always_let_in() -> None:
    assert entered(costing(10.0), "a", 50) == FLOOR


def test_who_has_most_is_refused_before_a_newcomer() -> None:
    backlog = costing(0.01)
    hog = entered(backlog, "hog", 100)
    assert backlog.full("hog", SOON)
    assert entered(backlog, "other", 100) >= hog // 3
    assert not backlog.full("third", SOON)


def test_one_of_a_few_is_let_in_whatever_it_costs() -> None:
    """Two agents whose questions took 0.3 s each refused each other: one had none under way, and was refused."""
    backlog = costing(10.0)
    assert entered(backlog, "hog", 100) == FLOOR
    assert [entered(backlog, f"agent-{number}", 2) for number in range(FLOOR)] == [*[1] * (FLOOR - 1), 0]


def test_what_one_holds_keeps_no_other_from_a_share_of_its_own() -> None:
    backlog = Backlog()
    assert entered(backlog, "hog", 1000) == 1000  # nobody knows yet what one costs
    backlog.look(0.0, 0.0)
    backlog.leave(backlog.enter("other"))
    backlog.cost = 0.02
    assert backlog.full("hog", SOON)
    assert entered(backlog, "other", 100) == round(TARGET / 0.02 / 2 + 0.5)


def test_nor_is_a_newcomer_let_in_when_even_one_more_would_come_too_late() -> None:
    backlog = costing(0.01)
    everybody = sum(entered(backlog, f"agent-{number}", 1) for number in range(1000))
    assert TARGET / 0.01 < everybody < CROWD / 0.01


def test_many_that_come_at_once_wait() -> None:
    backlog = costing(0.002)
    assert entered(backlog, "a", 2000, patience=10.0) == 2000
    assert entered(backlog, "b", 500, patience=10.0) == 500
    assert backlog.refused == 0


def test_but_not_what_would_be_answered_after_its_deadline() -> None:
    backlog = costing(0.01)
    assert entered(backlog, "a", 2000, patience=1.0) == pytest.approx(100, abs=1)
    assert entered(backlog, "b", 2000, patience=1.0) == pytest.approx(50, abs=1)  # begun in turns


def test_who_goes_on_sending_has_its_share_alone() -> None:
    backlog = costing(0.001)
    most = entered(backlog, "a", 10_000, patience=60.0)
    assert BURST < most <= BURST + TARGET / 0.001


def test_whose_are_all_answered_may_send_as_many_again() -> None:
    backlog = costing(0.001)
    for _ in range(3):
        tokens = [backlog.enter("a") for _ in range(2000) if not backlog.full("a", 60.0)]
        assert len(tokens) == 2000
        for token in tokens:
            backlog.leave(token)


def test_what_the_processor_does_while_hardly_anybody_asks_is_not_taken_for_the_cost_of_requests() -> None:
    backlog = costing(0.001)
    backlog.leave(backlog.enter("a"))
    backlog.look(WINDOW + 1, 60.0)
    for _ in range(ENOUGH):
        backlog.leave(backlog.enter("a"))
    backlog.look(WINDOW + 1 + INTERVAL, 60.0 + 0.001 * ENOUGH)
    assert backlog.cost == pytest.approx(0.001)


def test_a_few_very_costly_ones_say_what_they_cost_while_others_wait() -> None:
    backlog = Backlog()
    backlog.look(0.0, 0.0)
    backlog.leave(backlog.enter("a"))
    backlog.look(WINDOW, WINDOW)
    assert entered(backlog, "a", FLOOR) == FLOOR
    backlog.look(WINDOW + INTERVAL, WINDOW)
    assert backlog.cost == pytest.approx(WINDOW)
    assert backlog.full("a", SOON)


def test_time_in_which_others_had_the_processor_counts_too() -> None:
    backlog = costing(0.001)
    for _ in range(ENOUGH):
        backlog.leave(backlog.enter("a"))
    backlog.look(INTERVAL + 1.0, 0.001 * ENOUGH)
    assert backlog.cost > 0.01


def test_one_that_only_waits_takes_no_room_after_a_while() -> None:
    backlog = costing(0.01)
    tokens = [backlog.enter("a") for _ in range(FLOOR)]
    assert backlog.waiting == FLOOR
    backlog.look(OLD + 1, 1.0)
    assert backlog.waiting == 0
    backlog.leave(tokens[0])  # and its end is no harm
    assert backlog.waiting == 0


def test_places_are_given_back() -> None:
    backlog = costing(0.05)
    for _ in range(100):
        assert not backlog.full("a", SOON)
        backlog.leave(backlog.enter("a"))
