"""The HTTP side answers what it should, to many, to slow ones and to garbage."""

import asyncio
import contextlib
import gzip
import os
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from segments import Peer, Segment, configuration, on_loop

from opstreamd import http as http_module
from opstreamd.collector import SETTLE_SECONDS, Collector
from opstreamd.config import Web
from opstreamd.http import Http, accepts_gzip
from opstreamd.keys import Address
from opstreamd.publishers import Publishers

LOOPBACK = Address("127.0.0.1", 0)
LOOPBACK_ONLY = Web(listen_address=(LOOPBACK,))


class Site:
    def __init__(self, http: Http, collector: Collector, socket_path: str) -> None:
        self.http = http
        self.collector = collector
        self.socket_path = socket_path

    @property
    def url(self) -> str:
        return f"http://{self.http.addresses[0]}"

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = self.http.addresses[0]
        return await asyncio.open_connection(address.host, address.port)

    async def raw(self, data: bytes) -> bytes:
        """What is answered to these bytes, up to the end of the connection."""
        reader, writer = await self.connect()
        with contextlib.suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
        answer = b""
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65536):
                answer += chunk
        writer.close()
        return answer

    async def check_alive(self) -> None:
        assert b"200 OK" in await self.raw(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")


@contextlib.asynccontextmanager
async def serving(*, settled: bool = True, web: Web = LOOPBACK_ONLY, **sections: Any) -> AsyncIterator[Site]:
    with configuration(web=web, **sections) as config:
        publishers = Publishers(config)
        ahead_ns = [0]
        collector = Collector(config, publishers, clock_ns=lambda: time.monotonic_ns() + ahead_ns[0])
        if settled:
            ahead_ns[0] = int(SETTLE_SECONDS * 1e9)
        http = Http(config, collector)
        publishers.open()
        try:
            await http.start()
            yield Site(http, collector, config.agent.socket)
        finally:
            await http.stop()
            publishers.close()
            collector.close()


@on_loop
async def test_metrics_are_text_0_0_4() -> None:
    async with serving() as site, aiohttp.ClientSession() as client, client.get(f"{site.url}/metrics") as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "opstreamd_build_info" in await answer.text()


@on_loop
async def test_metrics_are_compressed_for_who_accepts_it() -> None:
    async with serving() as site, aiohttp.ClientSession(auto_decompress=False) as client:
        async with client.get(f"{site.url}/metrics", headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.headers["Content-Encoding"] == "gzip"
            assert b"opstreamd_build_info" in gzip.decompress(await answer.read())
        async with client.get(f"{site.url}/metrics", headers={"Accept-Encoding": "gzip;q=0"}) as answer:
            assert "Content-Encoding" not in answer.headers
            assert b"opstreamd_build_info" in await answer.read()


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (["gzip"], True),
        (["deflate, gzip;q=0.5"], True),
        (["GZIP"], True),
        (["deflate", "gzip"], True),
        (["*"], True),
        ([], False),
        (["identity"], False),
        (["gzip;q=0"], False),
        (["gzip; q=0.0, *"], False),
        (["gzip;q=x"], False),
        (["xgzip"], False),
        ([";;,,=;q"], False),
    ],
)
def test_accept_encoding(header: list[str], accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


@on_loop
async def test_until_it_has_settled_it_is_not_ready_and_says_why() -> None:
    async with serving(settled=False) as site, aiohttp.ClientSession() as client:
        for path in ("/-/ready", "/metrics"):
            async with client.get(site.url + path) as answer:
                assert answer.status == 503
                assert "waiting for the publishers" in await answer.text()
        for path in ("/-/healthy", "/"):
            async with client.get(site.url + path) as answer:
                assert answer.status == 200


@on_loop
async def test_settled_it_is_ready() -> None:
    async with serving() as site, aiohttp.ClientSession() as client, client.get(f"{site.url}/-/ready") as answer:
        assert answer.status == 200


@on_loop
async def test_the_page_shows_who_publishes_and_escapes_their_names() -> None:
    async with serving() as site, aiohttp.ClientSession() as client:
        with Peer(site.socket_path) as peer:
            peer.hello(Segment.make("<script>alert(1)</script>"))
            await peer.welcomed()
            async with client.get(site.url) as answer:
                text = await answer.text()
                assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        assert "<script" not in text
        assert f"<td>{os.getpid()}</td>" in text
        assert 'href="/metrics"' in text
        assert "http:" not in text
        assert "https:" not in text


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy", "/-/ready"])
def test_what_is_there_can_be_read_only(path: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with serving() as site, aiohttp.ClientSession() as client:
            async with client.head(site.url + path) as answer:
                assert answer.status == 200
                assert await answer.read() == b""
            for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
                async with client.request(method, site.url + path, data=b"x") as answer:
                    assert answer.status == 405

    scenario()


@on_loop
async def test_what_is_not_there_is_not_found() -> None:
    async with serving() as site, aiohttp.ClientSession() as client:
        for path in ("/metric", "/metrics/", "/-/quit", "/%2e%2e/%2e%2e/etc/passwd"):
            async with client.get(site.url + path) as answer:
                assert answer.status == 404


@on_loop
async def test_the_telemetry_path_is_the_configured_one() -> None:
    web = Web(telemetry_path="/custom", listen_address=(LOOPBACK,))
    async with serving(web=web) as site, aiohttp.ClientSession() as client:
        async with client.get(f"{site.url}/custom") as answer:
            assert answer.status == 200
        async with client.get(site.url) as answer:
            assert 'href="/custom"' in await answer.text()
        async with client.get(f"{site.url}/metrics") as answer:
            assert answer.status == 404


@on_loop
async def test_it_listens_on_several_addresses() -> None:
    web = Web(listen_address=(LOOPBACK, Address("::1", 0)))
    async with serving(web=web) as site, aiohttp.ClientSession() as client:
        assert [address.host for address in site.http.addresses] == ["127.0.0.1", "::1"]
        for address in site.http.addresses:
            async with client.get(f"http://{address}/-/healthy") as answer:
                assert answer.status == 200


@on_loop
async def test_a_port_in_use_is_an_error_and_nothing_stays_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        web = Web(listen_address=(LOOPBACK, Address(*taken.getsockname())))
        with pytest.raises(OSError, match="in use"):
            async with serving(web=web):
                pass


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        b"\0" * 1000,
        b"\xff" * 100_000,
        b"GET /nothing\r\n\r\n",
        b"GET " + b"/x" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_garbage_harms_nobody(data: bytes) -> None:
    @on_loop
    async def scenario() -> None:
        async with serving() as site:
            answer = await site.raw(data)
            assert b" 200 " not in answer.split(b"\r\n")[0]
            await site.check_alive()

    # Some are answered only when the connection has been silent for long enough.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_module, "FIRST_REQUEST_SECONDS", 0.5)
        scenario()


def test_half_a_request_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "FIRST_REQUEST_SECONDS", 0.05)

    @on_loop
    async def scenario() -> None:
        async with serving() as site:
            assert await site.raw(b"") == b""
            assert await site.raw(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ") == b""
            await site.check_alive()

    scenario()


def test_a_served_connection_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "FIRST_REQUEST_SECONDS", 0.05)

    @on_loop
    async def scenario() -> None:
        async with serving() as site:
            reader, writer = await site.connect()
            # Each other connection is closed for its silence: by then this one's time is over too.
            for _ in range(2):
                writer.write(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n")
                assert b"200 OK" in await reader.readuntil(b"healthy\n")
                assert await site.raw(b"") == b""
            writer.close()

    scenario()


def test_who_comes_last_is_served_though_others_hold_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "CONNECTIONS_MAX", 3)

    @on_loop
    async def scenario() -> None:
        async with serving() as site:
            held = [await site.connect() for _ in range(3)]
            for reader, writer in held:
                writer.write(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\nGET /-/hea")  # and never the rest
                await reader.readuntil(b"healthy\n")
            for _ in held:
                await site.check_alive()
            for _, writer in held:
                writer.close()

    scenario()


class LargeCollector(Collector):
    """Answers with more than the kernel keeps for a reader that doesn't read."""

    BODY = b"# large\n" * (4 * 2**20)

    async def text(self) -> bytes:
        return self.BODY


@contextlib.asynccontextmanager
async def large() -> AsyncIterator[tuple[Http, asyncio.StreamReader]]:
    """A download that has begun and isn't read."""
    with configuration(web=LOOPBACK_ONLY) as config:
        collector = LargeCollector(config, Publishers(config))
        http = Http(config, collector)
        await http.start()
        reader, writer = await asyncio.open_connection(http.addresses[0].host, http.addresses[0].port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        try:
            yield http, reader
        finally:
            writer.close()
            await http.stop()
            collector.close()


def test_nobody_loses_a_download_to_a_newcomer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "CONNECTIONS_MAX", 1)

    @on_loop
    async def scenario() -> None:
        async with large() as (http, reader):
            newcomer, writer = await asyncio.open_connection(http.addresses[0].host, http.addresses[0].port)
            assert await newcomer.read() == b""
            writer.close()
            assert await reader.readexactly(len(LargeCollector.BODY)) == LargeCollector.BODY

    scenario()


def test_of_too_many_downloads_the_oldest_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "DOWNLOADS_MAX", 1)

    @on_loop
    async def scenario() -> None:
        async with large() as (http, oldest):
            address = http.addresses[0]
            newcomer, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200 OK" in await newcomer.readuntil(b"\r\n\r\n")
            assert await newcomer.readexactly(len(LargeCollector.BODY)) == LargeCollector.BODY
            writer.close()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await oldest.readexactly(len(LargeCollector.BODY))

    scenario()


@on_loop
async def test_a_running_download_is_finished_when_the_daemon_stops() -> None:
    async with large() as (http, reader):
        stopping = asyncio.create_task(http.stop())
        await asyncio.sleep(0)
        assert not stopping.done()
        assert await reader.readexactly(len(LargeCollector.BODY)) == LargeCollector.BODY
        assert await reader.read() == b""
        await stopping


def test_a_download_that_nobody_takes_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "DOWNLOAD_SECONDS", 0.1)

    @on_loop
    async def scenario() -> None:
        given_up = asyncio.Event()
        monkeypatch.setattr(http_module.log, "warning", lambda *_, **__: given_up.set())
        async with large() as (_, reader):
            await given_up.wait()  # before, not one byte is read
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(len(LargeCollector.BODY))

    scenario()


def test_a_failure_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    @on_loop
    async def scenario() -> None:
        async with serving() as site, aiohttp.ClientSession() as client:
            site.collector.close()
            async with client.get(f"{site.url}/metrics") as answer:
                assert answer.status == 500
            await site.check_alive()

    scenario()
    assert "a request has failed" in caplog.messages
