"""The configuration: each key's type, default, bounds and meaning, in one place.

Every section is a frozen dataclass, every key one of its fields, made by `key`. The reading of files and flags, the
errors and the reference all come from these fields (configfile.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opstreamd import keys
from opstreamd.durations import Duration
from opstreamd.keys import Address, key

BOUNDS_NS: Final = (*(step * 10**power for power in range(2, 11) for step in (1, 2, 5)), 10**11)
"""The histograms' classic bounds, in nanoseconds: 1-2-5 steps from 100 ns to 100 s."""

_BUCKETS: Final = keys.one_of(
    {bound_ns / 1e9: number for number, bound_ns in enumerate(BOUNDS_NS)},
    "seconds in steps of 1, 2 and 5 from 1e-07 (100 ns) to 100.0, such as 0.001, 0.002 or 0.005",
)


# ---- paths ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """The folders that the paths' defaults are in."""

    runtime: str
    state: str

    @classmethod
    def of(cls, uid: int, pid: int, environ: Mapping[str, str]) -> Places:
        """For root and for a service of the system's manager the system's folders, for a person their own."""
        runtime = environ.get("XDG_RUNTIME_DIR", "")
        if uid == 0 or (environ.get("SYSTEMD_EXEC_PID") == str(pid) and not runtime):
            return cls("/run/opstreamd", "/var/lib/opstreamd")
        state = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        # Without a session there is no runtime folder, and one in /tmp could be somebody else's.
        return cls(f"{runtime or state}/opstreamd", f"{state}/opstreamd")

    @classmethod
    def here(cls) -> Places:
        return cls.of(os.geteuid(), os.getpid(), os.environ)


def _default_path(inside: str, *, state: bool = False) -> dict[str, Any]:
    system, person = ("/var/lib", "$XDG_STATE_HOME") if state else ("/run", "$XDG_RUNTIME_DIR")
    return {
        "default": lambda: (Places.here().state if state else Places.here().runtime) + inside,
        "shown": f'"{system}/opstreamd{inside}"; for a person "{person}/opstreamd{inside}"',
    }


# ---- sections ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Web:
    """What is served over HTTP."""

    listen_address: tuple[Address, ...] = key(
        keys.list_of(keys.address(), at_least=1, at_most=16),
        "The addresses to listen on.",
        default=["127.0.0.1:9780"],
        flag="--web.listen-address",
    )
    telemetry_path: str = key(
        keys.url_path(), "The path of the metrics.", default="/metrics", flag="--web.telemetry-path"
    )
    config_file: str = key(
        keys.not_yet("TLS and users"), "Exporter-toolkit's YAML: TLS, users.", default="", flag="--web.config.file"
    )


@dataclass(frozen=True)
class Agent:
    """How publishers reach the daemon."""

    socket: str = key(
        keys.path(keys.SOCKET_PATH_BYTES),
        "The socket that publishers connect to; its folder is made when it is missing.",
        **_default_path("/publish/agent.sock"),
        flag="--agent.socket",
    )
    allow_uids: tuple[int, ...] = key(
        keys.list_of(keys.integer(0, 2**32 - 2), at_most=1024),
        "The users that may publish besides root and the daemon's own; empty: any.",
        default=[],
    )


@dataclass(frozen=True)
class Admin:
    """How administrators reach the daemon. Reserved: this version opens no such socket."""

    socket: str = key(keys.path(), "The administrators' socket.", **_default_path("/admin/admin.sock"))
    group: str = key(keys.text(63, empty=True), 'The group that may use it; "": none.', default="")


@dataclass(frozen=True)
class State:
    """What the daemon remembers."""

    directory: str = key(
        keys.path(), "Where what outlives the daemon is.", **_default_path("", state=True), flag="--state.directory"
    )
    retention: Duration = key(  # noqa: RUF009  # a field, not a shared default
        keys.duration("1s", "168h"),
        "How long a series stays after its last publisher has gone, and a hosted worker without a daemon.",
        default="5m",
    )


