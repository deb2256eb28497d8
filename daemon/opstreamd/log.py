"""Structured logs on standard error: logfmt or JSON, one line a record, repeated messages held back."""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

Format = Literal["logfmt", "json"]
FORMATS: tuple[Format, ...] = ("logfmt", "json")
LEVELS = ("debug", "info", "warning", "error")

LINES_PER_WINDOW = 30
WINDOW_SECONDS = 60.0

_PLAIN = re.compile(r"[!#-<>-\[\]-~]+")
"""Printable ASCII without space, quote, equals sign and backslash: needs no quotes in logfmt."""


def fields(**values: object) -> dict[str, dict[str, object]]:
    """Fields of a record, as `extra`: log.info("publisher refused", extra=fields(uid=7))."""
    return {"fields": values}


class RateLimit(logging.Filter):
    """Lets through `LINES_PER_WINDOW` lines of one message in a window, and counts the others.

    The message is the text before its fields and arguments are filled in: so a peer that does one thing a thousand
    times makes few lines, whatever names it gives itself, and hides nothing else. Errors are always let through.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since = clock()
        self._lines: dict[tuple[str, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            return True
        key = (record.name, str(record.msg))
        count = self._lines[key] = self._lines.get(key, 0) + 1
        return count <= LINES_PER_WINDOW

    def take_suppressed(self) -> list[tuple[str, str, int]]:
        """(logger, message, lines held back) of the past window, when it is over; a new one has begun then."""
        now = self._clock()
        if now - self._since < WINDOW_SECONDS:
            return []
        lines, self._lines, self._since = self._lines, {}, now
        over = ((name, text, count - LINES_PER_WINDOW) for (name, text), count in lines.items())
        return [(name, text, count) for name, text, count in over if count > 0]


class StructuredFormatter(logging.Formatter):
    """One line a record, whatever is in it."""

    def __init__(self, style: Format) -> None:
        super().__init__()
        self._line = _json_line if style == "json" else _logfmt_line

    def format(self, record: logging.LogRecord) -> str:
        time_text = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        values: dict[str, Any] = {
            "time": time_text.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        values |= getattr(record, "fields", {})
        if record.exc_info:
            values["trace"] = self.formatException(record.exc_info)
        return self._line(values)


class StructuredHandler(logging.StreamHandler[TextIO]):
    """Writes the lines, and at a window's end how many were held back."""

    def __init__(self, stream: TextIO, style: Format, limit: RateLimit) -> None:
        super().__init__(stream)
        self.setFormatter(StructuredFormatter(style))
        self._limit = limit
        self.addFilter(limit)

    def handle(self, record: logging.LogRecord) -> bool:
        self.report_suppressed()
        return super().handle(record)

    def report_suppressed(self) -> None:
        """Called with every record, and by `serve` once a window, so that the last ones are told too."""
        self.acquire()
        try:
            for name, text, count in self._limit.take_suppressed():
                record = logging.LogRecord(name, logging.WARNING, "", 0, "messages suppressed", None, None)
                record.fields = {"suppressed": text, "count": count}
                self.emit(record)
        finally:
            self.release()


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log.level", dest="log_level", choices=LEVELS, default="info")
    parser.add_argument("--log.format", dest="log_format", choices=FORMATS, default="logfmt")


def set_up(level: str, style: Format, stream: TextIO | None = None) -> StructuredHandler:
    """Makes all of the process's loggers write to `stream`, standard error by default."""
    handler = StructuredHandler(stream or sys.stderr, style, RateLimit())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # What aiohttp finds worth telling about single requests is for debugging only.
    logging.getLogger("aiohttp.server").setLevel(logging.NOTSET if level == "debug" else logging.CRITICAL)
    return handler


def _json(value: object) -> str:
    # JSON allows DEL as it is; a terminal shouldn't see it.
    return json.dumps(value, default=str).replace("\x7f", "\\u007f")


def _json_line(values: dict[str, Any]) -> str:
    return _json(values)


def _logfmt_line(values: dict[str, Any]) -> str:
    return " ".join(f"{key}={_logfmt_value(value)}" for key, value in values.items())


def _logfmt_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return text if _PLAIN.fullmatch(text) else _json(text)
