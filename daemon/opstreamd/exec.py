"""`opstreamd exec -- CMD…`: becomes CMD, with the agent preloaded: signals and exit status are its own."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from opstreamd import preload


def add_flags(parser: argparse.ArgumentParser, usual_app: str) -> None:
    """What the agent is told."""
    parser.add_argument("--app", type=_app, metavar="NAME", help=f"the label `app` (default: {usual_app})")
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
    try:
        os.execve(program, list(arguments), environ)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # A script that doesn't say what runs it: as shells do, and the C library's execvp.
    os.execve("/bin/sh", ["/bin/sh", str(program), *arguments[1:]], environ)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="opstreamd exec",
        usage="opstreamd exec [--app NAME] [--agent.socket PATH] [--sim] [--] CMD…",
        allow_abbrev=False,
        description="Runs CMD with the agent preloaded: its models become visible, and nothing changes for it.",
        epilog="Exit status: CMD's own; 127: it isn't found; 126: it can't be run, or the agent can't ride in it.",
    )
    add_flags(parser, "OPSTREAM_APP, or the program's name")
    parser.add_argument("--sim", action="store_true", help="with the simulator's libraries before all others")
    ours, command = _split(arguments)
    options = parser.parse_args(ours)
    if not command:
        parser.error("CMD, the program to run, is missing")
    try:
        program = preload.find(command[0])
        environ = preload.environment(
            os.environ, app=options.app or "", socket=options.socket or "", simulator=options.sim
        )
    except preload.NotPossible as error:
        print(f"opstreamd exec: {error}", file=sys.stderr)
        return error.status
    try:
        become(program, command, environ)
    except OSError as error:
        print(f"opstreamd exec: {program}: {error.strerror}", file=sys.stderr)
        return 126


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands up to the program is ours, what follows is the program's, whatever it looks like."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at] == "--":
            return arguments[:at], arguments[at + 1 :]
        at += 2 if arguments[at] in ("--app", "--agent.socket") else 1
    return arguments[:at], arguments[at:]


def _app(text: str) -> str:
    if not 0 < len(text.encode(errors="surrogateescape")) <= 127:
        raise argparse.ArgumentTypeError("a name has 1 to 127 bytes")
    return text
