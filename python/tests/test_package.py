"""Tests of what needs no GPU: python3 -m unittest discover -s python/tests. DAGRUN_COMMAND names a built command; without it, one is
built."""

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import built

import dagrun
from dagrun import command, descriptors, driver, graphs, observe, prologue, replanning, timeline, trial


def node(kind=driver.KERNEL, row=b"", parameters=()):
    return types.SimpleNamespace(type=kind, row=bytes(row), function={"name": "k", "parameters": list(parameters)})


def words(*numbers):
    return b"".join(n.to_bytes(8, "little") for n in numbers)


@contextlib.contextmanager
def torch_is(module):
    """Lets a module be torch; None: there is none."""
    kept = sys.modules.get("torch")
    sys.modules["torch"] = module
    try:
        yield
    finally:
        if kept is None:
            del sys.modules["torch"]
        else:
            sys.modules["torch"] = kept


class Words(unittest.TestCase):
    def test_words_that_point_into_memory_are_found_by_what_they_hold(self):
        pool = [(1000, 100), (5000, 50)]
        n = node(row=words(1000, 1099, 1100, 5049, 1000), parameters=[(0, 8), (8, 24), (32, 8)])
        self.assertEqual(observe._words(n, pool), {1000: [0, 32], 1099: [8], 5049: [24]})

    def test_words_lie_within_parameters_and_at_multiples_of_eight(self):
        n = node(row=b"\0\0\0\0" + words(1000) + b"\0\0\0\0" + words(1000), parameters=[(0, 4), (4, 12), (16, 4)])
        self.assertEqual(observe._words(n, [(1000, 100)]), {})

    def test_copies_of_a_word_are_moved_by_themselves_too(self):
        self.assertEqual(list(observe._moves([8], ["a", "b"])), [(0, "a", [8]), (1, "b", [8])])
        self.assertEqual(list(observe._moves([8, 16], ["a", "b"])), [(0, "a", [8, 16]), (1, "b", [8, 16]), (0, "a", [8]), (0, "a", [16])])

    def test_shared_memory_is_what_several_kernels_point_to_outside_the_pool(self):
        one = node(row=words(1000, 9000), parameters=[(0, 16)])
        two = node(row=words(7000, 9010), parameters=[(0, 16)])
        graph = types.SimpleNamespace(nodes=[one, two])
        self.assertEqual(observe.shared(graph, [(1000, 10)], [(1000, 10), (7000, 10), (9000, 100)]), [(9000, 100)])


class Order(unittest.TestCase):
    def order(self, count, edges):
        g = graphs.Graph.__new__(graphs.Graph)
        g.nodes, g.edges = [None] * count, [(a, b, 0) for a, b in edges]
        return g.order()

    def test_nodes_come_as_they_were_made_where_edges_allow(self):
        self.assertEqual(self.order(4, [(2, 0), (0, 3)]), [1, 2, 0, 3])
        self.assertEqual(self.order(3, []), [0, 1, 2])


