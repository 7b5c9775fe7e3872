"""dagrun.Graph: tasks that say which tensors they read and write, called in their order on the streams and with the waits that dagrun plans.

A plan chooses streams and waits, never the order of calls: random numbers, the allocator and everything else that a program does stay as they were."""

from __future__ import annotations

import functools
import json
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import command
from .library import cuda_for

LAUNCH, RECORD = range(2)  # of the command's calls; all others are waits
UNKNOWN_US = 100.0  # what a task is taken to take until it was measured: enough that those without an order overlap in pictures


class Value:
    """What a task returns, before it has run. Later tasks take it as an argument, which makes them come after the task, and `plan.value(v)` returns it.

    >>> g = dagrun.Graph()
    >>> squares = g.task(torch.square, x, reads=[x])
    >>> total = g.task(torch.sum, squares)
    >>> plan = g.plan()
    >>> plan.run()
    >>> plan.value(total)
    tensor(14., device='cuda:0')
    """

    __slots__ = ("_task", "__weakref__")

    def __init__(self, task: _Task) -> None:
        self._task = task

    def __repr__(self) -> str:
        return f"<dagrun.Value: what task {self._task.name!r} returns>"


class _Task:
    __slots__ = ("number", "name", "place", "function", "arguments", "keywords", "reads", "writes", "values", "tensors", "changes", "value")

    def __init__(
        self, number: int, name: str, place: tuple[str, int], function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> None:
        self.number, self.name, self.place = number, name, place
        self.function, self.arguments, self.keywords = function, arguments, keywords
        self.reads: tuple[int, ...] = ()  # numbers of ranges
        self.writes: tuple[int, ...] = ()
        self.values: tuple[Value, ...] = ()  # that it uses
        self.tensors: tuple[Any, ...] = ()  # that it declares to read only
        self.changes: tuple[Any, ...] = ()  # that it declares to write
        self.value: weakref.ref[Value]

    def wrong(self, text: str) -> str:
        file, line = self.place
        return f"{os.path.basename(file)}:{line}: task {self.name!r} {text}"


class _Memory:
    """The memory that tasks declare: storages and ranges of them, numbered."""

    def __init__(self) -> None:
        self.storages: list[dict[str, Any]] = []
        self.ranges: list[dict[str, int]] = []
        self.tensors: dict[int, tuple[Any, int]] = {}  # by id: the tensor, which is held so that the id stays its own, and its range
        self.known: dict[tuple[int, ...], int] = {}
        self.numbers: dict[int, int] = {}  # of storages, by address

    def of(self, tensor: Any) -> int:
        """The number of a tensor's range."""
        known = self.tensors.get(id(tensor))
        if known is not None:
            return known[1]
        storage = tensor.untyped_storage()
        base = storage.data_ptr()
        number = self.numbers.get(base)
        if number is None:
            number = self.numbers[base] = self._add(f"tensor {len(self.storages)}", base, storage.nbytes())
        width, rows, pitch = _rows(tensor)
        found = self.range(number, tensor.data_ptr() - base, width, rows, pitch)
        self.tensors[id(tensor)] = tensor, found
        return found

    def own(self, name: str) -> int:
        """The number of a range that lies nowhere else."""
        return self.range(self._add(name, 0, 1), 0, 1, 1, 0)

    def _add(self, name: str, address: int, size: int) -> int:
        self.storages.append({"name": name, "address": address, "bytes": size})
        return len(self.storages) - 1

    def range(self, *key: int) -> int:
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.ranges)
            self.ranges.append(dict(zip(("memory", "offset", "width", "rows", "pitch"), key)))
        return found


def _rows(tensor: Any) -> tuple[int, int, int]:
    """The bytes of a tensor as rows of a width, a pitch apart. Where they are more than that, as all that lies between the first and the last."""
    size = tensor.element_size()
    if tensor.numel() == 0:
        return 0, 1, 0
    if tensor.is_contiguous():
        return tensor.numel() * size, 1, 0
    dims = sorted((stride * size, n) for n, stride in zip(tensor.shape, tensor.stride()) if n > 1 and stride > 0)
    width, at = size, 0
    while at < len(dims) and dims[at][0] == width:
        width *= dims[at][1]
        at += 1
    if at == len(dims):
        return width, 1, 0
    (pitch, rows), at = dims[at], at + 1
    while at < len(dims) and dims[at][0] == pitch * rows:
        rows *= dims[at][1]
        at += 1
    if at == len(dims) and pitch > width:
        return width, rows, pitch
    return sum(stride * (n - 1) for stride, n in dims) + size, 1, 0


