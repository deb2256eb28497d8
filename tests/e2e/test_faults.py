"""Each fault of the simulator, alone and together: what was injected is counted, the rest exact, and nothing hangs."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from expectations import (
    OPERATOR,
    all_executed,
    assert_nothing_lost,
    assert_replayed,
    executed,
    executions,
    rejected,
    seconds,
)
from processes import Model, Site
from profiles import Profile
from scrapes import Scrape

N = 60

# What befalls single records.
BY_RECORD = {
    "corrupt": "corrupt=0.02",
    "end-before-start": "end-before-start=0.02",
    "getter-error": "getter-error=0.02",
    "getter-refusal": "getter-refusal=0.02",
    "late": "late=0.02@50ms",
    "partial-write": "partial-write=count:50",
    "stall": "stall=count:10",
    "truncated": "truncated=0.02",
}
EARLY = ["corrupt=count:30", "getter-refusal=count:30", "end-before-start=count:30"]

COMBINATIONS = {
    **{kind: [fault] for kind, fault in BY_RECORD.items()},
    "within the proof": EARLY,
    "all": [*BY_RECORD.values()],
    "all, another size": [*BY_RECORD.values(), "record-size=96"],
    "all, another layout": [*BY_RECORD.values(), "layout"],
    "all, tried again": [*BY_RECORD.values(), "subscribe=500005:1"],
}


@pytest.mark.parametrize("faults", COMBINATIONS.values(), ids=COMBINATIONS.keys())
def test_faults_are_counted_as_injected(site: Site, steady: Profile, faults: list[str]) -> None:
    site.simulate(*faults, seed=7)
    site.configure(Model("faulty", steady.path, executions=N))
    daemon = site.serve()

    def settled(scrape: Scrape) -> bool:
        """Everything was made, written and read."""
        made = site.journal.read()
        written = made["records_written"] + made["fault.corrupt"]
        return (
            made["records_made"] == records == written + made["fault.truncated"]
            and scrape.total("opstreamd_records_read_total", app="opstreamd") == written
        )

    records = N * (len(steady.runs) + 1)
    daemon.until(lambda scrape: scrape.has("opstreamd_records_read_total") and settled(scrape), "all records")
    made = site.journal.read()
    for fault in faults:
        kind, _, amount = fault.partition("=")
        assert made[f"fault.{kind}"] > 0, f"{fault} never happened"
        if amount.startswith("count:"):
            assert made[f"fault.{kind}"] == int(amount.removeprefix("count:").partition("@")[0])
    # Held back for some time, until the unit of time is known.
    recorded = made["records_written"] - made["fault.getter-refusal"] - made["fault.end-before-start"]
    scrape = daemon.until(
        lambda scrape: scrape.total("opstreamd_records_recorded_total") == recorded, "all good records"
    )
    assert rejected(scrape) == {
        "corrupt": made["fault.corrupt"],
        "name": made["fault.getter-refusal"],
        "time": made["fault.end-before-start"],
        "interrupted": 0,
    }
    discarded = scrape.total("opstreamd_bytes_discarded_total")
    record_bytes = 96 if "record-size=96" in faults else 80
    assert (
        made["fault.truncated"] <= discarded < record_bytes * made["fault.truncated"]
        or discarded == made["fault.truncated"] == 0
    )
    assert_good_records_are_exact(scrape, steady, recorded)
    # Whatever can be read is read, once: a string that stays behind is a leak in somebody's server.
    unreadable = made["fault.corrupt"] + made["fault.truncated"] + made["fault.getter-refusal"]
    assert made["strings_made"] - made["strings_read"] == 2 * unreadable
    assert scrape.total("opstreamd_time_unit_seconds", app="opstreamd") == Decimal("1e-09")
    other_shape = bool({"layout", "record-size=96"} & set(faults))
    assert scrape.total("opstreamd_reader_path", app="opstreamd", path="getters" if other_shape else "proved") == 1


def assert_good_records_are_exact(scrape: Scrape, profile: Profile, recorded: int) -> None:
    counted = scrape.by("ascend_op_executions_total", *OPERATOR)
    assert sum(counted.values()) + executions(scrape) == recorded
    duration_ns = {key: its[0] for key, its in profile.durations_ns().items()}
    assert scrape.by("ascend_op_seconds_total", *OPERATOR) == {
        key: count * seconds(duration_ns[key]) for key, count in counted.items()
    }


@pytest.mark.parametrize("fault", ["layout", "record-size=88", "record-size=256"])
def test_getters_take_over_when_the_record_is_another(site: Site, summary: Profile, fault: str) -> None:
    site.simulate(fault)
    site.configure(Model("other", summary.path, executions=N))
    scrape = site.serve().until(all_executed(N), "all executions")
    assert scrape.by("opstreamd_reader_path", "path", app="opstreamd") == {("getters",): 1}
    assert_replayed(scrape, summary, N, model="other")
    assert_nothing_lost(scrape, N * (len(summary.runs) + 1))


def test_failed_subscription_is_counted_and_tried_again(site: Site, summary: Profile) -> None:
    site.simulate("subscribe=148046:2")
    site.configure(Model("refused", summary.path, executions=N))
    daemon = site.serve()
    scrape = daemon.until(all_executed(N), "all executions")
    assert scrape.total("opstreamd_subscribe_errors_total", app="opstreamd", code="148046") == 2
    assert scrape.total("opstreamd_subscriptions", app="opstreamd", state="subscribed") == 1
    assert scrape.total("opstreamd_subscriptions", app="opstreamd", state="failed") == 0
    assert_replayed(scrape, summary, N, model="refused")


def test_subscription_that_never_works_stays_visible(site: Site, summary: Profile) -> None:
    site.simulate("subscribe=100010")
    site.configure(Model("refused", summary.path))
    daemon = site.serve()
    daemon.until(
        lambda scrape: (
            scrape.has("opstreamd_subscribe_errors_total", code="100010")
            and scrape.total("opstreamd_subscribe_errors_total", app="opstreamd", code="100010") >= 2
        ),
        "a second try",
    )
    scrape = daemon.scrape()
    assert not scrape.has("ascend_op_executions_total")


@pytest.mark.parametrize(
    "faults",
    [[], ["corrupt=0.01", "late=0.02@50ms", "partial-write=0.01", "truncated=0.01"]],
    ids=["alone", "with others"],
)
def test_microseconds_are_found_out(site: Site, steady: Profile, faults: list[str]) -> None:
    site.simulate("microseconds", *faults, speed=1)
    site.configure(Model("slow", steady.path))
    daemon = site.serve()
    known = daemon.until(
        lambda scrape: (
            scrape.has("opstreamd_time_unit_seconds")
            and scrape.total("opstreamd_time_unit_seconds") == Decimal("1e-06")
        ),
        "the unit",
    )
    later = daemon.until(executed(executions(known) + 20), "20 more executions")
    names = ("ascend_op_executions_total", "ascend_op_seconds_total")
    counts, sums = (known.by(name, *OPERATOR) for name in names)
    more_counts, more_sums = (later.by(name, *OPERATOR) for name in names)
    for key, (duration_ns,) in steady.durations_ns().items():
        runs = more_counts[key] - counts[key]
        assert runs > 0
        # Start and end are whole microseconds, each for itself.
        assert abs((more_sums[key] - sums[key]) / runs - seconds(duration_ns)) < Decimal("1e-06")


@pytest.mark.parametrize("faults", [[], [*BY_RECORD.values()]], ids=["alone", "with others"])
def test_worker_that_crashes_in_the_vendors_library(site: Site, steady: Profile, faults: list[str]) -> None:
    site.simulate("getter-crash=count:5000", *faults)
    site.configure(Model("crashing", steady.path))
    scrape = site.serve().until(
        lambda scrape: scrape.total("opstreamd_hosted_restarts_total", model="crashing") >= 2, "two restarts"
    )
    # Every death was within a getter: at least the record that it was asked about is lost, and counted.
    assert rejected(scrape)["interrupted"] >= 2
    made = site.journal.read()
    assert made["fault.getter-crash"] >= 2
    # Parts of records that nobody got to look at are counted by their bytes; and of each worker one record may have
    # been written, and not yet been told.
    written = made["records_written"] + made["fault.corrupt"] + made["fault.truncated"]
    assert scrape.total("opstreamd_records_read_total") <= written + made["fault.getter-crash"]


@pytest.mark.long
def test_publisher_that_cannot_keep_up_pauses_and_comes_back(site: Site, steady: Profile) -> None:
    site.simulate("getter-delay=10us")
    site.configure(Model("heavy", steady.path))
    daemon = site.serve()

    def in_state(state: str) -> Callable[[Scrape], bool]:
        name = "opstreamd_subscriptions"
        return lambda scrape: scrape.has(name, state=state) and scrape.total(name, state=state) == 1

    paused = daemon.until(in_state("paused"), "a pause")
    daemon.until(in_state("subscribed"), "its end")
    scrape = daemon.until(executed(executions(paused) + 5), "executions after it")
    assert rejected(scrape) == dict.fromkeys(rejected(scrape), 0)


def test_bad_faults_are_told(site: Site, steady: Profile, tmp_path: Path) -> None:
    """A test that asks for a fault which doesn't exist must not pass for one that the program withstood."""
    site.simulate("corupt=1")
    site.configure(Model("misspelt", steady.path))
    daemon = site.serve()
    daemon.until(lambda scrape: scrape.has("opstreamd_subscribe_errors_total", code="500005"), "the failure")
