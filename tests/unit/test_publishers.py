"""Publishers are welcomed, known again when they return, and watched until they depart."""

import os

from listening import check_alive, known, listening, live
from segments import Child, Peer, Segment, on_loop

from opstreamd.config import State
from opstreamd.durations import Duration
from opstreamd.engine import Message, MessageType


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
