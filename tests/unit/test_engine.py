"""The binding: statuses become exceptions, and what goes in comes out."""

import os
import subprocess
import sys

import pytest
from segments import MAX_BYTES, Segment

from opstreamd import engine
from opstreamd._native import lib
from opstreamd.config import BOUNDS_NS
from opstreamd.engine import EngineError, Exposition, Kind, Message, MessageType, Publisher, Status, View


def test_statuses_have_names() -> None:
    assert EngineError(Status.NOT_MEMFD).status == "not_memfd"
    assert EngineError(-999).status == "unknown"
    for status in Status:
        assert engine.status_name(status) == status.name.lower()


def test_the_bounds_that_may_be_configured_are_the_engines() -> None:
    assert engine.CLASSIC_BOUNDS_NS == BOUNDS_NS


def test_buckets_are_cumulative() -> None:
    cells = [1] * engine.CELLS
    buckets = engine.classic_buckets(cells)
    assert len(buckets) == len(engine.CLASSIC_BOUNDS_NS) + 1
    assert buckets == sorted(buckets)
    assert buckets[-1] == len(cells)


@pytest.mark.parametrize("duration_ns", [0, 1, 99, 100, 101, 1_000, 5_000_001, 10**9, 10**11, 10**11 + 1, 2**63])
def test_a_duration_is_in_the_buckets_at_and_above_it(duration_ns: int) -> None:
    cells = [0] * engine.CELLS
    cells[lib.opstream_cell_of(duration_ns)] = 1
    assert engine.classic_buckets(cells) == [int(duration_ns <= bound) for bound in engine.CLASSIC_BOUNDS_NS] + [1]


def test_a_message_reads_back() -> None:
    hello = Message(
        MessageType.HELLO,
        uuid=os.urandom(16),
        kind=Kind.HOSTED,
        segment_bytes=2**33,
        hosted_name="größer",
        config_digest="0" * 32,
    )
    assert Message.parse(hello.encode()) == hello


def test_a_refusals_text_is_cut_between_characters() -> None:
    text = Message.parse(Message(MessageType.REFUSE, reason=Status.FULL, text="€" * 100).encode()).text
    assert text == "€" * 31


@pytest.mark.parametrize(
    ("data", "status"), [(b"", "size"), (b"x" * 255, "size"), (b"x" * 257, "size"), (b"x" * 256, "magic")]
)
def test_garbage_is_no_message(data: bytes, status: str) -> None:
    with pytest.raises(EngineError) as caught:
        Message.parse(data)
    assert caught.value.status == status


def test_a_view_says_what_the_segment_says() -> None:
    segment = Segment.make("serving", labels="pod=a")
    fd = segment.memfd()
    view = View(fd, MAX_BYTES)
    os.close(fd)
    assert (view.info.uuid, view.info.app, view.info.labels) == (segment.hello.uuid, "serving", "pod=a")
    assert view.info.segment_bytes == len(segment.data)
    counters = view.counters(departed=False, now_ns=0)
    assert counters.records_read == counters.records_recorded == 0
    assert set(counters.rejected) == {"corrupt", "name", "time", "interrupted"}
    assert view.subscribe_errors() == []
    assert view.delay() == ([0] * engine.CELLS, 0)


def test_a_view_is_no_larger_than_allowed() -> None:
    segment = Segment.make()
    fd = segment.memfd()
    with pytest.raises(EngineError, match="size"):
        View(fd, len(segment.data) - 1)
    os.close(fd)


def test_an_exposition_of_nobody_is_empty() -> None:
    exposition = Exposition()
    assert exposition.series == 0
    assert exposition.text(operator_bounds=1, model_bounds=1, label_bytes_max=200, per_operator=False) == b""


def test_without_the_vendors_libraries_the_error_says_where_they_were_looked_for() -> None:
    """In a process of its own: once loaded, they stay."""
    code = """
from opstreamd.engine import HostedModel, LibraryError
try:
    HostedModel("model.om", 0, library_path="/nowhere")
except LibraryError as error:
    print(error.status, error)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("library libascendcl.so")
    assert "/nowhere" in said.stdout


def test_a_process_has_one_publisher() -> None:
    folders = str(engine.simulator_path())
    with Publisher(kind=Kind.AGENT, app="one", socket_path=None, library_path=folders, series_capacity=64) as publisher:
        assert publisher.link_state == engine.LinkState.DOWN
        with pytest.raises(EngineError, match="busy"):
            Publisher(kind=Kind.AGENT, app="two", socket_path=None, library_path=folders)
        publisher.close()
    with Publisher(kind=Kind.AGENT, app="two", socket_path=None, library_path=folders, series_capacity=64):
        pass
