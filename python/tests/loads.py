"""The program that test_loading.py runs: loads.py SAXPY.YAML, where libcuda.so.1 is the stand-in for the driver."""

import contextlib
import ctypes
import gc
import os
import re
import sys
import types

import built  # puts the package on the path
from stand_in import device as Device

import dagrun
from dagrun import command, loaded

N = 1000
cuda = ctypes.CDLL("libcuda.so.1")
cuda.stand_in_context.restype = ctypes.c_void_p


def of_driver(name, *kinds):
    at = ctypes.c_void_p()
    assert cuda.cuGetProcAddress(name.encode(), ctypes.byref(at), 12000, ctypes.c_uint64(0)) == 0
    return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(at.value)


assert of_driver("cuCtxPushCurrent", ctypes.c_void_p)(cuda.stand_in_context(0)) == 0
take, give = of_driver("cuMemAlloc", ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t), of_driver("cuMemFree", ctypes.c_uint64)


class Memory:
    def __init__(self, size, device):
        self.address = ctypes.c_uint64()
        self.on_gpu, self.bytes = device.type == "cuda", ctypes.create_string_buffer(size)
        if self.on_gpu:
            assert take(ctypes.byref(self.address), size) == 0
        else:
            self.address.value = ctypes.addressof(self.bytes)

    def __del__(self):
        if self.on_gpu:
            freed.append(self.address)  # in the order of the stream
        else:
            ctypes.memset(self.bytes, 0xFF, len(self.bytes))


class Tensor:
    layout, requires_grad, streams = "torch.strided", False, 0

    def __init__(self, shape, dtype="torch.float32", device=None, memory=None, offset=0):
        self.shape, self.dtype, self.device = tuple(shape), dtype, device or gpu
        self.size = {"torch.float32": 4, "torch.float64": 8}[dtype]
        self.memory, self.offset, self.versions = memory or Memory(self.numel() * self.size, self.device), offset, 0

    def numel(self):
        n = 1
        for d in self.shape:
            n *= d
        return n

    def values(self):
        return (ctypes.c_float * self.numel()).from_address(self.data_ptr())

    def fill(self, value):
        for k in range(self.numel()):
            self.values()[k] = value(k)
        return self

    is_cuda = property(lambda self: self.device.type == "cuda")
    data_ptr = lambda self: self.memory.address.value + self.offset  # noqa: E731
    element_size = lambda self: self.size  # noqa: E731
    is_contiguous = lambda self: not hasattr(self, "strides")  # noqa: E731
    is_conj = is_neg = is_inference = lambda self: False  # noqa: E731

    def record_stream(self, stream):
        assert stream is current
        self.streams += 1


class Array:  # of another library
    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self):
        return self.tensor


class Event:
    passed = False

    def query(self):
        return self.passed


def record_event():
    events.append(Event())
    return events[-1]


def increment_version(t):
    t.versions += 1


gpu, cpu, events, freed, capturing = Device("cuda"), Device("cpu"), [], [], [False]
current = types.SimpleNamespace(cuda_stream=0, record_event=record_event)
sys.modules["torch"] = types.SimpleNamespace(
    **{t: f"torch.{t}" for t in ("float32", "float64", "strided")},
    Tensor=Tensor,
    device=Device,
    empty=lambda shape, dtype, device: Tensor(shape, dtype, device).fill(lambda k: -1),
    from_dlpack=lambda array: array.__dlpack__(),
    is_grad_enabled=lambda: True,
    autograd=types.SimpleNamespace(graph=types.SimpleNamespace(increment_version=increment_version)),
    cuda=types.SimpleNamespace(
        init=lambda: None,
        is_available=lambda: True,
        current_device=lambda: 0,
        current_stream=lambda device: current,
        is_current_stream_capturing=lambda: capturing[0],
    ),
)


@contextlib.contextmanager
def says(kind, pattern):
    try:
        yield
    except kind as wrong:
        assert re.fullmatch(pattern, str(wrong)), wrong
    else:
        raise AssertionError(f"nothing was said: {pattern}")


def wait():
    cuda.stand_in_wait()
    while freed:
        give(freed.pop())


def expect(tensor, value):
    """Waits, and compares."""
    wait()
    got = tensor.values()
    assert all(got[k] == value(k) for k in range(N)), (got[:4], [value(k) for k in range(4)])


def ramp(scale, device=None):
    return Tensor([N], device=device).fill(lambda k: scale * k)


