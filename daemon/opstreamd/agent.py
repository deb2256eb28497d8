"""Attaches loaded models of this process, for Python programs that cannot preload the agent.

    from opstreamd import agent
    agent.attach(model_id, name="resnet50", device=0)  # after the load
    agent.detach(model_id)                              # before the unload

Where an agent is preloaded, it is asked to, and nothing is counted twice. Else this process becomes a publisher at the
first call, under OPSTREAM_APP, OPSTREAM_LABELS, OPSTREAM_SOCKET and OPSTREAM_DAEMON_UID. Only wrong arguments raise:
with anything else wrong the answer is False, and the logger "opstreamd.agent" says why. Any thread. A forked child
starts anew. OPSTREAM_DISABLE=1 turns it off.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from opstreamd.config import Agent
from opstreamd.engine import NOBODY, EngineError, Kind, PreloadedAgent, Publisher, Status

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # nothing on stderr where the program has set up no logging

WAIT_NS = 500_000_000
"""As long as a load or an unload waits for the vendor's call; it is done all the same if that takes longer."""

DEVICE_MAX = 63
NAME_BYTES_MAX = 255
APP_BYTES_MAX = 127
LABELS_BYTES_MAX = 511


def attach(model_id: int, *, name: str, device: int = 0) -> bool:
    """Subscribes a loaded model. To be called after aclInit has returned."""
    _check_number(model_id, 0xFFFFFFFF, "model_id")
    _check_number(device, DEVICE_MAX, "device")
    if not name or "\0" in name or len(name.encode()) > NAME_BYTES_MAX:
        raise ValueError(f"name has 1 to {NAME_BYTES_MAX} bytes, none of them NUL")
    return _try(
        f"cannot attach model {name}",
        lambda: PreloadedAgent.attach(model_id, device, name),
        lambda publisher: publisher.subscribe(model_id, device, name, wait_ns=WAIT_NS),
    )


def detach(model_id: int) -> bool:
    """Unsubscribes it: what it has counted stays. To be called before the model is unloaded."""
    _check_number(model_id, 0xFFFFFFFF, "model_id")
    return _try(
        f"cannot detach model {model_id}",
        lambda: PreloadedAgent.detach(model_id),
        lambda publisher: publisher.unsubscribe(model_id, wait_ns=WAIT_NS),
    )


def disabled() -> bool:
    return os.environ.get("OPSTREAM_DISABLE", "") == "1"


class _Process:
    """This process's own publisher, opened when first asked for. One that couldn't be opened isn't tried again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tried = False
        self._publisher: Publisher | None = None

    def publisher(self) -> Publisher | None:
        if not self._tried:
            with self._lock:
                if not self._tried:
                    self._publisher = _open()
                    self._tried = True
        return self._publisher

    def forget(self) -> None:
        """In a forked child: the parent's publisher is none of its, and the lock may be a lost thread's."""
        self.__init__()  # type: ignore[misc]

    def close(self) -> None:
        with self._lock:
            publisher, self._publisher, self._tried = self._publisher, None, True
        if publisher is not None:
            publisher.close()


def _open() -> Publisher | None:
    socket = os.environ.get("OPSTREAM_SOCKET") or Agent().socket
    try:
        return Publisher(
            kind=Kind.AGENT,
            app=_cut(os.environ.get("OPSTREAM_APP") or _command(), APP_BYTES_MAX),
            labels=_cut(os.environ.get("OPSTREAM_LABELS", ""), LABELS_BYTES_MAX),
            socket_path=Path(socket),
            daemon_uid=_daemon_uid(),
        )
    except EngineError as error:
        log.warning("cannot become a publisher: %s", error)
        return None


def _command() -> str:
    """The script's name without its ending, as it stands in the command line."""
    return Path(sys.argv[0] if sys.argv else "").stem.lstrip("-") or "python"


def _cut(text: str, length: int) -> str:
    return text.encode(errors="replace")[:length].decode(errors="ignore")


def _daemon_uid() -> int:
    text = os.environ.get("OPSTREAM_DAEMON_UID", "")
    return min(int(text), NOBODY) if text.isascii() and text.isdigit() else NOBODY


def _check_number(number: int, most: int, what: str) -> None:
    if not isinstance(number, int):
        raise TypeError(f"{what} is a number")
    if not 0 <= number <= most:
        raise ValueError(f"{what} is 0 to {most}")


def _try(what: str, preloaded: Callable[[], None], own: Callable[[Publisher], None]) -> bool:
    if disabled():
        return False
    try:
        if PreloadedAgent.present():
            preloaded()
            return True
        publisher = _process.publisher()
        if publisher is None:
            return False
        own(publisher)
    except EngineError as error:
        if error.code == Status.BUSY:
            return True  # it takes longer, and will be done
        log.warning("%s: %s", what, error)
        return False
    return True


_process = _Process()
os.register_at_fork(after_in_child=_process.forget)
atexit.register(_process.close)
