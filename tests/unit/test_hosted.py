"""The supervisor with real workers on the simulator: started, adopted, replaced and ended. It needs no daemon."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from opstreamd import claim
from opstreamd.assignment import Assignment, Exit, assignments
from opstreamd.claim import Condition, Record, Sight
from opstreamd.config import Acl, Agent, Config, Hosted, HostedModel, State
from opstreamd.durations import Duration
from opstreamd.hosted import Standing, Supervisor, SupervisorInUse, standings

T = TypeVar("T")

MODEL = HostedModel("canary", "resnet50", interval=Duration.parse("20ms"))


class Place:
    """A configuration in a folder of its own, and what its only model's claim says."""

    def __init__(self, folder: Path) -> None:
        self.config = Config(
            agent=Agent(socket=str(folder / "agent.sock")),
            state=State(directory=str(folder)),
            acl=Acl(simulator=True),
            hosted=Hosted(models=(MODEL,)),
        )

    @property
    def assignment(self) -> Assignment:
        (assignment,) = assignments(self.config)
        return assignment

    @property
    def standing(self) -> Standing:
        (standing,) = standings(self.config)
        return standing

    def change(self, **values: object) -> None:
        """Changes keys of the model."""
        model = dataclasses.replace(self.config.hosted.models[0], **values)  # type: ignore[arg-type]
        self.config = dataclasses.replace(self.config, hosted=Hosted(models=(model,)))

    def look(self) -> Sight:
        return claim.look(self.assignment.claim_path(self.config.state.directory))

    async def running(self) -> int:
        """The pid of the worker that runs the model as it is configured, once there is one."""

        def find() -> int:
            sight = self.look()
            return sight.holder if sight.up and sight.digest == self.assignment.digest else 0

        return await until(find)

    async def failed(self) -> Record:
        def find() -> Record | None:
            record = self.look().record
            return record if record is not None and record.condition == Condition.FAILED else None

        return await until(find)

    def abandoned(self) -> int:
        """The pid of a worker whose supervisor was killed."""
        folder = Path(self.config.state.directory)
        file = folder / "opstreamd.toml"
        file.write_text(
            f'agent.socket = "{self.config.agent.socket}"\nstate.directory = "{folder}"\nacl.simulator = true\n'
            '[[hosted.models]]\nname = "canary"\nmodel = "resnet50"\ninterval = "20ms"\n'
        )
        command = [sys.executable, "-c", "import sys; from opstreamd.hosted import main; main(sys.argv[1:])"]
        with subprocess.Popen([*command, f"--config.file={file}"]) as supervisor:
            pid = asyncio.run(self.running())
            supervisor.kill()
        return pid

    @contextlib.asynccontextmanager
    async def supervised(self) -> AsyncIterator[int]:
        """Under a supervisor, with the worker's pid."""
        async with Supervisor(self.config, log_level="error"):
            yield await self.running()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("OPSTREAM_SIM_SPEED", "0")
    place = Place(tmp_path)
    yield place
    for path in tmp_path.glob("hosted/*.claim"):
        if holder := claim.look(path).holder:
            os.kill(holder, signal.SIGKILL)


async def until(find: Callable[[], T]) -> T:
    async with asyncio.timeout(90):
        while not (found := find()):  # noqa: ASYNC110  # what is waited for happens in other processes
            await asyncio.sleep(0.02)
        return found


def run(test: Coroutine[None, None, None]) -> None:
    asyncio.run(test)


def test_a_worker_runs_while_supervised_and_ends_in_good_order(place: Place) -> None:
    async def test() -> None:
        async with place.supervised() as pid:
            assert os.getsid(pid) == pid, "it has no session of its own"
            assert place.look().digest == place.assignment.digest
            assert place.standing == Standing("canary", 0, up=True, restarts=0)
        sight = place.look()
        assert sight.holder == 0
        assert sight.record is not None
        assert sight.record.condition == Condition.ENDED
        assert place.standing == Standing("canary", 0, up=False, restarts=0)

    run(test())


def test_models_have_workers_of_their_own(place: Place) -> None:
    second = dataclasses.replace(MODEL, device=1)
    place.config = dataclasses.replace(place.config, hosted=Hosted(models=(MODEL, second)))

    paths = [assignment.claim_path(place.config.state.directory) for assignment in assignments(place.config)]

    async def test() -> None:
        async with Supervisor(place.config, log_level="error"):
            await until(lambda: all(standing.up for standing in standings(place.config)))
            assert len({claim.look(path).holder for path in paths}) == 2

    run(test())


def test_a_killed_worker_is_replaced_and_counted(place: Place) -> None:
    async def test() -> None:
        async with place.supervised() as first:
            os.kill(first, signal.SIGKILL)
            second = await until(lambda: place.look().holder if place.look().holder not in (0, first) else 0)
            assert await place.running() == second
            assert place.standing.restarts == 1

    run(test())


def test_a_worker_outlives_a_killed_supervisor_and_is_adopted(place: Place) -> None:
    pid = place.abandoned()

    async def test() -> None:
        async with place.supervised() as adopted:
            assert adopted == pid
        assert place.look().holder == 0, "an adopted worker is ended as well"
        assert place.standing.restarts == 0

    run(test())


def test_an_adopted_worker_that_dies_is_replaced(place: Place) -> None:
    pid = place.abandoned()

    async def test() -> None:
        async with place.supervised() as adopted:
            assert adopted == pid
            os.kill(adopted, signal.SIGKILL)
            await until(lambda: place.look().holder not in (0, adopted))

    run(test())


