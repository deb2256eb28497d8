"""Publishers are accepted or refused with a reason, watched until they depart, and nobody harms the others."""

import asyncio
import contextlib
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from segments import SEALS, Peer, Segment, configuration, on_loop

from opstreamd import agent_socket, publishers
from opstreamd import peer as peer_module
from opstreamd.config import Agent, Config, Limits, State
from opstreamd.descriptors import close_apart
from opstreamd.durations import Duration
from opstreamd.engine import Kind, Message, MessageType, Status
from opstreamd.publishers import Publishers

NOBODY = 65534


@contextlib.asynccontextmanager
async def listening(**sections: Any) -> AsyncIterator[tuple[Publishers, Config]]:
    with configuration(**sections) as config:
        them = Publishers(config)
        them.open()
        try:
            yield them, config
        finally:
            them.close()


def live(count: int) -> Callable[[Publishers], bool]:
    return lambda them: sum(publisher.live for publisher in them.all()) == count


def known(count: int) -> Callable[[Publishers], bool]:
    return lambda them: len(them.all()) == count


async def check_alive(them: Publishers, config: Config) -> None:
    """That a well-behaved publisher is still welcome."""
    with Peer(config.agent.socket) as peer:
        peer.hello(Segment.make("well-behaved"))
        await peer.welcomed()
    assert "well-behaved" in [publisher.app for publisher in them.all()]


def closing() -> list[threading.Thread]:
    """The threads that close descriptors."""
    return [thread for thread in threading.enumerate() if thread.name == "close"]


class Child:
    """Another process that connects with a segment, and ends when it is told to."""

    CODE = """
import array, os, socket, sys
if int(sys.argv[4]):
    os.setgroups([])
    os.setgid(int(sys.argv[4]))
    os.setuid(int(sys.argv[4]))
peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
peer.connect(sys.argv[1])
fds = array.array("i", [int(sys.argv[3])])
peer.sendmsg([bytes.fromhex(sys.argv[2])], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
answer = peer.recv(256)
if "child" in sys.argv[5:] and os.fork() == 0:
    os.setsid()
    sys.stdin.read()
    os._exit(0)
print(answer.hex(), flush=True)
if "drop" in sys.argv[5:]:
    peer.close()
sys.stdin.read()
"""

    def __init__(self, config: Config, segment: Segment, *how: str, user: int = 0) -> None:
        fd = segment.memfd()
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                self.CODE,
                config.agent.socket,
                segment.hello.encode().hex(),
                str(fd),
                str(user),
                *how,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[fd],
        )
        os.close(fd)

    async def answer(self) -> Message:
        assert self.process.stdout is not None
        return Message.parse(bytes.fromhex((await asyncio.to_thread(self.process.stdout.readline)).decode()))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.process.communicate()


# ---- welcome ---------------------------------------------------------------------------------------------------------


@on_loop
async def test_a_publisher_is_welcomed_under_its_name() -> None:
    async with listening() as (them, config):
        segment = Segment.make("serving", labels="pod=a,team=x")
        with Peer(config.agent.socket) as peer:
            peer.hello(segment)
            await peer.welcomed()
            (publisher,) = them.all()
            assert publisher.app == "serving"
            assert publisher.labels == ',pod="a"'
            assert publisher.uuid == segment.hello.uuid
            assert publisher.peer.uid == os.getuid()
            assert publisher.peer.pid == os.getpid()
            assert publisher.live
            assert not any(them.refusals.values())


@on_loop
async def test_a_lost_connection_changes_nothing_and_the_same_segment_is_the_same_publisher() -> None:
    async with listening() as (them, config):
        segment = Segment.make()
        with Peer(config.agent.socket) as peer:
            peer.hello(segment)
            await peer.welcomed()
        (publisher,) = them.all()
        with Peer(config.agent.socket) as peer:
            peer.hello(segment)
            await peer.welcomed()
            assert them.all() == [publisher]
            assert publisher.live


@on_loop
async def test_the_newer_connection_of_a_publisher_replaces_the_older() -> None:
    async with listening() as (them, config):
        segment = Segment.make()
        with Peer(config.agent.socket) as older, Peer(config.agent.socket) as newer:
            older.hello(segment)
            await older.welcomed()
            newer.hello(segment)
            await newer.welcomed()
            assert await older.answer() is None
            newer.send(Message(MessageType.BYE))
            await them.wait_for(live(0))


