"""dagrun.check(): checks what a part of a program did on the GPU, while the program goes on.

Works in a process that `python -m dagrun check` or `dagrun record` started: there the recorder writes down every call, and this reads what it has written."""

from __future__ import annotations

import glob
import os
import struct
import sys
import types
import warnings

from . import command, driver


class Race(RuntimeError):
    """Accesses of the same bytes, at least one of them a write, that nothing orders: both were measured, or follow from the calls. The text is dagrun's report.

    >>> try:
    ...     with dagrun.check():
    ...         pass
    ... except dagrun.Race as race:
    ...     print(race)
    """


class check:
    """Checks what the body of a `with` does on the GPU, and raises Race if accesses have no order. The GPU is waited for before the body and after it.

    Races that rest on what kernels' arguments point into are possible, and do not raise; `report` tells of them. In a process that the recorder did not
    start, nothing is known of what kernels touch: a warning says so, and nothing is raised.

    >>> with dagrun.check() as c:
    ...     pass
    >>> print(c.report)
    nothing was recorded...
    """

    def __init__(self) -> None:
        self.report = ""  # dagrun's words, once the body has ended
        self._since: int | None = None

    def __enter__(self) -> check:
        if not os.environ.get("DAGRUN_RECORD"):
            self.report = "nothing was recorded, so nothing is checked: start the program with python -m dagrun check PROGRAM.py"
            warnings.warn(self.report, RuntimeWarning, stacklevel=2)
            return self
        _wait()
        self._since = _moment() + 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        if self._since is None or kind is not None:
            return
        _wait()
        part = _part()
        if part is None:
            self.report = "nothing was done on a GPU"
            return
        tell = getattr(sys.modules.get("_dagrun_recorder"), "tell", None)
        if tell:
            tell()
        answer = command.run(["check", part, f"--since={self._since}", "--color=never"])
        if answer.status not in (0, 1, 3) or not answer.out:
            raise RuntimeError(answer.text)
        self.report = answer.out.rstrip("\n")
        if answer.status == 1:
            raise Race(self.report)


def _wait() -> None:
    """Waits for the GPU, if this process uses one: the recorder reads what kernels touched when the program has waited."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        for device in range(torch.cuda.device_count()):
            if torch.cuda.memory_reserved(device):
                torch.cuda.synchronize(device)
    elif _part() is not None:
        driver.call("cuCtxSynchronize")


def _part() -> str | None:
    """The file that the recorder writes for this process, if the driver has started."""
    found = glob.glob(os.path.join(glob.escape(os.environ["DAGRUN_RECORD"]), f"{os.getpid()}.*.part"))
    return max(found, key=os.path.getmtime) if found else None


def _moment() -> int:
    """The last number that the recorder gave to the beginning or the end of a call."""
    part = _part()
    if part is None:
        return 0
    with open(part, "rb") as f:
        f.seek(64)  # sequence, of struct file_header
        return int(struct.unpack("<Q", f.read(8))[0])
