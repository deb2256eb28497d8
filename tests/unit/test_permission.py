"""Whose publishers are whose, and who may publish what."""

import os
from pathlib import Path

import pytest
from listening import listening, live
from segments import Child, Peer, Segment, on_loop

from opstreamd import peer as peer_module
from opstreamd.config import Agent, Config
from opstreamd.engine import Kind, MessageType, Status

NOBODY = 65534
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
