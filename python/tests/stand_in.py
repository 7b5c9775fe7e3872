"""A stand-in for torch on a machine without a GPU, which checks order: every access of a tensor's bytes is held against the earlier ones, and those that no
event, stream or wait of the host orders are races. Its allocator gives memory that came back to the same stream at once, as torch's does, so that what is
let go too early is found as a race too. It says nothing of what a GPU does with real kernels."""

import sys
import types

races = []  # of (bytes, first, second)
_streams = []
_handles = iter(range(1 << 40))
_current = None
_history = {}  # by byte: the last write and the reads since, each (stream, number, name)
_blocks = {}  # by stream and size: addresses that came back
_next_address = 1 << 20
_snapshot = []
calls = 0  # of streams and events


class Layout:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"


strided, sparse_coo = Layout("strided"), Layout("sparse_coo")
float32, uint8 = "torch.float32", "torch.uint8"


class device:
    def __init__(self, kind, index=0):
        self.type, self.index = kind, index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __str__(self):
        return f"{self.type}:{self.index}" if self.type == "cuda" else self.type


class Stream:
    def __init__(self, device=None):
        self.cuda_stream, self.device, self.after, self.count, self.capture = next(_handles), device, {}, 0, None
        _streams.append(self)

    def step(self):
        self.count += 1
        self.after[self.cuda_stream] = self.count
        return self.count

    def wait_event(self, event):
        event.wait(self)

    def wait_stream(self, other):
        self.wait_event(other.record_event())

    def record_event(self):
        event = Event()
        event.record(self)
        return event

    def synchronize(self):
        if self.capture is not None:
            raise RuntimeError("operation not permitted when stream is capturing")
        for s in _streams:  # what the host submits next comes after
            _merge(s.after, self.after)


def _merge(into, other):
    for s, n in other.items():
        if into.get(s, 0) < n:
            into[s] = n


class Event:
    def __init__(self, enable_timing=False):
        self.at, self.capture, self.timing, self.us = None, None, enable_timing, 0

    def record(self, stream=None):
        global calls
        calls += 1
        stream = stream or _current
        self.at, self.capture, self.us = dict(stream.after), stream.capture, clock[0]

    def wait(self, stream=None):
        global calls
        calls += 1
        stream = stream or _current
        if self.at is None:
            return
        if stream.capture is not self.capture:
            if stream.capture is not None:
                raise RuntimeError("dependency created on uncaptured work in another stream")
            stream.capture = self.capture
            self.capture.streams.append(stream)
        _merge(stream.after, self.at)

    def elapsed_time(self, other):
        if not (self.timing and other.timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        return (other.us - self.us) / 1000


clock = [0.0]  # microseconds that tasks have taken


class Storage:
    """Memory. When nobody holds it, it goes back to the stream that it was taken on, unless others were noted."""

    def __init__(self, size, where):
        global _next_address
        self.size, self.where, self.users = size, where, set()
        self.stream = _current.cuda_stream if where.type == "cuda" else None
        free = _blocks.setdefault((self.stream, size), []) if where.type == "cuda" else []
        if free:
            self.address = free.pop()
        else:
            self.address = _next_address
            _next_address += (size + 511) // 512 * 512
            if where.type == "cuda":
                _snapshot.append({"address": self.address, "total_size": size, "stream": self.stream})

    def data_ptr(self):
        return self.address

    def nbytes(self):
        return self.size

    def __del__(self):
        if self.where.type == "cuda" and not self.users:
            _blocks.setdefault((self.stream, self.size), []).append(self.address)


class Tensor:
    layout = strided
    dtype = uint8

    def __init__(self, storage, offset, shape, strides, versions, pinned=False, requires_grad=False):
        self.storage, self.offset, self.shape, self.strides = storage, offset, tuple(shape), tuple(strides)
        self.versions, self.pinned, self.requires_grad = versions, pinned, requires_grad

    _version = property(lambda self: self.versions[0])
    device = property(lambda self: self.storage.where)
    is_cuda = property(lambda self: self.storage.where.type == "cuda")

    def is_pinned(self):
        return self.pinned

    def data_ptr(self):
        return self.storage.address + self.offset

    def untyped_storage(self):
        return self.storage

    def element_size(self):
        return 1

    def numel(self):
        n = 1
        for d in self.shape:
            n *= d
        return n

    def stride(self):
        return self.strides

    def is_contiguous(self):
        at = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides)):
            if n != 1 and stride != at:
                return False
            at *= n
        return True

    def __getitem__(self, key):
        offset, shape, strides = self.offset, [], []
        keys = key if isinstance(key, tuple) else (key,)
        for k, (n, stride) in enumerate(zip(self.shape, self.strides)):
            one = keys[k] if k < len(keys) else slice(None)
            if isinstance(one, slice):
                low, high, _ = one.indices(n)
                offset += low * stride
                shape.append(high - low)
                strides.append(stride)
            else:
                offset += one * stride
        return Tensor(self.storage, offset, shape, strides, self.versions, self.pinned)

    def record_stream(self, stream):
        self.storage.users.add(stream.cuda_stream)

    def bytes(self):
        places = [self.data_ptr()]
        for n, stride in zip(self.shape, self.strides):
            places = [p + k * stride for p in places for k in range(n)]
        return places


