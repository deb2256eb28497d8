"""A hosted worker replays a profile: what /metrics says equals what the file says, to the nanosecond."""

import re
from collections import Counter
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

import profiles
from expectations import OPERATOR, assert_nothing_lost, assert_replayed, executed, seconds
from processes import Model, Site
from profiles import Profile
from scrapes import Scrape

N = 40


def test_every_operator_has_its_counts_and_its_time(site: Site, profile: Profile) -> None:
    site.configure(Model("replayed", profile.path, executions=N))
    scrape = site.serve().until(executed(N), "all executions")
    assert_replayed(scrape, profile, N, app="opstreamd", device="0", model="replayed")
    assert_nothing_lost(scrape, N * (len(profile.runs) + 1))
    journal = site.journal.read()
    assert journal["records_made"] == journal["records_written"] == N * (len(profile.runs) + 1)
    assert journal["strings_made"] == journal["strings_read"]


def test_models_side_by_side_keep_their_own_numbers(site: Site, tmp_path: Path) -> None:
    made = [recipe.write(tmp_path) for recipe in profiles.RECIPES]
    site.configure(*(Model(made.name, made.path, executions=N, device=device) for device, made in enumerate(made)))
    daemon = site.serve()
    scrape = daemon.until(
        lambda scrape: all(executed(N, model=its.name)(scrape) for its in made), "all models' executions"
    )
    for device, its in enumerate(made):
        assert_replayed(scrape, its, N, app="opstreamd", device=str(device), model=its.name)
    assert_nothing_lost(scrape, sum(N * (len(its.runs) + 1) for its in made))


def test_in_real_time_executions_busy_and_gap_are_exact(site: Site, profile: Profile) -> None:
    times = 3
    site.simulate(speed=1)
    site.configure(Model("timed", profile.path, executions=times))
    busy, whole = seconds(times * profile.busy_ns), seconds(times * profile.span_ns)

    def settled(scrape: Scrape) -> bool:
        """What ran last is final when a second has passed without more."""
        names = ("ascend_model_busy_seconds_total", "ascend_model_gap_seconds_total")
        return executed(times)(scrape) and sum(scrape.total(name, model="timed") for name in names) >= whole

    scrape = site.serve().until(settled, "all executions' time")
    assert scrape.total("ascend_model_execution_duration_seconds_sum", model="timed") == whole
    assert scrape.total("ascend_model_busy_seconds_total", model="timed") == busy
    assert scrape.total("ascend_model_gap_seconds_total", model="timed") == whole - busy
    assert scrape.total("ascend_model_late_intervals_total", model="timed") == 0
    assert_replayed(scrape, profile, times, model="timed")


def test_long_names_are_cut_and_told_apart_by_their_hash(site: Site, tmp_path: Path) -> None:
    profile = profiles.LONG_NAMES.write(tmp_path)
    site.configure(Model("long", profile.path, executions=N), limits={"label_length": 200})
    scrape = site.serve().until(executed(N), "all executions")
    counted = scrape.by("ascend_op_executions_total", *OPERATOR)
    assert len(counted) == len(profile.executions())
    for (op_type, op_name), count in profile.executions().items():
        if len(op_name) <= 200:
            assert counted[op_type, op_name] == N * count
        else:
            cut = [
                label
                for its, label in counted
                if its == op_type and re.fullmatch(r".+[0-9a-f]{16}", label) and op_name.startswith(label[:150])
            ]
            assert [counted[op_type, label] for label in cut] == [N * count]
            assert len(cut[0]) <= 216


def test_prometheus_own_parser_reads_the_same(site: Site, summary: Profile) -> None:
    site.configure(Model("parsed", summary.path, executions=N))
    scrape = site.serve().until(executed(N), "all executions")
    read: Counter[str] = Counter()
    for family in text_string_to_metric_families(scrape.text):
        for sample in family.samples:
            read[sample.name] += 1
            if sample.name.startswith("ascend_"):
                assert float(scrape.samples[sample.name, frozenset(sample.labels.items())]) == sample.value
    assert read.total() == len(scrape.samples)
