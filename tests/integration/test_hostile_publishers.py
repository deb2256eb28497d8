"""Peers on the agent's socket that lie: refused with a reason, counted, and harmless to everybody else."""

import fcntl
import mmap
import os
import socket
import struct
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from expectations import executed, executions
from opstreamd.engine import MESSAGE_BYTES, PROTOCOL_VERSION, Kind, Message, MessageType, Status
from processes import PATIENCE_SECONDS, Daemon, Model, Site
from profiles import Profile

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL | 0x10  # F_SEAL_FUTURE_WRITE

# Where in a segment a field is (layout.h).
VERSION_AT, SIZE_AT, FIRST_TABLE_OFFSET_AT, UUID_AT, KIND_AT, APP_AT, HOSTED_NAME_AT, USED_SERIES_AT = (
    8,
    16,
    40,
    128,
    160,
    168,
    808,
    3200,
)
IDENTITY = bytes(range(16))


@pytest.fixture
def daemon(site: Site, steady: Profile) -> Daemon:
    """A daemon with an honest publisher, whose segment the liars copy."""
    site.configure(Model("honest", steady.path, interval="10ms"))
    daemon = site.serve()
    daemon.until(executed(10), "some executions")
    return daemon


@pytest.fixture
def segment(site: Site, daemon: Daemon) -> bytearray:
    """The bytes of a good segment of an agent, with an identity of its own."""
    content = bytearray(site.segment().read())
    content[UUID_AT : UUID_AT + 16] = IDENTITY
    struct.pack_into("<I", content, KIND_AT, Kind.AGENT)
    struct.pack_into("<128s", content, APP_AT, b"hostile")
    struct.pack_into("<104s", content, HOSTED_NAME_AT, b"")
    return content


