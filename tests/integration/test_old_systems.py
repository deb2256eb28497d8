"""The agent as it is released: for C libraries as old as 2.17, as a preloaded library that misses a symbol keeps its
program from starting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from opstreamd import engine
from processes import Site

NATIVE = Path(__file__).parent.parent.parent / "native"
NEWEST = (2, 17)
LIBRARIES = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-aarch64.so.1"}
"""Of the C library: in 2.17 threads and dynamic loading have their own; thread-local variables are the linker's."""


def build(folder: Path, machine: str) -> Path:
    """By a compiler that brings the old C library's symbols with it."""
    compiler = folder / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {sys.executable} -m ziglang cc -target {machine}-linux-gnu.2.17 "$@"\n')
    compiler.chmod(0o755)
    tools = Path(sys.executable).parent
    configure = [str(tools / "cmake"), "-S", str(NATIVE), "-B", str(folder / "build"), "-G", "Ninja"]
    configure += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={machine}"]
    configure += [f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}", f"-DCMAKE_C_COMPILER={compiler}"]
    # What a sanitizer needs is not for the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment["ZIG_GLOBAL_CACHE_DIR"] = str(NATIVE.parent / "build" / "zig")
    for command in (configure, [str(tools / "cmake"), "--build", str(folder / "build"), "--target", "opstream_agent"]):
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return folder / "build" / "agent" / "libopstream_agent.so"


def needed(library: Path) -> dict[str, set[tuple[int, ...]]]:
    """The versions of symbols that it needs, by library."""
    with library.open("rb") as file:
        versions = ELFFile(file).get_section_by_name(".gnu.version_r").iter_versions()
        return {
            str(of.name): {tuple(int(part) for part in it.name.removeprefix("GLIBC_").split(".")) for it in its}
            for of, its in versions
        }


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_agent_needs_nothing_newer_and_counts(site: Site, tmp_path: Path, machine: str) -> None:
    agent = build(tmp_path, machine)
    assert needed(agent).keys() <= LIBRARIES
    assert max(max(versions) for versions in needed(agent).values()) <= NEWEST
    if machine != os.uname().machine:
        return
    daemon = site.serve()
    preloaded = ":".join(filter(None, [os.environ.get("LD_PRELOAD"), str(agent)]))
    site.environment |= {"LD_PRELOAD": preloaded, "OPSTREAM_SOCKET": str(site.socket), "OPSTREAM_APP": "old"}
    program = str(engine.simulator_path() / "opstream-sim-app")
    done = subprocess.run(
        [program, "resnet50", "model", "0", "20", "0", "0"], env=site.environment, capture_output=True, check=True
    )
    made = json.loads(done.stdout)
    scrape = daemon.until(
        lambda it: it.by("opstreamd_records_recorded_total", "app").get(("old",)) == made["records"], "all records"
    )
    assert scrape.by("ascend_op_duration_seconds_count", "op_type") == {
        (op_type,): its["count"] for op_type, its in made["op_types"].items()
    }