class Reports(unittest.TestCase):
    def test_a_recording_that_is_not_there_leaves_the_graph_as_it_was(self):
        replayed = []
        g = types.SimpleNamespace(replay=lambda: replayed.append(1))
        with torch_is(types.SimpleNamespace()):
            fast = dagrun.replan(g, "/nowhere/infer.rec")
        self.assertFalse(fast.changed)
        self.assertEqual(fast.report, "/nowhere/infer.rec is not there: dagrun record -o /nowhere/infer.rec -- the command that runs this program")
        fast.replay()
        self.assertEqual(replayed, [1])

    def test_without_torch(self):
        said = "dagrun.replan takes a torch.cuda.CUDAGraph, and there is no torch here: python -m pip install torch"
        with torch_is(None), self.assertRaisesRegex(RuntimeError, said):
            dagrun.replan(None, "infer.rec")

    def test_graphs_that_cannot_be_read(self):
        class Graph:
            def raw_cuda_graph(self):
                raise RuntimeError(self.says)

        g = Graph()
        g.says = "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with keep_graph=true"
        with self.assertRaisesRegex(TypeError, r"make it with torch.cuda.CUDAGraph\(keep_graph=True\), and capture it again"):
            replanning._raw(g)
        g.says = "You cannot access the raw cudaGraph_t instance until capture_end() has been called"
        with self.assertRaisesRegex(RuntimeError, r"was not captured, or it was freed \(reset\) since, and its memory with it; capture it again"):
            replanning._raw(g)
        with self.assertRaisesRegex(RuntimeError, "it was freed"):  # not with memory that others have now
            dagrun.Replanned(g, "faster", copy=object()).replay()
        with self.assertRaisesRegex(TypeError, "of torch 2.8 or later, and this is a builtins.int"):
            replanning._raw(3)

    def test_a_full_gpu(self):
        class OutOfMemoryError(RuntimeError):
            pass

        class AcceleratorError(RuntimeError):
            pass

        def full(*_):
            raise failure

        def driver_says(code, name):
            with unittest.mock.patch.object(driver, "_text", lambda code: name):
                return driver.DriverError("cuMemAlloc_v2", code)

        of_driver = driver_says(2, "CUDA_ERROR_OUT_OF_MEMORY: out of memory")
        failures = [
            OutOfMemoryError("CUDA out of memory. Tried to allocate 64.00 MiB."),
            AcceleratorError("CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."),  # of the first replay
            of_driver,
        ]
        cuda = types.SimpleNamespace(synchronize=lambda: None, mem_get_info=lambda: (100 << 20, 81_559 << 20))
        made = {"made": lambda *_: types.SimpleNamespace(value=7), "call": lambda *_: None}
        said = r"the GPU is full \(100 of 81559 MB are free\), and {} keeps .* for a moment: free memory before$"
        with torch_is(types.SimpleNamespace(cuda=cuda)):
            with unittest.mock.patch.multiple(driver, **made), unittest.mock.patch.multiple(replanning, _replanned=full, record=full):
                for failure in failures:
                    fast = dagrun.replan(None, __file__)
                    self.assertFalse(fast.changed)
                    self.assertRegex(fast.report, "^replays as it was: " + said.format("planning"))
                    with unittest.mock.patch.object(replanning, "_recorder", lambda: "library"):
                        self.assertRegex(dagrun.replan(None, "x.rec").report, "^nothing was recorded: " + said.format("recording"))
                for failure in (driver_says(700, "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"), RuntimeError("no")):
                    with self.assertRaises(type(failure)):
                        dagrun.replan(None, __file__)
            failure = of_driver
            with unittest.mock.patch.object(driver, "made", full):  # a stream takes memory too
                self.assertRegex(dagrun.replan(None, __file__).report, "^replays as it was: " + said.format("planning"))

    def test_memory_that_runs_out_while_nodes_are_tried(self):
        """What the graph's memory held before is there again."""

        class Bytes:
            def __init__(self, values):
                self.values, self.shape = list(values), (len(values),)

            def clone(self):
                return Bytes(self.values)

            def copy_(self, other):
                self.values[:] = other.values

            def __getitem__(self, part):
                return Bytes(self.values[part])

        def cat(views, out):
            out.values[:] = [value for v in views for value in v.values]

        memory = {1000: Bytes(b"pool"), 2000: Bytes(b"state")}

        def launch(node, stream):
            if node == "last":
                raise RuntimeError("CUDA error: out of memory")
            memory[2000].values[0] = 0

        cuda = types.SimpleNamespace(stream=contextlib.nullcontext, ExternalStream=lambda s: s, synchronize=lambda: None)
        torch = types.SimpleNamespace(cuda=cuda, cat=cat, uint8=None, empty=lambda size, **_: Bytes([0] * size))
        torch.randint, torch.empty_like = lambda low, high, shape, **_: torch.empty(*shape), Bytes.clone
        graph = types.SimpleNamespace(order=lambda: [0, 1], nodes=["first", "last"])
        with unittest.mock.patch.multiple(trial, bytes_at=lambda torch, at, size: memory[at], launch=launch):
            with self.assertRaisesRegex(RuntimeError, "out of memory"):
                trial.nodes(torch, graph, [(1000, 4)], [(2000, 5)], [{"node": 7}], 0)
            self.assertEqual([bytes(m.values) for m in memory.values()], [b"pool", b"state"])
            with self.assertRaises(ZeroDivisionError), trial.Contents(torch, [(2000, 5)]):
                launch("first", 0)
                self.assertEqual(memory[2000].values[0], 0)
                1 / 0
            self.assertEqual(bytes(memory[2000].values), b"state")

    def test_without_a_driver(self):
        kept = driver.ctypes.CDLL

        def missing(name):
            raise OSError(name + " is not there")

        driver.ctypes.CDLL = missing
        driver._library.cache_clear()
        try:
            with self.assertRaisesRegex(RuntimeError, "no CUDA driver: libcuda.so.1 is not there"):
                driver.call("cuInit", 0)
        finally:
            driver.ctypes.CDLL = kept


