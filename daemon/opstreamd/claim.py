"""A hosted worker's claim: a file that is locked for as long as the worker lives.

The kernel drops the lock with the process, whatever ends it, and names the holder to whoever asks. So any supervisor,
also one that has just started after its forerunner was killed, knows at once who runs a model, and never starts a
second worker. Within the file the holder says how it fares, which outlives it.

The lock is a POSIX record lock: it is not inherited by a child, F_GETLK names its holder without disturbing it, and it
is lost when the holder closes *any* descriptor of the file: a holder doesn't call `look`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import struct
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

_FLOCK: Final = struct.Struct("@hhqqi0q")  # struct flock: type, whence, start, length, pid
_RECORD_BYTES: Final = 4096
_MODE: Final = 0o600  # who may read a file may lock it: keep the worker from it, and be taken for the worker
_REASON_CHARACTERS: Final = 300  # at most 12 bytes each in JSON: fits into the record


class Condition(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    ENDED = "ended"
    """In good order. A worker that has gone without saying so has crashed or was killed."""


@dataclass(frozen=True)
class Record:
    """What a worker says of itself. `restarts` counts all the model's workers that followed one without a good end."""

    pid: int
    digest: str
    condition: Condition
    reason: str
    restarts: int


@dataclass(frozen=True)
class Sight:
    """A claim as others see it: `holder` is the pid of the worker that lives, 0 when there is none.

    `record` is the holder's, or the last one's; None while there is none that can be read.
    """

    holder: int
    record: Record | None

    @property
    def up(self) -> bool:
        """The model is loaded and subscribed by a worker that lives."""
        return self._speaks and self.record is not None and self.record.condition == Condition.RUNNING

    @property
    def digest(self) -> str:
        """The holder's, "" while it has not said it yet."""
        return self.record.digest if self.record is not None and self._speaks else ""

    @property
    def _speaks(self) -> bool:
        return self.holder != 0 and self.record is not None and self.record.pid == self.holder


class Claim:
    """The worker's own side."""

    def __init__(self, fd: int, record: Record) -> None:
        self._fd = fd
        self._record = record
        self._write()

    @classmethod
    def take(cls, path: Path, digest: str) -> Self | None:
        """Takes the claim for the rest of this process's life, or gives None when another worker has it.

        Raises OSError where there is no room for it, or no right to it.
        """
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
        os.fchmod(fd, _MODE)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, says POSIX
            os.close(fd)
            return None
        last = _read(fd)
        restarts = 0 if last is None else last.restarts + (last.condition != Condition.ENDED)
        return cls(fd, Record(os.getpid(), digest, Condition.STARTING, "", restarts))

    def report(self, condition: Condition, reason: str = "") -> None:
        self._record = dataclasses.replace(self._record, condition=condition, reason=reason[:_REASON_CHARACTERS])
        # Some file systems need room for a change too: no reason to stop the model.
        with contextlib.suppress(OSError):
            self._write()

    def _write(self) -> None:
        # One write of one page, so that who reads at the same time sees the old or the new.
        os.pwrite(self._fd, json.dumps(dataclasses.asdict(self._record)).encode().ljust(_RECORD_BYTES), 0)


def look(path: Path) -> Sight:
    """What others can tell of a claim: blocks for a read of the disk at most."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return Sight(0, None)
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, asked))
        return Sight(0 if kind == fcntl.F_UNLCK else pid, _read(fd))
    finally:
        os.close(fd)


def _read(fd: int) -> Record | None:
    try:
        values = json.loads(os.pread(fd, _RECORD_BYTES, 0))
        return Record(
            pid=int(values["pid"]),
            digest=str(values["digest"]),
            condition=Condition(values["condition"]),
            reason=str(values["reason"]),
            restarts=int(values["restarts"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