@dataclass(frozen=True)
class Limits:
    """What publishers may use of the daemon."""

    segment_bytes: int = key(keys.integer(2**20, 2**30), "Size of one segment.", default=64 * 2**20)
    connections_per_uid: int = key(keys.integer(1, 65536), "Connections of one user.", default=512)
    segments_per_uid: int = key(keys.integer(1, 65536), "Segments of one user, departed ones included.", default=256)
    bytes_per_uid: int = key(
        keys.integer(2**20, 2**40), "Sum of one user's segments; only what is used of them takes memory.", default=2**32
    )
    series: int = key(
        keys.integer(1, 10_000_000), "Series of all publishers; who goes beyond is refused.", default=500_000
    )
    exposition_bytes: int = key(
        keys.integer(1, 2**32), "Bytes of all publishers' series in text; who goes beyond is refused.", default=2**28
    )
    label_length: int = key(
        keys.integer(64, 4096), "Bytes of op_type and op_name; longer ones are cut and marked by a hash.", default=200
    )


@dataclass(frozen=True)
class Histograms:
    """Which of the bounds that every histogram has are shown. The configuration holds the bounds' numbers."""

    operator_buckets: tuple[int, ...] = key(
        keys.list_of(_BUCKETS, at_most=len(BOUNDS_NS)),
        "Bounds of the operators' histograms, in seconds; empty: 1 µs to 1 s.",
        default=[],
    )
    model_buckets: tuple[int, ...] = key(
        keys.list_of(_BUCKETS, at_most=len(BOUNDS_NS)),
        "Bounds of the models' histograms, in seconds; empty: 1 ms to 100 s.",
        default=[],
    )
    per_operator: bool = key(keys.switch(), "Classic histograms for each op_name too.", default=False)

    @property
    def operator_bounds(self) -> int:
        """The bounds to show, as the engine takes them: bit i stands for bound i."""
        return _bits(self.operator_buckets, 1_000, 10**9)

    @property
    def model_bounds(self) -> int:
        return _bits(self.model_buckets, 1_000_000, 10**11)


def _bits(numbers: tuple[int, ...], low_ns: int, high_ns: int) -> int:
    usual = (number for number, bound_ns in enumerate(BOUNDS_NS) if low_ns <= bound_ns <= high_ns)
    return sum(1 << number for number in (numbers or usual))


@dataclass(frozen=True)
class Labels:
    """Labels that publishers may add."""

    allow: tuple[str, ...] = key(
        keys.list_of(keys.label_name(), at_most=64),
        "Their names; others are dropped.",
        default=["pod", "namespace", "container"],
    )


@dataclass(frozen=True)
class Acl:
    """The vendor's libraries, for hosted workers."""

    simulator: bool = key(keys.switch(), "Hosted workers run on the simulator.", default=False)
    library_path: tuple[str, ...] = key(
        keys.list_of(keys.path(), at_most=16), "Folders to search before the usual ones.", default=[]
    )


@dataclass(frozen=True)
class HostedModel:
    """A model to load and run."""

    name: str = key(keys.text(63), "The label `model`.")
    model: str = key(
        keys.text(4095), "Path of the model; on the simulator a built-in workload's name, or a workload's path."
    )
    device: int = key(keys.integer(0, 1023), "The NPU.", default=0)
    interval: Duration = key(  # noqa: RUF009  # a field, not a shared default
        keys.duration("0s", "24h"),
        'From the start of one execution to the next; "0s": one after the other.',
        default="1s",
    )
    executions: int = key(keys.integer(0, 2**63 - 1), "Stop after so many; 0: never.", default=0)


@dataclass(frozen=True)
class Hosted:
    """Models that the daemon runs itself."""

    supervise: bool = key(
        keys.switch(), "`serve` runs the workers; false: `opstreamd hosted` does, in a unit of its own.", default=True
    )
    models: tuple[HostedModel, ...] = field(default=(), metadata={"table": HostedModel})


@dataclass(frozen=True)
class Config:
    """The whole of it. `Config()` is what an empty file gives."""

    web: Web = field(default_factory=Web)
    agent: Agent = field(default_factory=Agent)
    admin: Admin = field(default_factory=Admin)
    state: State = field(default_factory=State)
    limits: Limits = field(default_factory=Limits)
    histograms: Histograms = field(default_factory=Histograms)
    labels: Labels = field(default_factory=Labels)
    acl: Acl = field(default_factory=Acl)
    hosted: Hosted = field(default_factory=Hosted)
