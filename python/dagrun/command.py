"""The dagrun command: the one in this package, or else the one on PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import NamedTuple


class Answer(NamedTuple):
    """What the command said. `text` is what it wrote on stderr, in one line."""

    status: int
    out: str
    text: str


def path() -> str:
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "dagrun")
    found = os.environ.get("DAGRUN_COMMAND") or (own if os.path.exists(own) else shutil.which("dagrun"))
    if not found:
        raise RuntimeError("the command dagrun is not there: install the wheel, put dagrun on PATH, or name it in DAGRUN_COMMAND")
    return found


def run(words: Sequence[str], text: str | None = None) -> Answer:
    """Runs the command, with a text as its input."""
    done = subprocess.run([path(), *words], input=text, capture_output=True, text=True)
    return Answer(done.returncode, done.stdout, " ".join(done.stderr.split()) or f"dagrun ended with status {done.returncode}")
