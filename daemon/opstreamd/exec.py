"""`opstreamd exec -- CMD…`: becomes CMD, with the agent preloaded: signals and exit status are its own."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from opstreamd import preload


def add_flags(parser: argparse.ArgumentParser) -> None:
    """What the agent is told."""
    parser.add_argument(
        "--app", type=_app, metavar="NAME", help="the label `app` (default: OPSTREAM_APP, or the program's name)"
    )
    parser.add_argument(
        "--agent.socket",
        dest="socket",
        metavar="PATH",
        help="the daemon's socket (default: OPSTREAM_SOCKET, else the user's own daemon's where it is there, else the "
        "machine's)",
    )


def become(program: Path, arguments: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """What Python has set up for itself is put back first: the program gets the signals as we have got them."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execve(program, list(arguments), environ)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="opstreamd exec",
        usage="opstreamd exec [--app NAME] [--agent.socket PATH] [--sim] -- CMD…",
        description="Runs CMD with the agent preloaded: its models become visible, and nothing changes for it.",
        epilog="Exit status: CMD's own; 127: it isn't found; 126: it can't be run, or the agent can't ride in it.",
    )
    add_flags(parser)
    parser.add_argument("--sim", action="store_true", help="with the simulator's libraries before all others")
    parser.add_argument("command", nargs="+", metavar="CMD", help="the program and its arguments")
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(
        [*arguments[:split], *(["--", *arguments[split + 1 :]] if split < len(arguments) else [])]
    )
    try:
        program = preload.find(options.command[0])
        environ = preload.environment(
            os.environ, app=options.app or "", socket=options.socket or "", simulator=options.sim
        )
    except preload.NotPossible as error:
        print(f"opstreamd exec: {error}", file=sys.stderr)
        return error.status
    try:
        become(program, options.command, environ)
    except OSError as error:
        print(f"opstreamd exec: {program}: {error.strerror}", file=sys.stderr)
        return 126


def _app(text: str) -> str:
    if not 0 < len(text.encode(errors="surrogateescape")) <= 127:
        raise argparse.ArgumentTypeError("a name has 1 to 127 bytes")
    return text
