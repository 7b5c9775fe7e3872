"""dagrun.replan(g): a captured graph, planned again."""

from __future__ import annotations

import ctypes
import json
import os
import time
from typing import Any

from . import command, driver, graphs, observe, trial
from .library import torch_for


def _torch():
    return torch_for("dagrun.replan takes a torch.cuda.CUDAGraph")


def _segments(torch, pool):
    """The segments of a graph's pool, and the blocks of all pools that are in use."""
    own, active = [], []
    for s in torch.cuda.memory_snapshot():
        if tuple(s.get("segment_pool_id", (0, 0))) == tuple(pool):
            own.append((s["address"], s["total_size"]))
        at = s["address"]
        for b in s["blocks"]:
            if b["state"] != "inactive":
                active.append((b.get("address", at), b["size"]))
            at += b["size"]
    return own, active


def _recorder():
    """The recorder's library, if this process is being recorded with its accesses."""
    if not os.environ.get("DAGRUN_RECORD") or not os.environ.get("CUDA_INJECTION64_PATH"):
        return None
    library = ctypes.PyDLL(os.environ["CUDA_INJECTION64_PATH"])
    library.dagrun_note.argtypes, library.dagrun_note.restype = [ctypes.c_char_p, ctypes.c_uint64], None
    return library


def _raw(g):
    """The handle of a captured graph, or an error that says what is wrong with it."""
    try:
        return g.raw_cuda_graph()
    except AttributeError:
        kind = f"{type(g).__module__}.{type(g).__qualname__}"
        raise TypeError(f"dagrun.replan takes a torch.cuda.CUDAGraph of torch 2.8 or later, and this is a {kind}") from None
    except RuntimeError as wrong:
        if "keep_graph" in str(wrong):
            raise TypeError("dagrun.replan takes a graph that torch keeps: make it with torch.cuda.CUDAGraph(keep_graph=True), and capture it again") from None
        raise RuntimeError("the graph is empty: it was not captured, or it was freed (reset) since, and its memory with it; capture it again") from None


def _refused(torch, g, graph):
    """Why a graph is not planned again, or None."""
    names = {driver.HOST: "a host function", driver.CHILD: "a child graph", 13: "a conditional node"}
    for k, node in enumerate(graph.nodes):
        if node.type not in (driver.KERNEL, driver.COPY, driver.SET, driver.EMPTY):
            return f"node {k} is {names.get(node.type, f'of type {node.type}')}"
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    before = generator.get_offset()
    g.replay()
    torch.cuda.synchronize()
    drawn = generator.get_offset() - before
    generator.set_offset(before)
    return "it draws random numbers, whose state torch sets for its own replay" if drawn else None


def describe(g):
    """A captured graph as plain data: its nodes and edges, and the memory it may use."""
    torch = _torch()
    graph = graphs.Graph(_raw(g))
    pool, active = _segments(torch, g.pool())
    return graph, {
        "version": 1,
        "graph": graph.graph.value,
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "pool": pool,
        "active": active,
        "nodes": [n.described() for n in graph.nodes],
        "edges": graph.edges,
    }


def record(g, library):
    """Tries the nodes of a graph in a process that is being recorded, and writes down what was tried. Returns what to say of it."""
    torch = _torch()
    graph, about = describe(g)
    why = _refused(torch, g, graph)
    if why:
        return f"replays as it was: {why}"
    torch.cuda.synchronize()
    stream = driver.made("cuStreamCreate", 1).value
    try:
        about["stream"] = stream
        about["shared"] = observe.shared(graph, about["pool"], about["active"])
        about["tried"] = observe.accesses(graph, about["pool"] + about["shared"], stream)
    finally:
        driver.call("cuStreamDestroy_v2", driver.handle(stream))
    text = json.dumps(about, separators=(",", ":")).encode()
    library.dagrun_note(text, len(text))
    return "recorded; run the program without dagrun record now"


