"""Segments as publishers make them, and peers that send them, for tests of the daemon's side."""

import array
import asyncio
import fcntl
import functools
import os
import socket
import struct
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec

from opstreamd.config import Agent, Config
from opstreamd.engine import MESSAGE_BYTES, Kind, Message, MessageType, Publisher, View, simulator_path

PATIENCE_SECONDS = 60.0
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL | 0x10  # F_SEAL_FUTURE_WRITE
MAX_BYTES = 64 * 2**20

# Where a segment's identity has its fields, from the UUID on.
KIND, APP, LABELS, HOSTED_NAME, CONFIG_DIGEST = 32, 40, 168, 680, 744

P = ParamSpec("P")


def on_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Runs a test that is a coroutine; whatever it waits for comes soon, or never."""

    @functools.wraps(test)
    def run(*arguments: P.args, **keywords: P.kwargs) -> None:
        async def patiently() -> None:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await test(*arguments, **keywords)

        asyncio.run(patiently())

    return run


@contextmanager
def configuration(**sections: Any) -> Iterator[Config]:
    """A configuration with a socket in a folder of its own: its path may have 107 bytes, pytest's are longer."""
    with tempfile.TemporaryDirectory(prefix="opstreamd-") as folder:
        agent = sections.pop("agent", Agent())
        yield Config(agent=replace(agent, socket=f"{folder}/publish/agent.sock"), **sections)


@functools.cache
def _template() -> tuple[bytes, bytes]:
    """The bytes of a segment that the engine has made, and its UUID."""
    with Publisher(
        kind=Kind.AGENT, app="template", socket_path=None, series_capacity=64, library_path=str(simulator_path())
    ) as publisher:
        fd = publisher.segment()
        try:
            data = os.pread(fd, os.fstat(fd).st_size, 0)
            return data, View(fd, MAX_BYTES).info.uuid
        finally:
            os.close(fd)


@dataclass(frozen=True)
class Segment:
    """What a publisher hands over: `data` is the segment's content, `hello` what is said with it."""

    data: bytes
    hello: Message

    @classmethod
    def make(
        cls, app: str = "serving", *, kind: Kind = Kind.AGENT, labels: str = "", name: str = "", digest: str = ""
    ) -> "Segment":
        template, template_uuid = _template()
        own_uuid = uuid.uuid4().bytes
        start = template.index(template_uuid)
        data = bytearray(template)
        data[start : start + 16] = own_uuid
        data[start + KIND : start + KIND + 4] = struct.pack("<I", kind)
        texts = ((APP, app, 128), (LABELS, labels, 512), (HOSTED_NAME, name, 64), (CONFIG_DIGEST, digest, 40))
        for offset, text, room in texts:
            data[start + offset : start + offset + room] = text.encode().ljust(room, b"\0")
        hello = Message(
            MessageType.HELLO,
            uuid=own_uuid,
            kind=kind,
            segment_bytes=len(data),
            hosted_name=name,
            config_digest=digest,
        )
        return cls(bytes(data), hello)

    def memfd(self, *, seals: int = SEALS) -> int:
        """The caller's."""
        fd = os.memfd_create("segment", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(fd, self.data)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        return fd


class Peer:
    """The other end of the agent socket."""

    def __init__(self, path: str | Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        self.socket.connect(str(path))

    def send(self, data: bytes | Message, *fds: int) -> None:
        if isinstance(data, Message):
            data = data.encode()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([data], ancillary)

    def hello(self, segment: Segment, **changes: Any) -> None:
        fd = segment.memfd()
        self.send(replace(segment.hello, **changes), fd)
        os.close(fd)

    async def answer(self) -> Message | None:
        """The daemon's next message; None when it has closed the connection."""
        try:
            data = await asyncio.get_running_loop().sock_recv(self.socket, MESSAGE_BYTES + 1)
        except ConnectionResetError:
            return None
        return Message.parse(data) if data else None

    async def welcomed(self) -> None:
        answer = await self.answer()
        assert answer is not None
        assert answer.type == MessageType.WELCOME, answer.text

    async def refused(self) -> Message:
        """That it is told so, and that the connection ends."""
        answer = await self.answer()
        assert answer is not None
        assert answer.type == MessageType.REFUSE
        assert await self.answer() is None
        return answer

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
