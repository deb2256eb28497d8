"""What all tests of whole processes share."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

import profiles
from processes import Site
from profiles import Profile, Recipe

# Some of the tests crash their children on purpose.
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))

PROFILES_FOLDER = os.environ.get("OPSTREAM_PROFILES")
"""A folder with tables of real profiles, which may not be part of the project: replayed too, where it is named."""


def _sources() -> list[Recipe | Path]:
    return [*profiles.RECIPES, *(sorted(Path(PROFILES_FOLDER).glob("*.csv")) if PROFILES_FOLDER else [])]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture(params=_sources(), ids=lambda source: source.name)
def profile(request: pytest.FixtureRequest, tmp_path: Path) -> Profile:
    """Every profile in its turn."""
    source: Recipe | Path = request.param
    return profiles.read(source) if isinstance(source, Path) else source.write(tmp_path)


@pytest.fixture
def steady(tmp_path: Path) -> Profile:
    """A profile in which all runs of an operator take the same time."""
    return profiles.STEADY.write(tmp_path)


@pytest.fixture
def summary(tmp_path: Path) -> Profile:
    return profiles.SUMMARY.write(tmp_path)