class Keeping(unittest.TestCase):
    """A plan that an earlier process chose is used as it is; one that does not fit is not."""

    plan = {"name": "list on 2 streams", "memory": 0, "edges": [], "words": [], "sets": [], "copies": []}
    plans = {"plans": [plan], "state": [], "outputs": [], "try": [], "binds": "its critical path", "moved": 1, "values": 2}

    def replanned(self, *answers, other=(), unsteady=False, times=(100, 50)):
        """Plans with a command that gives these answers to what it is asked in turn. Returns the result, and what was asked."""
        asked, left = [], list(answers)

        def run(words, text=None):
            about = json.loads(text)
            asked.append("keep" if "chosen" in about else "plan" if "us" in about else "earlier")
            if asked[-1] == "keep":
                self.chosen = about["chosen"]
            out = left.pop(0)
            return command.Answer(1, "", out) if isinstance(out, str) else command.Answer(0, json.dumps(out), "")

        def durations(graph, stream):
            asked.append("measure")
            return [1.0], 1.0

        graph = types.SimpleNamespace(nodes=[])
        copy = types.SimpleNamespace(launch=lambda stream: None)
        with unittest.mock.patch.multiple(
            replanning,
            describe=lambda g: (graph, {"pool": [], "nodes": []}),
            _refused=lambda graph: None,
            _built=lambda *all: copy,
            _memory=lambda *all: types.SimpleNamespace(data_ptr=lambda: 0),
            _launch_of=lambda g: copy.launch,
        ), unittest.mock.patch.multiple(command, run=run), unittest.mock.patch.multiple(observe, durations=durations), unittest.mock.patch.multiple(replanning.prologue, drawn=lambda torch, g: 0), unittest.mock.patch.multiple(
            trial,
            nodes=lambda *all: None,
            Contents=lambda *all: contextlib.nullcontext(),
            differing=lambda *all: list(other),
            unsteady=lambda *all: unsteady,
            in_turn=lambda *all: list(times),
        ):
            torch = types.SimpleNamespace(cuda=types.SimpleNamespace(synchronize=lambda: None))
            return replanning._replanned(torch, None, "infer.rec", 0, []), asked

    def test_the_first_process_measures_and_keeps(self):
        fast, asked = self.replanned({"plans": None, "report": ""}, self.plans, {})
        self.assertEqual(asked, ["earlier", "measure", "plan", "keep"])
        self.assertEqual(fast.report, "100 us before, 50 now (list on 2 streams); 1 of 2 values moved; its critical path")
        self.assertEqual((self.chosen["best"], self.chosen["us"], self.chosen["report"]), (0, [100, 50], fast.report))

    def test_later_ones_neither_measure_nor_plan(self):
        fast, asked = self.replanned({"plans": self.plans, "report": "100 us before"})
        self.assertEqual(asked, ["earlier"])
        self.assertTrue(fast.changed)
        self.assertEqual(fast.report, "100 us before; as an earlier process found")

    def test_a_graph_that_gained_nothing_is_kept_too(self):
        fast, asked = self.replanned({"plans": None, "report": ""}, self.plans, {}, times=(100, 100))
        self.assertFalse(fast.changed)
        self.assertEqual(self.chosen["best"], -1)
        fast, asked = self.replanned({"plans": {**self.plans, "plans": []}, "report": fast.report})
        self.assertEqual(asked, ["earlier"])
        self.assertFalse(fast.changed)

    def test_what_is_not_used_is_said(self):
        fast, asked = self.replanned({"plans": None, "report": "", "why": "it was made with driver 1, and this is 2"}, self.plans, {})
        self.assertEqual(asked, ["earlier", "measure", "plan", "keep"])
        self.assertTrue(fast.report.endswith("; a plan that was kept is not used: it was made with driver 1, and this is 2"), fast.report)
        self.assertNotIn("driver 1", self.chosen["report"])
        fast, asked = self.replanned("no cache", self.plans, "no room")
        self.assertTrue(fast.report.endswith("; a plan that was kept is not used: no cache; no room"), fast.report)

    def test_other_bits_are_never_used(self):
        fast, asked = self.replanned({"plans": self.plans, "report": "100 us before"}, self.plans, {}, other=[1])
        self.assertEqual(asked, ["earlier", "measure", "plan"])
        self.assertFalse(fast.changed)
        self.assertRegex(fast.report, "^replays as it was: the new graph gave other bits in 1 of [0-9]+ stretches of memory$")
        with self.assertRaisesRegex(trial.Unsteady, "gives other bits each time it replays"):
            self.replanned({"plans": None, "report": ""}, self.plans, {}, other=[1], unsteady=True)

    def test_graphs_are_compared_bit_by_bit(self):
        memory = {"y": [0, 0], "n": [7]}
        torch = types.SimpleNamespace(cuda=types.SimpleNamespace(synchronize=lambda: None), equal=lambda a, b: a == b)

        class Contents(trial.Contents):
            def __init__(self, torch, extents):
                self.torch, self.extents, self.kept = torch, extents, [list(memory[e]) for e in extents]

            def restore(self):
                memory.update((e, list(k)) for e, k in zip(self.extents, self.kept))

        def count(stream):
            memory["n"][0] += 1
            memory["y"][:] = memory["n"] * 2

        def drift(stream):
            drifted.append(1)
            memory["y"][:] = [1, len(drifted)]

        drifted = []
        with unittest.mock.patch.object(trial, "Contents", Contents):
            state = Contents(torch, ["n"])
            self.assertEqual(trial.differing(torch, count, count, state, ["n", "y"], 0), [])
            self.assertEqual(memory, {"n": [8], "y": [8, 8]})
            state.restore()
            self.assertEqual(trial.differing(torch, count, drift, state, ["n", "y"], 0), [0, 1])
            self.assertEqual(memory["n"], [7])
            self.assertFalse(trial.unsteady(torch, count, state, ["n", "y"], 0))
            self.assertEqual(memory["n"], [7])
            self.assertTrue(trial.unsteady(torch, drift, state, ["y"], 0))


