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


def nodes(torch, graph, pool, state, trials, stream):
    """Runs the graph node by node. The nodes of trials run once more with all of the pool overwritten that they were not seen to touch, and what they write must
    not differ; and they must write nothing else; bytes that nothing in the graph writes are overwritten too. state is what the graph writes outside the pool. Afterwards the pool is as it was."""
    if not trials:
        return
    by_node = {t["node"]: t for t in trials}
    views = [(base, size, bytes_at(torch, base, size)) for base, size in [*pool, *state]]
    with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
        first = [v.clone() for _, _, v in views]
        try:
            wrong = _tried(torch, graph, views, len(pool), by_node, stream)
        finally:  # also where memory runs out on the way
            for f, (_, _, v) in zip(first, views):
                v.copy_(f)
            torch.cuda.synchronize()
    matters = []
    for k, same, steady in wrong:
        if same.item():
            continue
        what = f"node {k} of the graph ({graph.nodes[k].function['name']})"
        if not steady.item():
            raise Unsteady(f"{what} gives other bits each time it runs, so that no other order can be compared with it")
        if by_node[k]["old"]:
            matters.append(k)
        else:
            raise Wrong(f"{what} gave other bits, or wrote elsewhere, when everything was overwritten that it was not seen to touch")
    if matters:
        raise Matters(matters)


def _tried(torch, graph, views, own, by_node, stream):
    """Runs the nodes. Returns of each that was tried whether it did the same again, and whether it does where nothing is overwritten: tensors on the GPU."""
    noise = [torch.randint(0, 255, v.shape, dtype=torch.uint8, device="cuda") for _, _, v in views]
    before = [torch.empty_like(v) for _, _, v in views]
    after = [torch.empty_like(v) for _, _, v in views]
    wrong = []
    for k in graph.order():
        node, trial = graph.nodes[k], by_node.get(k)
        if trial is None or node.type != KERNEL:
            launch(node, stream)
            continue
        reads, writes = _marked(torch, views, trial["reads"]), _marked(torch, views, trial["writes"])
        for r, o in zip(reads, _marked(torch, views, trial["old"])):
            r &= ~o
        for r in reads[own:]:
            r.fill_(True)  # what is not the graph's own is not overwritten
        for b, (_, _, v) in zip(before, views):
            b.copy_(v)
        launch(node, stream)
        for a, b, (_, _, v) in zip(after, before, views):
            a.copy_(v)
            v.copy_(b)
        launch(node, stream)
        steady = torch.ones((), dtype=torch.bool, device="cuda")
        for a, (_, _, v) in zip(after, views):
            steady &= (v == a).all()
        same = torch.ones((), dtype=torch.bool, device="cuda")
        for b, a, w in zip(before, after, writes):
            same &= ((a == b) | w).all()
        for b, n, r, (_, _, v) in zip(before, noise, reads, views):
            v.copy_(torch.where(r, b, n))
        launch(node, stream)
        for b, a, n, r, w, (_, _, v) in zip(before, after, noise, reads, writes, views):
            untouched = torch.where(r, b, n)
            same &= (~w & (v == untouched) | w & ((v == a) | (v == untouched) & (a == b))).all()
            v.copy_(a)
        wrong.append((k, same, steady))
    return wrong


def _marked(torch, views, extents):
    """For each view, which of its bytes lie in the extents."""
    out = []
    for base, size, v in views:
        m = torch.zeros(v.shape, dtype=torch.bool, device="cuda")
        for at, length in extents:
            low, high = max(at, base), min(at + length, base + size)
            if low < high:
                m[low - base : high - base] = True
        out.append(m)
    return out


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

    def same_as(self, other):
        return all(self.torch.equal(a, b) for a, b in zip(self.kept, other.kept))


def carry(torch, plans, memory):
    """Copies what lies in the graph's own memory, and matters, to where it lies in new memory."""
    for address, size, to in plans.get("carried", ()):
        memory[to : to + size].copy_(bytes_at(torch, address, size))


def equal(torch, old, new, state, outputs, stream):
    """Whether two graphs, launched from the same state, leave the same bits. The last to run is the new one; if it leaves others, the state is as before."""
    left = []
    for launch_on in (old, new):
        state.restore()
        torch.cuda.synchronize()
        launch_on(stream)
        torch.cuda.synchronize()
        left.append(Contents(torch, outputs))
    same = left[1].same_as(left[0])
    if not same:
        state.restore()
    return same


def in_turn(launches, stream, rounds=9, replays=5):
    """Microseconds of several graphs, launched in turn: the median of the rounds for each."""
    import statistics

    times = [[] for _ in launches]
    for _ in range(rounds):
        for k, one in enumerate(launches):
            times[k] += observe.timed_launches(one, stream, replays, warm=1)
    return [statistics.median(t) for t in times]
