"""CUDA's driver by ctypes: what reading, changing and timing graphs takes. Raises DriverError with the name of the call that failed."""

import contextlib
import ctypes
import functools

handle = ctypes.c_void_p
address = ctypes.c_uint64


class DriverError(RuntimeError):
    """A call of the CUDA driver failed."""

    def __init__(self, call, code):
        self.call, self.code = call, code
        super().__init__(f"{call}: {_text(code)}")


class KernelParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [
        ("function", handle),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("parameters", ctypes.POINTER(ctypes.c_void_p)),
        ("extra", ctypes.POINTER(ctypes.c_void_p)),
        ("kernel", handle),
        ("context", handle),
    ]


class SetParams(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = [
        ("address", address),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint),
        ("element", ctypes.c_uint),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    ]


class _Side(ctypes.Structure):
    _fields_ = [
        ("x", ctypes.c_size_t),
        ("y", ctypes.c_size_t),
        ("z", ctypes.c_size_t),
        ("lod", ctypes.c_size_t),
        ("kind", ctypes.c_uint),
        ("host", ctypes.c_void_p),
        ("device", address),
        ("array", handle),
        ("reserved", ctypes.c_void_p),
        ("pitch", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    ]


class CopyParams(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = [("source", _Side), ("destination", _Side), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: the value is a union of 64 bytes."""

    _fields_ = [("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_ubyte * 64)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", handle),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", ctypes.c_uint),
    ]


KERNEL, COPY, SET, HOST, CHILD, EMPTY = 0, 1, 2, 3, 4, 5
CLUSTER, COOPERATIVE = 4, 2  # CUlaunchAttributeID
FUNCTION_ATTRIBUTES = {"registers": 4, "shared": 1, "constant": 2, "local": 3, "binary": 6}


@functools.lru_cache(maxsize=None)
def _library():
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as wrong:
        raise RuntimeError(f"no CUDA driver: {wrong}. dagrun's graphs need a machine with an NVIDIA GPU") from None


def _text(code):
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    _library().cuGetErrorName(code, ctypes.byref(name))
    _library().cuGetErrorString(code, ctypes.byref(text))
    return f"{(name.value or b'error %d' % code).decode()}: {(text.value or b'unknown').decode()}"


@functools.lru_cache(maxsize=None)
def _function(name):
    return getattr(_library(), name)


def call(name, *arguments):
    """Calls a function of the driver."""
    code = _function(name)(*arguments)
    if code:
        raise DriverError(name, code)


def made(name, *arguments):
    """Calls a function whose first argument receives a handle, and returns that."""
    out = handle()
    call(name, ctypes.byref(out), *arguments)
    return out


@contextlib.contextmanager
def stream():
    """A stream of one's own, which nothing orders with the legacy default stream."""
    own = made("cuStreamCreate", 1)
    try:
        yield own.value
    finally:
        call("cuStreamDestroy_v2", own)


def name_of(function, kernel):
    out = ctypes.c_char_p()
    if kernel:
        call("cuKernelGetName", ctypes.byref(out), handle(kernel))
    else:
        call("cuFuncGetName", ctypes.byref(out), handle(function))
    return (out.value or b"").decode(errors="replace")


def parameters_of(function, kernel):
    """Offset and size of each parameter. Needs CUDA 12.4."""
    ask, which = ("cuKernelGetParamInfo", kernel) if kernel else ("cuFuncGetParamInfo", function)
    offset, size, found = ctypes.c_size_t(), ctypes.c_size_t(), []
    while _function(ask)(handle(which), ctypes.c_size_t(len(found)), ctypes.byref(offset), ctypes.byref(size)) == 0:
        found.append((offset.value, size.value))
    return found


def attributes_of(function):
    """What tells one version of a function from another, as far as the driver says."""
    value, found = ctypes.c_int(), {}
    for name, number in FUNCTION_ATTRIBUTES.items():
        if _function("cuFuncGetAttribute")(ctypes.byref(value), number, handle(function)) == 0:
            found[name] = value.value
    return found


def version():
    """The newest version of CUDA that the driver knows, as 1000 times the major one and 10 times the minor one."""
    found = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(found))
    return found.value


def range_of(pointer):
    """The allocation that a device address lies in: its address and size, or None."""
    base, size = address(), ctypes.c_size_t()
    if _function("cuMemGetAddressRange_v2")(ctypes.byref(base), ctypes.byref(size), address(pointer)):
        return None
    return base.value, size.value
