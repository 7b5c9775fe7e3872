"""dagrun.replan(g): a captured graph, planned again."""

from __future__ import annotations

import ctypes
import json
import os
import time
from typing import Any

from . import command, driver, graphs, observe, prologue, timeline, trial
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


def _refused(graph):
    """Why a graph is not planned again, or None."""
    names = {driver.HOST: "a host function", driver.CHILD: "a child graph", 13: "a conditional node"}
    for k, node in enumerate(graph.nodes):
        if node.type not in (driver.KERNEL, driver.COPY, driver.SET, driver.EMPTY):
            return f"node {k} is {names.get(node.type, f'of type {node.type}')}"
    return None


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
        "driver": driver.version(),
        "pool": pool,
        "active": active,
        "nodes": [n.described() for n in graph.nodes],
        "edges": graph.edges,
    }


def record(g, library):
    """Tries the nodes of a graph in a process that is being recorded, and writes down what was tried. Returns what to say of it."""
    torch = _torch()
    graph, about = describe(g)
    why = _refused(graph)
    if why:
        return f"replays as it was: {why}"
    prologue.drawn(torch, g)  # everything that the graph needs is in place once it has been replayed
    with driver.stream() as stream:
        about["stream"] = stream
        about["shared"] = observe.shared(graph, about["pool"], about["active"])
        about["tried"] = observe.accesses(graph, about["pool"] + about["shared"], stream)
    text = json.dumps(about, separators=(",", ":")).encode()
    library.dagrun_note(text, len(text))
    return "recorded; run the program without dagrun record now"


class Replanned:
    """A graph that replays as the one it was made of, in another order and in other memory. `report` says what was gained, or why the old graph runs.

    >>> fast = dagrun.replan(graph, "infer.rec")
    >>> fast.replay()
    """

    def __init__(self, g: Any, report: str, copy: Any = None, memory: Any = None, about: dict[str, Any] | None = None, before: Any = None) -> None:
        self.graph, self.report, self.about = g, report, about or {}
        self._copy, self._memory, self._prologue, self._released = copy, memory, before, False

    def _original(self):
        """The graph as it was captured, whose nodes the new ones are made of."""
        if self._copy is None:
            raise RuntimeError(f"there is no new graph: {self.report}")
        if self._released:
            raise RuntimeError("the old graph was released, and this needs it")
        return self._copy.original

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

        original, torch, draw = self._original(), _torch(), random.Random(seed)
        sleeps = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(sleeps):
            for cycles in (2_000, 20_000, 100_000):
                torch.cuda._sleep(cycles)
        kernels = [graphs.kernel_of(n) for n in graphs.nodes_of(driver.handle(sleeps.raw_cuda_graph()))]
        plan = self.about["plans"]["plans"][self.about["best"]]
        choose = lambda all: draw.choice(all) if draw.random() < 0.2 else None  # noqa: E731
        copy = _built(original, plan, self._memory.data_ptr(), lambda copy, edges: copy.delay(edges, kernels, choose))
        copy.kept.append(sleeps)
        return Replanned(self.graph, self.report, copy, self._memory, self.about, self._prologue)

    def trace(self, file: str) -> None:
        """Measures when each node runs, in the graph as it was captured and in the new one, and writes both timelines to a file: open it at https://ui.perfetto.dev.
        The events before and after each node take time, too, so both take longer than they usually do.

        >>> if fast.changed:
        ...     fast.trace("infer.json")
        """
        original = self._original()
        captured = {"edges": [(a, b) for a, b, _ in original.edges], "words": [], "sets": [], "copies": []}
        with driver.stream() as stream:
            if self._prologue:
                self._prologue.run()
            _torch().cuda.synchronize()
            timelines = {}
            for name, plan in (("as captured", captured), ("planned", self.about["plans"]["plans"][self.about["best"]])):

                def build(events, plan=plan):
                    return _built(original, plan, self._memory.data_ptr(), lambda copy, edges: copy.time(edges, events))

                timelines[name] = timeline.measured(build, len(original.nodes), stream)
            timeline.write(file, original, timelines)

    def release(self) -> None:
        """Lets the old graph go, and with it the memory that only it needed. What the program still holds of its tensors stays, and must be held as long as
        this graph replays. Only a graph that was planned with memory=... can do without the old one.

        >>> dagrun.replan(graph, "missing.rec").release()
        Traceback (most recent call last):
        RuntimeError: the old graph's memory is still needed: it is the one that replays
        """
        if not self.changed or self._prologue or self.about["plans"]["stays"]:
            raise RuntimeError(f"the old graph's memory is still needed: {self._needed()}")
        self.graph.reset()
        self._released = True

    def _needed(self):
        if not self.changed:
            return "it is the one that replays"
        if self._prologue:
            return "the state of its random numbers goes with it"
        pinned = self.about["plans"]["pinned"]
        stay = [f"{n} tensors stay there, since {why}" for why, n in pinned.items() if why != "the program holds it"]
        return ", ".join(stay) or "plan with memory=..., and nothing stays there"

    def replay(self) -> None:
        """Does what the old graph's replay does, on the current stream.

        >>> fast.replay()
        """
        if self._copy is None:
            self.graph.replay()
        else:
            if not self._released:
                _raw(self.graph)  # whose memory the new graph uses: an error if it was freed
            if self._prologue:
                self._prologue.run()
            self._copy.launch(_torch().cuda.current_stream().cuda_stream)

    def __repr__(self) -> str:
        return f"<dagrun.Replanned: {self.report}>"


