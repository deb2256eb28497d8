"""Log lines can be read by machines, whatever peers put into them, and peers can't flood them."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from opstreamd import log


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def line(style: log.Format, message: str, **values: object) -> str:
    record = logging.LogRecord("opstreamd.test", logging.WARNING, "", 0, message, None, None)
    record.fields = values
    return log.StructuredFormatter(style).format(record)


def test_logfmt_quotes_what_needs_quotes() -> None:
    text = line("logfmt", "publisher refused", reason="size", uid=7, text='a "b"=c\\', empty="", live=True)
    assert text.split(" ", 1)[1] == (
        'level=warning logger=opstreamd.test msg="publisher refused" reason=size uid=7 '
        'text="a \\"b\\"=c\\\\" empty="" live=true'
    )
    assert text.startswith("time=2")
    assert text.split(" ", 1)[0].endswith("Z")


EVIL = ["\n", "\r", "\x1b[2J", "\x85", "\u2028", "\x9b", "\x00", "\x7f", "\ud800"]


@pytest.mark.parametrize("style", log.FORMATS)
@pytest.mark.parametrize("evil", [f"a{character}b" for character in EVIL])
def test_a_record_is_one_line_of_printable_ascii(style: log.Format, evil: str) -> None:
    text = line(style, evil, field=evil)
    assert text.isascii()
    assert text.isprintable()


def test_json_reads_back() -> None:
    values = json.loads(line("json", "größer", app="ü\n", count=3))
    assert values.items() >= {"msg": "größer", "app": "ü\n", "count": 3, "level": "warning"}.items()


def test_an_exception_stays_in_its_line(stream: io.StringIO) -> None:
    log.set_up("info", "logfmt", stream)
    try:
        raise RuntimeError("of\nno importance")
    except RuntimeError:
        logging.getLogger("opstreamd.test").exception("failed")
    assert stream.getvalue().count("\n") == 1
    assert 'trace="Traceback' in stream.getvalue()


def test_levels_below_are_left_out(stream: io.StringIO) -> None:
    log.set_up("warning", "logfmt", stream)
    logging.getLogger("opstreamd.test").info("quiet")
    logging.getLogger("opstreamd.test").warning("loud")
    assert "msg=quiet" not in stream.getvalue()
    assert "msg=loud" in stream.getvalue()


def test_a_flood_is_cut_and_its_size_told() -> None:
    clock, stream = Clock(), io.StringIO()
    handler = log.StructuredHandler(stream, "json", log.RateLimit(clock))
    logger = logging.Logger("opstreamd.flood")
    logger.addHandler(handler)

    for uid in range(log.LINES_PER_WINDOW + 70):
        logger.warning("publisher refused", extra=log.fields(uid=uid))
    logger.warning("something else")
    logger.error("an error")
    lines = [json.loads(text) for text in stream.getvalue().splitlines()]
    assert [values["msg"] for values in lines[-2:]] == ["something else", "an error"]
    assert len(lines) == log.LINES_PER_WINDOW + 2

    handler.report_suppressed()
    assert len(stream.getvalue().splitlines()) == len(lines), "the window isn't over"
    clock.now += log.WINDOW_SECONDS
    handler.report_suppressed()
    told = json.loads(stream.getvalue().splitlines()[-1])
    assert told.items() >= {"msg": "messages suppressed", "suppressed": "publisher refused", "count": 70}.items()

    logger.warning("publisher refused", extra=log.fields(uid=1))
    assert json.loads(stream.getvalue().splitlines()[-1])["uid"] == 1, "a new window has begun"


def test_errors_are_never_held_back() -> None:
    stream = io.StringIO()
    logger = logging.Logger("opstreamd.flood")
    logger.addHandler(log.StructuredHandler(stream, "json", log.RateLimit(Clock())))
    for _ in range(log.LINES_PER_WINDOW * 3):
        logger.error("cannot run")
    assert len(stream.getvalue().splitlines()) == log.LINES_PER_WINDOW * 3