class Graph:
    """Tasks with the tensors that they read and write, declared in the order in which they are to be called.

    Four chunks, two of each buffer: while one is computed, the next one is uploaded and the one before is downloaded.

    >>> g = dagrun.Graph()
    >>> for i in range(4):
    ...     d, e = up[i % 2], down[i % 2]
    ...     _ = g.task(d.copy_, host[i], non_blocking=True, writes=[d])
    ...     _ = g.task(torch.square, d, out=e, reads=[d], writes=[e])
    ...     _ = g.task(out[i].copy_, e, non_blocking=True, reads=[e])
    >>> plan = g.plan(streams=3)
    >>> plan.run()
    """

    def __init__(self) -> None:
        self._torch = cuda_for("dagrun.Graph plans what tasks do with tensors on a GPU")
        self._tasks: list[_Task] = []
        self._memory = _Memory()
        self._names: dict[str, int] = {}  # of tasks, with the last number that was given to others of the name
        self._undeclared: list[tuple[_Task, Any]] = []  # tensors that tasks are given and say nothing about
        self._results: dict[int, int] = {}  # by task, the range that stands for what it returns
        self._device: Any = None

    def task(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        reads: Iterable[Any] = (),
        writes: Iterable[Any] = (),
        name: str | None = None,
        **keywords: Any,
    ) -> Value:
        """Declares that function(*arguments, **keywords) is to be called, and what it does on the GPU to memory that other tasks touch too.

        reads and writes list tensors, or what earlier tasks return. A slice counts as its own bytes: tasks on x[0] and x[1] can overlap.
        Memory of the host counts if it is pinned. What nobody writes need not be declared. `name` is for messages and pictures.

        >>> g = dagrun.Graph()
        >>> g.task(x.mul_, 2, writes=[x], name="double")
        <dagrun.Value: what task 'double' returns>
        """
        frame = sys._getframe(1)
        place = frame.f_code.co_filename, frame.f_lineno
        task = _Task(len(self._tasks), self._named(name, function), place, function, arguments, keywords)
        if not callable(function):
            kind = type(function).__name__
            raise TypeError(task.wrong(f"has no function to call, but an object of type {kind}: pass the function first, then its arguments"))
        task.writes, task.changes = self._ranges(task, writes, "writes")
        task.reads, task.tensors = self._ranges(task, reads, "reads")
        given = (*arguments, *keywords.values())
        task.values = tuple([v for g in given for v in _values(g)])
        for v in task.values:
            number = self._of(v, task, "takes")
            if number not in task.writes:
                task.reads += (number,)
        declared = {id(t) for t in task.tensors + task.changes}
        for t in (getattr(function, "__self__", None), *given):
            if id(t) not in declared and isinstance(t, self._torch.Tensor) and t.is_cuda:
                self._undeclared.append((task, t))
        value = Value(task)
        task.value = weakref.ref(value)
        self._tasks.append(task)
        return value

    def _named(self, name: str | None, function: Any) -> str:
        base = full = name or str(getattr(function, "__name__", type(function).__name__))
        while full in self._names:
            self._names[base] += 1
            full = f"{base} {self._names[base]}"
        self._names[full] = 0
        return full

    def _ranges(self, task: _Task, given: Any, how: str) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """The ranges of what a task says that it reads or writes, and the tensors among it."""
        all = (given,) if isinstance(given, (self._torch.Tensor, Value)) else tuple(given)
        return tuple([self._declared(task, t, how) for t in all]), tuple([t for t in all if not isinstance(t, Value)])

    def _declared(self, task: _Task, t: Any, how: str) -> int:
        """The range of a tensor, or of what a task returns. Refuses what cannot be planned with, and says what to do instead."""
        if isinstance(t, Value):
            return self._of(t, task, how)
        known = self._memory.tensors.get(id(t))
        if known is not None:
            return known[1]
        torch = self._torch
        if not isinstance(t, torch.Tensor):
            raise TypeError(task.wrong(f"{how} an object of type {type(t).__name__}: list tensors, or what earlier tasks return"))
        if t.layout != torch.strided:
            raise TypeError(task.wrong(f"{how} a tensor of layout {t.layout}: list the tensors that it is made of"))
        if t.is_cuda:
            if self._device is None:
                self._device = t.device
            if t.device != self._device:
                raise ValueError(task.wrong(f"{how} a tensor on {t.device}, and others are on {self._device}: make a graph for each device"))
        elif not t.is_pinned():
            raise ValueError(
                task.wrong(
                    f"{how} a tensor on the CPU, {_shape(t)}: move it to the GPU (x.cuda()). "
                    "If the task copies from it or to it, pin it (x.pin_memory()), or do not list it"
                )
            )
        if t.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                task.wrong(
                    f"{how} a tensor that requires grad, {_shape(t)}: autograd would go on with it on streams that no plan knows. "
                    "Declare and run under torch.no_grad(), or list x.detach(); a task may contain a whole forward and backward"
                )
            )
        return self._memory.of(t)

    def _of(self, value: Value, task: _Task, how: str) -> int:
        of = value._task
        if of.number >= len(self._tasks) or self._tasks[of.number] is not of:
            raise ValueError(task.wrong(f"{how} what task {of.name!r} of another graph returns: tasks that use each other's results belong to one graph"))
        number = self._results.get(of.number)
        if number is None:
            number = self._results[of.number] = self._memory.own(f"what {of.name} returns")
            of.writes += (number,)
        return number

    def plan(self, streams: int = 8) -> Plan:
        """Plans the tasks on at most that many streams, the caller's among them. Costs are those of the plan's first run.

        >>> g = dagrun.Graph()
        >>> _ = g.task(x.mul_, 2, writes=[x])
        >>> g.plan(streams=2)
        <dagrun.Plan: 1 task on 1 stream, 0 waits; not measured yet>
        """
        if not self._tasks:
            raise ValueError("a graph without tasks: declare them with task(function, arguments, reads=[...], writes=[...])")
        written = {self._memory.ranges[k]["memory"] for t in self._tasks for k in t.writes}
        for task, tensor in self._undeclared:
            number = self._memory.numbers.get(tensor.untyped_storage().data_ptr())
            if number in written and all(self._memory.ranges[k]["memory"] != number for k in (*task.reads, *task.writes)):
                by = next(t.name for t in self._tasks if any(self._memory.ranges[k]["memory"] == number for k in t.writes))
                raise ValueError(
                    task.wrong(f"is given a tensor that task {by!r} writes, {_shape(tensor)}, and declares nothing about it: add it to reads or writes")
                )
        return Plan(self._torch, list(self._tasks), self._memory, self._device, streams)


