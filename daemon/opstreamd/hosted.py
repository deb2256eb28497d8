"""Supervises the workers of the hosted models: one process each, started again when it ends.

A worker has a session of its own and may outlive a supervisor that is killed. Who runs a model is told by the worker's
claim (claim.py), a lock that it holds as long as it lives: a supervisor adopts the worker that holds it, ends one whose
configuration is outdated, and starts one where there is none. So it needs not wait for workers to make themselves
heard. A state directory has one supervisor: a second one would end what the first one has started.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from opstreamd import claim, configfile, log
from opstreamd.assignment import Assignment, assignments, claims_folder
from opstreamd.backoff import Backoff
from opstreamd.config import Config
from opstreamd.process import Process

_log = logging.getLogger("opstreamd.hosted")

_SETTLE_SECONDS = 0.05
_SETTLE_TRIES = 20
"""A worker writes its claim's record right after it has taken it."""


@dataclass(frozen=True)
class Standing:
    """How one hosted model fares, for the daemon's own metrics."""

    model: str
    device: int
    up: bool
    restarts: int


def standings(config: Config) -> list[Standing]:
    """Of all configured models, whoever supervises them. No scrape fails for a claim that can't be read."""
    found = []
    for assignment in assignments(config):
        try:
            sight = claim.look(assignment.claim_path(config.state.directory))
        except OSError:
            sight = claim.Sight(0, None)
        restarts = sight.record.restarts if sight.record is not None else 0
        found.append(Standing(assignment.name, assignment.device, sight.up, restarts))
    return found


class SupervisorInUse(Exception):
    """Another supervisor has the state directory."""


class Supervisor:
    """Keeps one worker for each hosted model running while its context lasts, and ends them all with it.

    Entering it raises SupervisorInUse, or OSError where the state directory can't be written.
    """

    def __init__(self, config: Config, *, log_level: str = "info", log_format: log.Format = "logfmt") -> None:
        self._assignments = assignments(config)
        self._state_directory = config.state.directory
        self._log_flags = [f"--log.level={log_level}", f"--log.format={log_format}"]
        self._processes: dict[Path, Process] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._reign = contextlib.ExitStack()

    async def __aenter__(self) -> Self:
        folder = claims_folder(self._state_directory)
        if not self._assignments and not folder.exists():
            return self
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._reign.enter_context(_alone(folder))
        except SupervisorInUse:
            if self._assignments:
                raise
            return self  # without models there is nothing to quarrel about
        configured = {self._path(assignment) for assignment in self._assignments}
        await _end_all(_holders(path for path in folder.glob("*.claim") if path not in configured))
        self._tasks = [asyncio.create_task(self._keep(assignment)) for assignment in self._assignments]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        # A worker that there was no time to adopt is ended as well.
        pids = {process.pid for process in self._processes.values()}
        others = _holders(self._path(assignment) for assignment in self._assignments)
        await _end_all([*self._processes.values(), *(other for other in others if other.pid not in pids)])
        self._reign.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _keep(self, assignment: Assignment) -> None:
        """Keeps the assignment's worker running, for ever."""
        backoff = Backoff()
        while True:
            began = time.monotonic()
            try:
                ending = await self._run(assignment)
            except OSError as error:
                ending = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
            wait_seconds = backoff.after(time.monotonic() - began)
            _log.warning(
                "hosted worker ended",
                extra=log.fields(
                    **_fields(assignment),
                    ending=ending or "unknown, it was adopted",
                    reason=self._reason(assignment),
                    restart_in=f"{wait_seconds:g}s",
                ),
            )
            await asyncio.sleep(wait_seconds)

    async def _run(self, assignment: Assignment) -> str:
        """Finds or starts a worker, and waits for its end."""
        path = self._path(assignment)
        process = Process.holder(path)
        if process is not None:
            self._processes[path] = process
            if await self._digest(path, process) == assignment.digest:
                _log.info("hosted worker adopted", extra=log.fields(**_fields(assignment), pid=process.pid))
                return await process.wait()
            _log.info("hosted worker is outdated", extra=log.fields(**_fields(assignment), pid=process.pid))
            await process.end()
        process = self._processes[path] = Process.spawn(self._command(assignment))
        _log.info("hosted worker started", extra=log.fields(**_fields(assignment), pid=process.pid))
        return await process.wait()

    async def _digest(self, path: Path, process: Process) -> str:
        """What the holder says it works on; "" when it has ended or says nothing that can be read."""
        for _ in range(_SETTLE_TRIES):
            sight = claim.look(path)
            if sight.digest or sight.holder != process.pid:
                return sight.digest
            await asyncio.sleep(_SETTLE_SECONDS)
        return ""

    def _reason(self, assignment: Assignment) -> str:
        """Why the last worker failed, in its own words, when it had any."""
        path = self._path(assignment)
        try:
            record = claim.look(path).record
        except OSError:
            return ""
        process = self._processes.get(path)
        return record.reason if record is not None and process is not None and record.pid == process.pid else ""

    def _command(self, assignment: Assignment) -> list[str]:
        # -P: the working directory is no place to import from.
        python = [sys.executable, "-P", "-m", "opstreamd.worker"]
        return [*python, f"--state.directory={self._state_directory}", *self._log_flags, assignment.to_json()]

    def _path(self, assignment: Assignment) -> Path:
        return assignment.claim_path(self._state_directory)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps other supervisors from the folder. The kernel drops the lock with the process; no worker inherits it."""
    fd = os.open(folder / "supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SupervisorInUse(f"another `serve` or `hosted` supervises the workers of {folder}") from None
        yield
    finally:
        os.close(fd)


def _fields(assignment: Assignment) -> dict[str, object]:
    return {"model": assignment.name, "device": assignment.device}


def _holders(paths: Iterable[Path]) -> list[Process]:
    """The workers that hold these claims; what can't be told of one hides none of the others."""
    found = []
    for path in paths:
        try:
            process = Process.holder(path)
        except OSError as error:
            _log.error("claim not readable", extra=log.fields(path=path, reason=error.strerror))
        else:
            found += [process] if process is not None else []
    return found


async def _end_all(processes: Iterable[Process]) -> None:
    """Ends them side by side; one that can't be signalled (somebody else's) keeps none of the others alive."""
    for result in await asyncio.gather(*(process.end() for process in processes), return_exceptions=True):
        if isinstance(result, OSError):
            _log.error("hosted worker not ended", extra=log.fields(reason=result.strerror))


async def supervise(config: Config, *, log_level: str, log_format: log.Format) -> None:
    """`opstreamd hosted`: supervises until SIGTERM or SIGINT."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with Supervisor(config, log_level=log_level, log_format=log_format):
        await told.wait()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="opstreamd hosted", description="Supervises the workers of hosted models.")
    configfile.add_flags(parser, "agent", "state")
    log.add_flags(parser)
    options = parser.parse_args(arguments)
    log.set_up(options.log_level, options.log_format)
    config = configfile.from_flags(options)
    if not config.hosted.models:
        _log.warning("the configuration has no hosted models")
        return 0
    try:
        asyncio.run(supervise(config, log_level=options.log_level, log_format=options.log_format))
    except (OSError, SupervisorInUse) as error:
        _log.error("cannot run", extra=log.fields(error=str(error)))
        return 1
    return 0
