"""torch, imported when it is needed: `import dagrun` does without."""

from __future__ import annotations

import importlib
from typing import Any


def torch_for(what: str) -> Any:
    """The module torch, or an error that tells what needs it."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise RuntimeError(f"{what}, and there is no torch here: python -m pip install torch") from None


def cuda_for(what: str) -> Any:
    """The module torch of a process that can use a GPU, or an error that tells why it cannot."""
    torch = torch_for(what)
    if torch.cuda.is_available():
        return torch
    if torch.version.cuda is None:
        raise RuntimeError(f"{what}, and this torch ({torch.__version__}) was built without CUDA: install one that was, see pytorch.org")
    raise RuntimeError(f"{what}, and torch finds no GPU: is there an NVIDIA driver (nvidia-smi), and does CUDA_VISIBLE_DEVICES leave one?")