def _shape(t: Any) -> str:
    return f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}"


def _values(given: Any) -> Sequence[Value]:
    if type(given) is Value:
        return (given,)
    if type(given) is dict:
        given = given.values()
    elif type(given) not in (list, tuple):
        return ()
    return [v for inner in given for v in _values(inner)]


def _filled(given: Any, held: list[Any]) -> Any:
    """An argument with what tasks returned in place of their values."""
    if isinstance(given, Value):
        return held[given._task.number]
    if type(given) is dict:
        return {k: _filled(v, held) for k, v in given.items()}
    if type(given) in (list, tuple):
        return type(given)(_filled(v, held) for v in given)
    return given


def _tensors(torch: Any, result: Any) -> list[Any]:
    """The tensors in what a task returned."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        result = result.values()
    elif not isinstance(result, (list, tuple)):
        return []
    return [t for inner in result for t in _tensors(torch, inner)]


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


class Plan:
    """Streams and waits for the tasks of a graph. `run` calls the tasks; `us` is how long each took in the run that was measured.

    A plan holds the tensors of its tasks, and what tasks returned until the next run.

    >>> g = dagrun.Graph()
    >>> _ = g.task(x.mul_, 2, writes=[x])
    >>> plan = g.plan()
    >>> plan.run()
    """

    def __init__(self, torch: Any, tasks: list[_Task], memory: _Memory, device: Any, streams: int) -> None:
        self._torch, self._tasks, self._memory = torch, tasks, memory
        self._options = ["--quiet", f"--streams={streams}", f"--effort={'quick' if len(tasks) > 2000 else 'normal'}"]
        self._tensors = [t for t, _ in memory.tensors.values()]
        self._device = device if device is not None else torch.device("cuda", torch.cuda.current_device())
        self._kept = {t.number for t in tasks if t.value() is not None}
        self._taken = {v._task.number for t in tasks for v in t.values}  # whose results other tasks use
        self._held: list[Any] = [None] * len(tasks)  # what tasks returned
        self._ready: dict[int, list[Callable[[], Any]]] = {}  # by the caller's stream
        self._side: list[Any] = []  # the streams beside the caller's
        self._last: Any = None  # the stream on which the last run was called
        self.us: list[float] | None = None
        self._schedule()

    def _describe(self) -> str:
        us = self.us or [UNKNOWN_US] * len(self._tasks)
        tasks = [{"name": t.name, "us": u, "reads": t.reads, "writes": t.writes} for t, u in zip(self._tasks, us)]
        return json.dumps({"tasks": tasks, "memory": self._memory.storages, "ranges": self._memory.ranges}, separators=(",", ":"))

    def _planned(self, how: str) -> tuple[dict[str, Any], list[Any]]:
        """Streams and waits for calls on streams, or for calls that are captured as a graph, where waits cost less; and the streams beside the caller's."""
        answer = command.run(["plan", "-", f"--calls={how}", *self._options], self._describe())
        if answer.status:
            raise RuntimeError(answer.text)
        plan = json.loads(answer.out)
        n = plan["streams"] - 1
        return plan, [*self._side, *(self._torch.cuda.Stream(device=self._device) for _ in range(n - len(self._side)))][:n]

    def _schedule(self) -> None:
        self._plan, self._side = self._planned("streams")
        self._ready.clear()

    @property
    def streams(self) -> int:
        """How many streams the tasks run on, the caller's among them.

        >>> 1 <= plan.streams <= 3
        True
        """
        return len(self._side) + 1

    @property
    def report(self) -> str:
        """The plan in a line.

        >>> print(plan.report)
        12 tasks on ...; ... us predicted, ... one after the other
        """
        text = f"{_counted(len(self._tasks), 'task')} on {_counted(self.streams, 'stream')}, {_counted(self._plan['waits'], 'wait')}"
        if self.us is None:
            return text + "; not measured yet"
        return f"{text}; {self._plan['makespan_us']:.0f} us predicted, {sum(self.us):.0f} one after the other"

    def __repr__(self) -> str:
        return f"<dagrun.Plan: {self.report}>"

    def run(self) -> None:
        """Calls every task once, in declared order. What the caller's current stream was given before comes before them, and what it is given next comes after
        them; the host does not wait. The first run measures instead: see measure.

        >>> plan.run()
        """
        if self.us is None:
            self.measure()
            return
        current = self._current()
        calls = self._ready.get(current.cuda_stream) or self._prepare(current)
        if self._last.cuda_stream != current.cuda_stream:
            self._follow(current)
        self._do(calls, current, self._side)

    def _current(self) -> Any:
        cuda = self._torch.cuda
        if cuda.current_device() != self._device.index:
            raise RuntimeError(
                f"the plan's tensors are on {self._device}, and the current device is cuda:{cuda.current_device()}: "
                f"run the plan under torch.cuda.device({self._device.index})"
            )
        return cuda.current_stream(self._device)

    def _do(self, calls: list[Callable[[], Any]], current: Any, side: list[Any]) -> None:
        try:
            for call in calls:
                call()
        except BaseException:
            self._torch.cuda.set_stream(current)
            for stream in side:  # what runs there belongs to this run, whose caller goes on from here
                if self._capturing(stream) == self._capturing(current):
                    current.wait_stream(stream)
            raise

    def _capturing(self, stream: Any) -> bool:
        with self._torch.cuda.stream(stream):
            return bool(self._torch.cuda.is_current_stream_capturing())

    def _follow(self, current: Any) -> None:
        """Lets a run on another stream than the last one's come after that: both use the memory of the plan."""
        if self._last is not None and self._last.cuda_stream != current.cuda_stream and not self._torch.cuda.is_current_stream_capturing():
            current.wait_event(self._last.record_event())
        self._last = current

    def _prepare(self, current: Any) -> list[Callable[[], Any]]:
        """The calls of a run that is called on a stream."""
        self._share(current)
        calls = self._ready[current.cuda_stream] = self._calls(self._plan, [current, *self._side], self._held)
        return calls

    def _share(self, current: Any) -> None:
        """Tells the allocator of the tensors that come from another stream: when the program lets go of them, their memory is not that stream's alone."""
        streams = [(s["address"], s["address"] + s["total_size"], s["stream"]) for s in self._torch.cuda.memory_snapshot()]
        for t in self._tensors:
            if t.is_cuda and any(low <= t.data_ptr() < high and stream != current.cuda_stream for low, high, stream in streams):
                t.record_stream(current)

    def _calls(self, plan: dict[str, Any], on: list[Any], held: list[Any]) -> list[Callable[[], Any]]:
        """A run as a list of calls: of tasks, records, waits, and changes of the current stream, which is the first."""
        cuda, partial = self._torch.cuda, functools.partial
        events = [cuda.Event() for _ in range(plan["events"])]
        calls: list[Callable[[], Any]] = []
        if self._kept:
            # What the last run's tasks returned goes back to the allocator before the streams are given more: they come after that run.
            calls.append(partial(held.__setitem__, slice(None), [None] * len(held)))
        at = 0
        for what, which, k in plan["calls"]:
            if what != LAUNCH:
                calls.append(partial(events[which].record if what == RECORD else events[which].wait, on[k]))
                continue
            if at != k:
                calls.append(partial(cuda.set_stream, on[k]))
                at = k
            calls.append(self._call(self._tasks[which], held))
        if at != 0:
            calls.append(partial(cuda.set_stream, on[0]))
        return calls

    def _call(self, task: _Task, held: list[Any]) -> Callable[[], Any]:
        function, arguments, keywords, number = task.function, task.arguments, task.keywords, task.number
        keep = number in self._kept
        if not task.values:
            call: Callable[[], Any] = functools.partial(function, *arguments, **keywords)
            if not keep:
                return call

            def kept() -> None:
                held[number] = call()

            return kept
        if sum(isinstance(a, Value) for a in arguments) == len(task.values):
            places = [(k, a._task.number) for k, a in enumerate(arguments) if isinstance(a, Value)]

            def direct() -> None:
                given = list(arguments)
                for k, of in places:
                    given[k] = held[of]
                result = function(*given, **keywords)
                held[number] = result if keep else None

            return direct

        def nested() -> None:
            result = function(*(_filled(a, held) for a in arguments), **{k: _filled(a, held) for k, a in keywords.items()})
            held[number] = result if keep else None

        return nested

    def measure(self) -> None:
        """Calls every task once on the caller's current stream, one after the other, waits for them, and plans with what each took. The first run does
        this; do it again when tasks take another time than then: what is compiled or loaded at the first call counts.

        >>> plan.measure()
        >>> len(plan.us)
        12
        """
        cuda = self._torch.cuda
        current = self._current()
        if cuda.is_current_stream_capturing():
            raise RuntimeError("the first run of a plan measures its tasks, and that cannot be captured: call plan.run() once before")
        self._follow(current)
        events = [cuda.Event(enable_timing=True) for _ in range(len(self._tasks) + 1)]
        self._held[:] = [None] * len(self._held)
        owners: dict[int, str] = {}  # what tasks returned, by the address of its memory
        events[0].record(current)
        for task, event in zip(self._tasks, events[1:]):
            self._watched(task, self._call(task, self._held), current, owners)
            event.record(current)
        current.synchronize()
        self.us = [max(0.1, 1000 * a.elapsed_time(b)) for a, b in zip(events, events[1:])]
        self._schedule()
        self._prepare(current)

    def _watched(self, task: _Task, call: Callable[[], Any], current: Any, owners: dict[int, str]) -> None:
        """Calls a task and looks at what can be seen of it: the stream that it leaves, the tensors that it changes, what it returns."""
        written = {t.untyped_storage().data_ptr() for t in task.changes}
        before = [(t, _version(t)) for t in task.tensors if t.untyped_storage().data_ptr() not in written]
        try:
            call()
            left = self._torch.cuda.current_stream(self._device)
            if left.cuda_stream != current.cuda_stream:
                raise RuntimeError(
                    task.wrong(
                        "left another stream as the current one: give work to a stream of its own in `with torch.cuda.stream(s):`, "
                        "and join it (torch.cuda.current_stream().wait_stream(s))"
                    )
                )
        except BaseException:
            self._torch.cuda.set_stream(current)
            raise
        for t, version in before:
            if _version(t) != version:
                raise RuntimeError(task.wrong(f"wrote a tensor that it declares to read, {_shape(t)}: list it in writes"))
        for t in _tensors(self._torch, self._held[task.number]):
            if t.requires_grad:
                raise RuntimeError(
                    task.wrong(
                        "returned a tensor that requires grad: autograd would go on with it on streams that no plan knows. "
                        "Return x.detach(), or run under torch.no_grad()"
                    )
                )
            base = t.untyped_storage().data_ptr()
            of = "tasks declare" if base in self._memory.numbers else f"task {owners[base]!r} returned" if owners.get(base, task.name) != task.name else None
            if of and task.number in self._taken:
                raise RuntimeError(
                    task.wrong(
                        f"returned memory that {of}, so that an order with others who use that would be missing: "
                        "give that itself to later tasks, and let this one return nothing"
                    )
                )
            owners[base] = task.name

    def value(self, value: Value) -> Any:
        """What a task returned in the last run, for work on the caller's current stream.

        >>> g = dagrun.Graph()
        >>> total = g.task(torch.sum, x, reads=[x])
        >>> plan = g.plan()
        >>> plan.run()
        >>> plan.value(total)
        tensor(6., device='cuda:0')
        """
        result = self._result(value, self._held)
        for t in _tensors(self._torch, result):
            if t.is_cuda:
                t.record_stream(self._torch.cuda.current_stream(self._device))
        return result

    def _result(self, value: Value, held: list[Any]) -> Any:
        task = value._task
        if task.number >= len(self._tasks) or self._tasks[task.number] is not task:
            raise ValueError(f"{value!r} is of another graph")
        if task.number not in self._kept:
            raise ValueError(f"{value!r} was not there when the graph was planned")
        if self.us is None:
            raise RuntimeError("the plan has not run yet: call plan.run() first")
        return held[task.number]

    def svg(self, file: str) -> None:
        """Draws the plan: a row for each stream, waits as arrows with the memory that they are for.

        >>> plan.svg("plan.svg")
        """
        answer = command.run(["dot", "-", "--own", "--out", file, *self._options], self._describe())
        if answer.status:
            raise RuntimeError(answer.text)

    def capture(self) -> Captured:
        """Captures a run as one CUDA graph, planned for that, with an edge for each wait. Takes a plan that has run; its tensors stay where they are.

        >>> plan.run()
        >>> h = plan.capture()
        >>> h.replay()
        """
        torch = self._torch
        if self.us is None:
            raise RuntimeError(
                "a plan is captured once it has run: call plan.run() first, so that what is compiled, loaded and measured at the first call is not captured"
            )
        for task in self._tasks:
            if _captures(task.function):
                raise RuntimeError(
                    task.wrong(
                        'calls what torch.compile made with mode="reduce-overhead" or "max-autotune", which replays CUDA graphs of its own: '
                        'compile it with mode="default" or "max-autotune-no-cudagraphs"'
                    )
                )
        self._current()
        plan, side = self._planned("captured")
        graph, held = torch.cuda.CUDAGraph(), [None] * len(self._tasks)
        with torch.cuda.graph(graph):
            current = torch.cuda.current_stream(self._device)
            self._do(self._calls(plan, [current, *side], held), current, side)
        return Captured(self, graph, held)

    def __del__(self) -> None:
        # What tasks returned belongs to the streams that they ran on, and others may still use it; the caller's stream comes after all of them.
        for t in _tensors(self._torch, self._held) if self._last is not None else ():
            if t.is_cuda:
                t.record_stream(self._last)