class Drawing(unittest.TestCase):
    """A stand-in for torch: memory of 8-byte numbers, a generator, and a graph whose replay does what torch's does."""

    seed_at, offset_at, step = 4096, 8192, 12

    def setUp(self):
        test = self
        self.memory = {self.seed_at: 0, self.offset_at: 0, 12288: 5}

        class Number:
            def __init__(self, at):
                self.at = at

            def view(self, kind):
                return self

            def item(self):
                return test.memory[self.at]

            def fill_(self, number):
                test.memory[self.at] = number

        class Generator:
            seed, offset = 7, 40

            def initial_seed(self):
                return self.seed

            def get_offset(self):
                return self.offset

            def manual_seed(self, seed):
                self.seed, self.offset = seed, 0

            def set_offset(self, offset):
                self.offset = offset

        self.generator = Generator()
        cuda = types.SimpleNamespace(synchronize=lambda: None, current_device=lambda: 0, default_generators=[self.generator])
        self.torch = types.SimpleNamespace(cuda=cuda, int64=int, as_tensor=lambda b, device: Number(b.__cuda_array_interface__["data"][0]))
        self.graph = types.SimpleNamespace(nodes=[node(row=words(self.offset_at, 12288, 5, self.seed_at), parameters=[(0, 8), (8, 24)]), node(row=words(self.seed_at), parameters=[(0, 8)])])
        self.active = [(at, 512) for at in self.memory]

    def replay(self):
        """CUDAGraph.replay: what the kernels read is what this returns."""
        self.memory[self.seed_at] = prologue._signed(self.generator.seed)
        self.memory[self.offset_at] = self.generator.offset
        self.generator.offset += self.step
        return self.memory[self.seed_at], self.memory[self.offset_at]

    def test_a_replay_has_the_numbers_that_torchs_own_would_have(self):
        g = types.SimpleNamespace(replay=self.replay)
        self.assertEqual(prologue.drawn(self.torch, g), self.step)
        found = prologue.find(self.torch, g, self.graph, self.active, self.step)
        self.assertEqual((self.generator.seed, self.generator.offset), (7, 40), "the generator is as it was")
        for seed in (3, 2**63 + 5):
            self.generator.manual_seed(seed)
            wanted = [self.replay() for _ in range(3)]
            self.generator.manual_seed(seed)
            had = []
            for _ in range(3):
                found.run()
                had.append((self.memory[self.seed_at], self.memory[self.offset_at]))
            self.assertEqual(had, wanted)
        self.assertEqual(self.memory[12288], 5)

    def test_numbers_that_are_not_found_leave_the_graph_as_it_was(self):
        g = types.SimpleNamespace(replay=self.replay)
        self.graph.nodes[0].row = words(self.offset_at + 8, 12288, 5, self.seed_at)
        self.memory[self.offset_at + 8] = 1
        with self.assertRaisesRegex(prologue.Unknown, "was not found where torch puts their seed and offset"):
            prologue.find(self.torch, g, self.graph, self.active, self.step)
        self.assertEqual((self.generator.seed, self.generator.offset), (7, 40))

    def test_the_state_is_kept_with_the_old_graph(self):
        fast = replanning.Replanned(unittest.mock.Mock(), "faster", copy=object(), about={"plans": {"stays": False, "pinned": {}}}, before=object())
        with self.assertRaisesRegex(RuntimeError, "the state of its random numbers goes with it"):
            fast.release()