@on_loop
async def test_unknown_messages_are_for_versions_to_come() -> None:
    async with listening() as (them, config):
        with Peer(config.agent.socket) as peer:
            peer.send(Message(99))
            peer.hello(Segment.make())
            await peer.welcomed()
            peer.send(Message(99))
            peer.send(Message(MessageType.BYE))
            await them.wait_for(live(0))


# ---- departure -------------------------------------------------------------------------------------------------------


@on_loop
async def test_a_publisher_departs_with_its_process_and_is_forgotten_after_the_retention() -> None:
    async with listening(state=State(retention=Duration.parse("1s"))) as (them, config):
        with Child(config, Segment.make()) as child:
            assert (await child.answer()).type == MessageType.WELCOME
            assert live(1)(them)
            child.kill()
            await them.wait_for(live(0))
            (publisher,) = them.all()
            assert publisher.died_ns is not None
            await them.wait_for(known(0))


@on_loop
async def test_a_publisher_without_connection_departs_with_its_process() -> None:
    async with listening() as (them, config):
        with Child(config, Segment.make(), "drop") as child:
            assert (await child.answer()).type == MessageType.WELCOME
            await check_alive(them, config)
            assert live(2)(them)
            child.kill()
            await them.wait_for(live(1))


@on_loop
async def test_a_child_that_keeps_the_connection_does_not_keep_a_dead_publisher_alive() -> None:
    async with listening() as (them, config):
        with Child(config, Segment.make(), "child") as child:
            assert (await child.answer()).type == MessageType.WELCOME
            child.kill()
            await them.wait_for(live(0))


@on_loop
async def test_goodbye_is_a_departure_and_a_return_ends_it() -> None:
    async with listening() as (them, config):
        segment = Segment.make()
        with Peer(config.agent.socket) as peer:
            peer.hello(segment)
            await peer.welcomed()
            peer.send(Message(MessageType.BYE))
            await them.wait_for(live(0))
            assert known(1)(them)
        with Peer(config.agent.socket) as peer:
            peer.hello(segment)
            await peer.welcomed()
            assert live(1)(them)
            assert known(1)(them)


# ---- refusals --------------------------------------------------------------------------------------------------------


def _directory(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY)


def _file(folder: Path) -> int:
    (folder / "file").write_bytes(b"x" * 4096)
    return os.open(folder / "file", os.O_RDONLY)


def _socket(folder: Path) -> int:
    return socket.socket(socket.AF_UNIX).detach()


def _pipe(folder: Path) -> int:
    read_end, write_end = os.pipe()
    os.close(write_end)
    return read_end


