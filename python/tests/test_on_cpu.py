"""Tests of dagrun.load where there is no GPU, with real arrays of numpy and the built command's CPU device."""

import doctest
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import built

import dagrun
from dagrun import on_cpu

try:
    import numpy
except ImportError:
    numpy = None

PIPELINE = """version: 1
params: {n: 6}
buffers:
  x: {place: host, dtype: f32, shape: [n], init: {ramp: [0, 1]}}
  d: {place: device, dtype: f32, shape: [n]}
  y: {place: host, dtype: f32, shape: [n]}
  sum: {place: host, dtype: f32, shape: [2, n / 2], init: 1}
  d_sum: {place: device, dtype: f32, shape: [2, n / 2]}
nodes:
  - {name: up, memcpy: {from: x, to: d}}
  - {name: double, kernel: scale, args: [n, 2, d]}
  - {name: down, memcpy: {from: d, to: y}}
  - {name: before, memcpy: {from: sum, to: d_sum}}
  - {name: add, kernel: saxpy, args: [n, 1, d, d_sum]}
  - {name: after, memcpy: {from: d_sum, to: sum}}
"""


@unittest.skipUnless(numpy, "numpy is not installed")
class OnCPU(unittest.TestCase):
    def setUp(self):
        built.command()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "p.yaml")
        with open(self.file, "w") as f:
            f.write(PIPELINE)

    def test_calls(self):
        p = dagrun.load(self.file, n=8)
        x = numpy.arange(8, dtype="float32")
        self.assertEqual(list(p.buffers), ["x", "d", "y", "sum", "d_sum"])
        self.assertEqual((p.buffers["sum"].shape, p.buffers["sum"].dtype), ((2, 4), numpy.float32))
        made = p()
        self.assertEqual(list(made), ["y"])
        numpy.testing.assert_array_equal(made["y"], 2 * x)
        numpy.testing.assert_array_equal(p(x=x[::-1])["y"], 2 * x[::-1])
        y, total = numpy.zeros(8, "float32"), numpy.full((2, 4), 5, "float32")
        self.assertEqual(p(x=x + 1, y=y, sum=total), {})
        numpy.testing.assert_array_equal(y, 2 * (x + 1))
        numpy.testing.assert_array_equal(total.ravel(), 5 + 2 * (x + 1))

    def test_what_a_replay_leaves_is_there_in_the_next(self):
        p = dagrun.load(self.file)
        for _ in range(3):
            p(x=numpy.ones(6, "float32"))
        p(x=numpy.ones(6, "float32"), sum=numpy.zeros((2, 3), "float32"))  # in which the pipeline's own is left alone
        numpy.testing.assert_array_equal(numpy.frombuffer(p._state["sum"], "float32"), [1 + 3 * 2] * 6)

    def test_examples(self):
        folder = os.path.dirname(self.file)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder)
        subprocess.run([built.command(), "init", "--quiet", "first"], check=True)
        self.assertEqual(doctest.testmod(on_cpu, extraglobs={"dagrun": dagrun, "numpy": numpy}), (0, 2))

    def test_mistakes(self):
        p = dagrun.load(self.file)
        fixed = numpy.zeros(6, "float32")
        fixed.flags.writeable = False
        for kind, given, said in (
            (ValueError, {"x": numpy.ones(7, "float32")}, r"x is float32\[7\], and .*p.yaml has float32\[6\] there"),
            (ValueError, {"x": numpy.ones(6)}, r"x is float64\[6\]"),
            (ValueError, {"d": fixed}, "has no buffer d on the host, .*; it has x, y, sum$"),
            (ValueError, {"y": fixed}, "y cannot be written"),
            (TypeError, {"x": [1]}, "x is an object of type list"),
        ):
            with self.assertRaisesRegex(kind, said):
                p(**given)
        with open(self.file, "a") as f:
            f.write("  - {name: more, kernel: none, args: []}\n")
        with self.assertRaisesRegex(RuntimeError, 'unknown kernel "none"'):
            dagrun.load(self.file)
        p.release()
        with self.assertRaisesRegex(RuntimeError, "was released"):
            p()
        with unittest.mock.patch.dict(sys.modules, {"numpy": None}):
            with self.assertRaisesRegex(RuntimeError, "With numpy, it runs on the CPU device"):
                dagrun.load(self.file)


if __name__ == "__main__":
    unittest.main()
