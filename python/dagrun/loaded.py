"""What dagrun.load returns: a planned pipeline, called with tensors, which it uses where they lie. Files are read by dagrun.h, in the recorder's library."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import weakref
from typing import Any, NamedTuple

from . import command

_handle = ctypes.c_void_p
NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
    "bool": "bool",
    **{f"{kind}{bits}": f"{name}{bits}" for kind, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
}


class _Options(ctypes.Structure):
    """dagrun_options."""

    _fields_ = [("size", ctypes.c_size_t), ("context", _handle), ("device", ctypes.c_int)]


class _Described(ctypes.Structure):
    """dagrun_buffer without the pointer, for which memory would be taken."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("dimensions", ctypes.c_uint),
        ("host", ctypes.c_int),
        ("given", ctypes.c_int),
        ("result", ctypes.c_int),
        ("bytes", ctypes.c_uint64),
    ]


@functools.lru_cache(maxsize=None)
def _library() -> Any:
    answer = command.run(["export", "--library"])
    if answer.status:
        raise RuntimeError(answer.text)
    library = ctypes.CDLL(answer.out.strip())
    library.dagrun_error.restype = ctypes.c_char_p
    library.dagrun_load.argtypes = [ctypes.POINTER(_handle), ctypes.c_char_p, ctypes.POINTER(_Options)]
    library.dagrun_describe.argtypes = [_handle, ctypes.c_uint, ctypes.POINTER(_Described)]
    library.dagrun_bind.argtypes = [_handle, ctypes.c_char_p, _handle]
    library.dagrun_replay.argtypes = [_handle, _handle]
    library.dagrun_free.argtypes = [_handle]
    return library


_left: list[Any] = []  # graphs that nobody holds and that could not be freed, since a stream was being captured


def _let_go(torch: Any, graph: Any) -> None:
    if torch.cuda.is_current_stream_capturing():
        _left.append(graph)
    else:
        _library().dagrun_free(graph)


class Buffer(NamedTuple):
    """A buffer of a loaded pipeline: what tensors in its place must be. A replay reads what was in it before if it is `given`, and leaves something in it for
    others if it is a `result`."""

    name: str
    dtype: Any
    shape: tuple[int, ...]
    host: bool
    given: bool
    result: bool

    @property
    def _written(self) -> bool:
        return self.result or not self.host


