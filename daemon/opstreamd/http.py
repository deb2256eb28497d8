"""The HTTP side: metrics, a page for people, and whether the daemon is healthy and ready."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Sequence

from aiohttp import web
from aiohttp.typedefs import Handler

from opstreamd import page
from opstreamd.collector import Collector, NotReady
from opstreamd.config import Config
from opstreamd.keys import Address
from opstreamd.log import fields

log = logging.getLogger(__name__)

TEXT_0_0_4 = "text/plain; version=0.0.4; charset=utf-8"
CHUNK_BYTES = 256 * 1024

CONNECTIONS_MAX = 256
FIRST_REQUEST_SECONDS = 10.0
"""A connection without a whole request by then is closed."""
KEEPALIVE_SECONDS = 75.0
DOWNLOAD_SECONDS = 60.0
"""A body that isn't taken by then is cut off."""
DOWNLOADS_MAX = 32
"""Each keeps a body of its own in memory for as long as its client doesn't take it."""
GRACE_SECONDS = 15.0
"""How long a stopping daemon lets downloads finish."""
REQUEST_BODY_BYTES_MAX = 4096

_HEADERS = {
    "Server": "opstreamd",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}


class Http:
    """Listens on all of the configuration's addresses. `start` raises OSError; `stop` lets running downloads finish."""

    def __init__(self, config: Config, collector: Collector) -> None:
        self._config = config
        self._collector = collector
        self._silent: set[asyncio.BaseProtocol] = set()
        self._busy: set[asyncio.BaseProtocol] = set()
        self._downloads: dict[asyncio.Transport, None] = {}
        self._servers: list[asyncio.Server] = []
        app = web.Application(client_max_size=REQUEST_BODY_BYTES_MAX, middlewares=[self._handle])
        app.router.add_get(config.web.telemetry_path, self._metrics)
        if config.web.telemetry_path != "/":
            app.router.add_get("/", self._page)
        app.router.add_get("/-/healthy", self._healthy)
        app.router.add_get("/-/ready", self._ready)
        app.on_response_prepare.append(_add_headers)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=KEEPALIVE_SECONDS,
            shutdown_timeout=GRACE_SECONDS,
        )
        self.addresses: list[Address] = []
        """What is listened on, with the ports that the kernel has chosen."""

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._runner.setup()
        try:
            for address in self._config.web.listen_address:
                server = await self._loop.create_server(self._connect, address.host or None, address.port)
                self._servers.append(server)
                self.addresses += [Address(*listener.getsockname()[:2]) for listener in server.sockets]
        except OSError:
            await self.stop()
            raise
        for address in self.addresses:
            log.info("listening", extra=fields(address=str(address)))

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        await self._runner.cleanup()

    # ---- connections -------------------------------------------------------------------------------------------------

    def _connect(self) -> asyncio.BaseProtocol:
        server = self._runner.server
        if server is None or not self._has_room(server.connections):
            return _TurnedAway()
        protocol = server()
        self._silent.add(protocol)
        self._loop.call_later(FIRST_REQUEST_SECONDS, self._close_silent, protocol)
        return protocol

    def _has_room(self, connections: Sequence[web.RequestHandler]) -> bool:
        """Makes room where there is none: who asks for nothing, or never finishes asking, locks nobody out."""
        if len(connections) < CONNECTIONS_MAX:
            return True
        log.warning("too many HTTP connections", extra=fields(limit=CONNECTIONS_MAX))
        for protocol in connections:  # the oldest first
            transport = protocol.transport
            if protocol not in self._busy and transport is not None and not transport.is_closing():
                transport.abort()
                return True
        return False

    def _close_silent(self, protocol: web.RequestHandler) -> None:
        if protocol in self._silent:
            self._silent.remove(protocol)
            if protocol.transport is not None:
                protocol.transport.abort()

    @web.middleware
    async def _handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._silent.discard(request.protocol)
        self._busy.add(request.protocol)
        try:
            return await handler(request)
        except (web.HTTPException, ConnectionError):
            raise
        except Exception:
            log.exception("a request has failed", extra=fields(path=request.path))
            raise web.HTTPInternalServerError from None
        finally:
            self._busy.discard(request.protocol)

    # ---- answers -----------------------------------------------------------------------------------------------------

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        try:
            body = await self._collector.text()
        except NotReady as reason:
            return web.Response(status=503, text=f"{reason}\n")
        headers = {"Content-Type": TEXT_0_0_4, "Vary": "Accept-Encoding"}
        if accepts_gzip(request.headers.getall("Accept-Encoding", [])):
            body = await asyncio.to_thread(_gzip, body)
            headers["Content-Encoding"] = "gzip"
        return await self._download(request, body, headers)

    async def _download(self, request: web.Request, body: bytes, headers: dict[str, str]) -> web.StreamResponse:
        """Of too many, the oldest is cut off: who takes nothing keeps neither memory nor others from being served."""
        transport = request.transport
        if transport is None:
            raise ConnectionResetError
        if len(self._downloads) >= DOWNLOADS_MAX:
            oldest = next(iter(self._downloads))
            del self._downloads[oldest]
            oldest.abort()
            log.warning("too many downloads at once", extra=fields(limit=DOWNLOADS_MAX))
        self._downloads[transport] = None
        try:
            return await _send(request, body, headers)
        finally:
            self._downloads.pop(transport, None)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        rows = await self._collector.rows()
        text = page.render(rows, telemetry_path=self._config.web.telemetry_path)
        return await _send(request, text.encode(), {"Content-Type": "text/html; charset=utf-8"})

    async def _healthy(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="healthy\n")

    async def _ready(self, request: web.Request) -> web.StreamResponse:
        try:
            self._collector.check_ready()
        except NotReady as reason:
            return web.Response(status=503, text=f"{reason}\n")
        return web.Response(text="ready\n")


class _TurnedAway(asyncio.Protocol):
    """Closes the connection: who comes when there are too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def accepts_gzip(headers: Sequence[str]) -> bool:
    """Whether Accept-Encoding names gzip, or everything, with a weight above zero."""
    weights: dict[str, float] = {}
    for item in ",".join(headers).lower().split(","):
        coding, *parameters = (part.strip() for part in item.split(";"))
        weight = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        try:
            weights[coding] = float(weight)
        except ValueError:
            weights[coding] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0.0


def _gzip(body: bytes) -> bytes:
    # Level 1: six is more than twice as long for little.
    return zlib.compress(body, level=1, wbits=31)


async def _send(request: web.Request, body: bytes, headers: dict[str, str]) -> web.StreamResponse:
    """In chunks: half the time of one piece. When it returns the kernel has everything: a stop cuts nothing off."""
    response = web.StreamResponse(headers=headers)
    response.content_length = len(body)
    transport = request.transport
    if transport is not None:
        transport.set_write_buffer_limits(high=0)
    try:
        async with asyncio.timeout(DOWNLOAD_SECONDS):
            await response.prepare(request)
            if request.method != "HEAD":
                view = memoryview(body)
                for start in range(0, len(view), CHUNK_BYTES):
                    await response.write(view[start : start + CHUNK_BYTES])
            await response.write_eof()
    except TimeoutError:
        log.warning("a download took too long", extra=fields(peer=request.remote, bytes=len(body)))
        if transport is not None:
            transport.abort()
    return response


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
