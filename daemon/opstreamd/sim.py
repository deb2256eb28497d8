"""`opstreamd sim WORKLOAD`: a compiled serving application on the simulator, under the agent unless told otherwise."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from opstreamd import engine, exec, preload

_DEVICE_MAX = 63
_NAME_BYTES_MAX = 200
"""The file's name is the model's, with .om behind it."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="opstreamd sim",
        description="A serving application on the simulator: loads WORKLOAD as a model and executes it. At its end it "
        "prints, as one JSON line, what it made.",
    )
    parser.add_argument(
        "workload",
        metavar="WORKLOAD",
        help="resnet50, bert-base, llm-decode, or the path of an op_summary*.csv or kernel_details.csv to replay",
    )
    parser.add_argument("--model", type=_model, metavar="NAME", help="the model's name (default: WORKLOAD's)")
    parser.add_argument("--device", type=_device, default=0, metavar="N", help="the device (default: 0)")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--iterations", type=_count, default=0, metavar="N", help="end after N executions")
    end.add_argument("--seconds", type=_count, default=0, metavar="S", help="end after S seconds (default: when told)")
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--rate", type=_rate, metavar="R", help="executions per second (default: one after the other)")
    pace.add_argument("--unthrottled", action="store_true", help="executions take no time but what the profiler takes")
    exec.add_flags(parser, "OPSTREAM_APP, or the model's name")
    parser.add_argument("--no-agent", dest="agent", action="store_false", help="without the agent")
    options = parser.parse_args(arguments)
    model = options.model or Path(options.workload).stem
    command = [
        str(engine.simulator_path() / "opstream-sim-app"),
        options.workload,
        model,
        str(options.device),
        str(options.iterations),
        str(options.seconds),
        str(round(1e9 / options.rate) if options.rate else 0),
    ]
    app = options.app or os.environ.get("OPSTREAM_APP") or model
    environ = dict(os.environ)
    if options.unthrottled:
        environ["OPSTREAM_SIM_SPEED"] = "0"
    try:
        program = preload.find(command[0])
        if options.agent:
            environ = preload.environment(environ, app=app, socket=options.socket or "")
    except preload.NotPossible as error:
        print(f"opstreamd sim: {error}", file=sys.stderr)
        return error.status
    return exec.become(program, command, environ)


def _model(text: str) -> str:
    if not 0 < len(os.fsencode(text)) <= _NAME_BYTES_MAX or "/" in text:
        raise argparse.ArgumentTypeError(f"a model's name has 1 to {_NAME_BYTES_MAX} bytes, and no slash")
    return text


def _device(text: str) -> int:
    number = _count(text)
    if number > _DEVICE_MAX:
        raise argparse.ArgumentTypeError(f"a device is 0 to {_DEVICE_MAX}")
    return number


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to 999999999")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0
    if not 1e-3 <= rate <= 1e6 or not math.isfinite(rate):
        raise argparse.ArgumentTypeError(f"{text!r} is no rate from 0.001 to 1000000 a second")
    return rate
