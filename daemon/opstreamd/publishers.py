"""The publishers: accepted or refused, watched until they depart, and kept for a while after that."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from opstreamd.agent_socket import AgentSocket, Connection, Packet
from opstreamd.config import Config
from opstreamd.descriptors import close_apart
from opstreamd.engine import PROTOCOL_VERSION, EngineError, Kind, Message, MessageType, Status, View
from opstreamd.labels import AppNames, extra_labels
from opstreamd.log import fields
from opstreamd.peer import Peer, credentials, identify

log = logging.getLogger(__name__)

HELLO_SECONDS = 10.0
"""A connection that hasn't said hello by then is closed."""

STRAY_MESSAGES_MAX = 16
"""Messages of unknown types are for versions to come, but not any number of them."""

SOCKET_REASONS = ("descriptors", "permission", "protocol", "quota", "silent")
VIEW_REASONS = ("not_memfd", "unsealed", "size", "magic", "version", "layout")
REFUSAL_REASONS = tuple(sorted(SOCKET_REASONS + VIEW_REASONS))


class Refusal(Exception):
    """Why a peer is not accepted, or not any more: one of REFUSAL_REASONS, or another status of the engine."""

    def __init__(self, reason: str, status: int, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.status = status

    @classmethod
    def of(cls, error: EngineError) -> Refusal:
        return cls(error.status, error.code, f"the engine says {error}")


@dataclass(slots=True, eq=False)
class Publisher:
    """One segment and who writes it. `died_ns` is None while it is live; `connection` may be None then too."""

    uuid: bytes
    peer: Peer
    kind: Kind
    view: View
    app: str
    labels: str
    connection: Connection | None
    pidfd: int | None
    died_ns: int | None = None
    forget: asyncio.TimerHandle | None = None

    @property
    def id(self) -> str:
        return self.uuid.hex()

    @property
    def live(self) -> bool:
        return self.died_ns is None


class Publishers:
    """All publishers by their UUID. To be used on the event loop's thread only.

    A publisher departs when its process is dead, where that can't be watched when its connection ends, and when it says
    goodbye itself. A lost connection alone changes nothing: it comes back under the same UUID, and is the same
    publisher then.
    """

    def __init__(self, config: Config, *, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._limits = config.limits
        self._retention = config.state.retention.seconds
        self._allow_uids = frozenset(config.agent.allow_uids)
        self._allow_labels = config.labels.allow
        self._clock_ns = clock_ns
        self._uid = os.geteuid()
        self._names = AppNames()
        self._by_uuid: dict[bytes, Publisher] = {}
        self._connections: dict[Connection, _Session] = {}
        self._changed = asyncio.Event()
        self._socket = AgentSocket(Path(config.agent.socket), 0o666 if self._uid == 0 else 0o600, self._accept)
        self.refusals: Counter[str] = Counter(dict.fromkeys(REFUSAL_REASONS, 0))

    def open(self) -> None:
        """Listens. Raises SocketInUse or OSError."""
        self._loop = asyncio.get_running_loop()
        self._socket.open()

    def close(self) -> None:
        """Ends all connections and forgets all publishers, which go on without the daemon."""
        self._socket.close()
        for publisher in self.all():
            self._remove(publisher)
        for connection in list(self._connections):
            self._drop(connection)

    def all(self) -> list[Publisher]:
        """Live and retained ones, in the order in which they came."""
        return list(self._by_uuid.values())

    async def wait_for(self, condition: Callable[[Publishers], bool]) -> None:
        """Until something that happened to a publisher has made the condition true."""
        while not condition(self):
            self._changed.clear()
            await self._changed.wait()

    def expel(self, publisher: Publisher, refusal: Refusal) -> None:
        """Forgets one that cannot be shown: its segment has turned out to be torn, or it has too many series."""
        if self._by_uuid.get(publisher.uuid) is publisher:
            connection = publisher.connection
            self._remove(publisher)
            self._refused(refusal, publisher.peer.uid, connection)

    # ---- connections -------------------------------------------------------------------------------------------------

    def _accept(self, accepted: socket.socket) -> None:
        uid, _ = credentials(accepted)
        connection = Connection(accepted, self._on_packet, self._drop)
        session = _Session(uid, self._loop.call_later(HELLO_SECONDS, self._on_silence, connection))
        self._connections[connection] = session
        if sum(1 for other in self._connections.values() if other.uid == uid) > self._limits.connections_per_uid:
            self._refused(Refusal("quota", Status.FULL, "this user has too many connections"), uid, connection)

    def _on_packet(self, connection: Connection, packet: Packet) -> None:
        session = self._connections[connection]
        try:
            message = _read(packet)
            if message.type == MessageType.HELLO:
                self._hello(connection, session, message, packet)
            elif message.type == MessageType.BYE and session.publisher is not None:
                self._depart(session.publisher)
            else:
                session.strays += 1
                if packet.fds or session.strays > STRAY_MESSAGES_MAX:
                    raise Refusal("protocol", Status.STATE, "messages that nobody has asked for")
        except Refusal as refusal:
            self._refused(refusal, session.uid, connection)
        finally:
            close_apart(packet.fds)

    def _on_silence(self, connection: Connection) -> None:
        text = f"no hello within {HELLO_SECONDS:.0f} s"
        self._refused(Refusal("silent", Status.STATE, text), self._connections[connection].uid, connection)

    def _refused(self, refusal: Refusal, uid: int, connection: Connection | None) -> None:
        self.refusals[refusal.reason] += 1
        log.warning("publisher refused", extra=fields(reason=refusal.reason, uid=uid, text=str(refusal)))
        if connection is not None:
            connection.send(Message(MessageType.REFUSE, reason=refusal.status, text=str(refusal)))
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        """Also when the peer has ended it. Whatever the reason, its publisher keeps what it has counted."""
        session = self._connections.pop(connection)
        session.hello_timer.cancel()
        connection.close()
        publisher = session.publisher
        if publisher is not None and publisher.connection is connection:
            publisher.connection = None
            if publisher.pidfd is None:
                self._depart(publisher)

    # ---- publishers --------------------------------------------------------------------------------------------------

    def _hello(self, connection: Connection, session: _Session, hello: Message, packet: Packet) -> None:
        if hello.version != PROTOCOL_VERSION:
            text = f"the daemon speaks version {PROTOCOL_VERSION} of the protocol, the publisher {hello.version}"
            raise Refusal("version", Status.VERSION, text)
        if session.publisher is not None:
            raise Refusal("protocol", Status.STATE, "a second hello")
        if len(packet.fds) != 1:
            raise Refusal("descriptors", Status.INVALID, f"a hello has one descriptor, this one {len(packet.fds)}")
        if self._allow_uids and session.uid not in self._allow_uids | {0, self._uid}:
            raise Refusal("permission", Status.INVALID, f"uid {session.uid} may not publish here")
        hosted = hello.kind == Kind.HOSTED
        if hosted and session.uid not in (0, self._uid):
            raise Refusal("permission", Status.INVALID, "only the daemon's own user and root may host models")
        before = self._by_uuid.get(hello.uuid)
        if before is not None and before.peer.uid != session.uid:
            raise Refusal("permission", Status.INVALID, "this segment is another user's")
        view = self._open_view(hello, packet.fds[0], session.uid, before)
        peer, pidfd = identify(connection.socket)
        if before is not None and _are_strangers(before.peer, peer):
            if pidfd is not None:
                os.close(pidfd)
            raise Refusal("permission", Status.INVALID, "this segment is another container's")
        if before is None:
            publisher = self._add(hello, view, peer)
        else:
            publisher = before
            publisher.view = view
            self._unwatch(publisher)
        publisher.connection, publisher.pidfd, publisher.died_ns = connection, pidfd, None
        if pidfd is not None:
            self._loop.add_reader(pidfd, self._depart, publisher)
        session.publisher = publisher
        session.hello_timer.cancel()
        connection.send(Message(MessageType.WELCOME))
        log.info(
            "publisher returned" if before else "publisher accepted",
            extra=fields(publisher=publisher.id, app=publisher.app, uid=peer.uid, pid=peer.pid),
        )
        self._changed.set()

    def _open_view(self, hello: Message, fd: int, uid: int, before: Publisher | None) -> View:
        """Checks the quotas before anything is mapped: what is mapped may be no larger than the hello says."""
        mine = [p.view.info.segment_bytes for p in self._by_uuid.values() if p.peer.uid == uid and p is not before]
        if hello.segment_bytes > self._limits.segment_bytes:
            raise Refusal("size", Status.SIZE, f"a segment may have {self._limits.segment_bytes} bytes")
        if len(mine) >= self._limits.segments_per_uid:
            raise Refusal("quota", Status.FULL, "this user has too many segments")
        if sum(mine) + hello.segment_bytes > self._limits.bytes_per_uid:
            raise Refusal("quota", Status.FULL, "this user's segments are too large together")
        try:
            view = View(fd, hello.segment_bytes)
        except EngineError as error:
            raise Refusal.of(error) from error
        info = view.info
        if info.segment_bytes != hello.segment_bytes:
            raise Refusal("size", Status.SIZE, "the segment has not the size that the hello names")
        said = (hello.uuid, hello.kind, hello.hosted_name, hello.config_digest)
        if said != (info.uuid, info.kind, info.hosted_name, info.config_digest) or hello.kind not in set(Kind):
            raise Refusal("layout", Status.LAYOUT, "hello and segment contradict each other")
        if not info.app:
            raise Refusal("layout", Status.LAYOUT, "a publisher without a name")
        return view

    def _add(self, hello: Message, view: View, peer: Peer) -> Publisher:
        kind = Kind(hello.kind)
        publisher = Publisher(
            uuid=hello.uuid,
            peer=peer,
            kind=kind,
            view=view,
            app=self._names.claim(view.info.app, peer, hosted=kind is Kind.HOSTED),
            labels=extra_labels(view.info.labels, self._allow_labels),
            connection=None,
            pidfd=None,
        )
        self._by_uuid[publisher.uuid] = publisher
        return publisher

    def _depart(self, publisher: Publisher) -> None:
        self._unwatch(publisher)  # a child of the dead may still hold the connection
        publisher.died_ns = self._clock_ns()
        publisher.forget = self._loop.call_later(self._retention, self._remove, publisher)
        log.info("publisher departed", extra=fields(publisher=publisher.id, app=publisher.app))
        self._changed.set()

    def _remove(self, publisher: Publisher) -> None:
        """At once and without a trace. Its connection stays open, as nobody's."""
        connection, publisher.connection = publisher.connection, None
        if connection is not None:
            self._connections[connection].publisher = None
        self._unwatch(publisher)
        del self._by_uuid[publisher.uuid]
        self._names.release(publisher.app)
        self._changed.set()

    def _unwatch(self, publisher: Publisher) -> None:
        """Ends whatever could say something about it: connection, pidfd and timer."""
        connection, publisher.connection = publisher.connection, None
        if connection is not None:
            self._drop(connection)
        if publisher.pidfd is not None:
            self._loop.remove_reader(publisher.pidfd)
            os.close(publisher.pidfd)
            publisher.pidfd = None
        if publisher.forget is not None:
            publisher.forget.cancel()
            publisher.forget = None


@dataclass(slots=True)
class _Session:
    uid: int
    hello_timer: asyncio.TimerHandle
    publisher: Publisher | None = None
    strays: int = 0


def _are_strangers(one: Peer, other: Peer) -> bool:
    """Identities are no secret: /metrics shows them. A process that was moved to another cgroup is no stranger."""
    return (one.uid, one.cgroup) != (other.uid, other.cgroup) and (one.pid == 0 or one.pid != other.pid)


def _read(packet: Packet) -> Message:
    if packet.cut:
        raise Refusal("protocol", Status.INVALID, "a packet with more in it than any of the protocol's")
    try:
        return Message.parse(packet.data)
    except EngineError as error:
        raise Refusal.of(error) from error
