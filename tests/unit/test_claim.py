"""Claims: the kernel tells who runs a model, from the moment it is taken until its holder is gone, however it goes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opstreamd.claim import Claim, Condition, Record, look

_HOLDER = """
import sys
from pathlib import Path
from opstreamd.claim import Claim, Condition

claim = Claim.take(Path(sys.argv[1]), sys.argv[2])
print("taken" if claim else "refused", flush=True)
for line in sys.stdin:
    claim.report(*line.strip().split("|"))
    print("reported", flush=True)
"""


class Holder:
    """A process that takes a claim, and reports what it is told to."""

    def __init__(self, path: Path, digest: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, str(path), digest],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.answer = self._answer()

    def report(self, condition: Condition, reason: str = "") -> None:
        assert self.process.stdin is not None
        print(condition, reason, sep="|", file=self.process.stdin, flush=True)
        assert self._answer() == "reported"

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def holder(path: Path, digest: str = "d") -> Iterator[Holder]:
    held = Holder(path, digest)
    try:
        yield held
    finally:
        held.process.kill()
        held.process.communicate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "resnet50-0.claim"


def test_nobody_holds_what_was_never_taken(path: Path) -> None:
    sight = look(path)
    assert (sight.holder, sight.record, sight.digest, sight.up) == (0, None, "", False)


def test_the_holder_is_named_and_is_up_once_it_runs(path: Path) -> None:
    with holder(path, "abc") as held:
        sight = look(path)
        assert sight.holder == held.process.pid
        assert (sight.digest, sight.up) == ("abc", False)
        assert sight.record is not None
        assert sight.record.condition == Condition.STARTING
        held.report(Condition.RUNNING)
        assert look(path).up
        held.report(Condition.FAILED, "subscription: aclError 200007")
        sight = look(path)
        assert not sight.up
        assert sight.record is not None
        assert sight.record.reason == "subscription: aclError 200007"


def test_a_second_worker_is_refused_and_changes_nothing(path: Path) -> None:
    with holder(path, "first") as first:
        first.report(Condition.RUNNING)
        with holder(path, "second") as second:
            assert second.answer == "refused"
        sight = look(path)
        assert (sight.holder, sight.digest, sight.up) == (first.process.pid, "first", True)


def test_looking_takes_nothing_from_the_holder(path: Path) -> None:
    with holder(path):
        for _ in range(3):
            look(path)
        with holder(path) as second:
            assert second.answer == "refused"


def test_a_killed_holder_is_gone_at_once_and_counts_as_a_restart(path: Path) -> None:
    for restarts in range(3):
        with holder(path) as held:
            held.report(Condition.RUNNING)
            record = look(path).record
            assert record is not None
            assert record.restarts == restarts
        sight = look(path)
        assert (sight.holder, sight.digest, sight.up) == (0, "", False)


def test_a_good_end_is_no_restart(path: Path) -> None:
    with holder(path) as held:
        held.report(Condition.ENDED)
    with holder(path):
        record = look(path).record
        assert record is not None
        assert record.restarts == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": 1}', '{"pid": "x"}', "\0" * 100, "\xff"])
def test_a_spoilt_file_is_no_record_and_does_not_keep_a_worker_away(path: Path, text: str) -> None:
    path.write_text(text, encoding="latin-1")
    assert look(path).record is None
    with holder(path) as held:
        assert held.answer == "taken"
        assert look(path).record == Record(held.process.pid, "d", Condition.STARTING, "", 0)


def test_the_longest_reason_fits(path: Path) -> None:
    with holder(path) as held:
        held.report(Condition.FAILED, "\N{OGHAM SPACE MARK}\U0001f600" * 500)
        record = look(path).record
        assert record is not None
        assert len(record.reason) == 300


def test_nobody_else_can_lock_it(path: Path) -> None:
    path.touch(0o644)
    with holder(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        Claim.take(path, "d")
    assert not (tmp_path / "elsewhere").exists()
