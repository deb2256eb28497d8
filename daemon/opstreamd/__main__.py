"""`opstreamd COMMAND …`: each command is a module with a `main`, loaded when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from opstreamd import __version__

COMMANDS = {
    "serve": "the daemon",
    "hosted": "supervise the workers of the hosted models",
    "demo": "daemon and two hosted models on the simulator: one command, no configuration, no root",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 2: the command line or the configuration is wrong; 1: it failed while running."""
    parser = argparse.ArgumentParser(
        prog="opstreamd",
        description="Shows, live, how long every operator of every model on this machine's Ascend NPUs takes.",
        epilog="commands: " + "; ".join(f"{name}: {what}" for name, what in COMMANDS.items()),
    )
    parser.add_argument("--version", action="version", version=f"opstreamd {__version__}")
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="COMMAND --help tells")
    options = parser.parse_args(arguments)
    module = importlib.import_module(f"opstreamd.{options.command}")
    try:
        return int(module.main(options.arguments))
    except OSError as error:
        print(f"opstreamd {options.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
