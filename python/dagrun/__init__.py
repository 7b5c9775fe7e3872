"""dagrun in Python: plans captured CUDA graphs again. `python -m dagrun` is the dagrun command."""

import importlib.metadata as _metadata

from .replanning import Replanned, replan

__all__ = ["Replanned", "replan"]

try:
    __version__ = _metadata.version("dagrun")
except _metadata.PackageNotFoundError:  # used from the sources
    __version__ = "unknown"
