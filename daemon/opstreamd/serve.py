"""`opstreamd serve`: the daemon, put together from its parts."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import resource
import signal
from collections.abc import AsyncIterator, Sequence

from opstreamd import __version__, configfile, log
from opstreamd.agent_socket import SocketInUse
from opstreamd.collector import Collector
from opstreamd.config import Config
from opstreamd.hosted import Supervisor, SupervisorInUse
from opstreamd.http import Http
from opstreamd.publishers import Publishers

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def daemon(config: Config, *, log_level: str = "info", log_format: log.Format = "logfmt") -> AsyncIterator[Http]:
    """Serves while the context lasts; then hosted workers end in good order, and running downloads finish.

    Other publishers are left alone: they wait for the next daemon. Raises SocketInUse, SupervisorInUse or
    OSError when it cannot start.
    """
    publishers = Publishers(config)
    collector = Collector(config, publishers)
    http = Http(config, collector)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(collector.close)
        stack.callback(publishers.close)
        publishers.open()
        await http.start()
        stack.push_async_callback(http.stop)
        if config.hosted.supervise:
            await stack.enter_async_context(Supervisor(config, log_level=log_level, log_format=log_format))
        yield http


async def run(config: Config, handler: log.StructuredHandler, *, log_level: str, log_format: log.Format) -> None:
    """Serves until SIGTERM or SIGINT; a second one ends the process at once."""
    told = asyncio.Event()

    def tell(number: int) -> None:
        if told.is_set():
            os._exit(128 + number)
        _log.info("stopping", extra=log.fields(signal=signal.Signals(number).name))
        told.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, tell, number)
    reports = asyncio.create_task(_report_suppressed(handler))
    try:
        async with daemon(config, log_level=log_level, log_format=log_format):
            _log.info("started", extra=log.fields(version=__version__, socket=config.agent.socket))
            await told.wait()
        _log.info("stopped")
    finally:
        reports.cancel()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="opstreamd serve", description="The daemon.")
    configfile.add_flags(parser, "web", "agent", "state")
    parser.add_argument(
        "--config.check", dest="check", action="store_true", help="check the configuration and exit: 0 when it is valid"
    )
    log.add_flags(parser)
    options = parser.parse_args(arguments)
    handler = log.set_up(options.log_level, options.log_format)
    config = configfile.from_flags(options)
    if options.check:
        print("the configuration is valid")
        return 0
    _prepare_process()
    try:
        asyncio.run(run(config, handler, log_level=options.log_level, log_format=options.log_format))
    except (OSError, SocketInUse, SupervisorInUse) as error:
        _log.error("cannot run", extra=log.fields(error=str(error)))
        return 1
    return 0


def _prepare_process() -> None:
    # Others must be able to reach the socket's folder, whatever the caller's mask.
    os.umask(0o022)
    # Each publisher takes three descriptors.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _report_suppressed(handler: log.StructuredHandler) -> None:
    while True:
        await asyncio.sleep(log.WINDOW_SECONDS)
        handler.report_suppressed()
