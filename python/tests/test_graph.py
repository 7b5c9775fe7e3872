"""Tests of dagrun.Graph on a stand-in for torch, which finds every pair of accesses that nothing orders (stand_in.py)."""

import functools
import gc
import os
import random
import sys
import tempfile
import unittest

import built
import stand_in

import dagrun
from dagrun import command, graph


def setUpModule():
    built.command()


class Case(unittest.TestCase):
    def setUp(self):
        before = sys.modules.get("torch")
        self.addCleanup(lambda: sys.modules.update(torch=before) if before else sys.modules.pop("torch", None))
        stand_in.begin()

    def assertOrdered(self):
        self.assertEqual(stand_in.races, [])


def chunks(n=4):
    """The loop with two buffers of each kind: while a chunk is computed, the next one is uploaded."""
    called = []

    def work(name, reads, writes):
        called.append(name)
        stand_in.kernel(name, reads, writes, 50.0)

    up, down = stand_in.empty(2, 8), stand_in.empty(2, 8)
    g = dagrun.Graph()
    for i in range(n):
        d, e = up[i % 2], down[i % 2]
        g.task(work, f"upload {i}", [], [d], writes=[d], name="upload")
        g.task(work, f"compute {i}", [d], [e], reads=[d], writes=[e], name="compute")
        g.task(work, f"download {i}", [e], [], reads=[e], name="download")
    return g, called, up, down


class Order(Case):
    def test_tasks_are_called_as_declared_and_overlap(self):
        g, called, _, _ = chunks()
        plan = g.plan(streams=3)
        wanted = [f"{what} {i}" for i in range(4) for what in ("upload", "compute", "download")]
        for _ in range(3):
            called.clear()
            plan.run()
            self.assertEqual(called, wanted)
        self.assertGreater(plan.streams, 1)
        self.assertOrdered()

    def test_whatever_the_tasks_are_everything_is_ordered_and_every_wait_is_needed(self):
        for seed in range(25):
            stand_in.begin()
            draw = random.Random(seed)
            x = stand_in.empty(6, 6)

            def piece():
                a, b = sorted(draw.sample(range(7), 2))
                return draw.choice([x[a:b], x[a], x[:, a:b], x[a:b, a:b]])

            g, called = dagrun.Graph(), []

            def task(k, reads, writes, us):
                called.append(k)
                stand_in.kernel(f"task {k}", reads, writes, us)

            for k in range(draw.randint(1, 12)):
                pieces = [piece() for _ in range(draw.randint(1, 4))]
                reads, writes = pieces[::2], pieces[1::2]
                us = draw.choice([5.0, 20.0, 80.0])
                g.task(functools.partial(task, k, reads, writes, us), reads=reads, writes=writes, name="t")
            plan = g.plan(streams=draw.randint(1, 4))
            for _ in range(3):
                stand_in.kernel("before", [], [x])
                called.clear()
                plan.run()
                self.assertEqual(called, list(range(len(called))))
                stand_in.kernel("after", [], [x])
            self.assertEqual(stand_in.races, [], f"seed {seed}")
            (calls,) = plan._ready.values()
            for k, call in enumerate(calls):
                if getattr(getattr(call, "func", None), "__name__", "") == "wait":
                    stand_in.races.clear()
                    stand_in._streams[0].synchronize()
                    stand_in.kernel("before", [], [x])
                    plan._do([*calls[:k], *calls[k + 1 :]], plan._last, plan._side)
                    stand_in.kernel("after", [], [x])
                    self.assertTrue(stand_in.races, f"seed {seed}: call {k} of {len(calls)} is a wait that nothing needs")

    def test_slices_and_columns_that_share_no_byte_overlap(self):
        x = stand_in.empty(4, 8)
        for parts in ([x[0], x[1], x[2], x[3]], [x[:, k : k + 2] for k in (0, 2, 4, 6)], [x[:2, :4], x[:2, 4:], x[2:, :4], x[2:, 4:]]):
            g = dagrun.Graph()
            for part in parts:
                g.task(stand_in.kernel, "one", (), [part], 100.0, writes=[part])
            plan = g.plan(streams=4)
            plan.run()
            plan.run()
            self.assertEqual(plan.streams, 4, plan.report)
            self.assertOrdered()

    def test_strides(self):
        x = stand_in.empty(4, 3, 8)
        rows = [(x, (96, 1, 0)), (x[1], (24, 1, 0)), (x[:, 1], (8, 4, 24)), (x[:, :, 2:5], (3, 12, 8)), (x[:, 1:, 2:5], (83, 1, 0)), (x[2:2], (0, 1, 0))]
        for part, wanted in rows:
            self.assertEqual(graph._rows(part), wanted)
        overlapping = stand_in.Tensor(x.storage, 0, (3, 4), (2, 1), [0])
        self.assertEqual(graph._rows(overlapping), (8, 1, 0))

    def test_another_stream_of_the_caller(self):
        g, called, up, _ = chunks()
        plan = g.plan(streams=3)
        plan.run()
        plan.run()
        for _ in range(2):
            with stand_in.stream(stand_in.Stream()):
                plan.run()
            plan.run()
        self.assertOrdered()
        self.assertEqual(len(called), 6 * 12)

    def test_a_task_that_fails_leaves_all_work_before_the_caller(self):
        x, fail = stand_in.empty(3), []

        def task(k):
            if fail and k == 2:
                raise KeyError("no")
            stand_in.kernel("task", [], [x[k]], 100.0)

        g = dagrun.Graph()
        for k in range(3):
            g.task(task, k, writes=[x[k]])
        plan = g.plan(streams=3)
        plan.run()
        current = stand_in.cuda.current_stream()
        fail.append(True)
        with self.assertRaises(KeyError):
            plan.run()
        self.assertIs(stand_in.cuda.current_stream(), current)
        stand_in.kernel("after", [x])
        self.assertOrdered()


