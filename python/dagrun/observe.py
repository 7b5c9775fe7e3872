"""What a graph's nodes touch and how long they take, found out by running them one after the other.

`accesses` runs in a process that `dagrun record` started: it launches each kernel alone, and again with words of its parameters moved to copies of what they
point to, so that the recording shows which accesses follow which word. `durations` times the nodes with events, in any process."""

import contextlib
import ctypes
import statistics

from . import descriptors, driver
from .driver import KERNEL, call, handle
from .graphs import launch


class Memory:
    """Device memory of the driver's own, outside the framework's allocator."""

    _take, _give = "cuMemAlloc_v2", "cuMemFree_v2"

    def __init__(self, size):
        self.address = driver.address()
        call(self._take, ctypes.byref(self.address), ctypes.c_size_t(size))
        self.size = size

    def free(self):
        if self.address is not None:
            call(self._give, self.address)
        self.address = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.free()


class HostMemory(Memory):
    """Pinned memory of the host, where copies from the device go fast."""

    _take, _give = "cuMemAllocHost_v2", "cuMemFreeHost"


def _copy(to, origin, size, stream):
    call("cuMemcpyDtoDAsync_v2", driver.address(to), driver.address(origin), ctypes.c_size_t(size), handle(stream))


def _wait(stream):
    call("cuStreamSynchronize", handle(stream))


def _segment(segments, word):
    for base, size in segments:
        if base <= word < base + size:
            return base, size
    return None


def _words(node, segments):
    """The words of a kernel's parameters that point into segments: by what they hold, the offsets of those that hold it."""
    found = {}
    for offset, size in node.function["parameters"]:
        at = (offset + 7) & ~7
        while at + 8 <= offset + size:
            word = int.from_bytes(node.row[at : at + 8], "little")
            if _segment(segments, word):
                found.setdefault(word, []).append(at)
            at += 8
    return found


def shared(graph, pool, active):
    """The blocks outside the pool that several kernels point to: workspaces, and what many read."""
    users = {}
    for k, node in enumerate(graph.nodes):
        if node.type == KERNEL:
            for word in _words(node, active):
                if not _segment(pool, word):
                    users.setdefault(_segment(active, word), set()).add(k)
    return sorted(block for block, nodes in users.items() if len(nodes) > 1)


def accesses(graph, pool, stream):
    """Launches the nodes of a graph alone, in order, on a stream of its own. pool lists the memory (address, size) whose words are moved: the segments from
    which the graph's own memory comes, and what is shared. Returns what was launched in which order: node, the offsets of the words that were
    moved, and by how much; and, for kernels with descriptors, 1 if each tensor was moved to a place of its own and they left what they usually do, or 2 if not.

    Afterwards the pool and everything else that parameters point into hold what they held before."""
    tried, usual, scratch = [], {}, None
    with contextlib.ExitStack() as taken:

        def take(size, kind=Memory):
            return taken.enter_context(kind(size))

        largest = max((size for _, size in pool), default=0)
        before = {base: take(size) for base, size in pool}
        elsewhere = [take(largest + (1 << 20)), take(largest + (1 << 20))] if pool else []
        with _kept(graph, pool, take, stream):
            for k in graph.order():
                node = graph.nodes[k]
                words = _words(node, pool) if node.type == KERNEL else {}
                for base, size in pool if words else ():
                    _copy(before[base].address.value, base, size, stream)
                for word, offsets in words.items():
                    base, size = _segment(pool, word)
                    for turn, memory, offsets in _moves(offsets, elsewhere):
                        # The same address modulo 2 MiB would hide what depends on more than the lowest bits, so the two differ there.
                        distance = memory.address.value + turn * 3 * 512 - base
                        _copy(base + distance, before[base].address.value, size, stream)
                        row = bytearray(node.row)
                        for offset in offsets:
                            row[offset : offset + 8] = (word + distance).to_bytes(8, "little")
                        launch(node, stream, row)
                        tried.append([k, offsets, distance])
                        for other, bytes_ in pool:
                            _copy(other, before[other].address.value, bytes_, stream)
                    _wait(stream)
                maps = descriptors.offsets(node) if words else []
                if maps:
                    if scratch is None:
                        usual = {base: take(size, HostMemory) for base, size in pool}
                        scratch = take(largest, HostMemory)
                    tried.append([k, [], 0])
                    moved, same = descriptors.apart(node, maps, words, pool, before, usual, scratch, launch, Memory, _copy, stream)
                    if moved:
                        tried.append([k, moved, 0, 1 if same else 2])
                    continue
                launch(node, stream)
                if node.type == KERNEL:
                    tried.append([k, [], 0])
                _wait(stream)
    return tried


