"""What the tests expect of a scrape, given what was executed."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeVar

from processes import Segment
from profiles import Profile
from scrapes import Scrape

K = TypeVar("K")
V = TypeVar("V")

OPERATOR = ("op_type", "op_name")
EXECUTIONS = "ascend_model_execution_duration_seconds_count"


def seconds(nanoseconds: int) -> Decimal:
    return Decimal(nanoseconds).scaleb(-9)


def executions(scrape: Scrape, **where: str) -> int:
    return int(scrape.total(EXECUTIONS, **where)) if scrape.has(EXECUTIONS, **where) else 0


def executed(times: int, **where: str) -> Callable[[Scrape], bool]:
    """Whether the model has been executed so often: an execution's own record is its last."""
    return lambda scrape: executions(scrape, **where) >= times


def all_executed(times: int, **where: str) -> Callable[[Scrape], bool]:
    """The same, and all that was read is in the totals too, which may be a batch behind."""
    return lambda scrape: executions(scrape, **where) >= times and settled(scrape)


def settled(scrape: Scrape) -> bool:
    counted = scrape.total("ascend_op_executions_total") + scrape.total(EXECUTIONS)
    return counted == scrape.total("opstreamd_records_recorded_total")


def rejected(scrape: Scrape) -> dict[str, int]:
    """Records rejected, by reason."""
    return {reason: int(count) for (reason,), count in scrape.by("opstreamd_records_rejected_total", "reason").items()}


def assert_equal(shown: Mapping[K, V], expected: Mapping[K, V]) -> None:
    keys = shown.keys() | expected.keys()
    different = {key: (shown.get(key), expected.get(key)) for key in keys if shown.get(key) != expected.get(key)}
    assert not different, f"{len(different)} of {len(keys)} differ, (shown, expected): {different}"


def assert_replayed(scrape: Scrape, profile: Profile, times: int, **where: str) -> None:
    """Every operator's count, sum and longest run, and every type's histogram."""
    assert executions(scrape, **where) == times
    durations_ns = profile.durations_ns().items()
    for name, expected in {
        "ascend_op_executions_total": {key: Decimal(times * len(its)) for key, its in durations_ns},
        "ascend_op_seconds_total": {key: seconds(times * sum(its)) for key, its in durations_ns},
        "ascend_op_max_duration_seconds": {key: seconds(max(its)) for key, its in durations_ns},
    }.items():
        assert_equal(scrape.by(name, *OPERATOR, **where), expected)
    buckets = scrape.by("ascend_op_duration_seconds_bucket", "op_type", "le", **where)
    assert {op_type for op_type, _ in buckets} == {run.op_type for run in profile.runs}
    for (op_type, le), count in buckets.items():
        below = sum(seconds(duration) <= Decimal(le) for duration in profile.durations_of_type_ns(op_type))
        assert count == times * below, (op_type, le)


def assert_nothing_lost(scrape: Scrape, records: int) -> None:
    """Everything that was made was read and recorded."""
    assert scrape.total("opstreamd_records_read_total", app="opstreamd") == records
    assert scrape.total("opstreamd_records_recorded_total", app="opstreamd") == records
    assert scrape.total("opstreamd_records_rejected_total", app="opstreamd") == 0
    assert scrape.total("opstreamd_bytes_discarded_total", app="opstreamd") == 0


def assert_as_segments(scrape: Scrape, segments: list[Segment]) -> None:
    """A scrape shows what the segments of publishers that are dead, or idle, hold together."""
    expositions = [segment.exposition() for segment in segments]
    for name in ("ascend_op_executions_total", "ascend_op_seconds_total"):
        held: defaultdict[tuple[str, ...], Decimal] = defaultdict(Decimal)
        for exposition in expositions:
            for key, value in exposition.by(name, "model", *OPERATOR).items():
                held[key] += value
        assert_equal(scrape.by(name, "model", *OPERATOR), held)
    assert executions(scrape) == sum(executions(exposition) for exposition in expositions)
    counters = [segment.counters() for segment in segments]
    for shown, field in {
        "read": "records_read",
        "recorded": "records_recorded",
        "overflowed": "records_overflowed",
    }.items():
        assert scrape.total(f"opstreamd_records_{shown}_total") == sum(getattr(its, field) for its in counters)
    for reason, count in rejected(scrape).items():
        assert count == sum(getattr(its, f"records_{reason}") for its in counters)