def empty(*shape, device="cuda", pin_memory=False, requires_grad=False):
    where = cuda_device if device == "cuda" else globals()["device"](*device.split(":")[:1], int(device.split(":")[1]) if ":" in device else 0)
    strides, size = [], 1
    for n in reversed(shape):
        strides.insert(0, size)
        size *= n
    return Tensor(Storage(size, where), 0, shape, strides, [0], pin_memory, requires_grad)


cuda_device = device("cuda", 0)


def kernel(name, reads=(), writes=(), us=10.0, stream=None):
    """What a kernel does on a stream: accesses, at one moment of the stream."""
    stream = stream or _current
    number = stream.step()
    clock[0] += us
    me = (stream.cuda_stream, number, name)

    def ordered(other):
        return stream.after.get(other[0], 0) >= other[1]

    for tensors, write in ((reads, False), (writes, True)):
        for t in tensors:
            if write:
                t.versions[0] += 1
            for at in t.bytes():
                last, since = _history.get(at, (None, []))
                for other in ([last] if last else []) + (since if write else []):
                    if other[:2] != me[:2] and not ordered(other):
                        races.append((at, other[2], name))
                _history[at] = (me, []) if write else (last, [*since, me])


class _Capture:
    def __init__(self):
        self.streams = []


class CUDAGraph:
    def __init__(self, keep_graph=False):
        self.captured, self.replays = False, 0

    def replay(self):
        if not self.captured:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        self.replays += 1


class graph:
    def __init__(self, made):
        self.graph, self.stream = made, Stream()

    def __enter__(self):
        self.before = cuda.current_stream()
        _history.clear()
        self.stream.capture = _Capture()
        self.stream.capture.streams.append(self.stream)
        cuda.set_stream(self.stream)

    def __exit__(self, kind, error, trace):
        captured, joined = self.stream.capture, self.stream.after
        _history.clear()  # what was captured did not run
        left = [s for s in captured.streams if joined.get(s.cuda_stream, 0) < s.count]
        wrong = cuda.current_stream() is not self.stream
        for s in captured.streams:
            s.capture = None
        cuda.set_stream(self.before)
        if wrong:
            raise RuntimeError("Capture must end on the same stream it began on.") from error
        if left:
            raise RuntimeError("capturing stream has unjoined work")
        self.graph.captured = True


class stream:
    def __init__(self, s):
        self.stream = s

    def __enter__(self):
        self.before = _current
        cuda.set_stream(self.stream)

    def __exit__(self, *_):
        cuda.set_stream(self.before)


def _set_stream(s):
    global _current, calls
    calls += 1
    _current = s


cuda = types.SimpleNamespace(
    Stream=Stream,
    Event=Event,
    CUDAGraph=CUDAGraph,
    graph=graph,
    stream=stream,
    set_stream=_set_stream,
    current_stream=lambda device=None: _current,
    current_device=lambda: current_device[0],
    is_available=lambda: available[0],
    is_initialized=lambda: True,
    is_current_stream_capturing=lambda: _current.capture is not None,
    memory_snapshot=lambda: _snapshot,
)
current_device, available, grad = [0], [True], [True]
version = types.SimpleNamespace(cuda="13.0")
__version__ = "stand-in"


def is_grad_enabled():
    return grad[0]


def begin():
    """Forgets everything, and takes torch's place."""
    global _next_address, calls
    races.clear(), _streams.clear(), _history.clear(), _blocks.clear(), _snapshot.clear()
    _next_address, calls, clock[0], current_device[0], available[0], grad[0], version.cuda = 1 << 20, 0, 0.0, 0, True, True, "13.0"
    _set_stream(Stream())
    sys.modules["torch"] = sys.modules[__name__]


# What the snippets of docs/python.md call. Numbers are those of bytes, and nothing is computed.


def _made(*shape, device="cpu"):
    return empty(*shape, device=device)


rand = _made


def _pin_memory(self):
    self.pinned = True
    return self


def _copy(self, other, non_blocking=False):
    kernel("copy", [other], [self])
    return self


def _unary(x, out=None):
    out = out if out is not None else empty(*x.shape)
    kernel("unary", [x], [out])
    return out


def _add(x, y):
    out = empty(*x.shape)
    kernel("add", [x, y], [out])
    return out


def arange(n, device="cpu"):
    return empty(int(n), device=device)


def _view(self, *shape):
    strides, at = [], 1
    for n in reversed(shape):
        strides.insert(0, at)
        at *= n
    return Tensor(self.storage, self.offset, shape, strides, self.versions, self.pinned)


Tensor.pin_memory, Tensor.copy_, Tensor.view, Tensor.tolist = _pin_memory, _copy, _view, lambda self: list(self.shape)
sqrt = square = _unary
add = _add
cuda.synchronize = lambda device=None: [s.synchronize() for s in _streams]
