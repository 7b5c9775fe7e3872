"""The dagrun command: the one in this package, or else the one on PATH."""

import collections
import os
import shutil
import subprocess

Answer = collections.namedtuple("Answer", "status out text")


def path():
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "dagrun")
    found = os.environ.get("DAGRUN_COMMAND") or (own if os.path.exists(own) else shutil.which("dagrun"))
    if not found:
        raise RuntimeError("the command dagrun is not there: install the wheel, put dagrun on PATH, or name it in DAGRUN_COMMAND")
    return found


def run(words, text=None):
    """Runs the command. `text` of the answer is what it said, in one line."""
    done = subprocess.run([path(), *words], input=text, capture_output=True, text=True)
    return Answer(done.returncode, done.stdout, " ".join(done.stderr.split()) or f"dagrun ended with status {done.returncode}")
