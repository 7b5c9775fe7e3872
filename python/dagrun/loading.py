"""dagrun.load(file): loads a pipeline for a GPU, or for the CPU device where there is none."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from . import command, on_cpu
from .library import cuda_for
from .loaded import Loaded


def load(file: str | os.PathLike[str], **parameters: Any) -> Loaded:
    """Loads a pipeline for the current device: a file that `dagrun export` wrote, or one that is planned now, with these parameters. Both are code: trust them
    as you would trust a program. Where there is no GPU, but numpy, it runs on the CPU device, with arrays.

    >>> double = dagrun.load("first.yaml", n=1024)
    >>> double(x=torch.ones(1024, device="cuda"))["y"].sum()
    tensor(2048., device='cuda:0')
    """
    name = os.fspath(file)
    try:
        torch, numpy = cuda_for("dagrun.load runs a pipeline on a GPU"), None
    except RuntimeError as why:
        torch, numpy = None, on_cpu.numpy_or(why)
    if name.endswith(".dagrun"):
        if parameters:
            raise TypeError(f"{name} was planned when it was exported, and takes no parameters ({', '.join(parameters)}): export it with those")
        return Loaded(torch, name, name) if torch else on_cpu.OnCPU(numpy, name, name)
    with tempfile.TemporaryDirectory() as folder:
        planned = os.path.join(folder, "planned.dagrun")
        answer = command.run(["export", name, "--quiet", f"--out={planned}", *(f"--param={key}={value}" for key, value in parameters.items())])
        if answer.status:
            raise RuntimeError(answer.text)
        return Loaded(torch, planned, name) if torch else on_cpu.OnCPU(numpy, planned, name)
