"""From the publishers' segments to the text of one scrape."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from opstreamd.config import Config
from opstreamd.engine import EngineError, Exposition, Status, View
from opstreamd.hosted import Standing, standings
from opstreamd.log import fields
from opstreamd.publishers import Publisher, Publishers, Refusal
from opstreamd.selfmetrics import Reading, SelfMetrics, Snapshot

log = logging.getLogger(__name__)

SETTLE_SECONDS = 1.5
"""Nothing is answered for so long after the start: publishers try again every 1.1 s at the latest, and a sum in which
one of them is still missing would look like a counter that has gone backward. The interim rule until the daemon has a
checkpoint that says for whom to wait."""


class NotReady(Exception):
    """There is no answer yet; the text says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """A publisher as the rendering thread sees it: what may change on the event loop's thread is copied."""

    publisher: Publisher
    view: View
    died_ns: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """A publisher as people see it."""

    publisher: Publisher
    records_read: int
    records_rejected: int
    departed_seconds: float | None
    """How long ago; None: it is live."""


@dataclass(frozen=True, slots=True)
class _Rendering:
    text: bytes
    expelled: list[tuple[Publisher, Refusal]]


class Collector:
    """Renders on one thread of its own. Methods are for the event loop's thread."""

    def __init__(
        self, config: Config, publishers: Publishers, *, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._config = config
        self._publishers = publishers
        self._clock_ns = clock_ns
        self._started_ns = clock_ns()
        self._metrics = SelfMetrics()
        # Views are for one thread at a time: this one.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="render")
        self._rendering = asyncio.Lock()
        self._next: asyncio.Task[bytes] | None = None

    def check_ready(self) -> None:
        """Raises NotReady."""
        if self._clock_ns() - self._started_ns < SETTLE_SECONDS * 1e9:
            raise NotReady(f"waiting for the publishers to return: {SETTLE_SECONDS} s after the start")

    async def text(self) -> bytes:
        """All metrics in text format 0.0.4, from values that are read after this call. Raises NotReady.

        Calls that wait for the same rendering to begin share it.
        """
        self.check_ready()
        if self._next is None:
            self._next = asyncio.create_task(self._render_next())
        return await asyncio.shield(self._next)

    async def rows(self) -> list[Row]:
        """The publishers with their totals."""
        sources = self._sources()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._read_rows, sources)

    def close(self) -> None:
        self._thread.shutdown()

    async def _render_next(self) -> bytes:
        async with self._rendering:
            self._next = None  # who comes from here on wants newer values
            began = time.perf_counter()
            loop = asyncio.get_running_loop()
            refusals = dict(self._publishers.refusals)
            rendering = await loop.run_in_executor(self._thread, self._render, self._sources(), refusals)
            for publisher, refusal in rendering.expelled:
                self._publishers.expel(publisher, refusal)
            self._metrics.scrape_duration.labels("text").observe(time.perf_counter() - began)
            return rendering.text

    def _sources(self) -> list[Source]:
        return [Source(publisher, publisher.view, publisher.died_ns) for publisher in self._publishers.all()]

    # ---- the rendering thread ----------------------------------------------------------------------------------------

    def _render(self, sources: list[Source], refusals: dict[str, int]) -> _Rendering:
        expelled: list[tuple[Publisher, Refusal]] = []
        while True:
            exposition, readings = Exposition(), []
            series_of: Counter[int] = Counter()  # by uid
            for source in list(sources):
                before = exposition.series
                try:
                    readings.append(self._add(exposition, source))
                except Refusal as refusal:
                    expelled.append((source.publisher, refusal))
                    sources.remove(source)
                series_of[source.publisher.peer.uid] += exposition.series - before
                if exposition.series > self._config.limits.series:
                    break
            operators, excess = self._operators(exposition)
            if excess is None or not sources:
                break
            # Whoever takes most makes room, so that nobody is kept out by somebody who came earlier.
            uid, _ = series_of.most_common(1)[0]
            latest = next(source for source in reversed(sources) if source.publisher.peer.uid == uid)
            expelled.append((latest.publisher, excess))
            sources.remove(latest)
        own = self._metrics.text(
            Snapshot(
                readings=readings,
                refusals=refusals,
                hosted=self._hosted(),
                series=exposition.series,
                exposition_bytes=len(operators),
            )
        )
        return _Rendering(operators + own, expelled)

    def _add(self, exposition: Exposition, source: Source) -> Reading:
        publisher, view = source.publisher, source.view
        now_ns = self._clock_ns()
        try:
            # Counters first: the series may be ahead of them, never behind.
            reading = Reading(
                app=publisher.app,
                publisher=publisher.id,
                kind=publisher.kind.name.lower(),
                live=source.died_ns is None,
                counters=view.counters(departed=source.died_ns is not None, now_ns=now_ns),
                subscribe_errors=view.subscribe_errors(),
                delay=view.delay(),
            )
            exposition.add(
                view,
                publisher.app,
                publisher.labels,
                now_ns=now_ns,
                alive_until_ns=now_ns if source.died_ns is None else source.died_ns,
            )
        except EngineError as error:
            raise Refusal.of(error) from error
        return reading

    def _operators(self, exposition: Exposition) -> tuple[bytes, Refusal | None]:
        """The text, or why there may be no such text."""
        histograms, limits = self._config.histograms, self._config.limits
        if exposition.series > limits.series:
            return b"", Refusal("quota", Status.FULL, f"all publishers together may have {limits.series} series")
        text = exposition.text(
            operator_bounds=histograms.operator_bounds,
            model_bounds=histograms.model_bounds,
            label_bytes_max=limits.label_length,
            per_operator=histograms.per_operator,
        )
        if len(text) > limits.exposition_bytes:
            return b"", Refusal("quota", Status.FULL, f"the series of all may take {limits.exposition_bytes} bytes")
        return text, None

    def _hosted(self) -> list[Standing]:
        try:
            return standings(self._config)
        except OSError as error:
            log.warning("cannot tell how the hosted models fare", extra=fields(error=str(error)))
            return []

    def _read_rows(self, sources: list[Source]) -> list[Row]:
        rows = []
        now_ns = self._clock_ns()
        for source in sources:
            died_ns = source.died_ns
            try:
                counters = source.view.counters(departed=died_ns is not None, now_ns=now_ns)
            except EngineError:
                continue  # the next scrape will refuse it
            departed_seconds = None if died_ns is None else (now_ns - died_ns) / 1e9
            rejected = sum(counters.rejected.values())
            rows.append(Row(source.publisher, counters.records_read, rejected, departed_seconds))
        return rows