def replan(g: Any, recording: str, *, stay: bool = False, memory: int | str | None = None) -> Replanned:
    """Plans a captured graph again and returns a Replanned, whose replay() does what g.replay() does.

    g is a torch.cuda.CUDAGraph(keep_graph=True); recording is the file that `dagrun record -o FILE -- python ...` wrote of this program. While the program is
    being recorded, replan finds out what the graph's kernels touch, and returns the graph as it was. memory, a number of bytes or a text such as "12MiB",
    puts the graph's tensors in new memory of at most that size, so that Replanned.release() can give the old graph's memory back.

    >>> fast = dagrun.replan(graph, "missing.rec")
    >>> print(fast.report)
    missing.rec is not there: dagrun record -o missing.rec -- the command that runs this program
    """
    torch = _torch()
    library = _recorder()
    if not library and not os.path.exists(recording):
        return Replanned(g, f"{recording} is not there: dagrun record -o {recording} -- the command that runs this program")
    try:
        if library:
            return Replanned(g, record(g, library))
        torch.cuda.synchronize()
        with driver.stream() as stream:
            return _replanned(torch, g, recording, stream, ["--stay"] * stay + ([f"--memory-cap={memory}"] if memory is not None else []))
    except trial.Wrong as wrong:
        return Replanned(g, f"replays as it was: {wrong}" + ("" if isinstance(wrong, trial.Unsteady) else "; record the program again"))
    except RuntimeError as wrong:
        if not _full(wrong):
            raise
        free, all = (n >> 20 for n in torch.cuda.mem_get_info())
        what, does = ("nothing was recorded", "recording") if library else ("replays as it was", "planning")
        full = f"the GPU is full ({free} of {all} MB are free), and {does} keeps copies of what the graph touches for a moment: free memory before"
        return Replanned(g, f"{what}: {full}")


def _full(wrong):
    """Whether memory ran out: in torch's allocator, in a call of the driver, or where torch makes a graph executable or loads code at its first use."""
    return "out of memory" in str(wrong)


