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


def apart(node, at, words, pool, before, launch, memory, copy, stream):
    """Launches a node with each tensor in a place of its own, up to where the next one begins, and zeros everywhere else, the pool included; and tells whether
    it leaves what it usually does, each byte in the place of the tensor that it belongs to. at lists its descriptors, words the offsets of all words that point
    into the pool by what they hold, before the copies of the pool as it is. memory makes device memory and copy copies it. Returns the offsets that were moved,
    and whether that is so; the node has then run as usual."""
    launch(node, stream)
    call("cuStreamSynchronize", handle(stream))
    usual = {base: _read(base, size) for base, size in pool}
    row, copies = bytearray(node.row), []
    try:
        for turn, (word, offsets_) in enumerate(words.items()):
            base, size = next((base, size) for base, size in pool if base <= word < base + size)
            other = memory(size + (1 << 20))
            end = min((w for w in words if word < w < base + size), default=base + size)
            there = other.address.value + turn * 3 * 512
            copies.append((base, size, other, there, word - base, end - base))
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
        return moved, all(_as_usual(base, size, usual[base], before, copies) for base, size in pool)
    except driver.DriverError as wrong:
        if wrong.call != "cuMemAlloc_v2":
            raise
        return [], False
    finally:
        for base, size in pool:
            _write(base, usual[base])
        for _, _, other, *_ in copies:
            other.free()


def _clear(address, size, stream):
    call("cuMemsetD8Async", driver.address(address), ctypes.c_ubyte(0), ctypes.c_size_t(size), handle(stream))


def _as_usual(base, size, usual, before, copies):
    """Whether the tensors of a segment hold what they usually do, in their places, and nothing else was changed."""
    was, at = _read(before[base].address.value, size), 0
    for there, low, high in sorted((c[3:] for c in copies if c[0] == base), key=lambda c: c[1]):
        left = _read(there, size)
        if left[low:high] != usual[low:high] or _changed(left[:low]) or _changed(left[high:]) or usual[at:low] != was[at:low]:
            return False
        at = high
    return usual[at:] == was[at:] and not _changed(_read(base, size))


def _changed(row):
    """Whether some byte is not zero, where all were."""
    return row != bytes(len(row))


def _read(address, size):
    row = bytearray(size)
    call("cuMemcpyDtoH_v2", (ctypes.c_ubyte * size).from_buffer(row), driver.address(address), ctypes.c_size_t(size))
    return row


def _write(address, row):
    call("cuMemcpyHtoD_v2", driver.address(address), (ctypes.c_ubyte * len(row)).from_buffer(row), ctypes.c_size_t(len(row)))
