"""`opstreamd.agent`: what a Python program attaches is counted once, with and without a preloaded agent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from opstreamd import agent, preload
from processes import Site

PROGRAM = Path(__file__).parent.parent / "apps" / "attached.py"
WORKLOAD = "opstream-workload 1\nop\t0\t2000\tConv2D\tconv\nop\t2100\t700\tRelu\trelu\n"


def run(site: Site, *, preloaded: bool, **environment: str) -> list[str]:
    workload = site.folder / "loaded.om"
    workload.write_text(WORKLOAD)
    environ = preload.with_simulator(site.environment | environment | {"OPSTREAM_SOCKET": str(site.socket)})
    if preloaded:
        environ = preload.environment(environ)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(workload), "25"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize("preloaded", [False, True])
def test_attached_models_are_counted_once(site: Site, preloaded: bool) -> None:
    daemon = site.serve()
    assert run(site, preloaded=preloaded) == ["True", "True", "False"]
    scrape = daemon.until(
        lambda it: it.by("opstreamd_records_recorded_total", "app").get(("attached",)) == 75, "all records"
    )
    runs = scrape.by("ascend_op_executions_total", "app", "device", "model", "op_type", "op_name")
    assert runs == {
        ("attached", "1", "attached", "Conv2D", "conv"): 25,
        ("attached", "1", "attached", "Relu", "relu"): 25,
    }
    # ctypes finds the vendor's functions itself: a preloaded agent sees no load.
    assert scrape.total("opstreamd_records_read_total", app="attached") == 75


def test_nothing_changes_for_the_program_without_a_daemon(site: Site) -> None:
    assert run(site, preloaded=False) == ["True", "True", "False"]


def test_disabled_it_answers_false(site: Site) -> None:
    assert run(site, preloaded=False, OPSTREAM_DISABLE="1") == ["False", "False", "False"]


@pytest.mark.parametrize(
    ("model_id", "name", "device", "error"),
    [(-1, "m", 0, ValueError), (2**32, "m", 0, ValueError), (1, "m", 64, ValueError), (1, "", 0, ValueError),
     (1, "x" * 256, 0, ValueError), (1, "a\0b", 0, ValueError), ("1", "m", 0, TypeError)],
)  # fmt: skip
def test_wrong_arguments_raise(model_id: int, name: str, device: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        agent.attach(model_id, name=name, device=device)
