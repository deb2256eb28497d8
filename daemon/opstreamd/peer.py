"""Who is at the other end of a connection, as the kernel tells it: never what the peer says itself."""

from __future__ import annotations

import os
import re
import socket
import struct
from dataclasses import dataclass

_UCRED = struct.Struct("iII")
_SO_PEERPIDFD = 77  # not in Python's socket module
_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_CGROUP_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Peer:
    """`pid` is 0 when the process isn't visible from the daemon's namespace; `cgroup` is "" when it can't be told."""

    uid: int
    pid: int
    cgroup: str

    @property
    def container(self) -> str:
        """The beginning of the container's id, "" outside of containers that name their cgroup by it."""
        found = _CONTAINER.findall(self.cgroup)
        return found[-1][:12] if found else ""


def credentials(connection: socket.socket) -> tuple[int, int]:
    """(uid, pid) of the process that has connected."""
    pid, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return uid, pid


def identify(connection: socket.socket) -> tuple[Peer, int | None]:
    """The peer, and a pidfd of its process that the caller owns: None when it can't be had, or the peer is dead."""
    uid, pid = credentials(connection)
    pidfd = _open_pidfd(connection, pid)
    return Peer(uid, pid, _cgroup(pid)), pidfd


def _open_pidfd(connection: socket.socket, pid: int) -> int | None:
    # Since Linux 6.5, also for a process of another namespace, and never for one that has got a dead one's number.
    try:
        return connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError:
        pass
    try:
        return os.pidfd_open(pid) if pid > 0 else None
    except OSError:
        return None


def _cgroup(pid: int) -> str:
    if pid <= 0:
        return ""
    try:
        with open(f"/proc/{pid}/cgroup", "rb") as file:
            lines = file.read(_CGROUP_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    # "0::" is the unified hierarchy; before it, a container's id stands in all the others.
    paths = [line.split(":", 2)[2] for line in lines if line.count(":") >= 2]
    return next((path for path in paths if _CONTAINER.search(path)), paths[-1] if paths else "")
