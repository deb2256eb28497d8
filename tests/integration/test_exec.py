"""`opstreamd exec` and `opstreamd sim`: whatever runs under them is itself, and what it made is counted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from opstreamd import engine
from processes import Site, until

SHELL = "/bin/sh"


def exec_(site: Site, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "opstreamd", "exec", *arguments]
    return subprocess.run(command, env=site.environment | environment, capture_output=True, timeout=60, check=False)


def compiled(folder: Path, *flags: str) -> Path:
    program = folder / "program"
    source = folder / "program.c"
    source.write_text("int main(void) { return 5; }\n")
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    return program


# ---- itself ----


@pytest.mark.parametrize("status", [0, 3, 255])
def test_the_exit_status_is_the_programs(site: Site, status: int) -> None:
    assert exec_(site, "--", SHELL, "-c", f"exit {status}").returncode == status


def test_a_signal_that_ends_it_is_seen(site: Site) -> None:
    assert exec_(site, "--", SHELL, "-c", "kill -USR1 $$").returncode == -signal.SIGUSR1


def test_the_program_takes_our_place(site: Site) -> None:
    process = site.start("exec", "--", SHELL, "-c", "echo $$; exec sleep 1000")
    until(lambda: process.output.read_text().endswith("\n"), "its word")
    assert int(process.output.read_text()) == process.pid
    process.signal(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM


def test_output_is_the_programs_alone(site: Site) -> None:
    done = exec_(site, "--", SHELL, "-c", "echo out; echo error >&2")
    assert (done.stdout, done.stderr) == (b"out\n", b"error\n")


def test_what_is_preloaded_already_stays_in_front(site: Site) -> None:
    before = ":".join(
        filter(None, [os.environ.get("LD_PRELOAD"), "libm.so.6"])
    )  # a sanitizer's runtime must be the first
    done = exec_(site, "--app", "mine", "--", SHELL, "-c", "echo $LD_PRELOAD; echo $OPSTREAM_APP", LD_PRELOAD=before)
    assert done.stdout.decode().split() == [f"{before}:{engine.agent_library()}", "mine"]


def test_arguments_of_the_program_are_left_alone(site: Site) -> None:
    done = exec_(site, "--", SHELL, "-c", 'echo "$@"', "zero", "--app", "x", "--", "--sim")
    assert done.stdout == b"--app x -- --sim\n"
    assert exec_(site, "--app=a", SHELL, "-c", 'echo "$@"', "zero", "--app", "x", "--").stdout == b"--app x --\n"
    assert exec_(site, "--app", "a").returncode == 2


# ---- programs that it can't ride in ----


def test_a_static_program_is_refused_in_one_line(site: Site) -> None:
    done = exec_(site, "--", str(compiled(site.folder, "-static")))
    assert done.returncode == 126
    assert done.stderr.count(b"\n") == 1
    assert b"statically linked" in done.stderr


def test_a_setuid_program_is_refused_in_one_line(site: Site) -> None:
    program = compiled(site.folder)
    assert exec_(site, "--", str(program)).returncode == 5
    program.chmod(0o4755)
    done = exec_(site, "--", str(program))
    assert done.returncode == 126
    assert done.stderr.count(b"\n") == 1
    assert b"setuid" in done.stderr


def test_a_musl_program_is_refused_in_one_line(site: Site) -> None:
    done = exec_(site, "--", str(compiled(site.folder, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")))
    assert done.returncode == 126
    assert done.stderr.count(b"\n") == 1
    assert b"musl" in done.stderr


def test_a_script_is_judged_by_its_interpreter(site: Site) -> None:
    script = site.folder / "script"
    script.write_text("#!/bin/sh\nexit 9\n")
    script.chmod(0o755)
    assert exec_(site, "--", str(script)).returncode == 9
    script.write_text('exit "$1"\n')  # as a shell would run it
    assert exec_(site, "--", str(script), "8").returncode == 8
    script.write_text(f"#!{compiled(site.folder, '-static')}\n")
    assert exec_(site, "--", str(script)).returncode == 126


def test_what_is_not_there_and_what_is_no_program(site: Site) -> None:
    assert exec_(site, "--", "no-such-program").returncode == 127
    assert exec_(site, "--", str(site.folder / "none")).returncode == 127
    plain = site.folder / "plain"
    plain.write_bytes(b"\xff\xfe")
    assert exec_(site, "--", str(plain)).returncode == 126
    plain.chmod(0o755)
    assert exec_(site, "--", str(plain)).returncode == 126


# ---- counted ----


def test_what_a_simulated_application_says_is_what_is_counted(site: Site) -> None:
    daemon = site.serve()
    application = ("--app", "serving", "--agent.socket", str(site.socket))
    done = site.run("sim", "resnet50", "--model", "mine", "--iterations", "40", "--unthrottled", *application)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["executions"] == 40
    scrape = daemon.until(
        lambda it: it.by("opstreamd_records_recorded_total", "app").get(("serving",)) == made["records"], "all records"
    )
    runs = scrape.by("ascend_op_duration_seconds_count", "app", "model", "op_type")
    assert runs == {("serving", "mine", name): its["count"] for name, its in made["op_types"].items()}
    seconds = scrape.by("ascend_op_duration_seconds_sum", "op_type")
    assert seconds == {(name,): Decimal(its["nanoseconds"]) / 10**9 for name, its in made["op_types"].items()}


def test_without_the_agent_nothing_is_published(site: Site) -> None:
    done = site.run("sim", "resnet50", "--iterations", "1", "--unthrottled", "--no-agent")
    assert done.returncode == 0
    assert json.loads(done.stdout)["executions"] == 1


def test_an_application_that_is_told_to_end_says_what_it_made(site: Site) -> None:
    process = site.start("sim", "resnet50", "--unthrottled", "--agent.socket", str(site.socket))
    site.segment()
    process.stop()
    assert json.loads(process.output.read_text())["executions"] > 0


@pytest.mark.parametrize(
    "flags",
    [("--device", "64"), ("--iterations", "-1"), ("--rate", "0"), ("--rate", "1", "--unthrottled"), ("--model", "a/b")],
)
def test_bad_flags_are_named(site: Site, flags: tuple[str, ...]) -> None:
    done = site.run("sim", "resnet50", *flags)
    assert done.returncode == 2
    assert flags[0] in done.stderr


def test_a_workload_that_cannot_be_read_is_named(site: Site) -> None:
    done = site.run("sim", str(site.folder / "nothing.csv"), "--no-agent")
    assert done.returncode == 1
    assert "nothing.csv" in done.stderr


# ---- told by the environment ----


def test_the_log_tells_as_whom_and_where_it_publishes(site: Site) -> None:
    """The user's own daemon where there is one, else the machine's."""
    log = site.folder / "agent.log"
    own = site.folder / "opstreamd" / "publish" / "agent.sock"
    site.environment |= {"OPSTREAM_LOG": str(log), "XDG_RUNTIME_DIR": str(site.folder)}
    assert site.run("sim", "resnet50", "--iterations", "1", "--app", "one").returncode == 0
    assert site.run("sim", "resnet50", "--iterations", "1", "--app", "two", "--agent.socket", str(own)).returncode == 0
    text = log.read_text()
    assert " publishing as one to /run/opstreamd/publish/agent.sock\n" in text  # root's
    assert f" publishing as two to {own}\n" in text
    assert " on device 0 is subscribed as resnet50\n" in text


def test_turned_off_it_publishes_nothing(site: Site) -> None:
    log = site.folder / "agent.log"
    site.environment |= {"OPSTREAM_LOG": str(log), "OPSTREAM_DISABLE": "1", "OPSTREAM_SOCKET": str(site.socket)}
    done = site.run("sim", "resnet50", "--iterations", "3", "--app", "off")
    assert done.returncode == 0
    assert json.loads(done.stdout)["executions"] == 3
    assert not log.exists()