@pytest.mark.parametrize("make", [_directory, _file, _socket, _pipe])
def test_what_is_no_memfd_is_refused(make: Callable[[Path], int], tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with listening() as (them, config):
            with Peer(config.agent.socket) as peer:
                fd = make(tmp_path)
                peer.send(Segment.make().hello, fd)
                os.close(fd)
                assert (await peer.refused()).reason == Status.NOT_MEMFD
            assert them.refusals["not_memfd"] == 1
            await check_alive(them, config)

    scenario()


@pytest.mark.parametrize("seals", [0, SEALS & ~2, SEALS & ~4, SEALS & ~1])
def test_a_memfd_that_is_not_sealed_is_refused(seals: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with listening() as (them, config):
            segment = Segment.make()
            with Peer(config.agent.socket) as peer:
                fd = segment.memfd(seals=seals)
                peer.send(segment.hello, fd)
                os.close(fd)
                assert (await peer.refused()).reason == Status.UNSEALED
            assert them.refusals["unsealed"] == 1
            await check_alive(them, config)

    scenario()


def _garbage(segment: Segment) -> Segment:
    return replace(segment, data=bytes(len(segment.data)))


def _other_layout(segment: Segment) -> Segment:
    return replace(segment, data=segment.data[:8] + struct.pack("<I", 99) + segment.data[12:])


def _cut(segment: Segment) -> Segment:
    data = segment.data[:65536]
    return Segment(data, replace(segment.hello, segment_bytes=len(data)))


def _torn_table(segment: Segment) -> Segment:
    # The first table's offset: beyond the end.
    data = segment.data[:40] + struct.pack("<Q", 2**60) + segment.data[48:]
    return replace(segment, data=data)


@pytest.mark.parametrize(
    ("spoil", "status"),
    [
        (_garbage, Status.MAGIC),
        (_other_layout, Status.VERSION),
        (_cut, Status.SIZE),
        (_torn_table, Status.LAYOUT),
    ],
)
def test_a_spoilt_segment_is_refused(spoil: Callable[[Segment], Segment], status: Status) -> None:
    @on_loop
    async def scenario() -> None:
        async with listening() as (them, config):
            with Peer(config.agent.socket) as peer:
                peer.hello(spoil(Segment.make()))
                assert (await peer.refused()).reason == status
            assert them.refusals[status.name.lower()] == 1
            await check_alive(them, config)

    scenario()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 2}, "version"),
        ({"uuid": bytes(16)}, "layout"),
        ({"kind": Kind.HOSTED}, "layout"),
        ({"kind": 7}, "layout"),
        ({"hosted_name": "resnet50"}, "layout"),
        ({"config_digest": "0"}, "layout"),
        ({"segment_bytes": 2**40}, "size"),
        ({"segment_bytes": 4096}, "size"),
        ({"segment_bytes": 8 * 2**20}, "size"),
    ],
)
def test_a_hello_that_lies_is_refused(changes: dict[str, Any], reason: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with listening() as (them, config):
            with Peer(config.agent.socket) as peer:
                peer.hello(Segment.make(), **changes)
                await peer.refused()
            assert them.refusals == {name: int(name == reason) for name in them.refusals}
            assert not them.all()

    scenario()


@pytest.mark.parametrize("app", ["", "x" * 127])
def test_a_name_has_at_least_one_byte(app: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with listening() as (them, config):
            with Peer(config.agent.socket) as peer:
                peer.hello(Segment.make(app))
                await (peer.welcomed() if app else peer.refused())
            assert [publisher.app for publisher in them.all()] == [app] * bool(app)

    scenario()


@pytest.mark.parametrize(
    "data", [b"x", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 255, b"\xff" * 256, b"\0" * 257, b"x" * 65536]
)
def test_garbage_is_refused(data: bytes) -> None:
    @on_loop
    async def scenario() -> None:
        async with listening() as (them, config):
            with Peer(config.agent.socket) as peer:
                peer.send(data)
                await peer.refused()
            assert sum(them.refusals.values()) == 1
            await check_alive(them, config)

    scenario()


@on_loop
async def test_half_a_hello_is_refused() -> None:
    async with listening() as (them, config):
        with Peer(config.agent.socket) as peer:
            peer.send(Segment.make().hello.encode()[:128])
            assert (await peer.refused()).reason == Status.SIZE
        assert them.refusals["size"] == 1


@on_loop
async def test_an_empty_packet_is_an_end() -> None:
    async with listening() as (them, config):
        with Peer(config.agent.socket) as peer:
            peer.send(b"")
            assert await peer.answer() is None
        await check_alive(them, config)


@pytest.mark.parametrize("count", [0, 2, 100, 253])
def test_a_hello_has_exactly_one_descriptor_and_others_are_closed(count: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with listening() as (them, config):
            segment = Segment.make()
            read_end, write_end = os.pipe()
            with Peer(config.agent.socket) as peer:
                peer.send(segment.hello, *[write_end] * count)
                os.close(write_end)
                await peer.refused()
            assert them.refusals["descriptors"] == 1
            # The pipe ends when the last of them is closed.
            assert await asyncio.to_thread(os.read, read_end, 1) == b""
            os.close(read_end)
            await check_alive(them, config)

    scenario()


@on_loop
async def test_descriptors_without_a_message_are_closed() -> None:
    async with listening() as (them, config):
        read_end, write_end = os.pipe()
        with Peer(config.agent.socket) as peer:
            peer.send(b"", write_end)
            os.close(write_end)
            await peer.refused()
        assert await asyncio.to_thread(os.read, read_end, 1) == b""
        os.close(read_end)
        await check_alive(them, config)


def test_without_a_thread_descriptors_are_closed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = os.pipe()
    with monkeypatch.context() as patch:
        patch.setattr(
            threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError("can't start new thread"))
        )
        close_apart([first])
    os.fstat(first)
    close_apart([second])
    for thread in closing():
        thread.join()
    for fd in (first, second):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


@on_loop
async def test_a_descriptor_whose_closing_blocks_holds_nobody_up() -> None:
    async with listening() as (them, config):
        # A socket that lingers for an hour, as there is something that its other end never takes.
        with socket.create_server(("127.0.0.1", 0)) as server:
            lingering = socket.create_connection(server.getsockname())
            deaf, _ = server.accept()
            lingering.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
            lingering.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    lingering.send(b"x" * 65536)
            with Peer(config.agent.socket) as peer:
                peer.send(Segment.make().hello, lingering.fileno())
                lingering.close()  # while it is on its way: so the daemon's is the last one, whose closing blocks
                await peer.refused()
            await check_alive(them, config)
            assert closing(), "nothing has blocked"
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            deaf.close()
            for thread in closing():
                await asyncio.to_thread(thread.join)


@on_loop
async def test_a_second_hello_is_refused_and_the_publisher_stays() -> None:
    async with listening() as (them, config):
        with Peer(config.agent.socket) as peer:
            peer.hello(Segment.make("first"))
            await peer.welcomed()
            peer.hello(Segment.make("second"))
            await peer.refused()
        assert [(publisher.app, publisher.live) for publisher in them.all()] == [("first", True)]
        assert them.refusals["protocol"] == 1


@on_loop
async def test_endless_messages_are_refused() -> None:
    async with listening() as (them, config):
        with Peer(config.agent.socket) as peer:
            for _ in range(publishers.STRAY_MESSAGES_MAX + 1):
                peer.send(Message(99))
            await peer.refused()
        assert them.refusals["protocol"] == 1


def test_who_says_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishers, "HELLO_SECONDS", 0.05)

    @on_loop
    async def scenario() -> None:
        async with listening() as (them, config):
            with Peer(config.agent.socket) as peer:
                await peer.refused()
            assert them.refusals["silent"] == 1

    scenario()


# ---- permission and quotas -------------------------------------------------------------------------------------------

as_root = pytest.mark.skipif(os.getuid() != 0, reason="takes another user's identity, which only root can")


def reachable(config: Config) -> None:
    Path(config.agent.socket).parent.parent.chmod(0o755)


@as_root
@on_loop
async def test_another_users_publisher_is_known_by_its_uid_and_gets_another_name() -> None:
    async with listening() as (them, config):
        reachable(config)
        with Peer(config.agent.socket) as peer:
            peer.hello(Segment.make("serving"))
            await peer.welcomed()
            with Child(config, Segment.make("serving"), user=NOBODY) as child:
                assert (await child.answer()).type == MessageType.WELCOME
                assert [publisher.app for publisher in them.all()] == ["serving", f"serving@{NOBODY}"]


@as_root
@on_loop
async def test_another_users_segment_is_not_taken_over() -> None:
    async with listening() as (them, config):
        reachable(config)
        segment = Segment.make()
        with Peer(config.agent.socket) as peer:
            peer.hello(segment)
            await peer.welcomed()
            with Child(config, segment, user=NOBODY) as child:
                assert (await child.answer()).type == MessageType.REFUSE
            assert them.refusals["permission"] == 1
            assert live(1)(them)


@as_root
def test_another_containers_segment_is_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "_cgroup", lambda pid: "" if pid == os.getpid() else f"/container-{pid}")

    @on_loop
    async def scenario() -> None:
        async with listening() as (them, config):
            segment = Segment.make()
            with Child(config, segment) as child, Peer(config.agent.socket) as thief:
                assert (await child.answer()).type == MessageType.WELCOME
                (publisher,) = them.all()
                connection = publisher.connection
                thief.hello(segment)
                assert (await thief.refused()).reason == Status.INVALID
                assert them.refusals["permission"] == 1
                assert publisher.live
                assert publisher.connection is connection

    scenario()


