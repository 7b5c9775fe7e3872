"""What dagrun.load returns where there is no GPU: a pipeline that the command runs on its CPU device, with arrays of numpy in the place of tensors."""

from __future__ import annotations

import importlib
import json
import os
import re
import tempfile
import threading
from typing import Any

from . import command
from .loaded import NAMES, Buffer, Loaded, shown


def numpy_or(why: RuntimeError) -> Any:
    """The module numpy, or the error of there being no GPU, which numpy would help."""
    try:
        return importlib.import_module("numpy")
    except ImportError:
        raise RuntimeError(f"{why}. With numpy, it runs on the CPU device: python -m pip install numpy") from None


def _written(folder: str, name: str, contents: bytes) -> str:
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(contents)
    return path


class OnCPU(Loaded):
    """A pipeline on the CPU device. A call runs the command once, and waits for it.

    >>> double = dagrun.load("first.yaml", n=4)
    >>> double(x=numpy.ones(4, "float32"))["y"]
    array([2., 2., 2., 2.], dtype=float32)
    """

    def __init__(self, numpy: Any, file: str, name: str) -> None:
        self._numpy, self._name = numpy, name
        answer = command.run(["plan", file, "--output=json"])
        if answer.status:
            raise RuntimeError(answer.text.replace(file, name))
        with open(file, "rb") as f:
            self._planned = f.read()
        self._buffers = {b["name"]: self._buffer(b) for b in json.loads(answer.out)["buffers"]}
        for b in self._buffers.values():
            if b.given and b.result and not b.host:
                raise RuntimeError(f"{name} hands on what is in {b.name}, on the device, from one replay to the next, which needs a GPU")
        self._returned = [b for b in self._buffers.values() if b.result and not b.given]
        self._state: dict[str, bytes] = {}  # of buffers that a replay reads and leaves something in
        self._lock = threading.Lock()

    def _buffer(self, listed: dict[str, Any]) -> Buffer:
        kind, many, shape = re.fullmatch(r"(\w+?)(x\d+)?\[(.*)\]", listed["type"]).groups()  # type: ignore[union-attr]
        sizes = [int(n) for n in re.findall(r"\d+", shape + (many or ""))]
        dtype = self._numpy.dtype(NAMES[kind] if kind != "bf16" else "uint16")  # numpy has no bf16
        return Buffer(listed["name"], dtype, tuple(sizes), listed["place"] == "host", "given" in listed["use"], "result" in listed["use"])

    def __call__(self, /, **arrays: Any) -> dict[str, Any]:
        """Runs the pipeline once, with arrays in the place of buffers of the host. Returns the results that no array was given for."""
        given = {name: self._checked(name, a) for name, a in arrays.items()}
        with self._lock, tempfile.TemporaryDirectory() as folder:
            if not self._planned:
                raise RuntimeError(f"{self._name} was released")
            contents = {**self._state, **{name: a.tobytes() for name, a in given.items()}}
            results = [b.name for b in self._buffers.values() if b.host and b.result]
            words = [_written(folder, "planned.dagrun", self._planned), "--backend=cpu", "--quiet"]
            words += [f"--load={name}={_written(folder, f'{k}-in.bin', raw)}" for k, (name, raw) in enumerate(contents.items())]
            saved = {name: os.path.join(folder, f"{k}-out.bin") for k, name in enumerate(results)}
            answer = command.run([*words, *(f"--save={name}={at}" for name, at in saved.items())])
            if answer.status:
                raise RuntimeError(answer.text.replace(words[0], self._name))
            for name, at in saved.items():
                with open(at, "rb") as f:
                    contents[name] = f.read()
                if self._buffers[name].given and name not in given:
                    self._state[name] = contents[name]
        made = {}
        for name in results:
            b = self._buffers[name]
            a = self._numpy.frombuffer(contents[name], b.dtype).reshape(b.shape)
            if name in given:
                given[name][...] = a
            elif b in self._returned:
                made[name] = a.copy()
        return made

    def _checked(self, name: str, a: Any) -> Any:
        b = self._buffers.get(name)
        if b is None or not b.host:
            host = ", ".join(n for n, b in self._buffers.items() if b.host)
            raise ValueError(f"{self._name} has no buffer {name} on the host, which is what the CPU device takes arrays for; it has {host}")
        if not isinstance(a, self._numpy.ndarray):
            if not hasattr(a, "__dlpack__"):
                raise TypeError(f"{name} is an object of type {type(a).__name__}: pass an array of numpy, or a tensor on the CPU")
            a = self._numpy.from_dlpack(a)
        if a.dtype != b.dtype or a.shape != b.shape:
            raise ValueError(f"{name} is {shown(a)}, and {self._name} has {shown(b)} there")
        if b.result and not a.flags.writeable:
            raise ValueError(f"{name} cannot be written, and a replay leaves its result there: pass an array that can be, or none")
        return a

    def release(self) -> None:
        """Ends the use of the pipeline."""
        self._planned = b""
