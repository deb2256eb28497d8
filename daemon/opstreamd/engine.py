"""The native engine's classes: the only module that touches cffi. Its manual is the C header, opstream.h.

The interpreter's lock is released during every call. An object may be used from any thread, but from one at a time.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from opstreamd import _native
from opstreamd._native import ffi, lib

MESSAGE_BYTES: int = lib.OPSTREAM_MESSAGE_BYTES
PROTOCOL_VERSION: int = lib.OPSTREAM_PROTOCOL_VERSION
CELLS: int = lib.OPSTREAM_CELLS
"""Counts in a histogram."""
NOBODY = 0xFFFFFFFF
"""As `daemon_uid`: obey nobody besides root and the own uid."""

_FOREVER: int = lib.OPSTREAM_WAIT_FOREVER
_TEXT_BYTES = 1024


class Status(IntEnum):
    """What a call may fail with, and what a peer is told in a refusal."""

    INVALID = lib.OPSTREAM_E_INVALID
    MEMORY = lib.OPSTREAM_E_MEMORY
    SYSTEM = lib.OPSTREAM_E_SYSTEM
    LIBRARY = lib.OPSTREAM_E_LIBRARY
    VENDOR = lib.OPSTREAM_E_VENDOR
    BUSY = lib.OPSTREAM_E_BUSY
    STATE = lib.OPSTREAM_E_STATE
    FULL = lib.OPSTREAM_E_FULL
    NOT_MEMFD = lib.OPSTREAM_E_NOT_MEMFD
    UNSEALED = lib.OPSTREAM_E_UNSEALED
    SIZE = lib.OPSTREAM_E_SIZE
    MAGIC = lib.OPSTREAM_E_MAGIC
    VERSION = lib.OPSTREAM_E_VERSION
    LAYOUT = lib.OPSTREAM_E_LAYOUT


class Kind(IntEnum):
    AGENT = lib.OPSTREAM_KIND_AGENT
    HOSTED = lib.OPSTREAM_KIND_HOSTED


class LinkState(IntEnum):
    DOWN = lib.OPSTREAM_LINK_DOWN
    UP = lib.OPSTREAM_LINK_UP
    REFUSED = lib.OPSTREAM_LINK_REFUSED


class MessageType(IntEnum):
    HELLO = lib.OPSTREAM_MESSAGE_HELLO
    WELCOME = lib.OPSTREAM_MESSAGE_WELCOME
    REFUSE = lib.OPSTREAM_MESSAGE_REFUSE
    BYE = lib.OPSTREAM_MESSAGE_BYE


class EngineError(Exception):
    """A call failed. `code` is the engine's status, `status` its name ("not_memfd")."""

    def __init__(self, code: int, text: str = "") -> None:
        self.code = code
        self.status = status_name(code)
        super().__init__(f"{text} ({self.status})" if text else self.status)


class LibraryError(EngineError):
    """The vendor's library was not found, or lacks a function that is needed."""


class VendorError(EngineError):
    """The vendor refused a call; `acl_error` is its code."""

    def __init__(self, code: int, acl_error: int, text: str = "") -> None:
        self.acl_error = acl_error
        name = acl_error_name(acl_error)
        words = f"aclError {acl_error}" + (f" {name}" if name else "")
        super().__init__(code, f"{text}: {words}" if text else words)


class SystemCallError(EngineError):
    """A system call failed; `errno` says how."""

    def __init__(self, code: int, text: str = "") -> None:
        self.errno: int = ffi.errno
        words = os.strerror(self.errno)
        super().__init__(code, f"{text}: {words}" if text else words)


def status_name(code: int) -> str:
    return _string(lib.opstream_status_name(code))


def acl_error_name(acl_error: int) -> str:
    """The vendor's name of an error code, "" when it isn't known."""
    return _string(lib.opstream_acl_error_name(acl_error))


def agent_library() -> Path:
    """The library to preload."""
    return Path(str(_native.__file__)).parent / "libopstream_agent.so"


