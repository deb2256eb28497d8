"""One scrape: equal series are merged, budgets add up, departed publishers stay a while, torn ones harm nobody."""

import asyncio
import contextlib
import fcntl
import mmap
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from segments import SEALS, Peer, Segment, configuration, on_loop

from opstreamd.collector import SETTLE_SECONDS, Collector, NotReady
from opstreamd.config import Config, Limits, State
from opstreamd.durations import Duration
from opstreamd.publishers import Publishers

Samples = dict[str, dict[frozenset[tuple[str, str]], float]]


class Clock:
    """Runs with the machine's, ahead of it: publishers' times are the machine's."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def __call__(self) -> int:
        return time.monotonic_ns() + self.ahead_ns


class Application:
    """A process that runs a simulated model so many times, says how many records that made, and stays."""

    CODE = """
import os, sys
from pathlib import Path
from opstreamd.engine import HostedModel, Kind, Publisher, simulator_path
folders = str(simulator_path())
model = HostedModel("resnet50", 0, library_path=folders)
os.setuid(int(sys.argv[4]))
publisher = Publisher(
    kind=Kind.AGENT, app=sys.argv[2], labels=sys.argv[3], socket_path=Path(sys.argv[1]), library_path=folders
)
publisher.subscribe(model.id, 0, "resnet50")
for line in sys.stdin:
    for _ in range(int(line)):
        model.execute()
    publisher.unsubscribe(model.id)
    publisher.subscribe(model.id, 0, "resnet50")
    print("done", flush=True)
