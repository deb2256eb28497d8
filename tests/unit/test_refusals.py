"""What is no publisher is refused with a reason, and harms nobody."""

import os
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from listening import check_alive, listening
from segments import SEALS, Peer, Segment, on_loop

from opstreamd import publishers
from opstreamd.engine import Kind, Message, Status


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
