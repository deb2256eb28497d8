"""A worker's timing, without a clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opstreamd.assignment import Assignment
from opstreamd.config import Acl, Config, HostedModel
from opstreamd.durations import Duration
from opstreamd.engine import simulator_path
from opstreamd.worker import COMPLAIN_NS, Patience, library_path, next_start_ns

_TIME_NS = st.integers(0, 10**18)


@given(_TIME_NS, st.integers(1, 10**14), _TIME_NS)
def test_missed_starts_are_skipped_and_others_keep_their_places(start_ns: int, interval_ns: int, took_ns: int) -> None:
    now_ns = start_ns + took_ns
    following_ns = next_start_ns(start_ns, interval_ns, now_ns)
    assert following_ns > start_ns
    assert (following_ns - start_ns) % interval_ns == 0
    assert now_ns <= following_ns
    assert following_ns - interval_ns < now_ns or following_ns == start_ns + interval_ns


def test_without_interval_the_next_start_is_now() -> None:
    assert next_start_ns(5, 0, 1000) == 1000


def test_patience_ends_a_retention_after_the_daemon_was_last_seen() -> None:
    patience = Patience(retention_ns=100, now_ns=0)
    assert not patience.ends(connected=False, now_ns=100)
    assert not patience.ends(connected=True, now_ns=150)
    assert not patience.ends(connected=False, now_ns=250)
    assert patience.ends(connected=False, now_ns=251)


def test_an_absence_is_told_once() -> None:
    patience = Patience(retention_ns=10 * COMPLAIN_NS, now_ns=0)
    assert not patience.complains(COMPLAIN_NS)
    assert patience.complains(COMPLAIN_NS + 1)
    assert not patience.complains(COMPLAIN_NS + 2)
    patience.ends(connected=True, now_ns=2 * COMPLAIN_NS)
    assert not patience.complains(3 * COMPLAIN_NS)
    assert patience.complains(3 * COMPLAIN_NS + 1)


def test_the_simulator_comes_before_the_configured_folders() -> None:
    def of(acl: Acl) -> str:
        return library_path(Assignment.of(Config(acl=acl), HostedModel("a", "b")))

    assert of(Acl()) == ""
    assert of(Acl(library_path=("/a", "/b"))) == "/a:/b"
    assert of(Acl(simulator=True)) == str(simulator_path())
    assert of(Acl(simulator=True, library_path=("/a",))) == f"{simulator_path()}:/a"


def test_an_assignment_travels_whole_and_its_digest_tells_changes() -> None:
    config = Config()
    assignment = Assignment.of(config, HostedModel("ä/b", "x", device=3))
    assert Assignment.from_json(assignment.to_json()) == assignment
    assert len(assignment.digest) == 32
    assert assignment.claim_path("/state").name == "%C3%A4%2Fb-3.claim"
    changed = Assignment.of(config, HostedModel("ä/b", "x", device=3, interval=Duration.parse("2s")))
    assert changed.digest != assignment.digest
    assert changed.claim_path("/state") == assignment.claim_path("/state")
