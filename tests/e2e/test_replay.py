"""A hosted worker or a simulated application replays a profile: what /metrics says equals what the file says."""

import json
import re
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

import profiles
from expectations import OPERATOR, all_executed, assert_equal, assert_nothing_lost, assert_replayed, seconds
from processes import Model, Site, until
from profiles import Profile
from scrapes import Scrape

N = 40


def test_every_operator_has_its_counts_and_its_time(site: Site, profile: Profile) -> None:
    times = 1 + 20_000 // len(profile.runs)
    site.configure(Model("replayed", profile.path, executions=times))
    scrape = site.serve().until(all_executed(times), "all executions")
    assert_replayed(scrape, profile, times, app="opstreamd", device="0", model="replayed")
    assert_nothing_lost(scrape, times * (len(profile.runs) + 1))
    journal = site.journal.read()
    assert journal["records_made"] == journal["records_written"] == times * (len(profile.runs) + 1)
    assert journal["strings_made"] == journal["strings_read"]


def test_an_application_replays_it_and_the_daemon_comes_later(site: Site, profile: Profile) -> None:
    flags = ("--model", "m", "--iterations", "50", "--rate", "25", "--app", "a", "--agent.socket", str(site.socket))
    process = site.start("sim", str(profile.path), *flags)
    segment = site.segment()
    until(
        lambda: segment.view.counters(departed=False, now_ns=time.monotonic_ns()).records_read > 0, "its first records"
    )
    daemon = site.serve()
    assert process.wait() == 0
    made = json.loads(process.output.read_text())
    assert made["records"] == 50 * (len(profile.runs) + 1)
    scrape = daemon.until(  # which may be a batch behind the executions
        lambda it: it.by("opstreamd_records_recorded_total", "app").get(("a",)) == made["records"], "all records"
    )
    assert_replayed(scrape, profile, 50, app="a", device="0", model="m")
    assert scrape.by("ascend_op_duration_seconds_sum", "op_type") == {
        (op_type,): seconds(its["nanoseconds"]) for op_type, its in made["op_types"].items()
    }


def test_models_side_by_side_keep_their_own_numbers(site: Site, tmp_path: Path) -> None:
    made = [recipe.write(tmp_path) for recipe in profiles.RECIPES]
    site.configure(*(Model(its.name, its.path, executions=8, device=device) for device, its in enumerate(made)))
    scrape = site.serve().until(
        lambda scrape: all(all_executed(8, model=its.name)(scrape) for its in made), "all models' executions"
    )
    for device, its in enumerate(made):
        assert_replayed(scrape, its, 8, app="opstreamd", device=str(device), model=its.name)
    assert_nothing_lost(scrape, sum(8 * (len(its.runs) + 1) for its in made))


def test_bounds_are_a_choice_and_operators_may_have_histograms_too(site: Site, summary: Profile) -> None:
    bounds = [1e-06, 5e-06, 0.0001, 0.0005, 0.002]
    site.configure(
        Model("chosen", summary.path, executions=N), histograms={"operator_buckets": bounds, "per_operator": True}
    )
    scrape = site.serve().until(all_executed(N), "all executions")
    assert_replayed(scrape, summary, N, model="chosen")
    expected = {
        (*operator, le): N * sum(seconds(duration) <= Decimal(le) for duration in durations)
        for operator, durations in summary.durations_ns().items()
        for le in [*map(repr, bounds), "+Inf"]
    }
    assert_equal(scrape.by("ascend_op_name_duration_seconds_bucket", *OPERATOR, "le"), expected)
    assert {le for (le,) in scrape.by("ascend_op_duration_seconds_bucket", "le")} == {*map(repr, bounds), "+Inf"}


def test_in_real_time_executions_busy_and_gap_are_exact(site: Site, profile: Profile) -> None:
    times = 3
    site.simulate(speed=1)
    site.configure(Model("timed", profile.path, executions=times))
    busy, whole = seconds(times * profile.busy_ns), seconds(times * profile.span_ns)

    def settled(scrape: Scrape) -> bool:
        """What ran last is final when a second has passed without more."""
        names = ("ascend_model_busy_seconds_total", "ascend_model_gap_seconds_total")
        return all_executed(times)(scrape) and sum(scrape.total(name, model="timed") for name in names) >= whole

    scrape = site.serve().until(settled, "all executions' time")
    assert scrape.total("ascend_model_execution_duration_seconds_sum", model="timed") == whole
    assert scrape.total("ascend_model_busy_seconds_total", model="timed") == busy
    assert scrape.total("ascend_model_gap_seconds_total", model="timed") == whole - busy
    assert scrape.total("ascend_model_late_intervals_total", model="timed") == 0
    assert_replayed(scrape, profile, times, model="timed")


def test_long_names_are_cut_and_told_apart_by_their_hash(site: Site, tmp_path: Path) -> None:
    profile = profiles.LONG_NAMES.write(tmp_path)
    site.configure(Model("long", profile.path, executions=N), limits={"label_length": 200})
    scrape = site.serve().until(all_executed(N), "all executions")
    counted = scrape.by("ascend_op_executions_total", *OPERATOR)
    assert len(counted) == len(profile.durations_ns())
    for (op_type, op_name), durations in profile.durations_ns().items():
        times = N * len(durations)
        if len(op_name) <= 200:
            assert counted[op_type, op_name] == times
        else:
            cut = [
                label
                for its, label in counted
                if its == op_type and re.fullmatch(r".+[0-9a-f]{16}", label) and op_name.startswith(label[:150])
            ]
            assert [counted[op_type, label] for label in cut] == [times]
            assert len(cut[0]) <= 216


def test_prometheus_own_parser_reads_the_same(site: Site, summary: Profile) -> None:
    site.configure(Model("parsed", summary.path, executions=N))
    scrape = site.serve().until(all_executed(N), "all executions")
    read: Counter[str] = Counter()
    for family in text_string_to_metric_families(scrape.text):
        for sample in family.samples:
            read[sample.name] += 1
            if sample.name.startswith("ascend_"):
                assert float(scrape.samples[sample.name, frozenset(sample.labels.items())]) == sample.value
    assert read.total() == len(scrape.samples)