class Descriptors(unittest.TestCase):
    """A stand-in for the driver: device memory is memory of this process, and a descriptor is an address, a mark and what the driver likes to add."""

    mark = b"a tensor map"
    size = 4096

    def setUp(self):
        self.held, self.sealed = [], False
        pool = self.memory(self.size)
        self.pool = [(pool.address.value, self.size)]
        self.before = {pool.address.value: self.memory(self.size)}
        ctypes.memmove(pool.address.value, bytes(range(1, 256)) * 16, 4080)
        ctypes.memmove(self.before[pool.address.value].address.value, pool.address.value, self.size)

        def call(name, *arguments):
            numbers = [getattr(a, "value", a) for a in arguments]
            if name in ("cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2"):
                ctypes.memmove(*numbers)
            elif name == "cuMemsetD8Async":
                ctypes.memset(*numbers[:3])

        patches = unittest.mock.patch.multiple(descriptors, call=call), unittest.mock.patch.object(driver, "_function", lambda name: self.replace)
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def memory(self, size):
        buffer = (ctypes.c_ubyte * (size + 512))()
        self.held.append(buffer)
        at = ctypes.addressof(buffer)
        return types.SimpleNamespace(address=ctypes.c_uint64(at + -at % 512), free=lambda: None)

    def replace(self, at, address):
        row = bytearray(ctypes.string_at(at.value, descriptors.SIZE))
        if row[8 : 8 + len(self.mark)] != self.mark:
            return 1
        row[:8] = (address.value or 0).to_bytes(8, "little")
        row[-1] = sum(row[:8]) % 256 if self.sealed else 0
        ctypes.memmove(at.value, bytes(row), len(row))
        return 0

    def tried(self, kernel):
        """Tries a kernel of two descriptors and a plain pointer: of what it reads at 256 and at 1024, and where it writes, at 2048."""
        base = self.pool[0][0]

        def descriptor(address):
            room = ctypes.create_string_buffer(bytes(8) + self.mark, descriptors.SIZE)
            self.replace(ctypes.c_void_p(ctypes.addressof(room)), ctypes.c_void_p(address))
            return room.raw

        row = descriptor(base + 256) + descriptor(base + 2048) + words(base + 1024)
        n = node(row=row, parameters=[(0, 128), (128, 128), (256, 8)])
        run = lambda node, stream, row=None: kernel(*(int.from_bytes((row or node.row)[at : at + 8], "little") for at in (0, 256, 128)))  # noqa: E731
        copy = lambda to, origin, size, stream: ctypes.memmove(to, origin, size)  # noqa: E731
        at = descriptors.offsets(n)
        found = observe._words(n, self.pool)
        self.assertEqual(found, {base + 256: [0], base + 2048: [128], base + 1024: [256]})
        answer = descriptors.apart(n, at, found, self.pool, self.before, {base: self.memory(self.size)}, self.memory(self.size), run, self.memory, copy, 0)
        left = ctypes.string_at(base, self.size)
        ctypes.memmove(base, self.before[base].address.value, self.size)
        run(n, 0)
        self.assertEqual(left, ctypes.string_at(base, self.size), "the node has run as usual")
        return at, answer

    @staticmethod
    def add(one, two, to):
        ctypes.memmove(to, bytes((a + b) % 256 for a, b in zip(ctypes.string_at(one, 64), ctypes.string_at(two, 64))), 64)

    def test_a_kernel_that_follows_its_words(self):
        self.assertEqual(self.tried(self.add), ([0, 128], ([0, 128, 256], True)))

    def test_a_kernel_that_knows_an_address_from_elsewhere(self):
        base = self.pool[0][0]
        self.assertEqual(self.tried(lambda one, two, to: self.add(base + 256, two, to))[1], ([0, 128, 256], False), "it read at the old place")
        self.assertEqual(self.tried(lambda one, two, to: self.add(one, two, base + 2048))[1], ([0, 128, 256], False), "it wrote to the old place")
        self.assertEqual(self.tried(lambda one, two, to: self.add(one, one + 768, to))[1], ([0, 128, 256], False), "it read one tensor at a distance from another")
        self.assertEqual(self.tried(lambda one, two, to: self.add(one, two, one + 1792))[1], ([0, 128, 256], False), "it wrote one at a distance from another")

    def test_a_form_that_holds_more_than_the_address(self):
        self.sealed = True
        self.assertEqual(self.tried(self.add), ([0, 128], ([], False)))

    def test_parameters_that_are_no_descriptors(self):
        self.assertEqual(descriptors.offsets(node(row=bytes(64) + words(self.pool[0][0]) + bytes(120), parameters=[(0, 192)])), [])
        self.assertEqual(descriptors.offsets(node(driver.COPY)), [])


