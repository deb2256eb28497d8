"""What a hosted worker is told: which model, where, how often, and for which daemon."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Self
from urllib.parse import quote

from opstreamd.config import Config, HostedModel


class Exit(IntEnum):
    """How a worker ends: its exit status."""

    DONE = 0
    """In good order, as it was told to, or because no daemon was there."""
    TAKEN = 10
    """Another worker runs this model."""
    PUBLISHER = 11
    LIBRARY = 12
    MODEL = 13
    EXECUTION = 14
    CLAIM = 15
    """The claim's file can't be written."""


@dataclass(frozen=True)
class Assignment:
    """One hosted model with all that its worker needs from the configuration."""

    name: str
    model: str
    device: int
    interval_ns: int
    executions: int
    simulator: bool
    library_path: str
    socket: str
    retention_ns: int

    @classmethod
    def of(cls, config: Config, model: HostedModel) -> Self:
        return cls(
            name=model.name,
            model=model.model,
            device=model.device,
            interval_ns=model.interval.ns,
            executions=model.executions,
            simulator=config.acl.simulator,
            library_path=":".join(config.acl.library_path),
            socket=config.agent.socket,
            retention_ns=config.state.retention.ns,
        )

    @property
    def digest(self) -> str:
        """Differs when anything of it differs: a worker with another digest has an outdated assignment."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:32]

    def claim_path(self, state_directory: str) -> Path:
        """The file by which the model's worker says that it is the one."""
        return claims_folder(state_directory) / f"{quote(self.name, safe='')}-{self.device}.claim"

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def assignments(config: Config) -> list[Assignment]:
    """One for each of the configuration's hosted models."""
    return [Assignment.of(config, model) for model in config.hosted.models]


def claims_folder(state_directory: str) -> Path:
    return Path(state_directory) / "hosted"