def _replanned(torch, g, recording, stream, flags):
    began = time.perf_counter()
    graph, about = describe(g)
    why, before = _refused(graph), None
    if not why:
        try:
            step = prologue.drawn(torch, g)
            before = prologue.find(torch, g, graph, about["active"], step) if step else None
        except prologue.Unknown as unknown:
            why = str(unknown)
    if why:
        return Replanned(g, f"replays as it was: {why}")
    words = ["plan", recording, "--graph", "-", *flags]
    earlier = _earlier(words, about)
    if earlier["plans"]:
        try:
            return _as_kept(torch, g, graph, about, earlier, stream, began, before)
        except trial.Wrong as wrong:
            earlier["why"] = str(wrong)
    about["us"], about["chain"] = observe.durations(graph, stream)
    text, staying, state = json.dumps(about), set(), None
    while True:
        answer = command.run(words + [f"--keep={k}" for k in sorted(staying)], text)
        if answer.status:
            return Replanned(g, f"replays as it was: {answer.text}")
        plans = json.loads(answer.out)
        planned = time.perf_counter()
        state = state or trial.Contents(torch, plans["state"])
        try:
            trial.nodes(torch, graph, about["pool"], plans["state"], plans["try"], stream)
            break
        except trial.Matters as matters:
            if staying.issuperset(matters.nodes):
                raise trial.Wrong(f"nodes {matters.nodes} of the graph touch other memory than they were recorded to") from None
            staying.update(matters.nodes)
    tried = time.perf_counter()
    memory = _memory(torch, plans)
    trial.carry(torch, plans, memory)
    old = _launch_of(g)
    copies = [_built(graph, p, memory.data_ptr()) for p in plans["plans"]]
    torch.cuda.synchronize()
    with state:
        captured, *planned_us = trial.in_turn([old, *(c.launch for c in copies)], stream)
        best = min(range(len(copies)), key=planned_us.__getitem__)
        trial.carry(torch, plans, memory)  # what the old graph left since
        other = trial.differing(torch, old, copies[best].launch, state, plans["outputs"], stream)
        unsteady = other and trial.unsteady(torch, old, state, plans["outputs"], stream)
    seconds = [planned - began, tried - planned, time.perf_counter() - tried]
    times = [captured, *planned_us]
    facts = {"plans": plans, "us": times, "best": best, "seconds": seconds, "other": other}
    if unsteady:
        raise trial.Unsteady("the graph gives other bits each time it replays, so that no other order can be compared with it")
    if other:
        return Replanned(g, f"replays as it was: the new graph gave other bits in {len(other)} of {len(plans['outputs'])} stretches of memory", about=facts)
    gains = planned_us[best] <= 0.99 * captured
    if gains:
        report = f"{captured:.0f} us before, {planned_us[best]:.0f} now ({plans['plans'][best]['name']}); {plans['moved']} of {plans['values']} values moved; "
        report += plans["binds"]
    else:
        report = f"replays as it was: {plans['binds']}; {captured:.0f} us, and {planned_us[best]:.0f} with the best of {len(copies)} plans"
    about["chosen"] = {"plans": plans, "best": best if gains else -1, "us": times, "report": report}
    saved = command.run(words, json.dumps(about))
    for note in (earlier.get("why") and f"a plan that was kept is not used: {earlier['why']}", saved.status and saved.text):
        report += f"; {note}" if note else ""
    return Replanned(g, report, copies[best], memory, facts, before) if gains else Replanned(g, report, about=facts)


def _earlier(words, about):
    """What an earlier process chose for the same graph: its plan, if there is one, and what it reported, or why what is kept is not used."""
    answer = command.run(words, json.dumps(about))
    return json.loads(answer.out) if answer.status == 0 else {"plans": None, "why": answer.text}


def _as_kept(torch, g, graph, about, earlier, stream, began, before):
    """Builds the plan that an earlier process chose, without planning or measuring, and compares bits."""
    plans, report = earlier["plans"], f"{earlier['report']}; as an earlier process found"
    facts = {"plans": plans, "best": len(plans["plans"]) - 1, "kept": True}
    if not plans["plans"]:
        facts["seconds"] = [time.perf_counter() - began]
        return Replanned(g, report, about=facts)
    state = trial.Contents(torch, plans["state"])
    try:
        trial.nodes(torch, graph, about["pool"], plans["state"], plans["try"], stream)
    except trial.Matters as matters:
        raise trial.Wrong(f"to nodes {matters.nodes} of the graph it matters what lies in memory that the graph never writes") from None
    memory = _memory(torch, plans)
    trial.carry(torch, plans, memory)
    copy = _built(graph, plans["plans"][0], memory.data_ptr())
    torch.cuda.synchronize()
    with state:
        if trial.differing(torch, _launch_of(g), copy.launch, state, plans["outputs"], stream):
            raise trial.Wrong("it gave other bits")
    facts["seconds"] = [time.perf_counter() - began]
    return Replanned(g, report, copy, memory, facts, before)


def _memory(torch, plans):
    return torch.empty(max(1, *(p["memory"] for p in plans["plans"])), dtype=torch.uint8, device="cuda")


def _launch_of(g):
    old = driver.handle(g.raw_cuda_graph_exec())
    return lambda stream: driver.call("cuGraphLaunch", old, driver.handle(stream))


def _built(graph, plan, base, connect=None):
    """The graph of a plan. Where something is to lie is an address, or a distance into new memory. connect connects its nodes in another way than connect of the copy."""
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
        if connect:
            connect(copy, edges)
        else:
            copy.connect(edges)
        return copy.instantiate()
    except driver.DriverError:
        copy.free()
        raise
