"""Files that are generated, and checked in, are what their generators print."""

import subprocess
import sys
from pathlib import Path

from opstreamd import configfile

PROJECT = Path(__file__).parents[2]


def test_the_reference_of_the_configuration():
    title, empty, rest = (PROJECT / "deploy/configuration.txt").read_text(encoding="utf-8").split("\n", 2)
    assert title.startswith("#")
    assert empty == ""
    assert rest == configfile.reference(), "print it anew: python -m opstreamd.configfile"


def test_the_bounds_of_the_histograms():
    generator = PROJECT / "native/src/histogram_bounds.py"
    printed = subprocess.run([sys.executable, generator], check=True, capture_output=True, text=True).stdout
    assert generator.with_suffix(".h").read_text(encoding="utf-8") == printed
