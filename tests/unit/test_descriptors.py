"""Descriptors that strangers send are closed, whatever they are; where no more are to be had the daemon goes on."""

import asyncio
import contextlib
import os
import socket
import struct
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from listening import check_alive, listening
from segments import Peer, Segment, on_loop

from opstreamd.descriptors import close_apart


def closing() -> list[threading.Thread]:
    """The threads that close descriptors."""
    return [thread for thread in threading.enumerate() if thread.name == "close"]


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
