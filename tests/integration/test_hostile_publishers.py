"""Peers on the agent's socket that lie: refused with a reason, counted, and harmless to everybody else."""

import contextlib
import fcntl
import mmap
import os
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Self

import pytest

import profiles
from expectations import executed, executions
from opstreamd.engine import MESSAGE_BYTES, PROTOCOL_VERSION, Kind, Message, MessageType, Status
from processes import PATIENCE_SECONDS, Daemon, Model, Site
from scrapes import Scrape

F_SEAL_FUTURE_WRITE = 0x10
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL | F_SEAL_FUTURE_WRITE

# Where a segment's fields are (layout.h).
VERSION_AT = 8
FIRST_TABLE_OFFSET_AT = 40
UUID_AT = 128
KIND_AT = 160
APP_AT = 168
HOSTED_NAME_AT = 808
USED_SERIES_AT = 3200

IDENTITY = bytes(range(16))


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture(scope="module")
def daemon(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Daemon:
    """A daemon with an honest publisher, whose segment the liars copy."""
    profile = profiles.STEADY.write(tmp_path_factory.mktemp("profile"))
    site.configure(Model("honest", profile.path, interval="10ms"))
    daemon = site.serve()
    daemon.until(executed(10), "some executions")
    return daemon


@pytest.fixture
def segment(site: Site, daemon: Daemon) -> bytes:
    """The bytes of a good segment of an agent, with an identity of its own."""
    content = bytearray(site.segment().read())
    content[UUID_AT : UUID_AT + 16] = IDENTITY
    struct.pack_into("<I", content, KIND_AT, Kind.AGENT)
    struct.pack_into("<128s", content, APP_AT, b"hostile")
    struct.pack_into("<104s", content, HOSTED_NAME_AT, b"")
    return bytes(content)


def memfd(content: bytes, seals: int = SEALS) -> int:
    fd = os.memfd_create("hostile", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(fd, len(content))
    os.pwrite(fd, content, 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def not_a_memfd(content: bytes) -> int:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        return os.dup(file.fileno())


def changed(content: bytes, form: str, at: int, value: int) -> bytes:
    copy = bytearray(content)
    struct.pack_into(form, copy, at, value)
    return bytes(copy)


def hello(content: bytes, **changes: object) -> Message:
    fields: dict[str, Any] = {"uuid": IDENTITY, "kind": Kind.AGENT, "segment_bytes": len(content)} | changes
    return Message(MessageType.HELLO, **fields)


class Peer:
    """Somebody on the agent's socket."""

    def __init__(self, site: Site) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_SECONDS)
        self.socket.connect(str(site.socket))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def say(self, data: bytes, *fds: int) -> None:
        """The descriptors are the peer's then."""
        socket.send_fds(self.socket, [data], list(fds))
        for fd in fds:
            os.close(fd)

    def answer(self) -> Message:
        return Message.parse(self.socket.recv(MESSAGE_BYTES))

    def is_cut_off(self) -> bool:
        return self.socket.recv(MESSAGE_BYTES) == b""


Lie = Callable[[bytes], tuple[Message, list[int]]]

# What is wrong with a hello: the reason that is to be counted, and what is said with which descriptors.
LIES: dict[str, tuple[str, Lie]] = {
    "protocol": ("version", lambda good: (hello(good, version=PROTOCOL_VERSION + 1), [memfd(good)])),
    "no descriptor": ("descriptors", lambda good: (hello(good), [])),
    "two descriptors": ("descriptors", lambda good: (hello(good), [memfd(good), memfd(good)])),
    "a file": ("not_memfd", lambda good: (hello(good), [not_a_memfd(good)])),
    "a socket": ("not_memfd", lambda good: (hello(good), [socket.socket().detach()])),
    "no seals": ("unsealed", lambda good: (hello(good), [memfd(good, 0)])),
    "may shrink": ("unsealed", lambda good: (hello(good), [memfd(good, SEALS & ~fcntl.F_SEAL_SHRINK)])),
    "zeros": ("magic", lambda good: (hello(good), [memfd(bytes(len(good)))])),
    "another size": ("size", lambda good: (hello(good, segment_bytes=len(good) - 4096), [memfd(good)])),
    "too large": ("size", lambda good: (hello(good, segment_bytes=2**40), [memfd(good)])),
    "layout's version": ("version", lambda good: (hello(good), [memfd(changed(good, "<I", VERSION_AT, 99))])),
    "table outside": ("layout", lambda good: (hello(good), [memfd(changed(good, "<Q", FIRST_TABLE_OFFSET_AT, 2**40))])),
    "another identity": ("layout", lambda good: (hello(good, uuid=bytes(16)), [memfd(good)])),
}


def refusals(scrape: Scrape, reason: str) -> Decimal:
    return scrape.total("opstreamd_publisher_refusals_total", reason=reason)


@pytest.mark.parametrize(("reason", "lie"), LIES.values(), ids=LIES.keys())
def test_lying_hello(site: Site, daemon: Daemon, segment: bytes, reason: str, lie: Lie) -> None:
    before = daemon.scrape()
    message, fds = lie(segment)
    with Peer(site) as peer:
        peer.say(message.encode(), *fds)
        refusal = peer.answer()
        assert refusal.type == MessageType.REFUSE
        assert refusal.text
        assert peer.is_cut_off()
    after = daemon.until(executed(executions(before) + 5), "executions of the honest one")
    assert refusals(after, reason) == refusals(before, reason) + 1
    assert after.total("opstreamd_publishers", state="live") == 1


GARBAGE = {"size": b"short", "magic": os.urandom(MESSAGE_BYTES), "protocol": bytes(16 * MESSAGE_BYTES)}


@pytest.mark.parametrize(("reason", "data"), GARBAGE.items(), ids=GARBAGE.keys())
def test_garbage_on_the_socket(site: Site, daemon: Daemon, reason: str, data: bytes) -> None:
    before = daemon.scrape()
    with Peer(site) as peer:
        peer.say(data)
        assert peer.answer().type == MessageType.REFUSE
        assert peer.is_cut_off()
    assert refusals(daemon.scrape(), reason) == refusals(before, reason) + 1


def test_segment_that_is_torn_later_is_expelled(site: Site, daemon: Daemon, segment: bytes) -> None:
    """The publisher's own mapping stays writable: what was good once may be anything at the next scrape."""
    fd = os.memfd_create("hostile", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(fd, len(segment))
    before = daemon.scrape()
    with mmap.mmap(fd, len(segment)) as memory, Peer(site) as peer:
        memory[:] = segment
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
        peer.say(hello(segment).encode(), fd)
        assert peer.answer().type == MessageType.WELCOME
        daemon.until(lambda scrape: scrape.has("ascend_op_executions_total", app="hostile"), "the copy's series")
        site.watch.mortal = {"hostile"}
        struct.pack_into("<Q", memory, USED_SERIES_AT, 2**40)
        after = daemon.until(lambda scrape: refusals(scrape, "layout") == refusals(before, "layout") + 1, "expulsion")
        assert not after.has("ascend_op_executions_total", app="hostile")
        assert peer.answer().reason == Status.LAYOUT
    daemon.until(executed(executions(after) + 5), "executions of the honest one")


def test_silent_connections_harm_nobody(site: Site, daemon: Daemon) -> None:
    before = daemon.scrape()
    with contextlib.ExitStack() as silent:
        for _ in range(100):
            silent.enter_context(Peer(site))
        daemon.until(executed(executions(before) + 5), "executions of the honest one")
        with Peer(site) as peer:
            peer.say(b"short")
            assert peer.answer().type == MessageType.REFUSE