class Command(unittest.TestCase):
    """What python -m dagrun check starts."""

    def started(self, *words):
        from dagrun import __main__ as main

        calls = []

        def run(command, **more):
            calls.append(command)
            if command[1] == "record":
                open(command[command.index("-o") + 1], "w").close()
            return types.SimpleNamespace(returncode=0)

        with unittest.mock.patch.object(sys, "argv", ["dagrun", *words]), unittest.mock.patch.object(command, "path", lambda: "dagrun"):
            with unittest.mock.patch.object(subprocess, "run", run):
                self.assertEqual(main.main(), 0)
        (recorded, checked), file = calls, calls[0][calls[0].index("-o") + 1]
        self.assertEqual(checked[-1], file)
        return recorded[recorded.index("--") + 1 :], checked[1:-1]

    def test_a_program_and_a_module(self):
        self.assertEqual(self.started("check", "--strict", __file__, "-x"), ([sys.executable, __file__, "-x"], ["check", "--strict"]))
        self.assertEqual(self.started("check", "-m", "pytest", "tests.py"), ([sys.executable, "-m", "pytest", "tests.py"], ["check"]))


class Releasing(unittest.TestCase):
    def released(self, **plans):
        g = unittest.mock.Mock()
        fast = replanning.Replanned(g, "faster", copy=object(), about={"plans": plans})
        fast.release()
        g.reset.assert_called_once_with()
        return g, fast

    def test_the_old_graph_goes_when_nothing_stays_in_its_memory(self):
        self.released(stays=False, pinned={"the program holds it": 1})
        with self.assertRaisesRegex(RuntimeError, "still needed: 2 tensors stay there, since a word reaches several tensors$"):
            self.released(stays=True, pinned={"the program holds it": 1, "a word reaches several tensors": 2})
        with self.assertRaisesRegex(RuntimeError, "still needed: plan with memory=..., and nothing stays there$"):
            self.released(stays=True, pinned={"the program holds it": 1})
        with self.assertRaisesRegex(RuntimeError, "still needed: it is the one that replays$"):
            replanning.Replanned(None, "replays as it was").release()

    def test_the_new_graph_replays_without_the_old_one(self):
        g, fast = self.released(stays=False, pinned={})
        g.raw_cuda_graph.side_effect = RuntimeError("it was reset")
        fast._copy = unittest.mock.Mock()
        with unittest.mock.patch.object(replanning, "_torch"):
            fast.replay()
            fast._copy.launch.assert_called_once()
            for needs_it in (lambda: fast.delayed(1), lambda: fast.trace("timeline.json")):
                with self.assertRaisesRegex(RuntimeError, "the old graph was released"):
                    needs_it()

    def test_contents_that_matter_are_copied(self):
        with unittest.mock.patch.object(trial, "bytes_at", lambda torch, address, size: (address, size)):
            new = unittest.mock.MagicMock()
            trial.carry(None, {"carried": [[4096, 512, 0], [8192, 256, 512]]}, new)
        self.assertEqual([c.args[0] for c in new.__getitem__.call_args_list], [slice(0, 512), slice(512, 768)])
        self.assertEqual([c.args[0] for c in new.__getitem__.return_value.copy_.call_args_list], [(4096, 512), (8192, 256)])
        trial.carry(None, {}, None)