def memfd(content: bytes, seals: int = SEALS) -> int:
    fd = os.memfd_create("hostile", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(fd, len(content))
    os.pwrite(fd, content, 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def hello(content: bytes, **changes: object) -> Message:
    fields = {"uuid": IDENTITY, "kind": Kind.AGENT, "segment_bytes": len(content)} | changes
    return Message(MessageType.HELLO, **fields)  # type: ignore[arg-type]


class Peer:
    """Somebody on the agent's socket."""

    def __init__(self, site: Site) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_SECONDS)
        self.socket.connect(str(site.socket))

    def say(self, data: bytes, *fds: int) -> None:
        socket.send_fds(self.socket, [data], list(fds))
        for fd in fds:
            os.close(fd)

    def answer(self) -> Message:
        return Message.parse(self.socket.recv(MESSAGE_BYTES))

    def is_cut_off(self) -> bool:
        return self.socket.recv(MESSAGE_BYTES) == b""


def changed(content: bytes, form: str, at: int, value: int) -> bytes:
    copy = bytearray(content)
    struct.pack_into(form, copy, at, value)
    return bytes(copy)


def not_a_memfd(content: bytes) -> int:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        return os.dup(file.fileno())


def lies_of_memory() -> dict[str, tuple[str, Callable[[bytes], tuple[Message, list[int]]]]]:
    """Hellos by what is wrong with them: the reason that is to be counted, and what is said with which descriptors."""
    return {
        "another version of the protocol": (
            "version",
            lambda good: (hello(good, version=PROTOCOL_VERSION + 1), [memfd(good)]),
        ),
        "no descriptor": ("descriptors", lambda good: (hello(good), [])),
        "two descriptors": ("descriptors", lambda good: (hello(good), [memfd(good), memfd(good)])),
        "a file": ("not_memfd", lambda good: (hello(good), [not_a_memfd(good)])),
        "a socket": ("not_memfd", lambda good: (hello(good), [socket.socket().detach()])),
        "no seals": ("unsealed", lambda good: (hello(good), [memfd(good, 0)])),
        "may shrink": ("unsealed", lambda good: (hello(good), [memfd(good, SEALS & ~fcntl.F_SEAL_SHRINK)])),
        "zeros": ("magic", lambda good: (hello(good), [memfd(bytes(len(good)))])),
        "a size that it hasn't": ("size", lambda good: (hello(good, segment_bytes=len(good) - 4096), [memfd(good)])),
        "larger than allowed": ("size", lambda good: (hello(good, segment_bytes=2**40), [memfd(good)])),
        "another version of the layout": (
            "version",
            lambda good: (hello(good), [memfd(changed(good, "<I", VERSION_AT, 99))]),
        ),
        "a table outside": (
            "layout",
            lambda good: (hello(good), [memfd(changed(good, "<Q", FIRST_TABLE_OFFSET_AT, 2**40))]),
        ),
        "another identity": ("layout", lambda good: (hello(good, uuid=uuid.uuid4().bytes), [memfd(good)])),
    }


@pytest.mark.parametrize(("reason", "lie"), lies_of_memory().values(), ids=lies_of_memory().keys())
def test_lying_hello(
    site: Site, daemon: Daemon, segment: bytearray, reason: str, lie: Callable[[bytes], tuple[Message, list[int]]]
) -> None:
    before = daemon.scrape()
    message, fds = lie(bytes(segment))
    peer = Peer(site)
    peer.say(message.encode(), *fds)
    refusal = peer.answer()
    assert refusal.type == MessageType.REFUSE
    assert refusal.text
    assert peer.is_cut_off()
    after = daemon.scrape()
    assert (
        after.total("opstreamd_publisher_refusals_total", reason=reason)
        == before.total("opstreamd_publisher_refusals_total", reason=reason) + 1
    )
    assert after.total("opstreamd_publishers", state="live") == 1
    daemon.until(executed(executions(before) + 5), "executions of the honest one")


@pytest.mark.parametrize(
    ("reason", "data"),
    {"size": b"short", "magic": os.urandom(MESSAGE_BYTES), "descriptors": bytes(16 * MESSAGE_BYTES)}.items(),
)
def test_garbage_on_the_socket(site: Site, daemon: Daemon, reason: str, data: bytes) -> None:
    peer = Peer(site)
    peer.say(data)
    assert peer.answer().type == MessageType.REFUSE
    assert peer.is_cut_off()
    assert daemon.scrape().total("opstreamd_publisher_refusals_total", reason=reason) == 1


def test_segment_that_is_torn_later_is_expelled(site: Site, daemon: Daemon, segment: bytearray) -> None:
    """The publisher's own mapping stays writable: what was good once may be anything at the next scrape."""
    fd = os.memfd_create("hostile", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(fd, len(segment))
    memory = mmap.mmap(fd, len(segment))
    memory[:] = bytes(segment)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    peer = Peer(site)
    peer.say(hello(segment).encode(), fd)
    assert peer.answer().type == MessageType.WELCOME
    daemon.until(lambda scrape: scrape.has("ascend_op_executions_total", app="hostile"), "the copy's series")
    site.watch.mortal = {"hostile"}
    struct.pack_into("<Q", memory, USED_SERIES_AT, 2**40)
    scrape = daemon.until(lambda scrape: not scrape.has("ascend_op_executions_total", app="hostile"), "its expulsion")
    assert scrape.total("opstreamd_publisher_refusals_total", reason="layout") == 1
    assert peer.answer().reason == Status.LAYOUT
    daemon.until(executed(executions(scrape, app="opstreamd") + 5, app="opstreamd"), "executions of the honest one")


def test_many_connections_that_say_nothing(site: Site, daemon: Daemon) -> None:
    peers = [Peer(site) for _ in range(100)]
    before = daemon.scrape()
    daemon.until(executed(executions(before) + 5), "executions of the honest one")
    for peer in peers:
        peer.socket.close()
    # A new publisher still finds its way.
    assert site.socket.exists()
    Path(site.socket).stat()
