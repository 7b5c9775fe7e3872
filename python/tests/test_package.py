"""Tests of what needs no GPU: python3 -m unittest discover -s python/tests. DAGRUN_COMMAND names a built command; without it, one is
built."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

import built

import dagrun
from dagrun import command, driver, graphs, observe, replanning


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
    def test_what_binds_a_graph(self):
        why = replanning._why
        self.assertEqual(why({"critical": 98, "filled": 20, "chain": 100}), "a chain: its longest path takes 98% of the time of all its nodes")
        self.assertEqual(why({"critical": 60, "filled": 20, "chain": 100}), "its longest path takes 60% of the time of all its nodes")
        self.assertEqual(why({"critical": 60, "filled": 80, "chain": 100}), "its kernels fill the GPU for 80% of the time")

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

        def full(*_):
            raise failure

        cuda = types.SimpleNamespace(synchronize=lambda: None, OutOfMemoryError=OutOfMemoryError, mem_get_info=lambda: (100 << 20, 81_559 << 20))
        kept = replanning._replanned, driver.made, driver.call
        replanning._replanned, driver.made, driver.call = full, lambda *_: types.SimpleNamespace(value=7), lambda *_: None
        driver_says = driver.DriverError.__new__(driver.DriverError)
        driver_says.code = driver.OUT_OF_MEMORY
        other = driver.DriverError.__new__(driver.DriverError)
        other.code = 700
        try:
            with torch_is(types.SimpleNamespace(cuda=cuda)):
                for failure in (OutOfMemoryError(), driver_says):
                    fast = dagrun.replan(None, __file__)
                    self.assertFalse(fast.changed)
                    self.assertRegex(fast.report, r"^replays as it was: the GPU is full \(100 of 81559 MB are free\), and planning .*: free memory before$")
                failure = other
                with self.assertRaises(driver.DriverError):
                    dagrun.replan(None, __file__)
        finally:
            replanning._replanned, driver.made, driver.call = kept

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
