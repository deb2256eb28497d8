"""A hosted worker: a process that loads one model, subscribes to it and executes it, until it is told to end.

    python -m opstreamd.worker --state.directory DIR [--log.level L] [--log.format F] ASSIGNMENT

It has a session of its own and outlives a killed supervisor. SIGTERM, or a whole `retention` without a daemon, ends it
in good order. A failed subscription is tried again while the worker stays, so that the daemon sees it; every other
failure ends the worker, and its supervisor starts another.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from opstreamd import engine, log
from opstreamd.assignment import Assignment, Exit
from opstreamd.backoff import Backoff
from opstreamd.claim import Claim, Condition
from opstreamd.durations import Duration
from opstreamd.labels import HOSTED_APP

_log = logging.getLogger("opstreamd.worker")

_LOOK_NS = 1_000_000_000
"""How often an idle worker looks whether the daemon is there."""

COMPLAIN_NS = 5 * 10**9
"""A daemon that was restarted is back by then."""


class Told(Exception):
    """The worker is to end in good order."""


class Failure(Exception):
    """The worker can't go on. `status` is its exit status."""

    def __init__(self, status: Exit, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Patience:
    """Bears the daemon's absence for a time."""

    def __init__(self, retention_ns: int, now_ns: int) -> None:
        self._retention_ns = retention_ns
        self._seen_ns = now_ns
        self._complained = False

    def ends(self, *, connected: bool, now_ns: int) -> bool:
        """Whether the daemon has been away for longer than that."""
        if connected:
            self._seen_ns = now_ns
            self._complained = False
        return now_ns - self._seen_ns > self._retention_ns

    def complains(self, now_ns: int) -> bool:
        """Whether it is time to say that the daemon is away: once an absence."""
        complains = not self._complained and now_ns - self._seen_ns > COMPLAIN_NS
        self._complained |= complains
        return complains


def next_start_ns(start_ns: int, interval_ns: int, now_ns: int) -> int:
    """When to execute again: the starts that were missed are skipped, the others keep their places in time."""
    if interval_ns == 0:
        return now_ns
    intervals = max(1, -((start_ns - now_ns) // interval_ns))
    return start_ns + intervals * interval_ns


class Worker:
    """One run of one model. Each method ends by raising Told or Failure when the worker can't or is not to go on."""

    def __init__(self, assignment: Assignment, claim: Claim, signal_fd: int) -> None:
        self._assignment = assignment
        self._claim = claim
        self._signal_fd = signal_fd
        self._patience = Patience(assignment.retention_ns, time.monotonic_ns())
        self._fields = {"model": assignment.name, "device": assignment.device}

    def run(self) -> Exit:
        """The worker's whole life, after which its claim says how it ended."""
        try:
            # From the inside out: the publisher unsubscribes and says goodbye before the model is unloaded.
            with self._load() as model, self._publish() as publisher:
                self._subscribe(publisher, model)
                self._execute(publisher, model)
        except Told as told:
            self._claim.report(Condition.ENDED)
            _log.info("hosted worker ends", extra=log.fields(**self._fields, reason=str(told)))
        except Failure as failure:
            self._claim.report(Condition.FAILED, str(failure))
            _log.error("hosted worker failed", extra=log.fields(**self._fields, reason=str(failure)))
            return failure.status
        return Exit.DONE

    def _load(self) -> engine.HostedModel:
        try:
            model = engine.HostedModel(
                self._assignment.model, self._assignment.device, library_path=library_path(self._assignment)
            )
        except engine.LibraryError as error:
            raise Failure(Exit.LIBRARY, f"no vendor library: {error}") from error
        except engine.EngineError as error:
            raise Failure(Exit.MODEL, f"the model does not load: {error}") from error
        _log.info("model loaded", extra=log.fields(**self._fields, path=self._assignment.model))
        return model

    def _publish(self) -> engine.Publisher:
        try:
            return engine.Publisher(
                kind=engine.Kind.HOSTED,
                app=HOSTED_APP,
                socket_path=Path(self._assignment.socket),
                hosted_name=self._assignment.name,
                config_digest=self._assignment.digest,
                library_path=library_path(self._assignment),
            )
        except engine.LibraryError as error:
            raise Failure(Exit.LIBRARY, f"no vendor library: {error}") from error
        except engine.EngineError as error:
            raise Failure(Exit.PUBLISHER, f"no publisher: {error}") from error

    def _subscribe(self, publisher: engine.Publisher, model: engine.HostedModel) -> None:
        """Asks until it works: the publisher stays, so that the daemon sees and counts the failures."""
        backoff = Backoff()
        while True:
            try:
                publisher.subscribe(model.id, self._assignment.device, self._assignment.name)
            except engine.EngineError as error:
                if error.code == engine.Status.STATE:
                    break  # the publisher has tried again by itself
                wait_seconds = backoff.after(0)
                self._claim.report(Condition.FAILED, str(error))
                _log.error(
                    "subscription failed",
                    extra=log.fields(**self._fields, reason=str(error), retry_in=f"{wait_seconds:g}s"),
                )
                self._pause_until(time.monotonic_ns() + int(wait_seconds * 1e9), publisher)
            else:
                break
        self._claim.report(Condition.RUNNING)
        _log.info("model subscribed", extra=log.fields(**self._fields))

    def _execute(self, publisher: engine.Publisher, model: engine.HostedModel) -> NoReturn:
        done = 0
        start_ns = time.monotonic_ns()
        while self._assignment.executions == 0 or done < self._assignment.executions:
            self._pause_until(start_ns, publisher)
            try:
                model.execute()
            except engine.EngineError as error:
                raise Failure(Exit.EXECUTION, str(error)) from error
            done += 1
            start_ns = next_start_ns(start_ns, self._assignment.interval_ns, time.monotonic_ns())
        _log.info("all executions done", extra=log.fields(**self._fields, executions=done))
        while True:
            self._pause_until(time.monotonic_ns() + _LOOK_NS, publisher)

    def _pause_until(self, until_ns: int, publisher: engine.Publisher) -> None:
        """Waits until then, and looks at least once whether the worker is to end."""
        while True:
            now_ns = time.monotonic_ns()
            if self._patience.ends(connected=publisher.link_state == engine.LinkState.UP, now_ns=now_ns):
                raise Told(f"no daemon for {Duration(self._assignment.retention_ns)}")
            if self._patience.complains(now_ns):
                _log.warning("no daemon answers", extra=log.fields(**self._fields, socket=self._assignment.socket))
            wait_ns = min(max(0, until_ns - now_ns), _LOOK_NS)
            told, _, _ = select.select([self._signal_fd], [], [], wait_ns / 1e9)
            if told:
                raise Told("a signal")
            if time.monotonic_ns() >= until_ns:
                return


def library_path(assignment: Assignment) -> str:
    """The folders to search for the vendor's libraries."""
    simulator = str(engine.simulator_path()) if assignment.simulator else ""
    return ":".join(folders for folders in (simulator, assignment.library_path) if folders)


@contextlib.contextmanager
def ending_signals() -> Iterator[int]:
    """Gives a descriptor that becomes readable with SIGTERM and SIGINT; an execution that runs is not interrupted."""
    readable, writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    try:
        yield readable
    finally:
        signal.set_wakeup_fd(-1)
        os.close(writable)
        os.close(readable)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m opstreamd.worker")
    parser.add_argument("--state.directory", dest="state_directory", required=True)
    log.add_flags(parser)
    parser.add_argument("assignment", type=Assignment.from_json)
    options = parser.parse_args()
    log.set_up(options.log_level, options.log_format)
    assignment: Assignment = options.assignment
    with ending_signals() as signal_fd:
        path = assignment.claim_path(options.state_directory)
        try:
            claim = Claim.take(path, assignment.digest)
        except OSError as error:
            reason = f"{path}: {error.strerror}"
            _log.error("model not claimed", extra=log.fields(model=assignment.name, reason=reason))
            return Exit.CLAIM
        if claim is None:
            _log.info("another worker has the model", extra=log.fields(model=assignment.name, device=assignment.device))
            return Exit.TAKEN
        return Worker(assignment, claim, signal_fd).run()


if __name__ == "__main__":
    sys.exit(main())
