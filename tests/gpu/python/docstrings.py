"""Runs the examples in the docstrings of the package, each with fresh tensors, and fails for a public function that has none."""

import doctest
import inspect
import os
import subprocess
import sys
import tempfile
import warnings

import torch

import dagrun
from dagrun import checking, command, graph, loaded, loading, replanning

warnings.simplefilter("ignore", RuntimeWarning)  # dagrun.check in a process that is not recorded


def chunks():
    host, out = torch.rand(4, 1000).pin_memory(), torch.empty(4, 1000).pin_memory()
    up, down = torch.empty(2, 1000, device="cuda"), torch.empty(2, 1000, device="cuda")
    g = dagrun.Graph()
    for i in range(4):
        d, e = up[i % 2], down[i % 2]
        g.task(d.copy_, host[i], non_blocking=True, writes=[d])
        g.task(torch.square, d, out=e, reads=[d], writes=[e])
        g.task(out[i].copy_, e, non_blocking=True, reads=[e])
    plan = g.plan(streams=3)
    plan.run()
    return {"host": host, "out": out, "up": up, "down": down, "plan": plan, "h": plan.capture()}


def captured(x):
    made = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(made):
        x.clone().mul_(2)
    return made


def names():
    x = torch.tensor([1.0, 2.0, 3.0], device="cuda")
    made = captured(torch.zeros(3, device="cuda"))
    return {"dagrun": dagrun, "torch": torch, "x": x, "g": dagrun.Graph(), "graph": made, "fast": dagrun.replan(made, "missing.rec"), **chunks()}


folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
subprocess.run([command.path(), "init", "--quiet", "first"], check=True)
failed = tried = 0
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
finder = doctest.DocTestFinder(exclude_empty=True)
for module in (checking, graph, loaded, loading, replanning):
    for test in finder.find(module, module.__name__, module=module, globs={}):
        if test.examples:
            test.globs = names()
            result = runner.run(test)
            failed, tried = failed + result.failed, tried + result.attempted
for name in dagrun.__all__:
    thing = getattr(dagrun, name)
    for inner, method in [(name, thing), *(inspect.getmembers(thing) if inspect.isclass(thing) else [])]:
        if inner.startswith("_") or not (inspect.isfunction(method) or inspect.isclass(method) or isinstance(method, property)):
            continue
        if ">>>" not in (method.__doc__ or ""):
            print(f"{name}.{inner} has no example")
            failed += 1
print(f"{tried} examples, {failed} failed")
sys.exit(min(failed, 1))