publisher.unsubscribe(model.id)
model.close()
publisher.close()
"""

    def __init__(self, config: Config, app: str, labels: str = "", *, user: int = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.CODE, config.agent.socket, app, labels, str(user or os.getuid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPSTREAM_SIM_SPEED": "0"},
        )

    def start(self, executions: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{executions}\n".encode())
        self.process.stdin.flush()

    async def done(self) -> None:
        """Everything that was started is executed, and counted."""
        assert self.process.stdout is not None
        assert await asyncio.to_thread(self.process.stdout.readline) == b"done\n"

    async def end(self) -> None:
        await asyncio.to_thread(self.process.communicate)
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextlib.asynccontextmanager
async def collecting(**sections: Any) -> AsyncIterator[tuple[Collector, Publishers, Config]]:
    """A collector that has settled."""
    with configuration(**sections) as config:
        clock = Clock()
        publishers = Publishers(config)
        collector = Collector(config, publishers, clock_ns=clock)
        clock.ahead_ns = int(SETTLE_SECONDS * 1e9)
        publishers.open()
        try:
            yield collector, publishers, config
        finally:
            publishers.close()
            collector.close()


def live(count: int) -> Callable[[Publishers], bool]:
    return lambda publishers: sum(publisher.live for publisher in publishers.all()) == count


def parse(text: bytes) -> Samples:
    samples: Samples = defaultdict(dict)
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            assert labels not in samples[sample.name], f"{sample.name} is there twice"
            samples[sample.name][labels] = sample.value
    return samples


def total(samples: Samples, name: str, **labels: str) -> float:
    return sum(value for found, value in samples[name].items() if found >= labels.items())


def check_budget(samples: Samples) -> None:
    """read = recorded + rejected, for every app; and executions are not behind."""
    read = samples["opstreamd_records_read_total"]
    assert set(read) == set(samples["opstreamd_records_recorded_total"])
    for (label,) in read:
        app = dict([label])["app"]
        recorded = total(samples, "opstreamd_records_recorded_total", app=app)
        assert total(samples, "opstreamd_records_read_total", app=app) == recorded + total(
            samples, "opstreamd_records_rejected_total", app=app
        )


@on_loop
async def test_nothing_is_answered_before_publishers_could_return() -> None:
    with configuration() as config:
        clock = Clock()
        collector = Collector(config, Publishers(config), clock_ns=clock)
        with pytest.raises(NotReady, match="waiting for the publishers"):
            await collector.text()
        clock.ahead_ns = int(SETTLE_SECONDS * 1e9)
        assert await collector.text()
        collector.close()


@on_loop
async def test_equal_series_of_two_publishers_become_one() -> None:
    async with collecting() as (collector, publishers, config):
        applications = [Application(config, "serving", "pod=a"), Application(config, "serving", "pod=a")]
        try:
            for number, application in enumerate(applications):
                application.start(10 * (number + 1))
                await application.done()
            await publishers.wait_for(live(2))
            samples = parse(await collector.text())
            check_budget(samples)
            executions = total(samples, "ascend_model_execution_duration_seconds_count", app="serving", pod="a")
            assert executions == 30
            # The records are the operators' runs and one of each whole execution.
            runs = total(samples, "ascend_op_executions_total", app="serving", model="resnet50", device="0", pod="a")
            assert runs + executions == total(samples, "opstreamd_records_recorded_total", app="serving")
            assert total(samples, "opstreamd_publishers", state="live") == 2
            assert total(samples, "opstreamd_subscriptions", app="serving", state="subscribed") == 2
            assert total(samples, "opstreamd_series") > 0
        finally:
            for application in applications:
                application.kill()


@on_loop
async def test_the_budget_is_exact_in_every_scrape() -> None:
    async with collecting() as (collector, publishers, config):
        application = Application(config, "busy")
        try:
            application.start(2000)
            await publishers.wait_for(live(1))
            done = asyncio.create_task(application.done())
            scrapes = 0
            last = 0.0
            while not done.done():
                samples = parse(await collector.text())
                check_budget(samples)
                read = total(samples, "opstreamd_records_read_total", app="busy")
                assert read >= last
                last = read
                scrapes += 1
            assert scrapes > 1
            await done
            application.kill()
            await publishers.wait_for(live(0))
            samples = parse(await collector.text())
            check_budget(samples)
            assert total(samples, "opstreamd_records_read_total", app="busy") >= last
        finally:
            application.kill()


@on_loop
async def test_a_departed_publishers_values_stay_as_they_are_and_vanish_at_once() -> None:
    async with collecting(state=State(retention=Duration.parse("2s"))) as (collector, publishers, config):
        application = Application(config, "brief")
        application.start(5)
        await application.done()
        await publishers.wait_for(live(1))
        before = parse(await collector.text())
        await application.end()
        await publishers.wait_for(live(0))
        after = parse(await collector.text())
        for name in ("ascend_op_executions_total", "ascend_op_seconds_total", "opstreamd_records_read_total"):
            assert before[name]
            assert before[name] == after[name]
        assert total(after, "opstreamd_publishers", state="departed") == 1
        assert total(after, "opstreamd_subscriptions", app="brief") == 0
        again = parse(await collector.text())
        assert again["ascend_subscribed_seconds_total"] == after["ascend_subscribed_seconds_total"]
        await publishers.wait_for(lambda them: not them.all())
        gone = parse(await collector.text())
        assert not [name for name in gone if name.startswith("ascend_")]
        assert "brief" not in (await collector.text()).decode()


@on_loop
async def test_scrapes_that_wait_together_share_one_rendering() -> None:
    async with collecting() as (collector, _, config):
        with Peer(config.agent.socket) as peer:
            peer.hello(Segment.make())
            await peer.welcomed()
            texts = await asyncio.gather(*(collector.text() for _ in range(20)))
            assert all(text is texts[0] for text in texts)
            assert await collector.text() is not texts[0]


@on_loop
async def test_a_scrape_that_is_given_up_does_not_take_others_with_it() -> None:
    async with collecting() as (collector, _, _config):
        given_up, waiting = asyncio.create_task(collector.text()), asyncio.create_task(collector.text())
        await asyncio.sleep(0)
        given_up.cancel()
        assert await waiting


@on_loop
async def test_names_are_escaped() -> None:
    async with collecting() as (collector, _, config):
        app = 'a"b\\c\nd\x85e'
        with Peer(config.agent.socket) as peer:
            peer.hello(Segment.make(app))
            await peer.welcomed()
            samples = parse(await collector.text())
            assert frozenset({("app", app)}) in samples["opstreamd_records_read_total"]


@on_loop
async def test_a_segment_that_is_torn_later_is_expelled_and_the_others_stay() -> None:
    async with collecting() as (collector, publishers, config):
        segment = Segment.make("liar")
        fd = os.memfd_create("segment", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(fd, segment.data)
        with mmap.mmap(fd, 0) as memory, Peer(config.agent.socket) as honest, Peer(config.agent.socket) as liar:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
            liar.send(segment.hello, fd)
            os.close(fd)
            await liar.welcomed()
            honest.hello(Segment.make("honest"))
            await honest.welcomed()
            assert b'app="liar"' in await collector.text()
            start = memory.find(segment.hello.uuid)
            # All that is used for counting, from the end of the identity's bounds on: nonsense.
            bounds_end = start + 784 + 269 * 8
            memory[bounds_end:] = b"\xff" * (len(memory) - bounds_end)
            samples = parse(await collector.text())
            assert (await liar.refused()).text
            assert [publisher.app for publisher in publishers.all()] == ["honest"]
            assert frozenset({("app", "honest")}) in samples["opstreamd_records_read_total"]
            assert frozenset({("app", "liar")}) not in samples["opstreamd_records_read_total"]
            assert publishers.refusals["layout"] == 1


@pytest.mark.parametrize("limits", [Limits(series=3), Limits(exposition_bytes=100)], ids=["series", "bytes"])
def test_who_goes_beyond_the_limits_is_expelled_and_the_others_stay(limits: Limits) -> None:
    @on_loop
    async def scenario() -> None:
        async with collecting(limits=limits) as (collector, publishers, config):
            application = Application(config, "large")
            try:
                with Peer(config.agent.socket) as small:
                    small.hello(Segment.make("small"))
                    await small.welcomed()
                    application.start(1)
                    await application.done()
                    await publishers.wait_for(live(2))
                    samples = parse(await collector.text())
                    assert [publisher.app for publisher in publishers.all()] == ["small"]
                    assert set(samples["opstreamd_records_read_total"]) == {frozenset({("app", "small")})}
                    assert not [name for name in samples if name.startswith("ascend_")]
                    assert publishers.refusals["quota"] == 1
            finally:
                application.kill()

    scenario()


def test_who_takes_most_makes_room_and_not_who_comes_last() -> None:
    @on_loop
    async def scenario() -> None:
        probe = await series_of_one_application()
        async with collecting(limits=Limits(series=2 * probe + 1)) as (collector, publishers, config):
            Path(config.agent.socket).parents[1].chmod(0o755)
            greedy = [Application(config, f"greedy{number}") for number in range(2)]
            modest = Application(config, "modest", user=65534)
            try:
                for application in [*greedy, modest]:
                    application.start(1)
                    await application.done()
                await publishers.wait_for(live(3))
                await collector.text()
                left = {publisher.app for publisher in publishers.all()}
                assert "modest" in left
                assert len(left) == 2
                assert publishers.refusals["quota"] == 1
            finally:
                for application in [*greedy, modest]:
                    application.kill()

    scenario()


async def series_of_one_application() -> int:
    async with collecting() as (collector, publishers, config):
        application = Application(config, "probe")
        try:
            application.start(1)
            await application.done()
            await publishers.wait_for(live(1))
            samples = parse(await collector.text())
            return int(next(iter(samples["opstreamd_series"].values())))
        finally:
            application.kill()
