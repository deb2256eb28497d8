"""The daemon's side of the agent socket, listening, and what a test waits for there."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from segments import Peer, Segment, configuration

from opstreamd.config import Config
from opstreamd.publishers import Publishers


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