class Captured:
    """A plan as a CUDA graph. `graph` is torch's.

    >>> h = plan.capture()
    >>> h.replay()
    """

    def __init__(self, plan: Plan, graph: Any, held: list[Any]) -> None:
        self.graph, self._plan, self._held = graph, plan, held

    def replay(self) -> None:
        """Runs the tasks' work once more, in order with the caller's current stream. Nothing of the tasks but their work on the GPU is repeated.

        >>> h.replay()
        """
        self.graph.replay()

    def value(self, value: Value) -> Any:
        """What a task returned when it was captured: each replay writes it anew.

        >>> total = g.task(torch.sum, x, reads=[x])
        >>> plan = g.plan()
        >>> plan.run()
        >>> h = plan.capture()
        >>> h.replay()
        >>> h.value(total)
        tensor(6., device='cuda:0')
        """
        return self._plan._result(value, self._held)


def _version(t: Any) -> int | None:
    try:
        return int(t._version)
    except RuntimeError:  # of inference mode, which counts no versions
        return None


def _captures(function: Any) -> bool:
    """Whether a function replays CUDA graphs of its own."""
    while isinstance(function, functools.partial):
        function = function.func
    config = getattr(function, "get_compiler_config", None)
    return bool(config and (config() or {}).get("triton.cudagraphs"))
