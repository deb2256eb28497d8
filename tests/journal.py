"""The simulator's journal: what really happened in it. It outlives a killed process."""

import struct
from pathlib import Path

HEADER = struct.Struct("<8sQQQ")
SLOT = struct.Struct("<24sQ")


class Journal:
    """Reads the file that OPSTREAM_SIM_JOURNAL names; all processes that share it add up in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, int]:
        """Every counter by its name."""
        content = self.path.read_bytes()
        magic, version, slots, slot_bytes = HEADER.unpack_from(content)
        assert (magic, version, slot_bytes) == (b"OPSIMJNL", 1, SLOT.size)
        counters = (SLOT.unpack_from(content, HEADER.size + SLOT.size * slot) for slot in range(slots))
        return {name.rstrip(b"\0").decode(): value for name, value in counters if name.strip(b"\0")}

    def injected(self, fault: str) -> int:
        """How often a kind of fault befell a record."""
        return self.read()[f"fault.{fault}"]
