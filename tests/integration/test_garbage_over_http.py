"""Whatever comes over HTTP: the next scrape is answered."""

import contextlib
import os
import socket

import pytest

from processes import PATIENCE_SECONDS, Site

GARBAGE = {
    "nothing": b"",
    "noise": os.urandom(65536),
    "no HTTP": b"hello\r\n\r\n",
    "half a request": b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Long: ",
    "endless header": b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 2**20 + b"\r\n\r\n",
    "endless path": b"GET /" + b"a" * 2**20 + b" HTTP/1.1\r\n\r\n",
    "wrong length": b"POST /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\nx",
    "smuggled": b"GET /metrics HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


def test_garbage_harms_nobody(site: Site) -> None:
    daemon = site.serve()
    left_open = []
    for data in GARBAGE.values():
        connection = socket.create_connection((daemon.host, daemon.port), timeout=PATIENCE_SECONDS)
        # It may be cut off before it has said everything.
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        left_open.append(connection)
        assert daemon.scrape().has("opstreamd_build_info")
    for connection in left_open:
        connection.close()
    assert daemon.scrape().has("opstreamd_build_info")


@pytest.mark.parametrize(
    ("path", "status"), [("/", 200), ("/metrics", 200), ("/-/healthy", 200), ("/-/ready", 200), ("/nothing/here", 404)]
)
def test_paths(site: Site, path: str, status: int) -> None:
    daemon = site.serve()
    daemon.scrape()
    assert daemon.get(path)[0] == status