class Values(Case):
    def make(self, fill=20.0):
        def made(reads):
            t = stand_in.empty(16)
            stand_in.kernel("made", reads, [t], fill)
            return t

        def read(*tensors, writes=()):
            flat = [t for part in tensors for t in (part if isinstance(part, list) else [part])]
            stand_in.kernel("read", flat, writes, fill)

        return made, read

    def test_results_reach_the_tasks_that_take_them(self):
        made, read = self.make()
        x = stand_in.empty(4)
        g = dagrun.Graph()
        a = g.task(made, [x[0]], reads=[x[0]])
        b = g.task(made, [x[1]], reads=[x[1]])
        g.task(read, a)
        g.task(read, [a, b])
        g.task(read, x[2], writes=[x[3]], reads=[a], name="beside")
        plan = g.plan(streams=3)
        for _ in range(4):
            plan.run()
        self.assertOrdered()
        first = plan.value(a)
        self.assertEqual(first.shape, (16,))
        self.assertIn(stand_in._current.cuda_stream, first.storage.users)

    def test_memory_of_results_is_not_given_out_while_others_use_it(self):
        made, read = self.make(200.0)
        x = stand_in.empty(3)
        g = dagrun.Graph()
        g.task(read, *[g.task(made, [x[k]], reads=[x[k]], name="make") for k in range(3)], name="take")
        plan = g.plan(streams=3)
        for _ in range(4):
            plan.run()
        self.assertOrdered()
        streams = plan._side
        self.assertEqual(len(streams), 2)
        del plan, g
        gc.collect()
        for other in streams:  # torch's streams are handed out again, and memory that came back with them
            with stand_in.stream(other):
                stand_in.kernel("later", [], [stand_in.empty(16) for _ in range(8)])
        self.assertOrdered()

    def test_a_result_that_nobody_asks_for_is_let_go(self):
        made, _ = self.make()
        x = stand_in.empty(2)
        g = dagrun.Graph()
        g.task(made, [x], reads=[x])
        plan = g.plan()
        plan.run()
        plan.run()
        self.assertEqual(plan._held, [None])

    def test_results_are_memory_of_their_own(self):
        made, read = self.make()
        x = stand_in.empty(4)
        g = dagrun.Graph()
        g.task(read, g.task(lambda: x[1], reads=[x], name="part"))
        with self.assertRaisesRegex(RuntimeError, "task 'part' returned memory that tasks declare, .*: give that itself to later tasks"):
            g.plan().run()
        g = dagrun.Graph()
        a = g.task(made, [], name="make")
        g.task(read, g.task(lambda t: t, a, name="same"))
        with self.assertRaisesRegex(RuntimeError, "task 'same' returned memory that task 'make' returned"):
            g.plan().run()
        g = dagrun.Graph()
        kept = g.task(lambda: x, writes=[x], name="out")  # as functions with out= do; nobody takes it
        plan = g.plan()
        plan.run()
        self.assertIs(plan.value(kept), x)

    def test_names(self):
        g = dagrun.Graph()
        for name in ("f", "f 1", None, "f", None):
            g.task(lambda: None, name=name)
        self.assertEqual([t.name for t in g._tasks], ["f", "f 1", "<lambda>", "f 2", "<lambda> 1"])
        g.plan()

    def test_values_of_others(self):
        made, read = self.make()
        g, other = dagrun.Graph(), dagrun.Graph()
        v = other.task(made, [], name="make")
        with self.assertRaisesRegex(ValueError, "reads what task 'make' of another graph returns"):
            g.task(read, reads=[v])
        g.task(read)
        with self.assertRaisesRegex(ValueError, "is of another graph"):
            g.plan().value(v)
        with self.assertRaisesRegex(RuntimeError, "the plan has not run yet"):
            other.plan().value(v)


