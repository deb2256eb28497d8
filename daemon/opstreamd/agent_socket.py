"""The agent socket: its file, its connections, and the packets that come in."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opstreamd.descriptors import close_apart
from opstreamd.engine import MESSAGE_BYTES, Message
from opstreamd.log import fields

log = logging.getLogger(__name__)

BACKLOG = 1024
ACCEPTS_PER_WAKE = 64
ACCEPT_RETRY_SECONDS = 0.5
LOOK_SECONDS = 5.0
"""How often the socket's file is looked for: without it nobody could come any more, and nobody would know."""

# As many as a packet can have (SCM_MAX_FD). With less room the kernel would close the others in this thread, and
# closing may block.
_FDS_MAX = 253
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class SocketInUse(Exception):
    """Another daemon listens on the socket."""


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet. The descriptors are the receiver's. `cut`: there was more than a packet may have."""

    data: bytes
    fds: tuple[int, ...]
    cut: bool


class Connection:
    """One accepted connection. Calls back for each packet, and once when its end has come; after `close` no more."""

    def __init__(
        self, peer: socket.socket, on_packet: Callable[[Connection, Packet], None], on_end: Callable[[Connection], None]
    ) -> None:
        self.socket = peer
        self._on_packet = on_packet
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(peer, self._readable)

    def send(self, message: Message) -> bool:
        """Whether the kernel has taken it. A peer that doesn't read is not waited for."""
        try:
            self.socket.send(message.encode(), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            return False
        return True

    def close(self) -> None:
        if self.socket.fileno() >= 0:
            self._loop.remove_reader(self.socket)
            close_apart([self.socket.detach()])

    def _readable(self) -> None:
        try:
            packet = _receive(self.socket)
        except BlockingIOError:
            return
        except OSError:
            packet = None
        if packet is None:
            self._on_end(self)
        else:
            self._on_packet(self, packet)


class AgentSocket:
    """The listening socket. Calls back with each connection's socket, which is the callee's."""

    def __init__(self, path: Path, mode: int, on_connection: Callable[[socket.socket], None]) -> None:
        self._path = path
        self._mode = mode
        self._on_connection = on_connection
        self._listener: socket.socket | None = None
        self._inode = 0

    def open(self) -> None:
        """Makes the folder, replaces what a dead daemon has left, and listens. Raises SocketInUse or OSError."""
        self._loop = asyncio.get_running_loop()
        self._listen()
        self._look = self._loop.call_later(LOOK_SECONDS, self._look_for_file)

    def _listen(self) -> None:
        self._path.parent.mkdir(mode=0o755 if self._mode == 0o666 else 0o700, parents=True, exist_ok=True)
        # Of two that start at once, the second must not remove the first one's socket as a dead daemon's.
        with _alone(self._path):
            self._bind()

    def _bind(self) -> None:
        _remove_stale(self._path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            listener.bind(str(self._path))
            os.chmod(self._path, self._mode)
            self._inode = os.stat(self._path).st_ino
            listener.listen(BACKLOG)
        except BaseException:
            listener.close()
            raise
        self._listener = listener
        self._loop.add_reader(listener, self._acceptable)

    def close(self) -> None:
        """Accepts nobody any more, and removes the file unless somebody else has put his own there."""
        listener, self._listener = self._listener, None
        if listener is None:
            return
        self._look.cancel()
        self._loop.remove_reader(listener)
        listener.close()
        try:
            if os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)
        except FileNotFoundError:
            pass

    def _look_for_file(self) -> None:
        """Makes it anew when it is gone; what somebody else has put there is left alone."""
        self._look = self._loop.call_later(LOOK_SECONDS, self._look_for_file)
        if self._listener is None or os.path.lexists(self._path):
            return
        forlorn = self._listener
        try:
            self._listen()
        except (OSError, SocketInUse) as error:
            log.warning("the agent socket's file is gone", extra=fields(path=self._path, error=str(error)))
            return
        log.warning("the agent socket's file was gone and is made anew", extra=fields(path=self._path))
        self._loop.remove_reader(forlorn)
        close_apart([forlorn.detach()])

    def _acceptable(self) -> None:
        for _ in range(ACCEPTS_PER_WAKE):
            if self._listener is None:
                return
            try:
                accepted, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_ROOM:
                    log.warning("cannot accept publishers for now", extra=fields(error=error.strerror))
                    self._loop.remove_reader(self._listener)
                    self._loop.call_later(ACCEPT_RETRY_SECONDS, self._accept_again)
                    return
                continue  # this one has gone again
            accepted.setblocking(False)
            self._on_connection(accepted)

    def _accept_again(self) -> None:
        if self._listener is not None:
            self._loop.add_reader(self._listener, self._acceptable)


def _receive(peer: socket.socket) -> Packet | None:
    """The next packet; None at the end."""
    data, ancillary, flags, _ = peer.recvmsg(
        MESSAGE_BYTES, socket.CMSG_SPACE(_FDS_MAX * 4), socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
    )
    fds = tuple(
        int.from_bytes(payload[start : start + 4], "little")
        for level, kind, payload in ancillary
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        for start in range(0, len(payload) - 3, 4)
    )
    cut = bool(flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC))
    return Packet(data, fds, cut) if data or fds or cut else None


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keeps other daemons from the file at the same time. Who may not read the lock cannot hold it."""
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _remove_stale(path: Path) -> None:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(errno.EEXIST, "there is something that is no socket", str(path))
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
        except OSError as error:
            # A full backlog (EAGAIN), or a socket of another type: somebody is there.
            raise SocketInUse(f"{path}: {error.strerror}") from error
        else:
            raise SocketInUse(f"another daemon listens on {path}")
