"""Closing what strangers have sent."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence

_left: list[int] = []


def close_apart(fds: Sequence[int]) -> None:
    """Closes descriptors on a thread of their own.

    Closing the last descriptor of a lingering socket, or of a file on a strange file system, blocks for as long as its
    maker likes. So does closing a Unix socket in whose queue such descriptors wait. The thread doesn't keep the process
    from ending.
    """
    if not fds:
        return
    waiting = (*_left, *fds)
    _left.clear()
    try:
        threading.Thread(target=_close, args=(waiting,), name="close", daemon=True).start()
    except RuntimeError:  # there are no more threads to be had; the next call tries again
        _left.extend(waiting)


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        # Closed all the same: what close() reports is a loss of the file's, not ours.
        with contextlib.suppress(OSError):
            os.close(fd)
