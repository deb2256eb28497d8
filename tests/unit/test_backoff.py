"""Waits between tries: they double up to a minute, and begin anew after a minute of good running."""

from __future__ import annotations

from opstreamd.backoff import Backoff


def test_waits_double_up_to_a_minute() -> None:
    backoff = Backoff()
    assert [backoff.after(0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_minute_of_good_running_begins_anew() -> None:
    backoff = Backoff()
    assert [backoff.after(seconds) for seconds in (0, 59.9, 60, 0)] == [1, 2, 1, 2]
