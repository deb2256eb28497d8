"""Durations: each spelling Go accepts, the ones it refuses, and that nothing is rounded on the way."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opstreamd.durations import MAX_NS, Duration


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("0s", 0),
        ("5s", 5_000_000_000),
        ("500ms", 500_000_000),
        ("1m30s", 90_000_000_000),
        ("1.5h", 5_400_000_000_000),
        (".5s", 500_000_000),
        ("5.s", 5_000_000_000),
        ("1us", 1_000),
        ("1\u00b5s", 1_000),
        ("1\u03bcs", 1_000),
        ("1h1m1s1ms1us1ns", 3_661_001_001_001),
        ("30s1m", 90_000_000_000),
        ("0.000000001s", 1),
        ("9223372036854775807ns", MAX_NS),
    ],
)
def test_what_go_reads_is_read(text: str, ns: int) -> None:
    assert Duration.parse(text).ns == ns


@pytest.mark.parametrize(
    "text",
    # \u0663 is a digit three to Unicode, not to Go
    ["", "5", "s", ".s", "1.2.3s", "-1s", "+1s", "1 s", " 1s", "1s ", "1d", "1S", "1ms2", "1e3s", "\u0663s"],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        Duration.parse(text)


@pytest.mark.parametrize("text", ["0.5ns", "1.0000000001s"])
def test_a_fraction_of_a_nanosecond_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="finer than a nanosecond"):
        Duration.parse(text)


@pytest.mark.parametrize("text", ["9223372036854775808ns", "3000000h", "9" * 60 + "h", "1s" * 1000])
def test_what_is_too_long_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is outside|is no duration"):
        Duration.parse(text)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5us"),
        (20_000_000, "20ms"),
        (1_500_000_000, "1.5s"),
        (90_000_000_000, "1m30s"),
        (3_600_000_000_000, "1h"),
        (3_600_000_000_001, "1h0.000000001s"),
    ],
)
def test_the_usual_spelling(ns: int, text: str) -> None:
    assert str(Duration(ns)) == text


@given(st.integers(0, MAX_NS))
def test_a_written_duration_reads_back_the_same(ns: int) -> None:
    assert Duration.parse(str(Duration(ns))).ns == ns


@given(st.integers(0, 10**6), st.integers(0, 10**9 - 1), st.sampled_from([("h", 3600), ("m", 60), ("s", 1)]))
def test_decimals_are_exact_or_refused(whole: int, billionths: int, unit: tuple[str, int]) -> None:
    name, seconds = unit
    exact_ns = (whole + Fraction(billionths, 10**9)) * seconds * 10**9
    assert Duration.parse(f"{whole}.{billionths:09d}{name}").ns == exact_ns


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_with_a_value_error(text: str) -> None:
    try:
        duration = Duration.parse(text)
    except ValueError:
        return
    assert duration == Duration.parse(str(duration))


@pytest.mark.parametrize("ns", [-1, MAX_NS + 1])
def test_a_duration_stays_in_its_range(ns: int) -> None:
    with pytest.raises(ValueError, match="is outside"):
        Duration(ns)


def test_durations_are_ordered_and_give_seconds() -> None:
    assert Duration.parse("999ms") < Duration.parse("1s")
    assert Duration.parse("1m30s").seconds == 90.0