class Building(unittest.TestCase):
    """What a plan says is done to a copy of the graph."""

    def test_places_are_addresses_or_distances_into_new_memory(self):
        done = []

        class Copy:
            nodes = ["a", "b", "c"]

            def change(self, k, pairs):
                done.append(("change", k, pairs))

            def move_set(self, k, to):
                done.append(("set", k, to))

            def move_copy(self, k, side, to):
                done.append(("copy", k, side, to))

            def connect(self, edges):
                done.append(("connect", edges))

            def instantiate(self):
                return self

        plan = {"words": [[0, 8, 16, 1], [0, 24, 4096, 0]], "sets": [[1, 32, 1]], "copies": [[2, 1, 8192, 0]], "edges": [[0, 2], [1, 2]]}
        replanning._built(types.SimpleNamespace(copy=Copy), plan, 1 << 20)
        self.assertEqual(
            done,
            [("change", 0, [(8, (1 << 20) + 16), (24, 4096)]), ("set", 1, (1 << 20) + 32), ("copy", 2, 1, 8192), ("connect", [("a", "c"), ("b", "c")])],
        )


class Timelines(unittest.TestCase):
    def test_spans_of_a_row_do_not_overlap(self):
        self.assertEqual(timeline.lanes([(0, 4), (4, 6), (1, 3), (2, 9), (3, 5)]), [0, 0, 1, 2, 1])

    def test_every_node_is_between_its_events(self):
        made, connected = [], []
        copy = graphs.Copy.__new__(graphs.Copy)
        copy.graph, copy.exec, copy.nodes, copy.connect = None, None, [10, 20], lambda edges: connected.extend(edges)

        def call(name, node, graph, before, count, event):
            made.append(event)
            node._obj.value = 100 + len(made)

        with unittest.mock.patch.object(graphs, "call", call):
            copy.time([(10, 20)], [("a", "b"), ("c", "d")])
        self.assertEqual(made, ["a", "b", "c", "d"])
        self.assertEqual(sorted(connected), [(10, 102), (20, 104), (101, 10), (102, 103), (103, 20)])

    def test_the_file_has_both_graphs(self):
        graph = types.SimpleNamespace(nodes=[node(), node(driver.SET)])
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "trace.json")
            timeline.write(file, graph, {"as captured": [(0, 2), (2, 3)], "planned": [(0, 2), (0.5, 1)]})
            with open(file) as f:
                events = json.load(f)["traceEvents"]
        self.assertEqual([e["args"]["name"] for e in events if e["ph"] == "M"], ["as captured", "planned"])
        self.assertEqual([(e["name"], e["pid"], e["tid"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"],
                         [("0 k", 0, 0, 0, 2), ("1 set", 0, 0, 2, 1), ("0 k", 1, 0, 0, 2), ("1 set", 1, 1, 0.5, 0.5)])

    def test_a_graph_that_did_not_change_has_none(self):
        with self.assertRaisesRegex(RuntimeError, "there is no new graph: replays as it was: a chain"):
            replanning.Replanned(None, "replays as it was: a chain").trace("x.json")


class Wheels(unittest.TestCase):
    def test_a_wheel_is_installed_and_runs(self):
        with tempfile.TemporaryDirectory() as folder:

            def made(name):
                out = os.path.join(folder, name)
                words = [os.path.join(built.root, "python", "wheel"), built.command(), "v1.2.3-4-gabcdef", out]
                subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
                return os.path.join(out, os.listdir(out)[0])

            wheel, again = made("one"), made("two")
            self.assertEqual(os.path.basename(wheel), "dagrun-1.2.3+4.gabcdef-py3-none-manylinux2014_x86_64.whl")
            with open(wheel, "rb") as a, open(again, "rb") as b:
                self.assertEqual(a.read(), b.read(), "the same bytes each time")
            fresh = os.path.join(folder, "fresh")
            subprocess.run([sys.executable, "-m", "venv", fresh], check=True)
            python = os.path.join(fresh, "bin", "python")
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel], check=True)
            env = {k: v for k, v in os.environ.items() if k not in ("DAGRUN_COMMAND", "PYTHONPATH")}
            for words in ([os.path.join(fresh, "bin", "dagrun")], [python, "-m", "dagrun"]):
                ran = subprocess.run([*words, "plan", "--help"], capture_output=True, text=True, cwd=folder, env=env)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn("Show which node runs on which stream", ran.stdout)
            typed = "import dagrun, os; print(os.path.exists(os.path.join(os.path.dirname(dagrun.__file__), 'py.typed')))"
            self.assertEqual(subprocess.run([python, "-c", typed], capture_output=True, text=True, cwd=folder, env=env).stdout, "True\n")
            shown = subprocess.run([python, "-c", "import dagrun; print(dagrun.__version__)"], capture_output=True, text=True, cwd=folder, env=env)
            self.assertEqual(shown.stdout, "1.2.3+4.gabcdef\n", shown.stderr)

    def test_the_command_is_found_or_missed_with_a_way_out(self):
        kept, which = os.environ.pop("DAGRUN_COMMAND", None), shutil.which
        command.shutil.which = lambda name: None
        try:
            with self.assertRaisesRegex(RuntimeError, "install the wheel, put dagrun on PATH, or name it in DAGRUN_COMMAND"):
                command.path()
        finally:
            command.shutil.which = which
            if kept:
                os.environ["DAGRUN_COMMAND"] = kept


if __name__ == "__main__":
    unittest.main()