class Replanned:
    """A graph that replays as the one it was made of, in another order and in other memory. `report` says what was gained, or why the old graph runs.

    >>> fast = dagrun.replan(graph, "infer.rec")
    >>> fast.replay()
    """

    def __init__(self, g: Any, report: str, copy: Any = None, memory: Any = None, about: dict[str, Any] | None = None) -> None:
        self.graph, self.report, self.about = g, report, about or {}
        self._copy, self._memory = copy, memory

    @property
    def changed(self) -> bool:
        """Whether another graph than the old one is replayed.

        >>> dagrun.replan(graph, "missing.rec").changed
        False
        """
        return self._copy is not None

    def delayed(self, seed: int) -> Replanned:
        """The new graph with delays drawn at random between its nodes, for tests: a missing edge shows in the bits.

        >>> if fast.changed:
        ...     fast.delayed(seed=1).replay()
        """
        import random

        torch, draw = _torch(), random.Random(seed)
        sleeps = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(sleeps):
            for cycles in (2_000, 20_000, 100_000):
                torch.cuda._sleep(cycles)
        kernels = [graphs.kernel_of(n) for n in graphs.nodes_of(driver.handle(sleeps.raw_cuda_graph()))]
        plan = self.about["plans"]["plans"][self.about["best"] - 1]
        copy = _built(self._copy.original, plan, self._memory.data_ptr(), (kernels, lambda all: draw.choice(all) if draw.random() < 0.2 else None))
        copy.kept.append(sleeps)
        return Replanned(self.graph, self.report, copy, self._memory, self.about)

    def replay(self) -> None:
        """Does what the old graph's replay does, on the current stream.

        >>> fast.replay()
        """
        if self._copy is None:
            self.graph.replay()
        else:
            _raw(self.graph)  # whose memory the new graph uses: an error if it was freed
            self._copy.launch(_torch().cuda.current_stream().cuda_stream)

    def __repr__(self) -> str:
        return f"<dagrun.Replanned: {self.report}>"


def replan(g: Any, recording: str, *, stay: bool = False) -> Replanned:
    """Plans a captured graph again and returns a Replanned, whose replay() does what g.replay() does.

    g is a torch.cuda.CUDAGraph(keep_graph=True); recording is the file that `dagrun record -o FILE -- python ...` wrote of this program. While the program is
    being recorded, replan finds out what the graph's kernels touch, and returns the graph as it was.

    >>> fast = dagrun.replan(graph, "missing.rec")
    >>> print(fast.report)
    missing.rec is not there: dagrun record -o missing.rec -- the command that runs this program
    """
    torch = _torch()
    library = _recorder()
    if library:
        return Replanned(g, record(g, library))
    if not os.path.exists(recording):
        return Replanned(g, f"{recording} is not there: dagrun record -o {recording} -- the command that runs this program")
    torch.cuda.synchronize()
    stream = driver.made("cuStreamCreate", 1).value
    try:
        return _replanned(torch, g, recording, stream, stay)
    except trial.Wrong as wrong:
        return Replanned(g, f"replays as it was: {wrong}; record the program again")
    except Exception as wrong:
        if not _full(torch, wrong):
            raise
        free, all = (n >> 20 for n in torch.cuda.mem_get_info())
        full = f"the GPU is full ({free} of {all} MB are free), and planning keeps copies of what the graph touches for a moment: free memory before"
        return Replanned(g, f"replays as it was: {full}")
    finally:
        driver.call("cuStreamDestroy_v2", driver.handle(stream))


def _full(torch, wrong):
    return isinstance(wrong, torch.cuda.OutOfMemoryError) or isinstance(wrong, driver.DriverError) and wrong.code == driver.OUT_OF_MEMORY


