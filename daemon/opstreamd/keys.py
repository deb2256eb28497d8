"""What a key of the configuration file may hold: each kind reads a TOML value, and says in words what it allows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from typing import Any, Final

from opstreamd.durations import Duration

SOCKET_PATH_BYTES: Final = 107
"""What sockaddr_un holds besides its closing NUL."""

_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_RESERVED_LABELS: Final = frozenset(
    ("le", "quantile", "job", "instance", "app", "device", "model", "op_type", "op_name", "range", "mark")
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value. `read` turns a TOML value into the configuration's own, or raises ValueError."""

    allowed: str
    read: Callable[[object], Any]


def key(kind: Kind, doc: str, *, default: object = MISSING, flag: str = "", shown: str = "") -> Any:
    """A key of a section. `default` is a TOML value, or a function that gives one (then `shown` says which)."""
    metadata = {"kind": kind, "doc": doc, "flag": flag, "shown": shown or toml(default)}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=kind.read(default), metadata=metadata)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: an empty host means all interfaces, port 0 any free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads "127.0.0.1:9780", "[::1]:9780", "localhost:9780" or ":9780". Raises ValueError."""
        host, colon, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]") and ":" in host:
            host = host[1:-1]
        elif ":" in host or "[" in host or "]" in host:
            raise ValueError("an IPv6 address needs brackets")
        if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535 or not _printable(host):
            raise ValueError("no address")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def switch() -> Kind:
    def read(value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError
        return value

    return Kind("true or false", read)


def integer(low: int, high: int) -> Kind:
    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError
        return value

    return Kind(f"a whole number from {low} to {high}", read)


def duration(low: str, high: str) -> Kind:
    shortest, longest = Duration.parse(low), Duration.parse(high)

    def read(value: object) -> Duration:
        parsed = Duration.parse(_string(value))
        if not shortest <= parsed <= longest:
            raise ValueError
        return parsed

    return Kind(f'a duration from "{low}" to "{high}" in units h, m, s, ms, us, ns, such as "1m30s"', read)


def text(max_bytes: int, *, empty: bool = False) -> Kind:
    def read(value: object) -> str:
        string = _string(value)
        if not _printable(string) or len(string.encode()) > max_bytes or not (string or empty):
            raise ValueError
        return string

    return Kind(f"a string of {0 if empty else 1} to {max_bytes} bytes without control characters", read)


def path(max_bytes: int = 4095) -> Kind:
    def read(value: object) -> str:
        string = _string(value)
        if not string.startswith("/") or len(string.encode()) > max_bytes or not _printable(string) or ":" in string:
            raise ValueError
        return string

    return Kind(f"an absolute path of at most {max_bytes} bytes without colons and control characters", read)


def url_path() -> Kind:
    def read(value: object) -> str:
        string = _string(value)
        if re.fullmatch(r"/[A-Za-z0-9._~/-]{0,254}", string) is None or string.startswith("/-/"):
            raise ValueError
        return string

    return Kind('a path such as "/metrics", of letters, digits and ._~/-, not below /-/', read)


def address() -> Kind:
    return Kind(
        'an address and port such as "127.0.0.1:9780", "[::1]:9780" or ":9780"',
        lambda value: Address.parse(_string(value)),
    )


def label_name() -> Kind:
    def read(value: object) -> str:
        string = _string(value)
        if _LABEL_NAME.fullmatch(string) is None or string.startswith("__") or string in _RESERVED_LABELS:
            raise ValueError
        return string

    reserved = ", ".join(sorted(_RESERVED_LABELS))
    return Kind(f"a label name of letters, digits and _, neither beginning with __ nor one of {reserved}", read)


def one_of(choices: dict[float, int], allowed: str) -> Kind:
    """A number out of a fixed set; the configuration holds what the set maps it to."""

    def read(value: object) -> int:
        if not isinstance(value, int | float) or isinstance(value, bool) or value not in choices:
            raise ValueError
        return choices[value]

    return Kind(allowed, read)


def not_yet(what: str) -> Kind:
    """A key that the contract has and this version doesn't act on: silence would be taken for consent."""

    def read(value: object) -> str:
        if value != "":
            raise ValueError
        return ""

    return Kind(f'only "": {what} are not available yet', read)


def list_of(kind: Kind, *, at_least: int = 0, at_most: int) -> Kind:
    """A list of different values."""

    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list) or not at_least <= len(value) <= at_most:
            raise ValueError
        items = tuple(kind.read(item) for item in value)
        if len(set(items)) != len(items):
            raise ValueError
        return items

    return Kind(f"a list of {at_least} to {at_most} different values, each {kind.allowed}", read)


def toml(value: object) -> str:
    """A value as a TOML file spells it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "a table"
    return "(required)" if value is MISSING else str(value)


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("no string")
    return value


def _printable(string: str) -> bool:
    return all(character >= " " and character != "\x7f" for character in string)