@on_loop
async def test_only_the_daemons_user_and_root_may_host() -> None:
    async with listening() as (them, config):
        reachable(config)
        segment = Segment.make("opstreamd", kind=Kind.HOSTED, name="resnet50")
        with Child(config, segment, user=NOBODY) as child:
            assert (await child.answer()).type == MessageType.REFUSE
        assert them.refusals["permission"] == 1
        with Peer(config.agent.socket) as peer:
            peer.hello(segment)
            await peer.welcomed()
            assert [publisher.app for publisher in them.all()] == ["opstreamd"]


@as_root
@on_loop
async def test_only_allowed_users_may_publish() -> None:
    async with listening(agent=Agent(allow_uids=(12345,))) as (them, config):
        reachable(config)
        with Child(config, Segment.make(), user=NOBODY) as child:
            assert (await child.answer()).type == MessageType.REFUSE
        assert them.refusals["permission"] == 1
        with Child(config, Segment.make(), user=12345) as child:
            assert (await child.answer()).type == MessageType.WELCOME


@on_loop
async def test_a_user_has_so_many_connections_and_no_more() -> None:
    async with listening(limits=Limits(connections_per_uid=3)) as (them, config):
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(Peer(config.agent.socket)) for _ in range(3)]
            with Peer(config.agent.socket) as surplus:
                assert (await surplus.refused()).reason == Status.FULL
            peers[0].hello(Segment.make())
            await peers[0].welcomed()
        assert them.refusals["quota"] == 1


