"""Tells the recorder what PyTorch's allocator does. `dagrun record` puts this file on PYTHONPATH.

The driver sees the allocator's segments, not tensors. PyTorch calls back when its allocator gives out a block or gets one back; its own trace,
read at the end, says how large the blocks were and when those that other streams used became free.
"""

import importlib.abc
import importlib.util
import os
import sys


def _chain():
    """Runs the sitecustomize that this one hides, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    kept = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        if kept is not None:
            sys.modules["sitecustomize"] = kept


class _Torch(importlib.abc.MetaPathFinder):
    """Calls `then` when the module torch has been imported."""

    def __init__(self, then):
        self.then = then

    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            self.then(module)

        spec.loader.exec_module = exec_module
        return spec


def _watch(torch):
    import atexit
    import ctypes

    path = os.environ.get("CUDA_INJECTION64_PATH")
    if not path or not os.environ.get("DAGRUN_RECORD"):
        return
    library = ctypes.PyDLL(path)  # keeps the GIL: the calls take less than a microsecond
    tensor, trace, fact = library.dagrun_tensor, library.dagrun_trace, library.dagrun_fact
    tensor.argtypes, tensor.restype = [ctypes.c_int, ctypes.c_uint64], None
    trace.argtypes, trace.restype = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64], None
    fact.argtypes, fact.restype = [ctypes.c_char_p], None

    def begin():
        try:
            import torch.cuda._gpu_trace as calls

            torch.cuda.memory._record_memory_history("all", context=None, stacks="python", max_entries=sys.maxsize)
            calls.register_callback_for_memory_allocation(lambda address: tensor(1, address))
            calls.register_callback_for_memory_deallocation(lambda address: tensor(2, address))
            torch._C._activate_gpu_trace()
            fact(("torch=%s" % torch.__version__).encode())
        except Exception as error:  # another version of torch: segments are named instead of tensors
            fact(("torch's allocator is not recorded: %s: %s" % (type(error).__name__, error)).encode())
            return
        atexit.register(tell)

    told = {}  # lines of the trace of each device that the recorder has

    def tell():
        """Gives the recorder what the allocator's trace has gained since the last time."""
        try:
            actions = {"alloc": 1, "free_requested": 2, "free_completed": 3}
            for device, events in enumerate(torch._C._cuda_memorySnapshot(None)["device_traces"]):
                lines = [
                    "%d %d %d %d" % (actions[e["action"]], e["addr"], e["size"], e["stream"])
                    for e in events
                    if e["action"] in actions
                ]
                before = told.get(device, 0)
                if len(lines) > before:
                    text = "\n".join((["from %d" % before] if before else []) + lines[before:]).encode()
                    trace(device, text, len(text))
                    told[device] = len(lines)
        except Exception as error:
            fact(("torch's allocator trace could not be read: %s: %s" % (type(error).__name__, error)).encode())

    recorder = type(sys)("_dagrun_recorder")  # for dagrun.check
    recorder.tell = tell
    sys.modules[recorder.__name__] = recorder

    try:
        torch.cuda._lazy_call(begin)
    except Exception as error:
        fact(("torch's allocator is not recorded: %s: %s" % (type(error).__name__, error)).encode())


_chain()
sys.meta_path.insert(0, _Torch(_watch))
