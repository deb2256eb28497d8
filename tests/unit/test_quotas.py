"""A user has so many connections, segments and bytes, and no more."""

import contextlib

from listening import check_alive, known, listening
from segments import Peer, Segment, on_loop

from opstreamd.config import Limits
from opstreamd.engine import Message, MessageType, Status


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
