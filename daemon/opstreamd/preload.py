"""The environment of a process that the agent rides in, and which programs it can ride in."""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from opstreamd import engine

_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
_SCRIPTS_MAX = 4
"""Interpreters of interpreters, as the kernel follows them."""


class NotPossible(Exception):
    """The agent can't ride in this program, and why; `status` is a shell's exit status for it."""

    def __init__(self, text: str, status: int = 126) -> None:
        super().__init__(text)
        self.status = status


def environment(
    environ: Mapping[str, str], *, app: str = "", socket: str = "", simulator: bool = False
) -> dict[str, str]:
    """`environ`, with the agent behind whatever is preloaded already. What is "" stays as it is in `environ`."""
    changed = dict(environ)
    agent = str(engine.agent_library())
    if any(separator in agent for separator in " :"):
        raise NotPossible(f"{agent}: a path with a space or a colon can't be preloaded")
    changed["LD_PRELOAD"] = ":".join(filter(None, (environ.get("LD_PRELOAD", ""), agent)))
    if app:
        changed["OPSTREAM_APP"] = app
    if socket:
        changed["OPSTREAM_SOCKET"] = os.path.abspath(socket)
    return with_simulator(changed) if simulator else changed


def with_simulator(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ`, with the simulator's libraries before all others."""
    folders = ":".join(filter(None, (str(engine.simulator_path()), environ.get("LD_LIBRARY_PATH", ""))))
    return {**environ, "LD_LIBRARY_PATH": folders}


def find(command: str) -> Path:
    """The program that a shell would run. Raises NotPossible when there is none, or the agent can't ride in it."""
    found = shutil.which(command)
    if found is None:
        path = Path(command)
        if "/" in command and path.exists():
            raise NotPossible(f"{command}: is not executable")
        raise NotPossible(f"{command}: not found", 127)
    program = Path(found)
    _check_privileges(program)
    _check_format(program)
    return program


def _check_privileges(program: Path) -> None:
    mode = program.stat().st_mode
    for bit, name in ((stat.S_ISUID, "setuid"), (stat.S_ISGID, "setgid")):
        if mode & bit:
            raise NotPossible(f"{program}: is a {name} program, into which nothing is preloaded")
    try:
        os.getxattr(program, "security.capability")
    except OSError:
        return
    raise NotPossible(f"{program}: has file capabilities, so that nothing is preloaded into it")


def _check_format(program: Path) -> None:
    binary = program
    for _ in range(_SCRIPTS_MAX):
        with binary.open("rb") as file:
            first = file.readline(256)
        if not first.startswith(b"#!"):
            break
        words = first[2:].split()
        if not words:
            break
        binary = Path(os.fsdecode(words[0]))
        if not binary.exists():
            raise NotPossible(f"{program}: its interpreter {binary} does not exist", 127)
        _check_privileges(binary)
    try:
        with binary.open("rb") as file:
            _check_elf(binary, ELFFile(file))
    except ELFError:
        if binary == program and first.isascii():
            return  # a script without a first line that says so: the kernel will refuse it, not we
        raise NotPossible(f"{binary}: is neither an ELF program nor a script") from None


def _check_elf(binary: Path, elf: ELFFile) -> None:
    machine, ours = elf.header["e_machine"], platform.machine()
    if machine != _MACHINES.get(ours):
        raise NotPossible(f"{binary}: is made for another machine ({machine}) than this one ({ours})")
    interpreters = [segment for segment in elf.iter_segments() if isinstance(segment, InterpSegment)]
    if not interpreters:
        raise NotPossible(f"{binary}: is statically linked, so that nothing can be preloaded into it")
    interpreter = interpreters[0].get_interp_name()
    if "ld-musl" in interpreter:
        raise NotPossible(f"{binary}: is linked with musl ({interpreter}); the agent needs the GNU C library")
