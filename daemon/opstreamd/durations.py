"""Durations as people write them in configuration files: Go-style strings such as "500ms", "1m30s" or "1.5h"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

_UNITS_NS: Final = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter, which Go accepts too
    "ns": 1,
}
_TERM: Final = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[a-z\u00b5\u03bc]+)")
_LONGEST_TEXT: Final = 64
MAX_NS: Final = 2**63 - 1
"""The longest duration, as in Go: about 292 years."""


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    """A span of time that is not negative, kept as whole nanoseconds."""

    ns: int

    def __post_init__(self) -> None:
        if not 0 <= self.ns <= MAX_NS:
            raise ValueError(f"{self.ns} ns is outside 0 to {MAX_NS} ns")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a Go-style string; a fraction of a nanosecond is refused, not rounded. Raises ValueError."""
        if text == "0":
            return cls(0)
        if not text or len(text) > _LONGEST_TEXT:
            raise ValueError(f"{text!r} is no duration")
        total_ns = 0
        position = 0
        while position < len(text):
            term = _TERM.match(text, position)
            if term is None or term["unit"] not in _UNITS_NS:
                raise ValueError(f"{text!r} is no duration")
            total_ns += _term_ns(text, term["whole"], term["fraction"] or "", _UNITS_NS[term["unit"]])
            position = term.end()
        return cls(total_ns)

    @property
    def seconds(self) -> float:
        """For clocks and timers that count in floating-point seconds."""
        return self.ns / 1e9

    def __str__(self) -> str:
        """The shortest usual spelling, which `parse` reads back: "1h", "1m30s", "1.5s", "20ms", "0s"."""
        if self.ns == 0:
            return "0s"
        if self.ns < _UNITS_NS["s"]:
            unit = next(unit for unit in ("ms", "us", "ns") if self.ns >= _UNITS_NS[unit])
            return _decimal(self.ns, _UNITS_NS[unit]) + unit
        hours, rest_ns = divmod(self.ns, _UNITS_NS["h"])
        minutes, rest_ns = divmod(rest_ns, _UNITS_NS["m"])
        parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else ""]
        if rest_ns:
            parts.append(_decimal(rest_ns, _UNITS_NS["s"]) + "s")
        return "".join(parts)


def _term_ns(text: str, whole: str, fraction: str, unit_ns: int) -> int:
    if not whole and not fraction:
        raise ValueError(f"{text!r} is no duration")
    scale = int(10 ** len(fraction))
    value_ns, remainder = divmod(int(whole + fraction) * unit_ns, scale)
    if remainder:
        raise ValueError(f"{text!r} is finer than a nanosecond")
    return value_ns


def _decimal(value_ns: int, unit_ns: int) -> str:
    whole, rest = divmod(value_ns, unit_ns)
    digits = len(str(unit_ns)) - 1
    fraction = f"{rest:0{digits}d}".rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)
