"""The socket's file: one daemon's at a time, made anew when it is gone, nobody else's."""

import asyncio
import contextlib
import os
import select
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from listening import check_alive, listening
from segments import configuration, on_loop

from opstreamd import agent_socket
from opstreamd.publishers import Publishers


def test_a_dead_daemons_socket_is_replaced() -> None:
    @on_loop
    async def scenario() -> None:
        them = Publishers(config)
        them.open()
        await check_alive(them, config)
        them.close()

    with configuration() as config:
        path = Path(config.agent.socket)
        path.parent.mkdir(parents=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
            dead.bind(str(path))
        scenario()
        assert not path.exists()


def test_of_daemons_that_start_at_once_one_has_the_socket() -> None:
    code = textwrap.dedent("""
        import asyncio, os, sys
        from pathlib import Path
        from opstreamd.agent_socket import AgentSocket, SocketInUse

        def between_bind_and_listen(*_):
            print("bound", flush=True)
            sys.stdin.readline()

        os.chmod = between_bind_and_listen

        async def main():
            try:
                AgentSocket(Path(sys.argv[1]), 0o600, lambda _: None).open()
                print("open", flush=True)
            except SocketInUse:
                print("in use", flush=True)
            sys.stdin.readline()

        asyncio.run(main())
    """)
    with configuration() as config, contextlib.ExitStack() as stack:

        def start() -> subprocess.Popen[bytes]:
            command = [sys.executable, "-c", code, config.agent.socket]
            return stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))

        first = start()
        assert first.stdout is not None
        assert first.stdout.readline() == b"bound\n"
        second = start()
        assert second.stdout is not None
        # It is to wait for the first; one that doesn't wait has said something by then.
        select.select([second.stdout], [], [], 2.0)
        assert first.stdin is not None
        first.stdin.write(b"go\n")
        first.stdin.flush()
        assert first.stdout.readline() == b"open\n"
        assert second.stdout.readline() == b"in use\n"


@on_loop
async def test_a_living_daemons_socket_is_left_alone() -> None:
    async with listening() as (them, config):
        with pytest.raises(agent_socket.SocketInUse):
            Publishers(config).open()
        await check_alive(them, config)


def test_a_file_that_is_no_socket_is_left_alone() -> None:
    @on_loop
    async def scenario() -> None:
        with pytest.raises(FileExistsError):
            Publishers(config).open()

    with configuration() as config:
        path = Path(config.agent.socket)
        path.parent.mkdir(parents=True)
        path.write_text("precious")
        scenario()
        assert path.read_text() == "precious"


@on_loop
async def test_the_socket_of_a_later_daemon_is_not_removed() -> None:
    async with listening() as (them, config):
        os.unlink(config.agent.socket)
        later = Publishers(config)
        later.open()
        them.close()
        await check_alive(later, config)
        later.close()


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_a_socket_that_is_removed_is_made_anew(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_socket, "LOOK_SECONDS", 0.05)

    @on_loop
    async def scenario() -> None:
        made = asyncio.Event()
        monkeypatch.setattr(agent_socket.log, "warning", lambda *_, **__: made.set())
        async with listening() as (them, config):
            if gone == "folder":
                shutil.rmtree(os.path.dirname(config.agent.socket))
            else:
                os.unlink(config.agent.socket)
            await made.wait()
            await check_alive(them, config)

    scenario()


@on_loop
async def test_the_socket_is_for_everybody_under_root_and_else_for_its_owner() -> None:
    async with listening() as (_, config):
        mode = os.stat(config.agent.socket).st_mode & 0o777
        assert mode == (0o666 if os.getuid() == 0 else 0o600)
