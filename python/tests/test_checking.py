"""Tests of dagrun.check: in a process that the recorder started, with the stand-in driver of the recorder's own tests, and in one that it did not start."""

import gzip
import os
import platform
import subprocess
import sys
import tempfile
import unittest
import warnings

import built

import dagrun

library = os.path.join(built.root, "cudart", "recorder", "library", "stand-in", {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "none"))

program = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import dagrun

cuda = ctypes.CDLL("libcuda.so.1")
with dagrun.check() as c:
    pass
print("nothing:", c.report)
cuda.cuInit(0)
handle, address = ctypes.c_void_p, ctypes.c_uint64
a, b, event, memory = handle(), handle(), handle(), address()
cuda.cuStreamCreate(ctypes.byref(a), 1), cuda.cuStreamCreate(ctypes.byref(b), 1), cuda.cuEventCreate(ctypes.byref(event), 0)
cuda.cuMemAlloc_v2(ctypes.byref(memory), 4096)
host = ctypes.create_string_buffer(4096)


def copy(stream):
    cuda.cuMemcpyHtoDAsync_v2(memory, address(ctypes.addressof(host)), ctypes.c_size_t(4096), stream)


def launch(stream):
    n = ctypes.c_int(1000)
    parameters = (handle * 2)(ctypes.addressof(memory), ctypes.addressof(n))
    cuda.cuLaunchKernel(handle(0xF1), 1, 1, 1, 32, 1, 1, 0, stream, parameters, None)


copy(a)
copy(b)  # a race, before anything is checked
with dagrun.check() as c:
    copy(a)
    cuda.cuEventRecord(event, a), cuda.cuStreamWaitEvent(b, event, 0)
    copy(b)
print("ordered:", c.report)
try:
    with dagrun.check() as c:
        copy(a)
        copy(b)
except dagrun.Race as race:
    print("race:", race)
with dagrun.check() as c:
    launch(a)
    launch(b)
print("possible:", c.report)
try:
    with dagrun.check() as c:
        copy(a)
        copy(b)
        raise KeyError("its own")
except KeyError as error:
    print("error:", error)
"""


@unittest.skipUnless(os.path.isdir(library), "the stand-in driver is for Linux on x86-64 and arm64")
class Recorded(unittest.TestCase):
    def test_a_part_of_a_program_is_checked_while_it_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            driver = os.path.join(folder, "libcuda.so.1")
            with gzip.open(os.path.join(library, "libcuda.so.1.gz")) as packed, open(driver, "wb") as f:
                f.write(packed.read())
            with open(os.path.join(folder, "part.py"), "w") as f:
                f.write(program)
            environment = {**os.environ, "LD_LIBRARY_PATH": folder, "XDG_CACHE_HOME": folder, "DAGRUN_COMMAND": built.command()}
            recorder = [built.command(), "record", "--quiet", "--accesses=arguments", "--cupti", driver, "-o", "part.rec", "--limit=1024", "--"]
            words = [*recorder, sys.executable, "part.py", os.path.join(built.root, "python")]
            ran = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        said = {}
        for line in ran.stdout.splitlines():
            key, _, text = line.partition(": ")
            if key in ("nothing", "ordered", "race", "possible", "error"):
                now = said[key] = [text]
            else:
                now.append(line)
        self.assertEqual(said["nothing"], ["nothing was done on a GPU"])
        self.assertEqual(said["ordered"], ["all conflicting accesses are ordered (0 launches measured)"])
        wanted = [
            "race on 4096 bytes (WAW): nothing orders these two",
            "  in    allocation of 4096 bytes from part.py:14, bytes 0 to 4096",
            "  first copy writes on stream 1, part.py:19",
            "  then  copy writes on stream 2, part.py:19",
            "  mend  before part.py:19: make stream 2 wait for stream 1",
            "        torch.cuda.current_stream().wait_stream(<stream 1>)",
            "1 race",
        ]
        self.assertEqual(said["race"], wanted, "and not the race before")
        self.assertEqual(said["possible"][0].split(" on ")[0], "possible race")
        self.assertEqual(said["error"], ["'its own'"])


class NotRecorded(unittest.TestCase):
    def test_it_says_that_nothing_is_checked(self):
        self.assertNotIn("DAGRUN_RECORD", os.environ)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with dagrun.check() as c:
                pass
        self.assertEqual(len(told), 1)
        self.assertEqual(str(told[0].message), "nothing was recorded, so nothing is checked: start the program with python -m dagrun check PROGRAM.py")
        self.assertEqual(told[0].filename, __file__)
        self.assertEqual(c.report, str(told[0].message))


if __name__ == "__main__":
    unittest.main()
