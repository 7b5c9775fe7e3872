"""Tests of the library with the functions of dagrun.h, as Python calls it: what it says where there is no file, and of a file that is none."""

import ctypes
import os
import subprocess
import tempfile
import unittest

import built


def library():
    done = subprocess.run([built.command(), "export", "--library"], capture_output=True, text=True, check=True)
    found = ctypes.CDLL(done.stdout.strip())
    found.dagrun_error.restype = ctypes.c_char_p
    found.dagrun_load.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p, ctypes.c_void_p]
    return found


class Library(unittest.TestCase):
    def test_it_says_what_is_wrong(self):
        has, graph = library(), ctypes.c_void_p()
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "x.dagrun")
            with open(name, "wb") as file:
                file.write(b"DAGRUNG1" + b"\1" + b"\0" * 80)
            code = has.dagrun_load(ctypes.byref(graph), name.encode(), None)
            said = has.dagrun_error().decode()
        self.assertIsNone(graph.value)
        self.assertEqual((code, said), (200, f"{name}: byte 16: the header of a section is damaged"))


if __name__ == "__main__":
    unittest.main()