def _replanned(torch, g, recording, stream, stay):
    began = time.perf_counter()
    graph, about = describe(g)
    why = _refused(torch, g, graph)
    if why:
        return Replanned(g, f"replays as it was: {why}")
    about["us"], about["chain"] = observe.durations(graph, stream)
    words = ["plan", recording, "--graph", "-"] + ["--stay"] * stay
    text, keep, kept = json.dumps(about), set(), None
    while True:
        answer = command.run(words + [f"--keep={k}" for k in sorted(keep)], text)
        if answer.status:
            return Replanned(g, f"replays as it was: {answer.text}")
        plans = json.loads(answer.out)
        planned = time.perf_counter()
        kept = kept or trial.Contents(torch, plans["state"])
        try:
            trial.nodes(torch, graph, about["pool"], plans["state"], plans["try"], stream)
            break
        except trial.Matters as matters:
            if keep.issuperset(matters.nodes):
                raise trial.Wrong(f"nodes {matters.nodes} of the graph touch other memory than they were recorded to") from None
            keep.update(matters.nodes)
    tried = time.perf_counter()
    memory = torch.empty(max(1, max(p["memory"] for p in plans["plans"])), dtype=torch.uint8, device="cuda")
    old = driver.handle(g.raw_cuda_graph_exec())
    launches = [lambda s: driver.call("cuGraphLaunch", old, driver.handle(s))]
    copies = [_built(graph, p, memory.data_ptr()) for p in plans["plans"]]
    launches += [c.launch for c in copies]
    torch.cuda.synchronize()
    times = trial.in_turn(launches, stream)
    best = min(range(1, len(times)), key=times.__getitem__)
    kept.restore()
    torch.cuda.synchronize()
    launches[0](stream)
    torch.cuda.synchronize()
    wanted = trial.Contents(torch, plans["outputs"])
    kept.restore()
    torch.cuda.synchronize()
    launches[best](stream)
    torch.cuda.synchronize()
    equal = trial.Contents(torch, plans["outputs"]).same_as(wanted)
    seconds = [planned - began, tried - planned, time.perf_counter() - tried]
    facts = {"plans": plans, "us": times, "best": best, "seconds": seconds, "equal": equal}
    if not equal:
        return Replanned(g, "replays as it was: the new graph gave other bits", about=facts)
    if times[best] > 0.99 * times[0]:
        return Replanned(g, f"replays as it was: {_why(plans)}; {times[0]:.0f} us, and {times[best]:.0f} with the best of {len(copies)} plans", about=facts)
    report = f"{times[0]:.0f} us before, {times[best]:.0f} now ({plans['plans'][best - 1]['name']}); {plans['moved']} of {plans['values']} values moved"
    return Replanned(g, report, copies[best - 1], memory, facts)


def _why(plans):
    """What keeps a graph from being faster, in a few words."""
    path, filled = plans["critical"] / plans["chain"], plans["filled"] / plans["chain"]
    if path >= filled:
        return f"a chain: its longest path takes {100 * path:.0f}% of the time of all its nodes" if path > 0.9 else f"its longest path takes {100 * path:.0f}% of the time of all its nodes"
    return f"its kernels fill the GPU for {100 * filled:.0f}% of the time"


def _built(graph, plan, base, delays=None):
    """The graph of a plan. Where something is to lie is an address, or a distance into new memory. delays puts kernels that take time between its nodes."""
    copy = graph.copy()
    try:
        changes = {}
        for node, offset, to, fresh in plan["words"]:
            changes.setdefault(node, []).append((offset, to + base * fresh))
        for node, words in changes.items():
            copy.change(node, words)
        for node, to, fresh in plan["sets"]:
            copy.move_set(node, to + base * fresh)
        for node, side, to, fresh in plan["copies"]:
            copy.move_copy(node, side, to + base * fresh)
        edges = [(copy.nodes[a], copy.nodes[b]) for a, b in plan["edges"]]
        if delays:
            copy.delay(edges, *delays)
        else:
            copy.connect(edges)
        return copy.instantiate()
    except driver.DriverError:
        copy.free()
        raise
