"""Tests of docs/python.md as far as no GPU is needed: its tasks run on the stand-in for torch, which finds what is not in order, and its race is the one of a
recording that was made on a GPU. tests/gpu/python runs all of it on one."""

import contextlib
import io
import os
import subprocess
import unittest

import built
import page
import stand_in
from test_package import torch_is

recordings = os.path.join(built.root, "internal", "recording", "order", "testdata", "recordings")


class Page(unittest.TestCase):
    def test_tasks_of_the_page_are_in_order(self):
        ran = {}
        for kind, name, text in page.blocks():
            if kind != "python" or "dagrun.Graph" not in text:
                continue
            built.command()
            out = io.StringIO()
            with torch_is(stand_in), contextlib.redirect_stdout(out):
                stand_in.begin()
                exec(compile(text.replace("1_000_000", "16"), name, "exec"), {"__name__": "__main__"})
            self.assertEqual(stand_in.races, [], name)
            ran[name] = out.getvalue()
        self.assertRegex(ran["loop.py"], r"^12 tasks on [123] streams?, \d+ waits?; \d+ us predicted, 120 one after the other\n$")
        self.assertEqual(ran["values.py"], "[3]\n")

    def test_the_loop_is_short(self):
        (loop,) = (text for kind, name, text in page.blocks() if name == "loop.py")
        code = [line for line in loop.splitlines() if line.strip() and not line.startswith("#")]
        self.assertLessEqual(len(code), 15)

    def test_the_race_of_the_page_is_that_of_the_recording(self):
        (shown,) = (out for kind, command, out in page.blocks() if command == "python -m dagrun check seed.py")
        ran = subprocess.run([built.command(), "check", "seed.rec"], cwd=recordings, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 1)
        # The page's program has a line more than the recorded one: its name.
        moved = ran.stdout
        for line in (5, 3):
            moved = moved.replace(f"seed.py:{line}", f"seed.py:{line + 1}")
        self.assertEqual(shown, moved)

    def test_all_snippets_are_python(self):
        for kind, name, text in page.blocks():
            if kind == "python":
                compile(text, name, "exec")


if __name__ == "__main__":
    unittest.main()