def test_an_outdated_worker_is_replaced_in_good_order(place: Place) -> None:
    pid = place.abandoned()
    place.change(interval=Duration.parse("30ms"))

    async def test() -> None:
        async with place.supervised() as second:
            assert second != pid
            assert place.standing.restarts == 0

    run(test())


def test_a_worker_of_a_model_that_is_no_longer_configured_is_ended(place: Place) -> None:
    path = place.assignment.claim_path(place.config.state.directory)
    pid = place.abandoned()
    place.config = dataclasses.replace(place.config, hosted=Hosted())

    async def test() -> None:
        assert claim.look(path).holder == pid
        async with Supervisor(place.config):
            assert claim.look(path).holder == 0

    run(test())


def test_a_worker_that_does_not_end_is_killed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opstreamd.process.GRACE_SECONDS", 0.1)

    async def test() -> None:
        async with place.supervised() as pid:
            os.kill(pid, signal.SIGSTOP)
        sight = place.look()
        assert sight.holder == 0
        assert sight.record is not None
        assert sight.record.condition == Condition.RUNNING

    run(test())


def test_without_models_nothing_is_written(place: Place) -> None:
    place.config = dataclasses.replace(place.config, hosted=Hosted())

    async def test() -> None:
        async with Supervisor(place.config):
            assert os.listdir(place.config.state.directory) == []

    run(test())


def test_a_claim_that_cannot_be_read_is_nobodys(place: Place) -> None:
    path = place.assignment.claim_path(place.config.state.directory)
    path.parent.mkdir()
    path.symlink_to("elsewhere")
    assert place.standing == Standing("canary", 0, up=False, restarts=0)

    async def test() -> None:
        async with Supervisor(place.config):
            pass

    run(test())
    path.unlink()


def test_a_model_that_does_not_load_is_marked_and_tried_again(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.change(model="/no/such/model.om")

    async def test() -> None:
        async with Supervisor(place.config, log_level="error"):
            assert (await place.failed()).reason.startswith("the model does not load: ")
            await until(lambda: place.standing.restarts >= 1)
            assert not place.standing.up

    with caplog.at_level(logging.WARNING):
        run(test())
    fields = next(record.fields for record in caplog.records if record.msg == "hosted worker ended")  # type: ignore[attr-defined]
    assert fields["ending"] == "exit status 13 (model)"
    assert fields["reason"].startswith("the model does not load: ")
    assert fields["restart_in"] == "1s"


def test_a_missing_library_is_named(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    place.config = dataclasses.replace(place.config, acl=Acl(library_path=(str(tmp_path),)))

    async def test() -> None:
        async with Supervisor(place.config, log_level="error"):
            reason = (await place.failed()).reason
            assert reason.startswith("no vendor library: ")
            assert "libascendcl.so" in reason

    run(test())


def test_a_failed_subscription_is_named_and_tried_again_by_the_same_worker(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPSTREAM_SIM_FAULTS", "subscribe=148046:1")

    async def test() -> None:
        async with Supervisor(place.config, log_level="error"):
            failed = await place.failed()
            assert "148046" in failed.reason
            assert await place.running() == failed.pid
            assert place.standing.restarts == 0

    run(test())


def test_a_worker_without_a_daemon_ends_itself_after_retention(place: Place) -> None:
    state = dataclasses.replace(place.config.state, retention=Duration.parse("1s"))
    place.config = dataclasses.replace(place.config, state=state)

    async def test() -> None:
        async with place.supervised() as pid:
            await until(lambda: place.look().holder != pid)
            record = place.look().record
            assert record is not None
            assert record.condition != Condition.FAILED
            assert place.standing.restarts == 0

    run(test())


def test_a_state_directory_has_one_supervisor(place: Place) -> None:
    async def test() -> None:
        without_models = dataclasses.replace(place.config, hosted=Hosted())
        async with place.supervised() as pid:
            with pytest.raises(SupervisorInUse, match="another"):
                async with Supervisor(place.config, log_level="error"):
                    pass
            async with Supervisor(without_models, log_level="error"):
                pass
            assert place.look().holder == pid
        async with place.supervised() as pid:
            assert place.look().holder == pid

    run(test())


def test_a_claim_that_cannot_be_read_is_tried_again(place: Place) -> None:
    async def test() -> None:
        path = place.assignment.claim_path(place.config.state.directory)
        path.parent.mkdir()
        path.symlink_to("elsewhere")
        seen = asyncio.Event()
        handler = logging.Handler()
        handler.emit = lambda record: seen.set() if record.getMessage() == "hosted worker ended" else None  # type: ignore[method-assign]
        logging.getLogger("opstreamd.hosted").addHandler(handler)
        try:
            async with Supervisor(place.config, log_level="error"):
                await seen.wait()
                path.unlink()
                assert await place.running()
        finally:
            logging.getLogger("opstreamd.hosted").removeHandler(handler)

    run(test())


def test_a_worker_that_cannot_take_its_claim_says_why(place: Place) -> None:
    missing = place.config.state.directory + "/missing"
    command = [sys.executable, "-m", "opstreamd.worker", f"--state.directory={missing}", place.assignment.to_json()]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == Exit.CLAIM
    assert missing in ended.stderr
    assert "Traceback" not in ended.stderr