def _moves(offsets, elsewhere):
    """Words that hold one address are moved together to two places, and, if there are several, each by itself: structures hold stale copies."""
    moves = [(turn, memory, offsets) for turn, memory in enumerate(elsewhere)]
    return moves + [(0, elsewhere[0], [offset]) for offset in offsets if len(offsets) > 1]


@contextlib.contextmanager
def _kept(graph, pool, take, stream):
    """What lies in the allocations that the parameters of a graph point into is as before afterwards, also if trying its nodes fails."""
    ranges = set(pool)
    for node in graph.nodes:
        if node.type == KERNEL:
            for at in range(0, len(node.row) - 7, 8):
                found = driver.range_of(int.from_bytes(node.row[at : at + 8], "little"))
                if found:
                    ranges.add(found)
    copies = [(base, take(size)) for base, size in sorted(ranges)]
    for base, memory in copies:
        _copy(memory.address.value, base, memory.size, stream)
    try:
        yield
    finally:
        for base, memory in copies:
            _copy(base, memory.address.value, memory.size, stream)
        _wait(stream)


def durations(graph, stream, rounds=20):
    """Microseconds that each node takes when they run one after the other, and what all of them take in one graph without anything between them."""
    order = graph.order()
    events = [driver.made("cuEventCreate", 0) for _ in range(len(order) + 2)]
    timed = graph.copy()
    try:
        node, last = handle(), None
        marks = []

        def mark(event, after):
            before = (handle * 1)(after) if after else None
            call("cuGraphAddEventRecordNode", ctypes.byref(node), timed.graph, before, ctypes.c_size_t(1 if after else 0), event)
            return node.value

        marks.append(mark(events[0], None))
        marks.append(mark(events[1], marks[0]))
        last, edges = marks[1], []
        for at, k in enumerate(order):
            edges.append((last, timed.nodes[k]))
            pair = (handle * 1)(last), (handle * 1)(timed.nodes[k])
            call("cuGraphAddDependencies_v2", timed.graph, pair[0], pair[1], None, ctypes.c_size_t(1))
            last = mark(events[at + 2], timed.nodes[k])
        timed.instantiate()
        rows = []
        for _ in range(rounds + 3):
            timed.launch(stream)
            _wait(stream)
            rows.append([_between(events[k], events[k + 1]) for k in range(len(order) + 1)])
        rows = rows[3:]
        middle = [statistics.median(row[k] for row in rows) for k in range(len(order) + 1)]
    finally:
        timed.free()
        for event in events:
            call("cuEventDestroy_v2", event)
    alone = graph.copy()
    try:
        alone.connect([(alone.nodes[a], alone.nodes[b]) for a, b in zip(order, order[1:])])
        alone.instantiate()
        total = statistics.median(timed_launches(alone.launch, stream, rounds))
    finally:
        alone.free()
    # Each duration holds what an event costs: the same for all, so that the rest adds up to what the chain takes.
    each = max(0.0, (sum(middle[1:]) - total) / max(1, len(order)))
    by_node = [0.0] * len(order)
    for at, k in enumerate(order):
        by_node[k] = max(0.1, middle[at + 1] - each)
    return by_node, total


def _between(a, b):
    ms = ctypes.c_float()
    call("cuEventElapsedTime", ctypes.byref(ms), a, b)
    return 1000 * ms.value


def timed_launches(launch_on, stream, rounds, warm=3):
    """Microseconds of each launch, by events on the stream."""
    a, b = driver.made("cuEventCreate", 0), driver.made("cuEventCreate", 0)
    try:
        times = []
        for _ in range(rounds + warm):
            call("cuEventRecord", a, handle(stream))
            launch_on(stream)
            call("cuEventRecord", b, handle(stream))
            _wait(stream)
            times.append(_between(a, b))
        return times[warm:]
    finally:
        call("cuEventDestroy_v2", a)
        call("cuEventDestroy_v2", b)
