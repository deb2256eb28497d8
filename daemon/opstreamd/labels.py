"""The labels of a publisher's series: whose name is whose, and which extra labels are let through."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from opstreamd.peer import Peer

HOSTED_APP = "opstreamd"
EXTRA_LABELS_MAX = 8


@dataclass(slots=True)
class _Claim:
    owner: Hashable
    holders: int


class AppNames:
    """Who owns which value of the label `app`.

    A name belongs to the first (uid, cgroup) that publishes it, as long as one of its publishers is live or retained.
    Others get it with their container or uid behind it, so that nobody can add to somebody else's series. HOSTED_APP
    always belongs to the hosted models.
    """

    _HOSTED = "hosted"

    def __init__(self) -> None:
        self._claims: dict[str, _Claim] = {HOSTED_APP: _Claim(self._HOSTED, 1)}

    def claim(self, app: str, peer: Peer, *, hosted: bool) -> str:
        """The name under which this publisher's series are exported. To be given back by `release`."""
        owner: Hashable = self._HOSTED if hosted and app == HOSTED_APP else (peer.uid, peer.cgroup)
        for name in self._candidates(app, peer):
            claim = self._claims.setdefault(name, _Claim(owner, 0))
            if claim.owner == owner:
                claim.holders += 1
                return name
        raise AssertionError("candidates never end")

    def release(self, name: str) -> None:
        claim = self._claims[name]
        claim.holders -= 1
        if claim.holders == 0:
            del self._claims[name]

    @staticmethod
    def _candidates(app: str, peer: Peer) -> Iterable[str]:
        yield app
        name = f"{app}@{peer.container or peer.uid}"
        yield name
        # Two cgroups of one user, or somebody has called himself name@uid.
        number = 2
        while True:
            yield f"{name}.{number}"
            number += 1


def extra_labels(text: str, allow: Iterable[str]) -> str:
    """Of "team=a,pod=b" those whose names are in `allow`, as they stand in a sample: `,pod="b"`.

    What can't be read is left out.
    """
    allowed = frozenset(allow)
    chosen: dict[str, str] = {}
    for pair in text.split(",")[:EXTRA_LABELS_MAX]:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if equals and value and name in allowed:
            chosen.setdefault(name, value)
    return "".join(f',{name}="{_escape(value)}"' for name, value in sorted(chosen.items()))


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
