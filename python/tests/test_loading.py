"""Tests of dagrun.load in a process of its own, with a stand-in for torch whose tensors lie in memory of a stand-in for the driver: that of dagrun.h's tests,
which runs a graph when somebody waits, in any order that its edges allow."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import built

driver = os.path.join(built.root, "cmd", "dagrun", "internal", "graphfile", "testdata", "driver.c")


@unittest.skipUnless(sys.platform == "linux" and shutil.which("gcc"), "the stand-in driver is compiled by gcc, for Linux")
class Loading(unittest.TestCase):
    def test_pipelines_are_called_with_tensors(self):
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "libcuda.so.1")
            subprocess.run(["gcc", "-std=gnu11", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, driver], check=True)
            environment = {**os.environ, "LD_LIBRARY_PATH": folder, "XDG_CACHE_HOME": folder, "DAGRUN_COMMAND": built.command()}
            program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loads.py")
            pipeline = os.path.join(built.root, "pipelines", "saxpy.yaml")
            ran = subprocess.run([sys.executable, program, pipeline], cwd=folder, env=environment, capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout), (0, "nothing is left\n"), ran.stderr)


if __name__ == "__main__":
    unittest.main()