def simulator_path() -> Path:
    """The folder with the simulator's libraries, to be used as a library path."""
    return Path(str(_native.__file__)).parent / "simulator"


@dataclass(frozen=True, slots=True)
class Message:
    """What publisher and daemon say to each other."""

    type: int
    version: int = PROTOCOL_VERSION
    uuid: bytes = bytes(16)
    kind: int = 0
    segment_bytes: int = 0
    hosted_name: str = ""
    config_digest: str = ""
    reason: int = 0
    text: str = ""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        raw = ffi.new("struct opstream_message *")
        _check(lib.opstream_message_parse(data, len(data), raw))
        return cls(
            type=raw.type,
            version=raw.version,
            uuid=bytes(ffi.buffer(raw.uuid)),
            kind=raw.kind,
            segment_bytes=raw.segment_bytes,
            hosted_name=_string(raw.hosted_name),
            config_digest=_string(raw.config_digest),
            reason=raw.reason,
            text=_string(raw.text),
        )

    def encode(self) -> bytes:
        """A `text` that is too long is cut."""
        raw = ffi.new("struct opstream_message *")
        raw.version, raw.type = self.version, self.type
        raw.uuid = self.uuid
        raw.kind, raw.segment_bytes = self.kind, self.segment_bytes
        raw.hosted_name, raw.config_digest = self.hosted_name.encode(), self.config_digest.encode()
        raw.reason = self.reason
        raw.text = self.text.encode()[: len(raw.text) - 1].decode(errors="ignore").encode()
        data = ffi.new("uint8_t[]", MESSAGE_BYTES)
        _check(lib.opstream_message_encode(raw, data))
        return bytes(ffi.buffer(data))


@dataclass(frozen=True, slots=True)
class ViewInfo:
    """What a publisher says about itself: nothing of it is proved."""

    uuid: bytes
    kind: int
    pid: int
    segment_bytes: int
    created_wall_ns: int
    app: str
    labels: str
    hosted_name: str
    config_digest: str


@dataclass(frozen=True, slots=True)
class Counters:
    """A publisher's totals at one moment: read = recorded + all rejected."""

    records_read: int
    records_recorded: int
    records_overflowed: int
    records_corrupt: int
    records_name: int
    records_time: int
    records_interrupted: int
    bytes_discarded: int
    reader_cpu_ns: int
    pipe_capacity_bytes: int
    pipe_high_water_ppm: int
    reader_path: int
    time_unit: int
    models_subscribed: int
    models_paused: int
    models_failed: int

    @property
    def rejected(self) -> dict[str, int]:
        """The records that are in no histogram, by reason."""
        return {
            "corrupt": self.records_corrupt,
            "name": self.records_name,
            "time": self.records_time,
            "interrupted": self.records_interrupted,
        }


class View:
    """A segment of somebody else, mapped read-only until the last reference to this object is gone."""

    def __init__(self, fd: int, max_bytes: int) -> None:
        """Does not keep `fd`. Raises EngineError with the reason why it is refused."""
        out = ffi.new("opstream_view **")
        _check(lib.opstream_view_open(fd, max_bytes, out))
        self._handle = ffi.gc(out[0], lib.opstream_view_free)
        raw = ffi.new("struct opstream_view_info *")
        _check(lib.opstream_view_info(self._handle, raw))
        self.info = ViewInfo(
            uuid=bytes(ffi.buffer(raw.uuid)),
            kind=raw.kind,
            pid=raw.pid,
            segment_bytes=raw.segment_bytes,
            created_wall_ns=raw.created_wall_ns,
            app=_string(raw.app),
            labels=_string(raw.labels),
            hosted_name=_string(raw.hosted_name),
            config_digest=_string(raw.config_digest),
        )

    def counters(self, *, departed: bool, now_ns: int) -> Counters:
        raw = ffi.new("struct opstream_counters *")
        _check(lib.opstream_view_counters(self._handle, departed, now_ns, raw))
        return Counters(*(getattr(raw, name) for name in Counters.__dataclass_fields__))

    def subscribe_errors(self) -> list[tuple[int, int]]:
        """(aclError, how often) of each code that a subscription failed with."""
        raw = ffi.new("struct opstream_subscribe_error[]", lib.OPSTREAM_SUBSCRIBE_ERRORS_MAX)
        count = ffi.new("size_t *")
        _check(lib.opstream_view_subscribe_errors(self._handle, raw, count))
        return [(raw[i].acl_error, raw[i].count) for i in range(count[0])]

    def delay(self) -> tuple[list[int], int]:
        """Counts by cell, and the sum in nanoseconds, of the delay from an operator's end to its being counted."""
        cells = ffi.new("uint64_t[]", CELLS)
        total = ffi.new("uint64_t *")
        _check(lib.opstream_view_delay(self._handle, cells, total))
        return ffi.unpack(cells, CELLS), total[0]


