"""dagrun in Python: plans captured CUDA graphs again."""

from .replan import Replanned, replan

__all__ = ["Replanned", "replan"]
