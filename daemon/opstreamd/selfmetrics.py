"""The daemon's own metrics: what it has read of whom, what was lost, and how it fares itself."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from opstreamd import __version__
from opstreamd.engine import CLASSIC_BOUNDS_NS, PROTOCOL_VERSION, Counters, classic_buckets
from opstreamd.hosted import Standing

READER_PATHS = {1: "proved", 2: "getters"}
TIME_UNITS = {1: 1e-9, 2: 1e-6}

_DELAY_BOUNDS = [repr(bound / 1e9) for bound in CLASSIC_BOUNDS_NS] + ["+Inf"]

# Counters carry their time of creation in formats that have one; in text it would be a gauge more for each.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no annotation here


@dataclass(frozen=True, slots=True)
class Reading:
    """What one publisher's segment says at a scrape. `delay`: counts by cell, and the sum in nanoseconds."""

    app: str
    publisher: str
    kind: str
    live: bool
    counters: Counters
    subscribe_errors: list[tuple[int, int]]
    delay: tuple[list[int], int]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one scrape shows besides the operators and models; `exposition_bytes` is the size of those."""

    readings: Sequence[Reading]
    refusals: Mapping[str, int]
    hosted: Sequence[Standing]
    series: int
    exposition_bytes: int


class SelfMetrics(Collector):
    """To be used by one thread at a time, but for `scrape_duration`, which any may observe."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._snapshot = Snapshot((), {}, (), 0, 0)
        self._registry.register(self)
        self.scrape_duration = prometheus_client.Histogram(
            "opstreamd_scrape_duration_seconds",
            "Time to read all segments and to render them.",
            ["format"],
            registry=self._registry,
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
        )
        self.scrape_duration.labels("text")
        prometheus_client.ProcessCollector(registry=self._registry)
        prometheus_client.PlatformCollector(registry=self._registry)
        prometheus_client.GCCollector(registry=self._registry)

    def text(self, snapshot: Snapshot) -> bytes:
        self._snapshot = snapshot
        return prometheus_client.generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        yield _info(
            "opstreamd_build_info",
            "The daemon that answers.",
            {
                "version": __version__,
                "python": platform.python_version(),
                "abi": str(PROTOCOL_VERSION),
            },
        )
        yield _gauge("opstreamd_series", "Series of operators and models in this exposition.", snapshot.series)
        yield _gauge(
            "opstreamd_exposition_bytes", "Bytes of the operators' and models' families.", snapshot.exposition_bytes
        )
        yield from _publishers(snapshot)
        yield from _hosted(snapshot.hosted)
        yield from _apps(snapshot.readings)


def _publishers(snapshot: Snapshot) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "opstreamd_publishers", "Publishers known: live, or departed and retained.", labels=["state"]
    )
    live = sum(reading.live for reading in snapshot.readings)
    states.add_metric(["live"], live)
    states.add_metric(["departed"], len(snapshot.readings) - live)
    yield states
    refusals = CounterMetricFamily("opstreamd_publisher_refusals", "Publishers that were refused.", labels=["reason"])
    for reason, count in sorted(snapshot.refusals.items()):
        refusals.add_metric([reason], count)
    yield refusals
    info = GaugeMetricFamily(
        "opstreamd_publisher_info", "A publisher, live or retained.", labels=["app", "publisher", "kind"]
    )
    for reading in snapshot.readings:
        info.add_metric([reading.app, reading.publisher, reading.kind], 1)
    yield info


def _hosted(models: Sequence[Standing]) -> Iterator[Metric]:
    labels = ["model", "device"]
    up = GaugeMetricFamily(
        "opstreamd_hosted_up", "Whether a live worker has loaded and subscribed a configured model.", labels=labels
    )
    restarts = CounterMetricFamily(
        "opstreamd_hosted_restarts", "Workers of a model that followed one without a good end.", labels=labels
    )
    for model in models:
        up.add_metric([model.model, str(model.device)], model.up)
        restarts.add_metric([model.model, str(model.device)], model.restarts)
    yield up
    yield restarts