class Exposition:
    """Collects views, merges equal series and renders them."""

    def __init__(self) -> None:
        out = ffi.new("opstream_exposition **")
        _check(lib.opstream_exposition_new(out))
        self._handle = ffi.gc(out[0], lib.opstream_exposition_free)

    def add(self, view: View, app: str, labels: str, *, now_ns: int, alive_until_ns: int) -> None:
        """Adds a view whole, or raises and leaves everything as it was. `labels` is escaped already: `,pod="x"`."""
        _check(
            lib.opstream_exposition_add(
                self._handle, view._handle, app.encode(), labels.encode(), now_ns, alive_until_ns
            )
        )

    @property
    def series(self) -> int:
        return int(lib.opstream_exposition_series(self._handle))

    def text(self, *, operator_bounds: int, model_bounds: int, label_bytes_max: int, per_operator: bool) -> bytes:
        """Text format 0.0.4. Bit i of a mask stands for CLASSIC_BOUNDS_NS[i]."""
        options = ffi.new(
            "struct opstream_exposition_options *",
            {
                "operator_bounds": operator_bounds,
                "model_bounds": model_bounds,
                "label_bytes_max": label_bytes_max,
                "per_operator": per_operator,
            },
        )
        data, length = ffi.new("const char **"), ffi.new("size_t *")
        _check(lib.opstream_exposition_text(self._handle, options, data, length))
        return bytes(ffi.buffer(data[0], length[0]))


CLASSIC_BOUNDS_NS: tuple[int, ...] = tuple(lib.opstream_classic_bound_ns(i) for i in range(lib.OPSTREAM_CLASSIC_BOUNDS))
"""The upper bounds that a classic histogram may show, ascending."""

_CLASSIC_CELLS = tuple(lib.opstream_classic_cell(i) for i in range(lib.OPSTREAM_CLASSIC_BOUNDS))


def classic_buckets(cells: Sequence[int]) -> list[int]:
    """Cumulative counts at each of CLASSIC_BOUNDS_NS, and last the count of all."""
    cumulative, total = [], 0
    for count in cells:
        total += count
        cumulative.append(total)
    return [cumulative[cell] for cell in _CLASSIC_CELLS] + [total]