@on_loop
async def test_a_user_has_so_many_segments_departed_ones_included() -> None:
    async with listening(limits=Limits(segments_per_uid=2)) as (them, config):
        first = Segment.make()
        for segment in (first, Segment.make()):
            with Peer(config.agent.socket) as peer:
                peer.hello(segment)
                await peer.welcomed()
                peer.send(Message(MessageType.BYE))
                assert await peer.answer() is None
        with Peer(config.agent.socket) as peer:
            peer.hello(Segment.make())
            assert (await peer.refused()).reason == Status.FULL
        with Peer(config.agent.socket) as peer:
            peer.hello(first)
            await peer.welcomed()
        assert known(2)(them)


@on_loop
async def test_a_users_segments_have_so_many_bytes_together() -> None:
    segments = [Segment.make(), Segment.make()]
    limits = Limits(bytes_per_uid=sum(segment.hello.segment_bytes for segment in segments) - 1)
    async with listening(limits=limits) as (them, config):
        with Peer(config.agent.socket) as fits, Peer(config.agent.socket) as surplus:
            fits.hello(segments[0])
            await fits.welcomed()
            surplus.hello(segments[1])
            assert (await surplus.refused()).reason == Status.FULL
        assert them.refusals["quota"] == 1


@on_loop
async def test_five_hundred_connections_come_and_go() -> None:
    async with listening(limits=Limits(connections_per_uid=600)) as (them, config):
        peers = [Peer(config.agent.socket) for _ in range(500)]
        for number, peer in enumerate(peers):
            if number % 2:
                peer.close()
        await check_alive(them, config)
        for peer in peers:
            peer.close()
        await check_alive(them, config)


# ---- the socket's file -----------------------------------------------------------------------------------------------


def test_a_dead_daemons_socket_is_replaced() -> None:
    @on_loop
    async def scenario() -> None:
        them = Publishers(config)
        them.open()
        await check_alive(them, config)
        them.close()

    with configuration() as config:
        path = Path(config.agent.socket)
        path.parent.mkdir(parents=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
            dead.bind(str(path))
        scenario()
        assert not path.exists()


def test_of_daemons_that_start_at_once_one_has_the_socket() -> None:
    code = textwrap.dedent("""
        import asyncio, os, sys
        from pathlib import Path
        from opstreamd.agent_socket import AgentSocket, SocketInUse

        def between_bind_and_listen(*_):
            print("bound", flush=True)
            sys.stdin.readline()

        os.chmod = between_bind_and_listen

        async def main():
            try:
                AgentSocket(Path(sys.argv[1]), 0o600, lambda _: None).open()
                print("open", flush=True)
            except SocketInUse:
                print("in use", flush=True)
            sys.stdin.readline()

        asyncio.run(main())
    """)
    with configuration() as config, contextlib.ExitStack() as stack:

        def start() -> subprocess.Popen[bytes]:
            command = [sys.executable, "-c", code, config.agent.socket]
            return stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))

        first = start()
        assert first.stdout is not None
        assert first.stdout.readline() == b"bound\n"
        second = start()
        assert second.stdout is not None
        # It is to wait for the first; one that doesn't wait has said something by then.
        select.select([second.stdout], [], [], 2.0)
        assert first.stdin is not None
        first.stdin.write(b"go\n")
        first.stdin.flush()
        assert first.stdout.readline() == b"open\n"
        assert second.stdout.readline() == b"in use\n"