def results(p):
    x = ramp(1.0)
    out = p(x=x)
    assert list(out) == ["out"] and (out["out"].shape, out["out"].dtype, out["out"].device) == ((N,), "torch.float32", gpu)
    assert out["out"].values()[7] == -1  # nobody has waited
    expect(out["out"], lambda k: 2 * k + 1)
    expect(p(x=ramp(3.0), y=x)["out"], lambda k: 7 * k)  # elsewhere, and another one too
    expect(p()["out"], lambda k: k + 1)  # the pipeline's own contents again
    mine = ramp(0.0)
    assert p(x=Array(x), out=mine) == {}
    expect(mine, lambda k: 2 * k + 1)
    assert (mine.versions, x.versions, mine.streams, x.streams) == (1, 0, 1, 3)
    inner = ramp(0.0)
    expect(p(d_x=inner, x=x, out=mine).get("out", mine), lambda k: 2 * k + 1)
    expect(inner, lambda k: k)
    assert inner.versions == 1


def host_memory(p):
    """It stays until the replay has finished, and no longer."""
    out = p(x=ramp(5.0, cpu))["out"]
    gc.collect()
    expect(out, lambda k: 10 * k + 1)
    assert len(p._late) == 1
    p(x=ramp(1.0, cpu))
    assert len(p._late) == 2
    events[0].passed = True
    p()
    assert len(p._late) == 1
    events[1].passed = capturing[0] = True
    p(x=ramp(1.0, cpu))
    assert len(p._late) == 1
    capturing[0] = False
    p()
    assert p._late == []
    cuda.stand_in_forget()


def mistakes(p):
    x = ramp(1.0)
    with says(ValueError, r"\S*saxpy.yaml has no buffer z; it has x, y, d_x, d_y, out"):
        p(z=x)
    with says(TypeError, "x is an object of type int: pass a tensor"):
        p(x=3)
    with says(ValueError, r"x is float64\[1000\], and \S*saxpy.yaml has float32\[1000\] there"):
        p(x=Tensor([N], "torch.float64"))
    with says(ValueError, r"x is float32\[10, 100\], and \S*saxpy.yaml has float32\[1000\] there"):
        p(x=Tensor([10, 100]))
    with says(ValueError, r"x is on cuda:1, and \S*saxpy.yaml was loaded for cuda:0"):
        p(x=Tensor([N], device=Device("cuda", 1)))
    for wrong in ({"strides": 2}, {"is_conj": lambda: True}, {"layout": "torch.sparse_coo"}):
        t = ramp(1.0)
        vars(t).update(wrong)
        with says(ValueError, r"x does not lie in memory as it reads: pass x.contiguous\(\), .*"):
            p(x=t)
    t = ramp(1.0)
    t.requires_grad = True
    with says(ValueError, r"x requires grad, and a pipeline has no gradient: pass x.detach\(\), or call under torch.no_grad\(\)"):
        p(x=t)
    both = Memory(8 * N, gpu)
    with says(ValueError, "x and out share memory, and a replay writes there: pass tensors that do not"):
        p(x=Tensor([N], memory=both), out=Tensor([N], memory=both, offset=4 * N - 16))
    p(x=Tensor([N], memory=both), out=Tensor([N], memory=both, offset=4 * N))
    p(x=x, y=x)
    wait()
    with says(RuntimeError, r"\S*saxpy.yaml: kernels use buffer d_x, and this pointer is to memory of the host that they cannot reach"):
        p(x=ramp(2.0), d_x=ramp(1.0, cpu))
    with says(RuntimeError, r"\S*saxpy.yaml: kernels use buffer d_x, and this pointer is no multiple of 16"):
        p(d_x=Tensor([N], memory=both, offset=4))
    expect(p(x=x)["out"], lambda k: 2 * k + 1)


def main(file):
    assert (p := dagrun.load(file, n=N)).buffers["x"] == loaded.Buffer("x", "torch.float32", (N,), True, True, False)
    assert repr(p) == f"<dagrun.Loaded: {file}(x, y)>"
    results(p)
    host_memory(p)
    mistakes(p)
    p.release()
    p.release()
    with says(RuntimeError, r"\S*saxpy.yaml was released"):
        p()

    assert command.run(["export", file, "-p", f"n={N}", "-o", "saxpy.dagrun"]).status == 0
    with says(TypeError, r"saxpy.dagrun was planned when it was exported, and takes no parameters \(n\): export it with those"):
        dagrun.load("saxpy.dagrun", n=1)
    with says(RuntimeError, "none.dagrun: No such file or directory"):
        dagrun.load("none.dagrun")
    with says(RuntimeError, r"\S*saxpy.yaml: -p m=1: unknown param \"m\"; the file has n, alpha"):
        dagrun.load(file, m=1)
    p = dagrun.load("saxpy.dagrun")
    expect(p(x=ramp(1.0))["out"], lambda k: 2 * k + 1)
    capturing[0] = True
    del p  # to free it would break the capture
    capturing[0] = False
    assert cuda.stand_in_live() > 0
    p = dagrun.load("saxpy.dagrun")
    expect(p(x=ramp(1.0))["out"], lambda k: 2 * k + 1)
    del p
    wait()
    assert cuda.stand_in_live() == 0, cuda.stand_in_live()
    print("nothing is left")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