class _Closing(ABC):
    """A context that closes it at its end."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Publisher(_Closing):
    """This process's publisher; a process has at most one. Close it before the process ends."""

    def __init__(
        self,
        *,
        kind: Kind,
        app: str,
        socket_path: Path | None,
        labels: str = "",
        hosted_name: str = "",
        config_digest: str = "",
        library_path: str = "",
        daemon_uid: int = NOBODY,
        series_capacity: int = 0,
    ) -> None:
        keep = [
            ffi.NULL if text is None else ffi.new("char[]", os.fsencode(text))
            for text in (
                app,
                labels or None,
                hosted_name or None,
                config_digest or None,
                socket_path,
                library_path or None,
            )
        ]
        config = ffi.new("struct opstream_publisher_config *")
        config.kind, config.series_capacity, config.daemon_uid = kind, series_capacity, daemon_uid
        config.app, config.labels, config.hosted_name, config.config_digest = keep[:4]
        config.socket_path, config.library_path = keep[4:]
        out = ffi.new("opstream_publisher **")
        _check(lib.opstream_publisher_open(config, out))
        self._handle = out[0]

    def subscribe(self, model_id: int, device: int, name: str) -> None:
        """Blocks while the vendor's call runs. Raises VendorError when it refuses; then it is tried again."""
        acl_error = ffi.new("int *")
        status = lib.opstream_publisher_subscribe(self._handle, model_id, device, name.encode(), _FOREVER, acl_error)
        _check(status, acl_error, f"cannot subscribe to model {name}")

    def unsubscribe(self, model_id: int) -> None:
        """When it returns, every record made before is in the segment."""
        acl_error = ffi.new("int *")
        status = lib.opstream_publisher_unsubscribe(self._handle, model_id, _FOREVER, acl_error)
        _check(status, acl_error, "cannot unsubscribe")

    def segment(self) -> int:
        """A descriptor of the segment, owned by the caller."""
        return _check(lib.opstream_publisher_segment(self._handle))

    @property
    def link_state(self) -> LinkState:
        return LinkState(lib.opstream_publisher_link_state(self._handle))

    def close(self) -> None:
        """Unsubscribes, says goodbye and ends its threads. A second call does nothing."""
        handle, self._handle = self._handle, ffi.NULL
        lib.opstream_publisher_close(handle)


def agent_attach(model_id: int, device: int, name: str) -> None:
    """Subscribes a loaded model by this process's agent, which is loaded where none is preloaded."""
    _load_agent()
    acl_error = ffi.new("int *")
    status = lib.opstream_agent_attach(model_id, device, name.encode(), acl_error)
    _check(status, acl_error, f"cannot subscribe to model {name}")


def agent_detach(model_id: int) -> None:
    _load_agent()
    acl_error = ffi.new("int *")
    _check(lib.opstream_agent_detach(model_id, acl_error), acl_error, "cannot unsubscribe")


def _load_agent() -> None:
    _check(lib.opstream_agent_load(str(agent_library()).encode()))


class HostedModel(_Closing):
    """A model that this process has loaded. To be opened, executed and closed on the main thread."""

    def __init__(self, path: str, device: int, *, library_path: str = "") -> None:
        text = ffi.new("char[]", _TEXT_BYTES)
        acl_error = ffi.new("int *")
        out = ffi.new("opstream_model **")
        folders = os.fsencode(library_path) if library_path else ffi.NULL
        status = lib.opstream_model_open(folders, os.fsencode(path), device, text, _TEXT_BYTES, acl_error, out)
        _check(status, acl_error, _string(text))
        self._handle = out[0]

    @property
    def id(self) -> int:
        """The vendor's number of it."""
        return int(lib.opstream_model_id(self._handle))

    def execute(self) -> None:
        """Runs it once and waits for its end."""
        acl_error = ffi.new("int *")
        _check(lib.opstream_model_execute(self._handle, acl_error), acl_error, "cannot execute the model")

    def close(self) -> None:
        """Unsubscribe it before. A second call does nothing."""
        handle, self._handle = self._handle, ffi.NULL
        lib.opstream_model_close(handle)


def _string(raw: Any) -> str:
    return ffi.string(raw).decode(errors="replace")  # type: ignore[no-any-return]


def _check(status: int, acl_error: Any = None, text: str = "") -> int:
    if status >= 0:
        return status
    if status == Status.VENDOR and acl_error is not None:
        raise VendorError(status, acl_error[0], text)
    if status == Status.SYSTEM:
        raise SystemCallError(status, text)
    if status == Status.LIBRARY:
        raise LibraryError(status, text)
    raise EngineError(status, text)
