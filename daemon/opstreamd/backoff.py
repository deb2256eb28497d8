"""How long to wait before something that failed is tried again."""

from __future__ import annotations

from typing import Final

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 60.0


class Backoff:
    """Waits that double with each failure, up to a minute. What went well for a minute begins anew."""

    def __init__(self) -> None:
        self._next_seconds = FIRST_SECONDS

    def after(self, went_well_seconds: float) -> float:
        """The wait in seconds, after something has failed that had gone well for so long."""
        if went_well_seconds >= LONGEST_SECONDS:
            self._next_seconds = FIRST_SECONDS
        wait_seconds = self._next_seconds
        self._next_seconds = min(2 * wait_seconds, LONGEST_SECONDS)
        return wait_seconds
