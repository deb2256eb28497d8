"""`opstreamd exec --sim --`: what a program that knows nothing of us loads and executes is counted, exactly."""

from __future__ import annotations

import os
import re
import signal
from decimal import Decimal
from pathlib import Path

import pytest

import applications
from applications import Application
from processes import Process, Site, until
from scrapes import Scrape

VARIANTS = ("file", "file-mem", "mem", "mem-mem", "config-file", "config-mem", "bundle")
OPERATORS = {"Conv2D": 2345, "Relu": 701, "MatMulV2": 19}  # nanoseconds
DEVICES = 2
CONTENT = "model-[0-9a-f]{8}"
NAMES = {"mem": CONTENT, "mem-mem": CONTENT, "config-mem": CONTENT, "bundle": "bundle-model-0"}
"""The label `model`, where it isn't the file's name."""


@pytest.fixture(scope="session", params=applications.ALL.values(), ids=applications.ALL)
def application(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Application:
    made: Application = request.param(tmp_path_factory.mktemp("application"))
    return made


def times(variant: str) -> int:
    return 10 + VARIANTS.index(variant)


def serving(site: Site, application: Application) -> Process:
    """Every variant with a model of its own, whose operators are named after it; on two devices in turn."""
    arguments: list[str] = []
    for number, variant in enumerate(VARIANTS):
        path = site.folder / f"{variant}-model.om"
        lines = [f"op\t{i * 3000}\t{ns}\t{kind}\t{variant}/{kind}" for i, (kind, ns) in enumerate(OPERATORS.items())]
        path.write_text("\n".join(["opstream-workload 1", *lines, ""]))
        arguments += [variant, str(path), str(number % DEVICES), str(times(variant))]
    site.environment |= application.environment | {"OPSTREAM_SOCKET": str(site.socket)}
    process = site.start("exec", "--sim", "--", *application.command, *arguments)
    until(lambda: process.output.read_text() == "executed\n", f"the end of all executions; {process.log.read_text()}")
    return process


def assert_counted(scrape: Scrape, app: str) -> None:
    labels = ("app", "device", "op_type", "op_name")
    expected = {
        (app, str(number % DEVICES), kind, f"{variant}/{kind}"): times(variant)
        for number, variant in enumerate(VARIANTS)
        for kind in OPERATORS
    }
    assert scrape.by("ascend_op_executions_total", *labels) == expected
    assert scrape.by("ascend_op_seconds_total", *labels) == {
        key: Decimal(count * OPERATORS[key[2]]).scaleb(-9) for key, count in expected.items()
    }
    records = sum(times(variant) for variant in VARIANTS) * (len(OPERATORS) + 1)
    assert scrape.total("opstreamd_records_read_total", app=app) == records
    assert scrape.total("opstreamd_records_recorded_total", app=app) == records
    names = dict(scrape.by("ascend_op_executions_total", "op_name", "model"))
    for variant in VARIANTS:
        found = {model for (name, model) in names if name.partition("/")[0] == variant}
        assert len(found) == 1
        assert re.fullmatch(NAMES.get(variant, f"{variant}-model"), found.pop())


def counted(scrape: Scrape, app: str) -> bool:
    records = sum(times(variant) for variant in VARIANTS) * (len(OPERATORS) + 1)
    return scrape.by("opstreamd_records_recorded_total", "app").get((app,)) == records


def test_every_load_is_counted_whenever_the_daemon_is_there(site: Site, application: Application) -> None:
    process = serving(site, application)
    late = site.serve()
    assert_counted(late.until(lambda it: counted(it, application.app), "all records"), application.app)
    assert late.stop() == 0
    again = site.serve()
    assert_counted(again.until(lambda it: counted(it, application.app), "all records"), application.app)
    again.kill()
    last = site.serve()
    scrape = last.until(lambda it: counted(it, application.app), "all records")
    assert_counted(scrape, application.app)
    assert scrape.total("opstreamd_subscriptions", app=application.app, state="subscribed") == len(VARIANTS)
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert process.log.read_text() == ""
    ended = last.until(lambda it: it.total("opstreamd_publishers", state="departed") == 1, "its end")
    assert_counted(ended, application.app)


@pytest.mark.parametrize("staying", [0, 2])
@pytest.mark.parametrize("rounds", [1000, pytest.param(10_000, marks=pytest.mark.long)])
def test_rounds_of_loads_leak_nothing(site: Site, tmp_path: Path, rounds: int, staying: int) -> None:
    """While other devices' models stay, each round has all of them unsubscribed and subscribed again."""
    daemon = site.serve()
    path = site.folder / "again.om"
    path.write_text("opstream-workload 1\nop\t0\t2000\tConv2D\tconv\n")
    site.environment["OPSTREAM_SOCKET"] = str(site.socket)
    command = applications.rounds(tmp_path).command
    process = site.start("exec", "--sim", "--", *command, str(path), str(rounds), str(staying))
    assert process.wait() == 0, process.log.read_text()
    early, late = ([int(word) for word in line.split()] for line in process.output.read_text().splitlines())
    assert late[:2] == early[:2]  # descriptors and threads
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which keeps what is freed
        assert late[2] - early[2] <= 512  # KiB resident
    executions = rounds + staying
    scrape = daemon.until(
        lambda it: it.by("opstreamd_records_recorded_total", "app").get(("rounds",)) == 2 * executions, "all records"
    )
    assert scrape.by("ascend_op_executions_total", "device", "model", "op_type", "op_name") == {
        (str(device), "again", "Conv2D", "conv"): rounds if device == 0 else 1 for device in range(1 + staying)
    }
    assert scrape.total("opstreamd_records_read_total", app="rounds") == 2 * executions


@pytest.fixture(scope="session")
def exits(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    return applications.exits(tmp_path_factory.mktemp("exits")).command


def assert_ends_as_alone(site: Site, command: tuple[str, ...], microseconds: int) -> None:
    path = site.folder / "model.om"
    path.write_text("opstream-workload 1\nop\t0\t2000\tConv2D\tconv\nop\t2500\t100\tRelu\trelu\n")
    site.environment["OPSTREAM_SOCKET"] = str(site.socket)
    done = site.run("exec", "--sim", "--", *command, str(path), str(microseconds), "7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "ending\n", "")


def test_exit_between_the_first_record_and_its_decoding(site: Site, exits: tuple[str, ...]) -> None:
    """The vendor has registered its destructors then, and the reader knows nothing of them yet."""
    site.simulate("stall=count:1@300ms")
    assert_ends_as_alone(site, exits, 20_000)


@pytest.mark.parametrize("times", [20, pytest.param(200, marks=pytest.mark.long)])
def test_exit_in_a_burst(site: Site, exits: tuple[str, ...], times: int) -> None:
    for i in range(times):
        assert_ends_as_alone(site, exits, 100 * i)


def test_a_program_whose_main_thread_ends_first(site: Site, tmp_path: Path) -> None:
    """It lives as long as it has a thread of its own, with all signals blocked too, and ends with the last."""
    daemon = site.serve()
    path = site.folder / "model.om"
    path.write_text("opstream-workload 1\nop\t0\t2000\tConv2D\tconv\n")
    site.environment["OPSTREAM_SOCKET"] = str(site.socket)
    process = site.start("exec", "--sim", "--", *applications.last_thread(tmp_path).command, str(path))
    until(lambda: process.output.read_text() == "serving\n", f"its model; {process.log.read_text()}")
    looked = subscribed_seconds(daemon.scrape())
    daemon.until(lambda it: subscribed_seconds(it) > looked + 3, "looks at who is left")
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert process.output.read_text() == "serving\ndone\n"
    scrape = daemon.until(lambda it: it.total("opstreamd_publishers", state="departed") == 1, "its end")
    assert scrape.total("ascend_op_executions_total", app="last-thread", op_name="conv") == 1


def subscribed_seconds(scrape: Scrape) -> Decimal:
    return scrape.by("ascend_subscribed_seconds_total", "app").get(("last-thread",), Decimal(0))
