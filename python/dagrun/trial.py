"""Trying a plan in the process that wants it: nodes one by one, then the new graph against the old one, bit by bit."""

from . import observe
from .driver import KERNEL
from .graphs import launch


class _Bytes:
    """Device memory as torch takes it: an array of bytes at an address."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 2}


def bytes_at(torch, address, size):
    return torch.as_tensor(_Bytes(address, size), device="cuda")


class Wrong(Exception):
    """A node did something else than the recording says."""


class Unsteady(Wrong):
    """A node gives other bits each time it runs, as sums by atomic additions do."""


class Matters(Exception):
    """To some nodes it matters what lies in bytes that the graph never writes."""

    def __init__(self, nodes):
        self.nodes = nodes


class _Memory:
    """The stretches of memory that a graph may touch, whose bytes are compared as one tensor."""

    def __init__(self, torch, extents):
        self.torch, self.extents, self.size = torch, extents, sum(size for _, size in extents)
        self.views = [bytes_at(torch, at, size) for at, size in extents]

    def read(self, into):
        self.torch.cat(self.views, out=into)

    def write(self, contents):
        at = 0
        for v, (_, size) in zip(self.views, self.extents):
            v.copy_(contents[at : at + size])
            at += size

    def marked(self, extents):
        """Which of the bytes lie in the extents."""
        marks, begin = self.torch.zeros(self.size, dtype=self.torch.bool, device="cuda"), 0
        for base, size in self.extents:
            for at, length in extents:
                low, high = max(at, base), min(at + length, base + size)
                if low < high:
                    marks[begin + low - base : begin + high - base] = True
            begin += size
        return marks


def nodes(torch, graph, pool, state, trials, stream):
    """Runs the graph node by node. The nodes of trials run once more with all of the pool overwritten that they were not seen to touch, and what they write must
    not differ; and they must write nothing else; bytes that nothing in the graph writes are overwritten too. state is what the graph writes outside the pool. Afterwards the pool is as it was."""
    if not trials:
        return
    by_node = {t["node"]: t for t in trials}
    memory = _Memory(torch, [*pool, *state])
    own = sum(size for _, size in pool)
    with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
        first = torch.empty(memory.size, dtype=torch.uint8, device="cuda")
        memory.read(first)
        try:
            other = _other(torch, graph, memory, own, by_node, stream)
            if other:
                memory.write(first)
                unsteady = _unsteady(torch, graph, memory, other, stream)
        finally:  # also where memory runs out on the way
            memory.write(first)
            torch.cuda.synchronize()
    for k in other:
        what = f"node {k} of the graph ({graph.nodes[k].function['name']})"
        if k in unsteady:
            raise Unsteady(f"{what} gives other bits each time it runs, so that no other order can be compared with it")
        if not by_node[k]["old"]:
            raise Wrong(f"{what} gave other bits, or wrote elsewhere, when everything was overwritten that it was not seen to touch")
    if other:
        raise Matters(other)


def _other(torch, graph, memory, own, by_node, stream):
    """The nodes that do something else when what they were not seen to touch is overwritten."""
    noise = torch.randint(0, 255, (memory.size,), dtype=torch.uint8, device="cuda")
    before, after, now = (torch.empty_like(noise) for _ in range(3))
    verdicts = []
    for k in graph.order():
        node, trial = graph.nodes[k], by_node.get(k)
        if trial is None or node.type != KERNEL:
            launch(node, stream)
            continue
        reads, writes = memory.marked(trial["reads"]), memory.marked(trial["writes"])
        if trial["old"]:
            reads &= ~memory.marked(trial["old"])
        reads[own:] = True  # what is not the graph's own is not overwritten
        memory.read(before)
        launch(node, stream)
        memory.read(after)
        overwritten = torch.where(reads, before, noise)
        memory.write(overwritten)
        launch(node, stream)
        memory.read(now)
        same, untouched = after == before, now == overwritten
        as_before = ((same | writes) & torch.where(writes, (now == after) | untouched & same, untouched)).all()
        memory.write(after)
        verdicts.append((k, as_before))
    return [k for k, as_before in verdicts if not as_before.item()]


def _unsteady(torch, graph, memory, some, stream):
    """Which of some nodes do something else each time they run."""
    before, after, now = (torch.empty(memory.size, dtype=torch.uint8, device="cuda") for _ in range(3))
    unsteady = []
    for k in graph.order():
        if k in some:
            memory.read(before)
            launch(graph.nodes[k], stream)
            memory.read(after)
            memory.write(before)
        launch(graph.nodes[k], stream)
        if k in some:
            memory.read(now)
            if not torch.equal(now, after):
                unsteady.append(k)
    return unsteady


class Contents:
    """What lies in some stretches of memory at one moment, and, if something fails within `with`, lies there again afterwards."""

    def __init__(self, torch, extents):
        self.torch = torch
        self.views = [bytes_at(torch, at, size) for at, size in extents]
        self.kept = [v.clone() for v in self.views]

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None:
            self.torch.cuda.synchronize()
            self.restore()

    def restore(self):
        for v, k in zip(self.views, self.kept):
            v.copy_(k)

    def differing(self, other):
        """The numbers of the stretches in which other contents differ."""
        return [k for k, (a, b) in enumerate(zip(self.kept, other.kept)) if not self.torch.equal(a, b)]


def carry(torch, plans, memory):
    """Copies what lies in the graph's own memory, and matters, to where it lies in new memory."""
    for address, size, to in plans.get("carried", ()):
        memory[to : to + size].copy_(bytes_at(torch, address, size))


def differing(torch, old, new, state, outputs, stream):
    """The outputs in which two graphs, launched from the same state, leave other bits. The last to run is the new one; if there are such, the state is as before."""
    left = []
    for launch_on in (old, new):
        state.restore()
        torch.cuda.synchronize()
        launch_on(stream)
        torch.cuda.synchronize()
        left.append(Contents(torch, outputs))
    found = left[0].differing(left[1])
    if found:
        state.restore()
    return found


def unsteady(torch, old, state, outputs, stream):
    """Whether a graph leaves other bits each time it replays. The state is as before."""
    found = differing(torch, old, old, state, outputs, stream)
    state.restore()
    return bool(found)


def in_turn(launches, stream, rounds=9, replays=5):
    """Microseconds of several graphs, launched in turn: the median of the rounds for each."""
    import statistics

    times = [[] for _ in launches]
    for _ in range(rounds):
        for k, one in enumerate(launches):
            times[k] += observe.timed_launches(one, stream, replays, warm=1)
    return [statistics.median(t) for t in times]