class Loaded:
    """A pipeline on a GPU. A call replays it on the current stream, with tensors in the place of buffers.

    >>> double = dagrun.load("first.yaml", n=1024)
    >>> double(x=torch.ones(1024, device="cuda"))["y"].sum()
    tensor(2048., device='cuda:0')
    """

    def __init__(self, torch: Any, file: str, name: str) -> None:
        self._torch, self._file, self._name = torch, file, name
        torch.cuda.init()
        self._device = torch.device("cuda", torch.cuda.current_device())
        while _left:
            _library().dagrun_free(_left.pop())
        self._graph = _handle()
        options = _Options(ctypes.sizeof(_Options), None, self._device.index)
        self._done(_library().dagrun_load(ctypes.byref(self._graph), os.fsencode(file), ctypes.byref(options)))
        self._free = weakref.finalize(self, _let_go, torch, self._graph)
        self._free.atexit = False
        self._lock = threading.Lock()
        self._buffers = {b.name: b for b in self._described()}
        self._returned = [b for b in self._buffers.values() if b.result and not b.given]
        self._bound: dict[str, int] = {}  # addresses by buffer
        self._late: list[tuple[Any, Any]] = []  # tensors on the CPU that a replay uses until an event has passed, oldest first

    def _done(self, code: int) -> None:
        if code:
            raise RuntimeError(_library().dagrun_error().decode(errors="replace").replace(self._file, self._name))

    def _described(self) -> list[Buffer]:
        found: list[Buffer] = []
        d = _Described(ctypes.sizeof(_Described))
        while _library().dagrun_describe(self._graph, len(found), ctypes.byref(d)) == 0:
            kind, _, many = d.type.decode().partition("x")  # f32x4 is float4
            shape = (*d.shape[: d.dimensions], *([int(many)] if many else []))
            found.append(Buffer(d.name.decode(), getattr(self._torch, NAMES[kind]), shape, bool(d.host), bool(d.given), bool(d.result)))
        return found

    @property
    def buffers(self) -> dict[str, Buffer]:
        """The buffers by name.

        >>> dagrun.load("first.yaml", n=1000).buffers["x"]
        Buffer(name='x', dtype=torch.float32, shape=(1000,), host=True, given=True, result=False)
        """
        return dict(self._buffers)

    def __call__(self, /, **tensors: Any) -> dict[str, Any]:
        """Puts a replay into the current stream. Tensors, and other arrays with __dlpack__, are used where they lie, also on the GPU in the place of buffers of
        the host. Other buffers have memory of the pipeline. Returns the results that no tensor was given for, in new tensors on the GPU; what no node writes in
        them is undefined, and a result that a replay also reads is not among them.

        Call once before a capture; what is captured needs the pipeline, and its tensors.
        """
        torch = self._torch
        stream = torch.cuda.current_stream(self._device)
        given = {name: self._checked(name, t) for name, t in tensors.items()}
        made = {b.name: torch.empty(b.shape, dtype=b.dtype, device=self._device) for b in self._returned if b.name not in given}
        with self._lock:
            if not self._free.alive:
                raise RuntimeError(f"{self._name} was released")
            self._bind({**given, **made})
            self._done(_library().dagrun_replay(self._graph, stream.cuda_stream))
            self._hold([t for t in given.values() if not t.is_cuda], stream)
        for name, t in given.items():
            if t.is_cuda:
                t.record_stream(stream)
            if self._buffers[name]._written and not t.is_inference():
                torch.autograd.graph.increment_version(t)
        return made

    def _checked(self, name: str, t: Any) -> Any:
        b, torch = self._buffers.get(name), self._torch
        if b is None:
            raise ValueError(f"{self._name} has no buffer {name}; it has {', '.join(self._buffers)}")
        if not isinstance(t, torch.Tensor):
            if not hasattr(t, "__dlpack__"):
                raise TypeError(f"{name} is an object of type {type(t).__name__}: pass a tensor")
            t = torch.from_dlpack(t)
        if t.dtype != b.dtype or t.shape != b.shape:
            raise ValueError(f"{name} is {shown(t)}, and {self._name} has {shown(b)} there")
        if t.device != self._device and t.device.type != "cpu":
            raise ValueError(f"{name} is on {t.device}, and {self._name} was loaded for {self._device}")
        if t.layout != torch.strided or not t.is_contiguous() or t.is_conj() or t.is_neg():
            raise ValueError(f"{name} does not lie in memory as it reads: pass {name}.contiguous(), of resolve_conj() or resolve_neg() if it has those bits")
        if t.requires_grad and torch.is_grad_enabled():
            raise ValueError(f"{name} requires grad, and a pipeline has no gradient: pass {name}.detach(), or call under torch.no_grad()")
        return t

    def _bind(self, tensors: dict[str, Any]) -> None:
        """Lets the next replay use these tensors, and no others."""
        at = {name: t.data_ptr() for name, t in tensors.items()}
        if at == self._bound:
            return
        self._apart(tensors)
        for name in [*(self._bound.keys() - at.keys()), *at]:
            if self._bound.get(name) != at.get(name):
                self._done(_library().dagrun_bind(self._graph, name.encode(), at.get(name)))
                self._bound[name] = at.get(name, 0)
        self._bound = at

    def _apart(self, tensors: dict[str, Any]) -> None:
        """Refuses tensors that share memory which a replay writes: it was planned for buffers that do not."""
        end, last = 0, ""
        for at, size, name in sorted((t.data_ptr(), t.numel() * t.element_size(), name) for name, t in tensors.items()):
            if size and at < end and (self._buffers[name]._written or self._buffers[last]._written):
                raise ValueError(f"{last} and {name} share memory, and a replay writes there: pass tensors that do not")
            if at + size > end:
                end, last = at + size, name

    def _hold(self, tensors: list[Any], stream: Any) -> None:
        """Keeps memory of the host until the replay in a stream has finished, unless it is captured; for memory of the GPU, the allocator does."""
        if not tensors and not self._late or self._torch.cuda.is_current_stream_capturing():
            return
        while self._late and self._late[0][0].query():
            self._late.pop(0)
        if tensors:
            self._late.append((stream.record_event(), tensors))

    def release(self) -> None:
        """Waits for all work on the GPU, and frees what the pipeline has there, which captured replays need, too.

        >>> double = dagrun.load("first.yaml")
        >>> double.release()
        """
        with self._lock:
            if self._free.detach():
                self._done(_library().dagrun_free(self._graph))

    def __repr__(self) -> str:
        return f"<dagrun.Loaded: {self._name}({', '.join(name for name, b in self._buffers.items() if b.given)})>"


def shown(t: Any) -> str:
    """The type and shape of a tensor or a buffer, in messages."""
    return f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}"