@on_loop
async def test_a_living_daemons_socket_is_left_alone() -> None:
    async with listening() as (them, config):
        with pytest.raises(agent_socket.SocketInUse):
            Publishers(config).open()
        await check_alive(them, config)


def test_a_file_that_is_no_socket_is_left_alone() -> None:
    @on_loop
    async def scenario() -> None:
        with pytest.raises(FileExistsError):
            Publishers(config).open()

    with configuration() as config:
        path = Path(config.agent.socket)
        path.parent.mkdir(parents=True)
        path.write_text("precious")
        scenario()
        assert path.read_text() == "precious"


@on_loop
async def test_the_socket_of_a_later_daemon_is_not_removed() -> None:
    async with listening() as (them, config):
        os.unlink(config.agent.socket)
        later = Publishers(config)
        later.open()
        them.close()
        await check_alive(later, config)
        later.close()


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_a_socket_that_is_removed_is_made_anew(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_socket, "LOOK_SECONDS", 0.05)

    @on_loop
    async def scenario() -> None:
        made = asyncio.Event()
        monkeypatch.setattr(agent_socket.log, "warning", lambda *_, **__: made.set())
        async with listening() as (them, config):
            if gone == "folder":
                shutil.rmtree(os.path.dirname(config.agent.socket))
            else:
                os.unlink(config.agent.socket)
            await made.wait()
            await check_alive(them, config)

    scenario()


@on_loop
async def test_the_socket_is_for_everybody_under_root_and_else_for_its_owner() -> None:
    async with listening() as (_, config):
        mode = os.stat(config.agent.socket).st_mode & 0o777
        assert mode == (0o666 if os.getuid() == 0 else 0o600)


def limited(scenario: str) -> None:
    """Runs a scenario in a process of its own, as the limit of descriptors is the process's.

    `room(n)` leaves room for n more descriptors, `room(None)` for as many as before.
    """
    code = f"""
import asyncio, logging, os, resource
from segments import Peer, Segment, configuration
from opstreamd.publishers import Publishers

class Told(logging.Handler):
    def emit(self, record):
        told.set()

told = asyncio.Event()
logging.getLogger("opstreamd.agent_socket").addHandler(Told())
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

def room(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if count is not None:
        free = [os.dup(0) for _ in range(count + 1)]
        for fd in free:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[-1], hard))

async def main(config):
    them = Publishers(config)
    them.open()
    segment = Segment.make()
    memfd = segment.memfd()
{textwrap.indent(scenario, "    ")}
    them.close()

with configuration() as config:
    asyncio.run(asyncio.wait_for(main(config), 60))
"""
    folder = str(Path(__file__).parent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([folder, *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_free_descriptors_the_listener_waits() -> None:
    limited("""
peer = Peer(config.agent.socket)
peer.send(segment.hello, memfd)
room(0)
await told.wait()
assert not them.all()
room(None)
await peer.welcomed()
""")


def test_where_the_process_cannot_be_watched_the_end_of_the_connection_is_the_departure() -> None:
    limited("""
peer = Peer(config.agent.socket)
room(3)  # the connection, what it brings, and the view's own, but no pidfd
peer.send(segment.hello, memfd)
await peer.welcomed()
room(None)
(publisher,) = them.all()
assert publisher.pidfd is None and publisher.live
peer.close()
await them.wait_for(lambda them: not publisher.live)
""")


def test_nothing_is_left_open() -> None:
    def descriptors() -> set[str]:
        names = set()
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                names.add(os.readlink(f"/proc/self/fd/{name}"))
        return {name for name in names if "segment" in name or "pidfd" in name}

    @on_loop
    async def scenario() -> None:
        async with listening() as (them, config):
            with Peer(config.agent.socket) as peer:
                peer.hello(Segment.make())
                await peer.welcomed()
            await check_alive(them, config)

    scenario()
    for thread in closing():
        thread.join()
    assert descriptors() == set()
