"""A hosted worker's process, as its supervisor sees it: by a pidfd, whether it is a child or was adopted."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from opstreamd import claim, log
from opstreamd.assignment import Exit

_log = logging.getLogger("opstreamd.hosted")

GRACE_SECONDS = 10.0
"""What a worker gets to end in good order."""


class Process:
    """A process that this supervisor, or another one, has started. For the event loop's thread."""

    def __init__(self, pidfd: int, pid: int, child: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self._pidfd = pidfd
        self._child = child
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(pidfd, self._end)

    @classmethod
    def spawn(cls, command: Sequence[str]) -> Self:
        # Not asyncio's: its watcher would reap the child behind the pidfd's back.
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        return cls(os.pidfd_open(child.pid), child.pid, child)

    @classmethod
    def holder(cls, path: Path) -> Self | None:
        """The process that holds a claim."""
        pid = claim.look(path).holder
        if pid == 0:
            return None
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        if claim.look(path).holder != pid:  # it ended, and its number may be another's
            os.close(pidfd)
            return None
        return cls(pidfd, pid)

    async def wait(self) -> str:
        """Waits for its end; answers how it ended: a signal's name, an exit status, or "" when nobody told us."""
        await self._ended.wait()
        if self._child is None:
            return ""
        return _ending(self._child.wait())

    async def end(self) -> None:
        """Asks it to end, and kills it when it does not."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self._ended.wait()
        except TimeoutError:
            _log.warning("hosted worker killed: it did not end", extra=log.fields(pid=self.pid))
            self._signal(signal.SIGKILL)
        await self.wait()

    def _signal(self, number: signal.Signals) -> None:
        if not self._ended.is_set():
            try:
                signal.pidfd_send_signal(self._pidfd, number)
            except ProcessLookupError:
                return

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._ended.set()


def _ending(status: int) -> str:
    if status < 0:
        return "signal " + next((known.name for known in signal.Signals if known == -status), str(-status))
    return f"exit status {status}" + "".join(f" ({known.name.lower()})" for known in Exit if known == status)
