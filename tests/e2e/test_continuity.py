"""Whoever is killed, restarted or late: nothing is lost and no counter goes back (scrapes.Watch checks it always)."""

import signal

import pytest

from expectations import (
    OPERATOR,
    all_executed,
    assert_as_segments,
    assert_nothing_lost,
    assert_replayed,
    executed,
    executions,
    seconds,
)
from processes import Model, Site, until
from profiles import Profile
from scrapes import Scrape

UNSUPERVISED = {"hosted": {"supervise": False}}


def assert_whole_runs(scrape: Scrape, profile: Profile) -> None:
    """Whatever the number of runs, their time is that many times the operator's.

    A killed process may have been just between the one and the other.
    """
    counted = scrape.by("ascend_op_executions_total", *OPERATOR)
    summed = scrape.by("ascend_op_seconds_total", *OPERATOR)
    duration_ns = {key: its[0] for key, its in profile.durations_ns().items()}
    excess = {key: summed[key] - count * seconds(duration_ns[key]) for key, count in counted.items()}
    torn = {key: time for key, time in excess.items() if time}
    assert len(torn) <= 1
    assert all(time == seconds(duration_ns[key]) for key, time in torn.items())


def test_workers_that_were_there_before_the_daemon(site: Site, summary: Profile) -> None:
    site.configure(Model("early", summary.path, executions=40), **UNSUPERVISED)
    site.hosted()
    records = 40 * (len(summary.runs) + 1)
    until(
        lambda: site.journal.path.exists() and site.journal.read().get("records_written") == records, "all executions"
    )
    scrape = site.serve().until(all_executed(40), "what was executed before")
    assert_replayed(scrape, summary, 40, app="opstreamd", device="0", model="early")
    assert_nothing_lost(scrape, records)


@pytest.mark.parametrize("supervise", [False, True], ids=["hosted apart", "hosted by serve"])
def test_daemon_killed_in_the_middle(site: Site, summary: Profile, supervise: bool) -> None:
    site.configure(Model("surviving", summary.path, executions=300, interval="10ms"), hosted={"supervise": supervise})
    if not supervise:
        site.hosted()
    daemon = site.serve()
    for so_far in (50, 150):
        daemon.until(executed(so_far), f"{so_far} executions")
        daemon.kill()
        daemon = site.serve()
    scrape = daemon.until(all_executed(300), "all executions")
    assert_replayed(scrape, summary, 300, model="surviving")
    assert_nothing_lost(scrape, 300 * (len(summary.runs) + 1))
    assert len(site.segments()) == 1, "a worker was not adopted"


def test_worker_killed_in_the_middle(site: Site, steady: Profile) -> None:
    site.configure(Model("mortal", steady.path), **UNSUPERVISED)
    hosted = site.hosted()
    daemon = site.serve()
    daemon.until(executed(50), "50 executions")
    segment = site.segment()
    hosted.kill()
    site.kill(segment.pid)
    last = daemon.until(
        lambda scrape: scrape.total("opstreamd_publishers", state="live") == 0, "the worker's departure"
    )
    assert_as_segments(last, [segment])
    for name in ("ascend_model_busy_seconds_total", "ascend_model_gap_seconds_total"):
        assert last.total(name) == segment.exposition().total(name)
    assert_whole_runs(last, steady)
    counters = segment.counters()
    assert counters.records_read == counters.records_recorded + counters.records_interrupted
    # The simulator was killed too: maybe between writing a record and saying so.
    assert counters.records_read <= site.journal.read()["records_written"] + 1


def test_killed_worker_is_replaced_and_its_series_go_on(site: Site, steady: Profile) -> None:
    site.configure(Model("again", steady.path, executions=100, interval="5ms"))
    daemon = site.serve()
    daemon.until(executed(20), "20 executions")
    first = site.segment()
    site.kill(first.pid)
    before = executions(first.exposition())
    scrape = daemon.until(all_executed(before + 100), "all executions of the second worker")
    assert executions(scrape) == before + 100
    assert scrape.total("opstreamd_hosted_restarts_total", model="again") == 1
    second = site.segment()
    assert second.pid != first.pid
    assert_as_segments(scrape, [first, second])
    assert_whole_runs(scrape, steady)


