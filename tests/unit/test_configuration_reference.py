"""deploy/configuration.txt is what the configuration's definitions say."""

from pathlib import Path

from opstreamd import configfile

REFERENCE = Path(__file__).parents[2] / "deploy" / "configuration.txt"


def test_the_checked_in_reference_is_the_printed_one():
    title, empty, rest = REFERENCE.read_text(encoding="utf-8").split("\n", 2)
    assert title.startswith("#")
    assert empty == ""
    assert rest == configfile.reference(), "print it anew: python -m opstreamd.configfile"
