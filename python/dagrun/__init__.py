"""dagrun in Python: finds missing waits in programs that use a GPU, plans captured CUDA graphs again, calls pipelines with tensors, and runs tasks on
planned streams. `python -m dagrun` is the dagrun command."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .checking import Race, check
    from .graph import Captured, Graph, Plan, Value
    from .loaded import Loaded
    from .loading import load
    from .replanning import Replanned, replan

__all__ = ["Captured", "Graph", "Loaded", "Plan", "Race", "Replanned", "Value", "check", "load", "replan"]

# Modules are imported when they are asked for, so that `import dagrun` costs a program little.
_homes = {
    "checking": ["Race", "check"],
    "graph": ["Captured", "Graph", "Plan", "Value"],
    "loaded": ["Loaded"],
    "loading": ["load"],
    "replanning": ["Replanned", "replan"],
}


def __getattr__(name: str) -> object:
    import importlib

    for home, names in _homes.items():
        if name in names:
            return getattr(importlib.import_module("." + home, __name__), name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'dagrun' has no attribute {name!r}")


def __dir__() -> "list[str]":
    return [*__all__, "__version__"]


def _version() -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version("dagrun")
    except importlib.metadata.PackageNotFoundError:  # used from the sources
        return "unknown"
