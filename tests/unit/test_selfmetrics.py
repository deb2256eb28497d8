"""The daemon's own metrics: names, labels and sums as the contract has them."""

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from opstreamd.engine import CELLS, CLASSIC_BOUNDS_NS, Counters
from opstreamd.hosted import Standing
from opstreamd.selfmetrics import Reading, SelfMetrics, Snapshot

COUNTERS = Counters(
    records_read=110,
    records_recorded=100,
    records_overflowed=7,
    records_corrupt=1,
    records_name=2,
    records_time=3,
    records_interrupted=4,
    bytes_discarded=5,
    reader_cpu_ns=1_500_000_000,
    pipe_capacity_bytes=1_048_576,
    pipe_high_water_ppm=250_000,
    reader_path=1,
    time_unit=1,
    models_subscribed=2,
    models_paused=1,
    models_failed=3,
)
DELAY = ([0] * 100 + [3] + [0] * (CELLS - 101), 2_500_000_000)
READING = Reading("serving", "a" * 32, "agent", True, COUNTERS, [(200006, 2)], DELAY)
OTHER = replace(
    READING,
    publisher="b" * 32,
    live=False,
    counters=replace(COUNTERS, pipe_capacity_bytes=65_536, reader_path=2, time_unit=2),
    subscribe_errors=[(200006, 1), (100000, 5)],
)
STANDINGS = [Standing("resnet50", 0, True, 3), Standing("resnet50", 1, False, 0)]


def samples(snapshot: Snapshot) -> dict[str, float]:
    """By name and labels, as they are written."""
    text = SelfMetrics().text(snapshot).decode()
    assert "_created" not in text
    return {
        sample.name + "".join(f",{name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def snapshot(*readings: Reading) -> Snapshot:
    return Snapshot(readings, {"magic": 2, "quota": 0}, STANDINGS, series=17, exposition_bytes=4096)


def test_counters_of_one_app_add_up_and_gauges_are_of_the_living() -> None:
    found = samples(snapshot(READING, OTHER))
    expected = {
        "opstreamd_records_read_total,app=serving": 220,
        "opstreamd_records_recorded_total,app=serving": 200,
        "opstreamd_records_overflowed_total,app=serving": 14,
        "opstreamd_records_rejected_total,app=serving,reason=corrupt": 2,
        "opstreamd_records_rejected_total,app=serving,reason=name": 4,
        "opstreamd_records_rejected_total,app=serving,reason=time": 6,
        "opstreamd_records_rejected_total,app=serving,reason=interrupted": 8,
        "opstreamd_bytes_discarded_total,app=serving": 10,
        "opstreamd_reader_cpu_seconds_total,app=serving": 3.0,
        "opstreamd_reader_delay_seconds_count,app=serving": 6,
        "opstreamd_reader_delay_seconds_sum,app=serving": 5.0,
        "opstreamd_subscribe_errors_total,app=serving,code=200006": 3,
        "opstreamd_subscribe_errors_total,app=serving,code=100000": 5,
        "opstreamd_subscriptions,app=serving,state=subscribed": 2,
        "opstreamd_subscriptions,app=serving,state=paused": 1,
        "opstreamd_subscriptions,app=serving,state=failed": 3,
        "opstreamd_reader_path,app=serving,path=proved": 1,
        "opstreamd_pipe_capacity_bytes,app=serving": 1_048_576,
        "opstreamd_pipe_high_water_ratio,app=serving": 0.25,
        "opstreamd_time_unit_seconds,app=serving": 1e-9,
        "opstreamd_publishers,state=live": 1,
        "opstreamd_publishers,state=departed": 1,
        f"opstreamd_publisher_info,app=serving,kind=agent,publisher={'a' * 32}": 1,
        f"opstreamd_publisher_info,app=serving,kind=agent,publisher={'b' * 32}": 1,
        "opstreamd_publisher_refusals_total,reason=magic": 2,
        "opstreamd_publisher_refusals_total,reason=quota": 0,
        "opstreamd_hosted_up,device=0,model=resnet50": 1,
        "opstreamd_hosted_up,device=1,model=resnet50": 0,
        "opstreamd_hosted_restarts_total,device=0,model=resnet50": 3,
        "opstreamd_hosted_restarts_total,device=1,model=resnet50": 0,
        "opstreamd_series": 17,
        "opstreamd_exposition_bytes": 4096,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert "opstreamd_reader_path,app=serving,path=getters" not in found


def test_gauges_of_several_living_publishers_merge_as_the_contract_says() -> None:
    found = samples(snapshot(READING, replace(OTHER, live=True)))
    assert found["opstreamd_pipe_capacity_bytes,app=serving"] == 65_536
    assert found["opstreamd_time_unit_seconds,app=serving"] == 1e-6
    assert found["opstreamd_reader_path,app=serving,path=getters"] == 1
    assert found["opstreamd_reader_path,app=serving,path=proved"] == 1
    assert found["opstreamd_subscriptions,app=serving,state=subscribed"] == 4


def test_what_is_not_known_is_not_shown() -> None:
    unknown = replace(COUNTERS, pipe_capacity_bytes=0, reader_path=0, time_unit=0)
    found = samples(snapshot(replace(READING, counters=unknown)))
    for name in ("pipe_capacity_bytes", "pipe_high_water_ratio", "time_unit_seconds", "reader_path", "duty_ratio"):
        assert not [key for key in found if key.startswith(f"opstreamd_{name}")]


def test_apps_are_kept_apart() -> None:
    found = samples(snapshot(READING, replace(READING, app="another")))
    assert found["opstreamd_records_read_total,app=serving"] == 110
    assert found["opstreamd_records_read_total,app=another"] == 110


def test_the_delay_is_a_cumulative_histogram_over_all_classic_bounds() -> None:
    found = samples(snapshot(READING))
    bounds = [repr(bound / 1e9) for bound in CLASSIC_BOUNDS_NS]
    counts = [found[f"opstreamd_reader_delay_seconds_bucket,app=serving,le={bound}"] for bound in [*bounds, "+Inf"]]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 3)


@pytest.mark.parametrize("name", ["process_cpu_seconds_total", "python_gc_collections_total,generation=0"])
def test_the_process_is_shown(name: str) -> None:
    assert name in samples(snapshot())


def test_the_build_and_the_scrapes_are_shown() -> None:
    metrics = SelfMetrics()
    metrics.scrape_duration.labels("text").observe(0.003)
    text = metrics.text(snapshot()).decode()
    assert 'opstreamd_scrape_duration_seconds_bucket{format="text",le="0.005"} 1.0' in text
    assert "opstreamd_build_info{" in text
