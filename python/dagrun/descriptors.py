"""Tensors that kernels reach by descriptors in their parameters (tensor maps), whose accesses cannot be measured: whether a kernel finds them elsewhere is
tried by its results. A descriptor's form is the driver's own, so one counts as moved only if the driver itself would change nothing but the address in it."""

import ctypes

from . import driver
from .driver import KERNEL, call, handle

SIZE, ALIGNED = 128, 64  # CUtensorMap


def replaced(descriptor, address):
    """The descriptor with another address, by the driver; None if it refuses."""
    try:
        replace = driver._function("cuTensorMapReplaceAddress")
    except AttributeError:
        return None
    room = (ctypes.c_ubyte * (SIZE + ALIGNED))()
    at = -ctypes.addressof(room) % ALIGNED
    room[at : at + SIZE] = descriptor
    if replace(ctypes.c_void_p(ctypes.addressof(room) + at), ctypes.c_void_p(address)):
        return None
    return bytes(room[at : at + SIZE])


def offsets(node):
    """Where descriptors lie in the parameters of a node: 128 bytes that the driver leaves as they are when it is given the address that stands in them."""
    found = []
    if node.type == KERNEL:
        for offset, size in node.function["parameters"]:
            for at in range(offset + -offset % ALIGNED, offset + size - SIZE + 1, ALIGNED):
                descriptor = bytes(node.row[at : at + SIZE])
                word = int.from_bytes(descriptor[:8], "little")
                if word and replaced(descriptor, word) == descriptor:
                    found.append(at)
    return found


def _plain(descriptor, to):
    """Whether the driver's descriptor with another address is the one with that address written into it."""
    return replaced(descriptor, to) == to.to_bytes(8, "little") + descriptor[8:]


def apart(node, at, words, pool, before, usual, scratch, launch, memory, copy, stream):
    """Launches a node with each tensor in a place of its own, up to where the next one begins, and zeros everywhere else, the pool included; and tells whether
    it leaves what it usually does, each byte in the place of the tensor that it belongs to. at lists its descriptors, words the offsets of all words that point
    into the pool by what they hold, before the copies of the pool as it is. usual and scratch are memory of the host, for each segment of the pool, and for
    the largest. memory makes device memory and copy copies it. Returns the offsets that were moved, and whether that is so; the node has then run as usual."""
    launch(node, stream)
    call("cuStreamSynchronize", handle(stream))
    for base, size in pool:
        _read(base, usual[base], size)
    row, copies = bytearray(node.row), []
    try:
        for turn, (word, offsets_) in enumerate(words.items()):
            base, size = next((base, size) for base, size in pool if base <= word < base + size)
            other = memory(size + (1 << 20))
            end = min((w for w in words if word < w < base + size), default=base + size)
            there = other.address.value + turn * 3 * 512
            copies.append((base, other, there, word - base, end - base))
            to = there + word - base
            if not all(_plain(bytes(node.row[o : o + SIZE]), to) for o in offsets_ if o in at):
                return [], False
            for offset in offsets_:
                row[offset : offset + 8] = to.to_bytes(8, "little")
            _clear(there, size, stream)
            copy(to, before[base].address.value + word - base, end - word, stream)
        for base, size in pool:
            _clear(base, size, stream)
        launch(node, stream, row)
        call("cuStreamSynchronize", handle(stream))
        moved = [offset for offsets_ in words.values() for offset in offsets_]
        return moved, all(_as_usual(base, size, usual[base], before[base], copies, scratch) for base, size in pool)
    except driver.DriverError as wrong:
        if wrong.call != "cuMemAlloc_v2":
            raise
        return [], False
    finally:
        for base, size in pool:
            call("cuMemcpyHtoD_v2", driver.address(base), ctypes.c_void_p(usual[base].address.value), ctypes.c_size_t(size))
        for _, other, *_ in copies:
            other.free()


def _clear(address, size, stream):
    call("cuMemsetD8Async", driver.address(address), ctypes.c_ubyte(0), ctypes.c_size_t(size), handle(stream))


def _as_usual(base, size, usual, before, copies, scratch):
    """Whether the tensors of a segment hold what they usually do, in their places, and nothing else was changed."""
    tensors = sorted((low, high, there) for segment, _, there, low, high in copies if segment == base)
    for low, high, there in tensors:
        _read(there, scratch, size)
        if not (_same(scratch, usual, low, high) and _zero(scratch, 0, low) and _zero(scratch, high, size)):
            return False
    _read(before.address.value, scratch, size)
    ends = [0, *(high for _, high, _ in tensors)]
    begins = [*(low for low, _, _ in tensors), size]
    if not all(_same(scratch, usual, low, high) for low, high in zip(ends, begins)):
        return False
    _read(base, scratch, size)
    return _zero(scratch, 0, size)


_compare = ctypes.CDLL(None).memcmp
_compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def _same(a, b, low, high):
    return not _compare(a.address.value + low, b.address.value + low, high - low)


def _zero(memory, low, high):
    at = memory.address.value + low  # all bytes are zero if the first one is, and each is as the one before it
    return low == high or ctypes.c_ubyte.from_address(at).value == 0 and not _compare(at, at + 1, high - low - 1)


def _read(address, to, size):
    call("cuMemcpyDtoH_v2", ctypes.c_void_p(to.address.value), driver.address(address), ctypes.c_size_t(size))
