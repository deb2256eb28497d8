"""Programs of our own that serve models and know nothing of opstreamd, built against the simulator."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from opstreamd import engine

SOURCES = Path(__file__).parent / "apps"
HEADERS = Path(__file__).parent.parent / "native" / "sim" / "include"


@dataclass(frozen=True)
class Application:
    """How it is started, what it needs of the environment, and the label `app` that it gets."""

    command: tuple[str, ...]
    environment: dict[str, str]
    app: str


def _build(folder: Path, compiler: str, source: str, target: str, *flags: str, libraries: str = "both") -> Path:
    names = {"both": ("-lascendcl", "-lmsprofiler"), "ascendcl": ("-lascendcl",), "none": ()}[libraries]
    program = folder / target
    command = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{HEADERS}", *flags]
    command += ["-o", str(program), str(SOURCES / source), f"-L{engine.simulator_path()}", "-Wl,--no-as-needed", *names]
    # The libraries' own libraries are found when the program is started.
    subprocess.run([*command, "-Wl,--allow-shlib-undefined", "-ldl"], check=True)
    return program


def c(folder: Path) -> Application:
    return Application((str(_build(folder, "gcc", "loads.c", "c-server")),), {}, "c-server")


def ascendcl_only(folder: Path) -> Application:
    program = _build(folder, "gcc", "loads.c", "plain-server", libraries="ascendcl")
    return Application((str(program),), {}, "plain-server")


def cpp(folder: Path) -> Application:
    return Application((str(_build(folder, "g++", "loads.cc", "cpp-server", "-std=c++20")),), {}, "cpp-server")


def plugin(folder: Path) -> Application:
    """The host links nothing of the vendor's, and loads what does with RTLD_LOCAL."""
    host = _build(folder, "gcc", "plugin_host.c", "plugin-server", libraries="none")
    back_end = _build(folder, "gcc", "loads.c", "libbackend.so", "-shared", "-fPIC", "-Dmain=serve")
    return Application((str(host), str(back_end)), {}, "plugin-server")


def dlopen(folder: Path) -> Application:
    """The host opens the vendor's libraries, and neither it nor its plug-in links them."""
    host = _build(folder, "gcc", "plugin_host.c", "opening-server", "-DOPEN_VENDOR", libraries="none")
    back_end = _build(folder, "gcc", "loads.c", "libbare.so", "-shared", "-fPIC", "-Dmain=serve", libraries="none")
    return Application((str(host), str(back_end)), {}, "opening-server")


def rounds(folder: Path) -> Application:
    """Loads and unloads a model on and on: rounds.c."""
    return Application((str(_build(folder, "gcc", "rounds.c", "rounds")),), {}, "rounds")


def exits(folder: Path) -> Application:
    """Calls exit() while it executes: exits.c."""
    return Application((str(_build(folder, "gcc", "exits.c", "exits")),), {}, "exits")


def last_thread(folder: Path) -> Application:
    """Its main thread ends first: last_thread.c."""
    return Application((str(_build(folder, "gcc", "last_thread.c", "last-thread")),), {}, "last-thread")


def python(folder: Path) -> Application:
    headers = sysconfig.get_path("include")
    module = folder / f"acl{sysconfig.get_config_var('EXT_SUFFIX')}"
    _build(folder, "gcc", "acl.c", module.name, "-shared", "-fPIC", f"-I{headers}")
    return Application((sys.executable, str(SOURCES / "loads.py")), {"PYTHONPATH": str(folder)}, "loads")


ALL = {
    "c": c,
    "c++": cpp,
    "python": python,
    "plug-in": plugin,
    "dlopen": dlopen,
    "libascendcl only": ascendcl_only,
}
