"""opstreamd shows, live, how long every operator of every model on a machine's Ascend NPUs takes."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("opstreamd")
except PackageNotFoundError:  # run from a checkout that isn't installed
    __version__ = "0+unknown"