def _apps(readings: Sequence[Reading]) -> Iterator[Metric]:
    by_app = sorted(readings, key=lambda reading: reading.app)
    apps = {app: list(group) for app, group in groupby(by_app, lambda reading: reading.app)}

    def total(name: str, text: str, of: Callable[[Counters], float]) -> Metric:
        family = CounterMetricFamily(name, text, labels=["app"])
        for app, group in apps.items():
            family.add_metric([app], sum(of(reading.counters) for reading in group))
        return family

    def live(
        name: str, text: str, of: Callable[[Counters], float | None], merge: Callable[[list[float]], float]
    ) -> Metric:
        """What only a living publisher has; an app without one has no such series."""
        family = GaugeMetricFamily(name, text, labels=["app"])
        for app, group in apps.items():
            values = [value for reading in group if reading.live and (value := of(reading.counters)) is not None]
            if values:
                family.add_metric([app], merge(values))
        return family

    yield total("opstreamd_records_read", "Records taken from the vendor's pipes.", lambda c: c.records_read)
    yield total("opstreamd_records_recorded", "Records that are in the histograms.", lambda c: c.records_recorded)
    yield total(
        "opstreamd_records_overflowed",
        "Records counted into (other), for want of room.",
        lambda c: c.records_overflowed,
    )
    yield _rejected(apps)
    yield total("opstreamd_bytes_discarded", "Bytes that belonged to no whole record.", lambda c: c.bytes_discarded)
    yield total("opstreamd_reader_cpu_seconds", "CPU time of the reader threads.", lambda c: c.reader_cpu_ns / 1e9)
    yield _delays(apps)
    yield from _subscriptions(apps)
    yield _reader_paths(apps)
    yield live(
        "opstreamd_pipe_capacity_bytes", "Capacity of the smallest pipe.", lambda c: c.pipe_capacity_bytes or None, min
    )
    yield live(
        "opstreamd_pipe_high_water_ratio",
        "Highest fill of a pipe in this and the last minute.",
        lambda c: c.pipe_high_water_ppm / 1e6 if c.pipe_capacity_bytes else None,
        max,
    )
    yield live(
        "opstreamd_time_unit_seconds", "The unit of the vendor's times.", lambda c: TIME_UNITS.get(c.time_unit), max
    )


def _rejected(apps: Mapping[str, list[Reading]]) -> Metric:
    family = CounterMetricFamily(
        "opstreamd_records_rejected", "Records that are in no histogram.", labels=["app", "reason"]
    )
    for app, group in apps.items():
        for reason in group[0].counters.rejected:
            family.add_metric([app, reason], sum(reading.counters.rejected[reason] for reading in group))
    return family


def _delays(apps: Mapping[str, list[Reading]]) -> Metric:
    family = HistogramMetricFamily(
        "opstreamd_reader_delay_seconds", "From an operator's end on the device to its being counted.", labels=["app"]
    )
    for app, group in apps.items():
        cells = zip(*(reading.delay[0] for reading in group), strict=True)
        buckets = classic_buckets([sum(counts) for counts in cells])
        total_ns = sum(reading.delay[1] for reading in group)
        family.add_metric([app], list(zip(_DELAY_BOUNDS, buckets, strict=True)), total_ns / 1e9)
    return family


def _subscriptions(apps: Mapping[str, list[Reading]]) -> Iterator[Metric]:
    states = GaugeMetricFamily("opstreamd_subscriptions", "Models of live publishers.", labels=["app", "state"])
    errors = CounterMetricFamily(
        "opstreamd_subscribe_errors", "Subscriptions that the vendor has refused.", labels=["app", "code"]
    )
    for app, group in apps.items():
        counters = [reading.counters for reading in group if reading.live]
        states.add_metric([app, "subscribed"], sum(c.models_subscribed for c in counters))
        states.add_metric([app, "paused"], sum(c.models_paused for c in counters))
        states.add_metric([app, "failed"], sum(c.models_failed for c in counters))
        codes: dict[int, int] = {}
        for reading in group:
            for code, count in reading.subscribe_errors:
                codes[code] = codes.get(code, 0) + count
        for code, count in sorted(codes.items()):
            errors.add_metric([app, str(code)], count)
    yield states
    yield errors


def _reader_paths(apps: Mapping[str, list[Reading]]) -> Metric:
    family = GaugeMetricFamily(
        "opstreamd_reader_path",
        "How records are read: numbers from a proved layout, or all by getters.",
        labels=["app", "path"],
    )
    for app, group in apps.items():
        for path in sorted({reading.counters.reader_path for reading in group if reading.live} & READER_PATHS.keys()):
            family.add_metric([app, READER_PATHS[path]], 1)
    return family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _info(name: str, text: str, labels: Mapping[str, str]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=list(labels))
    family.add_metric(list(labels.values()), 1)
    return family