class Memory(Case):
    def test_only_tensors_of_other_streams_are_noted(self):
        own = stand_in.empty(4)
        with stand_in.stream(stand_in.Stream()):
            foreign = stand_in.empty(4)
        g = dagrun.Graph()
        g.task(stand_in.kernel, "one", [own], [foreign], reads=[own], writes=[foreign])
        plan = g.plan()
        stand_in.cuda.current_stream().synchronize()
        plan.run()
        self.assertEqual(own.storage.users, set())
        self.assertEqual(foreign.storage.users, {stand_in._current.cuda_stream})

    def test_a_plan_holds_its_tensors(self):
        g = dagrun.Graph()
        t = stand_in.empty(4)
        address = t.data_ptr()
        g.task(lambda: None, writes=[t])
        plan = g.plan()
        del t, g
        gc.collect()
        self.assertNotEqual(stand_in.empty(4).data_ptr(), address)
        del plan


class Capturing(Case):
    def test_a_plan_is_captured_whole(self):
        g, called, _, _ = chunks()
        plan = g.plan(streams=3)
        with self.assertRaisesRegex(RuntimeError, r"call plan.run\(\) first"):
            plan.capture()
        plan.run()
        called.clear()
        h = plan.capture()
        self.assertEqual(len(called), 12)
        self.assertOrdered()
        h.replay()
        self.assertEqual(h.graph.replays, 1)
        self.assertEqual(len(called), 12)
        plan.run()
        self.assertOrdered()

    def test_short_tasks_are_spread_in_a_graph(self):
        cells, on = stand_in.empty(2, 8, 4), []

        def task(t, i):
            on.append(stand_in.cuda.current_stream().cuda_stream)
            stand_in.kernel("task", [cells[t % 2, k] for k in range(max(0, i - 1), min(8, i + 2))], [cells[1 - t % 2, i]], 2.0)

        g = dagrun.Graph()
        for t in range(10):
            for i in range(8):
                g.task(task, t, i, reads=[cells[t % 2, k] for k in range(max(0, i - 1), min(8, i + 2))], writes=[cells[1 - t % 2, i]])
        plan = g.plan(streams=8)
        plan.run()
        on.clear()
        plan.run()
        self.assertLess(len(set(on)), 8)
        self.assertEqual(len(set(on)), plan.streams)
        on.clear()
        h = plan.capture()
        self.assertEqual(len(set(on)), 8)
        h.replay()
        on.clear()
        plan.run()
        self.assertEqual(len(set(on)), plan.streams)
        self.assertOrdered()

    def test_the_first_run_cannot_be_captured(self):
        g, _, _, _ = chunks()
        plan = g.plan()
        with self.assertRaisesRegex(RuntimeError, "cannot be captured"), stand_in.graph(stand_in.CUDAGraph()):
            plan.run()

    def test_a_failing_task_ends_the_capture_with_its_own_error(self):
        x, fail = stand_in.empty(3), []

        def task(k):
            stand_in.kernel("task", [], [x[k]], 100.0)
            if fail and k == 2:
                raise KeyError("no")

        g = dagrun.Graph()
        for k in range(3):
            g.task(task, k, writes=[x[k]])
        plan = g.plan(streams=3)
        plan.run()
        fail.append(True)
        with self.assertRaises(KeyError):
            plan.capture()
        self.assertFalse(any(s.capture for s in stand_in._streams))

    def test_functions_that_capture_themselves_are_refused(self):
        g = dagrun.Graph()

        def step():
            pass

        step.get_compiler_config = lambda: {"triton.cudagraphs": True}
        g.task(functools.partial(step), name="step")
        plan = g.plan()
        plan.run()
        said = r'test_graph.py:\d+: task .step. calls what torch.compile made with mode="reduce-overhead".*max-autotune-no-cudagraphs'
        with self.assertRaisesRegex(RuntimeError, said):
            plan.capture()


