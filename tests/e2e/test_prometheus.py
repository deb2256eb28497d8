"""What Prometheus itself makes of it."""

import json
import math
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import profiles
from expectations import all_executed, executed, executions
from processes import Model, Site, until
from profiles import Profile

SECONDS = 60
BOUNDS = [0.0, *(float(f"{step}e{power}") for power in range(-6, 0) for step in (1, 2, 5)), 1.0, math.inf]


def test_promtool_has_nothing_to_say(site: Site, summary: Profile) -> None:
    site.configure(Model("checked", summary.path, executions=40))
    text = site.serve().until(all_executed(40), "all executions").text
    command = [_program("promtool"), "check", "metrics"]
    checked = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@pytest.mark.long
def test_a_minute_of_prometheus(site: Site, tmp_path: Path) -> None:
    profile = profiles.LARGE.write(tmp_path)
    site.configure(Model("watched", profile.path, interval="200ms"))
    daemon = site.serve()
    daemon.until(executed(1), "an execution")
    with _prometheus(tmp_path, daemon.port) as ask:
        began = time.monotonic()
        until(lambda: time.monotonic() - began > SECONDS and ask("up"), "a minute of scrapes", SECONDS * 2)
        ups = ask(f"up[{SECONDS}s]")[0]["values"]
        assert len(ups) > SECONDS * 0.8
        assert {value for _, value in ups} == {"1"}
        assert ask("sum(resets(ascend_op_executions_total[5m]))")[0]["value"][1] == "0"
        for quantile in (0.5, 0.9, 0.99):
            shown = ask(f"histogram_quantile({quantile}, ascend_op_duration_seconds_bucket)")
            by_type = {its["metric"]["op_type"]: float(its["value"][1]) for its in shown}
            assert by_type.keys() == {run.op_type for run in profile.runs}
            for op_type, value in by_type.items():
                durations = profile.durations_of_type_ns(op_type)
                exact = durations[math.ceil(quantile * len(durations)) - 1] / 1e9
                assert abs(_bucket(value) - _bucket(exact)) <= 1, (op_type, quantile, value, exact)


@pytest.mark.long
def test_a_killed_daemon_is_no_reset(site: Site, tmp_path: Path) -> None:
    """Prometheus sees a gap, and after it the counters where they would have been."""
    profile = profiles.STEADY.write(tmp_path)
    web: dict[str, object] = {"listen_address": [f"127.0.0.1:{_free_port()}"]}
    site.configure(Model("watched", profile.path, interval="100ms"), web=web)
    daemon = site.serve()
    with _prometheus(tmp_path, daemon.port) as ask:
        runs = "sum(ascend_op_executions_total)"
        for _ in range(3):
            so_far = executions(daemon.scrape())
            daemon.until(executed(so_far + 50), "50 executions")
            daemon.kill()
            until(lambda: ask("up == 0"), "a failed scrape")
            daemon = site.serve()
            until(lambda: ask("up == 1"), "a scrape of the next daemon")
        last = daemon.scrape()
        until(lambda: float(ask(runs)[0]["value"][1]) >= last.total("ascend_op_executions_total"), "the last count")
        assert ask("sum(resets(ascend_op_executions_total[5m]))")[0]["value"][1] == "0"


def _bucket(seconds: float) -> int:
    return next(number for number, bound in enumerate(BOUNDS) if seconds <= bound)


def _program(name: str) -> str:
    path = shutil.which(name)
    assert path, f"{name} is not on PATH: `make test` puts it there"
    return path


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def _prometheus(folder: Path, scraped_port: int) -> Iterator[Any]:
    """A Prometheus that scrapes once a second. Gives a function that asks it."""
    port = _free_port()
    configuration = folder / "prometheus.yml"
    configuration.write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        f"scrape_configs: [{{job_name: opstreamd, static_configs: [{{targets: ['127.0.0.1:{scraped_port}']}}]}}]\n"
    )
    command = [
        _program("prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]

    def ask(query: str) -> list[dict[str, Any]]:
        url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]["result"]  # type: ignore[no-any-return]
        except OSError:
            return []

    with (folder / "prometheus.log").open("wb") as log:
        prometheus = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until(lambda: ask("up == 1"), "Prometheus' first scrape")
        yield ask
    finally:
        prometheus.kill()
        prometheus.wait()