def test_restarted_publisher_goes_on_where_it_was(site: Site, steady: Profile) -> None:
    site.configure(Model("restarted", steady.path, executions=40), **UNSUPERVISED)
    daemon = site.serve()
    for times in (40, 80):
        hosted = site.hosted()
        daemon.until(executed(times), f"{times} executions")
        assert hosted.stop() == 0
        until(lambda: not site.segments(), "the worker's end")
    scrape = daemon.until(lambda scrape: scrape.total("opstreamd_publishers", state="departed") == 2, "both departures")
    assert_replayed(scrape, steady, 80, model="restarted")
    assert_nothing_lost(scrape, 80 * (len(steady.runs) + 1))


def test_killed_supervisor_leaves_its_worker_to_the_next(site: Site, summary: Profile) -> None:
    site.configure(Model("orphan", summary.path, interval="10ms"), **UNSUPERVISED)
    daemon = site.serve()
    supervisor = site.hosted()
    daemon.until(executed(5), "some executions")
    segment = site.segment()
    supervisor.kill()
    before = executions(daemon.scrape())
    daemon.until(executed(before + 5), "executions without a supervisor")
    site.hosted().said("hosted worker adopted", pid=segment.pid)
    assert [its.pid for its in site.segments()] == [segment.pid]


def test_changed_configuration_replaces_the_worker(site: Site, summary: Profile) -> None:
    site.configure(Model("changing", summary.path, interval="10ms"), **UNSUPERVISED)
    daemon = site.serve()
    supervisor = site.hosted()
    daemon.until(executed(5), "some executions")
    first = site.segment()
    supervisor.kill()
    site.configure(Model("changing", summary.path, executions=20), **UNSUPERVISED)
    site.hosted().said("hosted worker is outdated", pid=first.pid)
    until(lambda: first.pid not in site.processes(), "the outdated worker's end")
    times = executions(first.exposition()) + 20
    assert_replayed(daemon.until(executed(times), "the new one's executions"), summary, times, model="changing")


def test_worker_that_nobody_wants_ends_itself(site: Site, summary: Profile) -> None:
    state = {"directory": str(site.folder / "state"), "retention": "2s"}
    site.configure(Model("forgotten", summary.path, interval="10ms"), **UNSUPERVISED, state=state)
    supervisor = site.hosted()
    until(site.segments, "the worker")
    supervisor.kill()
    until(lambda: not site.processes(), "its end")
    made = site.journal.read()
    assert made["records_made"] == made["records_written"]
    assert made["strings_made"] == made["strings_read"]


def test_series_end_together_when_retention_has_passed(site: Site, summary: Profile) -> None:
    site.configure(
        Model("passing", summary.path, executions=40),
        **UNSUPERVISED,
        state={"directory": str(site.folder / "state"), "retention": "2s"},
    )
    daemon = site.serve()
    hosted = site.hosted()
    daemon.until(all_executed(40), "all executions")
    site.watch.mortal = {"opstreamd"}
    hosted.stop()
    scrape = daemon.until(lambda scrape: not scrape.has("ascend_op_executions_total"), "the end of the series")
    assert not [name for name, _ in scrape.samples if name.startswith("ascend_")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_signals_end_everything_in_good_order(site: Site, summary: Profile, number: signal.Signals) -> None:
    site.configure(Model("busy", summary.path), Model("waiting", summary.path, interval="1h"))
    daemon = site.serve()
    daemon.until(
        lambda scrape: executed(20, model="busy")(scrape) and executed(1, model="waiting")(scrape), "both at work"
    )
    segments = site.segments()
    daemon.signal(number)
    assert daemon.wait() == 0
    assert site.processes() == []
    made = site.journal.read()
    assert made["records_made"] == made["records_written"] == sum(its.counters().records_recorded for its in segments)
    assert made["keypoints_made"] == sum(executions(its.exposition()) for its in segments)
    assert made["strings_made"] == made["strings_read"]


def test_last_scrape_before_the_end_has_everything(site: Site, summary: Profile) -> None:
    site.configure(Model("finished", summary.path, executions=40))
    daemon = site.serve()
    scrape = daemon.until(all_executed(40), "all executions")
    segment = site.segment()
    assert daemon.stop() == 0
    assert site.processes() == []
    assert_replayed(scrape, summary, 40, model="finished")
    assert_as_segments(scrape, [segment])
