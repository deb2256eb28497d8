"""`opstreamd COMMAND …`: each command is a module with a `main`, loaded when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from opstreamd import __version__
from opstreamd.configfile import ConfigError

COMMANDS = {
    "serve": "the daemon",
    "hosted": "supervise the workers of the hosted models",
    "exec": "run a program with the agent preloaded, unchanged",
    "sim": "a serving application on the simulator",
    "demo": "daemon, a hosted model and two applications on the simulator: no configuration, no root",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 2: the command line or the configuration is wrong; 1: it failed while running."""
    parser = argparse.ArgumentParser(
        prog="opstreamd",
        description="Shows, live, how long every operator of every model on this machine's Ascend NPUs takes.",
        epilog="\n".join(f"  {name:8}{what}" for name, what in COMMANDS.items())
        + "\n\nopstreamd COMMAND --help lists a command's flags.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"opstreamd {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of " + ", ".join(COMMANDS))
    options, rest = _split(parser, sys.argv[1:] if arguments is None else arguments)
    module = importlib.import_module(f"opstreamd.{options.command}")
    try:
        return int(module.main(rest))
    except ConfigError as error:
        print("\n".join(error.problems), file=sys.stderr)
        return 2
    except OSError as error:
        print(f"opstreamd {options.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _split(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> tuple[argparse.Namespace, Sequence[str]]:
    """What stands up to the command is ours, what follows is the command's."""
    ours = next((i + 1 for i, argument in enumerate(arguments) if not argument.startswith("-")), len(arguments))
    return parser.parse_args(arguments[:ours]), arguments[ours:]


if __name__ == "__main__":
    sys.exit(main())
