"""`opstreamd demo`: the daemon, a hosted model and two applications on the simulator, in a temporary folder, and where
to look."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opstreamd import log, serve
from opstreamd.config import Acl, Admin, Agent, Config, Hosted, HostedModel, State, Web
from opstreamd.durations import Duration
from opstreamd.keys import Address


@dataclass(frozen=True)
class Application:
    """A program that serves a model and knows nothing of us; `rate` in executions per second."""

    app: str
    model: str
    device: int
    rate: int


MODEL: Final = HostedModel("resnet50", "resnet50", device=0, interval=Duration.parse("50ms"))
APPLICATIONS: Final = (Application("search", "bert-base", 1, 20), Application("chat", "llm-decode", 2, 10))
_PR_SET_PDEATHSIG: Final = 1
"""From <linux/prctl.h>."""
_USUAL: Final = Web().listen_address[0]


def configuration(folder: Path, address: Address) -> Config:
    """All that the demo needs is in `folder`."""
    return Config(
        web=Web(listen_address=(address,)),
        agent=Agent(socket=str(folder / "publish" / "agent.sock")),
        admin=Admin(socket=str(folder / "admin" / "admin.sock")),
        state=State(directory=str(folder / "state")),
        acl=Acl(simulator=True),
        hosted=Hosted(models=(MODEL,)),
    )


@contextlib.contextmanager
def applications(agent_socket: str) -> Iterator[None]:
    """They run while the context lasts. To be entered while this process has one thread."""
    libc = ctypes.CDLL(None)
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "opstreamd", "sim", it.model, "--app", it.app, "--device", str(it.device)),
                *("--rate", str(it.rate), "--agent.socket", agent_socket),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            # Whatever ends the demo ends them.
            preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),
        )
        for it in APPLICATIONS
    ]
    try:
        yield
    finally:
        for child in running:
            child.terminate()
        for child in running:
            child.wait()


def free_address(usual: Address) -> Address:
    """The usual address, or with any free port when somebody listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((usual.host, usual.port))
        except OSError:
            return Address(usual.host, 0)
    return usual


def guide(address: Address) -> str:
    """Where to look, for people."""
    url = f"http://{address}"
    programs = " and ".join(f"{it.app} ({it.model}, device {it.device})" for it in APPLICATIONS)
    return f"""\
On the simulator run: the hosted model {MODEL.name} on device {MODEL.device}, and two programs that know nothing of
opstreamd, with the agent preloaded: {programs}.

  {url}/          in a browser: who publishes
  {url}/metrics   for Prometheus

The metrics begin in about two seconds. The operators that took the most time, and the time that each type took:

  curl -s {url}/metrics | grep ^ascend_op_seconds_total | sort -k2 -gr -t'}}' | head
  curl -s {url}/metrics | grep ^ascend_op_duration_seconds_sum

Nothing is lost: of every app, read = recorded + rejected.

  curl -s {url}/metrics | grep ^opstreamd_records_
"""


async def show(config: Config, seconds: float | None) -> None:
    """Serves until SIGINT, SIGTERM, or for so many seconds."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with serve.daemon(config, log_level="warning") as http:
        (address,) = http.addresses
        print(guide(address), flush=True)
        print("Ctrl-C ends it." if seconds is None else f"It ends in {seconds:g} s, or with Ctrl-C.", flush=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await told.wait()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="opstreamd demo",
        description="The daemon with a hosted model and two applications on the simulator: no NPU, no configuration, "
        "no root.",
    )
    parser.add_argument("--seconds", type=_seconds, metavar="S", help="end after so long (default: with Ctrl-C)")
    parser.add_argument(
        "--web.listen-address",
        dest="address",
        type=_address,
        metavar="A:P",
        help=f"where to listen (default: {_USUAL}, or a free port when that is taken)",
    )
    options = parser.parse_args(arguments)
    log.set_up("warning", "logfmt")
    with tempfile.TemporaryDirectory(prefix="opstreamd-demo-") as folder:
        address = options.address or free_address(_USUAL)
        if options.address is None and address != _USUAL:
            print(f"Port {_USUAL.port} is taken, so a free one is used.", flush=True)
        config = configuration(Path(folder), address)
        with applications(config.agent.socket):
            asyncio.run(show(config, options.seconds))
    return 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no address and port such as {_USUAL}") from None