class Mistakes(Case):
    """What a newcomer does wrong, and what the message says."""

    def refused(self, error, pattern, **more):
        g = dagrun.Graph()
        with self.assertRaisesRegex(error, r"test_graph.py:\d+: task 'f' " + pattern):
            g.task(lambda *_: None, **more, name="f")

    def test_a_tensor_on_the_cpu(self):
        self.refused(ValueError, r"reads a tensor on the CPU, .*: move it to the GPU \(x.cuda\(\)\).*pin it", reads=[stand_in.empty(3, device="cpu")])
        g = dagrun.Graph()
        g.task(lambda: None, reads=[stand_in.empty(3, device="cpu", pin_memory=True)])

    def test_a_wrong_stream(self):
        side = stand_in.Stream()
        g = dagrun.Graph()
        g.task(lambda: stand_in.cuda.set_stream(side), name="f")
        plan, current = g.plan(), stand_in.cuda.current_stream()
        with self.assertRaisesRegex(RuntimeError, "task 'f' left another stream as the current one"):
            plan.run()
        self.assertIs(stand_in.cuda.current_stream(), current)

    def test_a_wrong_device(self):
        g = dagrun.Graph()
        g.task(lambda: None, writes=[stand_in.empty(3)])
        with self.assertRaisesRegex(ValueError, "writes a tensor on cuda:1, and others are on cuda:0: make a graph for each device"):
            g.task(lambda: None, writes=[stand_in.empty(3, device="cuda:1")])
        plan = g.plan()
        stand_in.current_device[0] = 1
        said = r"the plan's tensors are on cuda:0, and the current device is cuda:1: run the plan under torch.cuda.device\(0\)"
        with self.assertRaisesRegex(RuntimeError, said):
            plan.run()

    def test_a_task_that_writes_what_it_declared_to_read(self):
        x, y = stand_in.empty(4), stand_in.empty(4)
        g = dagrun.Graph()
        g.task(stand_in.kernel, "one", [], [x], reads=[x], writes=[y], name="f")
        with self.assertRaisesRegex(RuntimeError, r"test_graph.py:\d+: task 'f' wrote a tensor that it declares to read, .*: list it in writes"):
            g.plan().run()
        g = dagrun.Graph()
        g.task(stand_in.kernel, "one", [x[0:2]], [x[2:4]], reads=[x[0:2]], writes=[x[2:4]])
        g.plan().run()  # both are parts of one tensor, whose version counts for all

    def test_a_tensor_that_is_not_declared(self):
        x, y = stand_in.empty(4), stand_in.empty(4)
        g = dagrun.Graph()
        g.task(stand_in.kernel, "one", [], [x], writes=[x], name="first")
        g.task(lambda *_: None, x, name="second")
        with self.assertRaisesRegex(ValueError, "task 'second' is given a tensor that task 'first' writes, .*and declares nothing about it"):
            g.plan()
        g = dagrun.Graph()
        g.task(stand_in.kernel, "one", [], [x], writes=[x])
        g.task(lambda *_: None, x, y, reads=[x[1]])  # one of which nobody writes, and one of which it uses a part
        g.plan()

    def test_what_is_no_tensor(self):
        self.refused(TypeError, "reads an object of type int: list tensors, or what earlier tasks return", reads=[3])
        sparse = stand_in.empty(3)
        sparse.layout = stand_in.sparse_coo
        self.refused(TypeError, "reads a tensor of layout torch.sparse_coo", reads=sparse)
        with self.assertRaisesRegex(TypeError, "has no function to call, but an object of type int: pass the function first"):
            dagrun.Graph().task(3)
        with self.assertRaisesRegex(ValueError, "a graph without tasks"):
            dagrun.Graph().plan()

    def test_gradients(self):
        x = stand_in.empty(3, requires_grad=True)
        self.refused(ValueError, r"reads a tensor that requires grad.*torch.no_grad\(\), or list x.detach\(\)", reads=[x])
        stand_in.grad[0] = False
        g = dagrun.Graph()
        v = g.task(lambda: x, reads=[x], name="f")
        with self.assertRaisesRegex(RuntimeError, "task 'f' returned a tensor that requires grad"):
            g.plan().run()
        del v

    def test_no_gpu(self):
        stand_in.available[0] = False
        with self.assertRaisesRegex(RuntimeError, "dagrun.Graph plans .*, and torch finds no GPU: is there an NVIDIA driver"):
            dagrun.Graph()
        stand_in.version.cuda = None
        with self.assertRaisesRegex(RuntimeError, r"this torch \(stand-in\) was built without CUDA"):
            dagrun.Graph()

    def test_no_torch(self):
        sys.modules["torch"] = None
        with self.assertRaisesRegex(RuntimeError, "dagrun.Graph plans .*, and there is no torch here: python -m pip install torch"):
            dagrun.Graph()

    def test_what_the_planner_refuses(self):
        g = dagrun.Graph()
        g.task(lambda: None)
        with self.assertRaisesRegex(RuntimeError, "--streams -5: want 1 to 1024"):
            g.plan(streams=-5)


class Pictures(Case):
    def test_the_picture_is_of_the_plan(self):
        g, _, _, _ = chunks()
        plan = g.plan(streams=3)
        plan.run()
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "plan.svg")
            plan.svg(file)
            with open(file) as f:
                text = f.read()
        for wanted in ("upload 3", "compute", "download"):
            self.assertIn(wanted, text)
        self.assertRegex(plan.report, r"^12 tasks on [23] streams, \d+ waits; \d+ us predicted, 600 one after the other$")


class Described(Case):
    def test_memory_without_an_address_is_apart(self):
        answer = command.run(["plan", "-", "--output=json"], '{"tasks": [], "memory": [], "ranges": []}')
        self.assertEqual((answer.status, answer.text), (2, "dagrun: <stdin>: a graph of tasks: there are no tasks"))


if __name__ == "__main__":
    unittest.main()
