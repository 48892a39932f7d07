"""Runs a file that imports tvm, with this package in its place, for one process.

    python -m sator.compat FILE.py [ARGUMENT...]
"""
import importlib
import importlib.abc
import importlib.util
import os
import runpy
import sys


class _AsTvm(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """tvm.NAME is sator.NAME."""

    def find_spec(self, name, path=None, target=None):
        if name == "tvm" or name.startswith("tvm."):
            return importlib.util.spec_from_loader(name, self)
        return None

    def create_module(self, spec):
        module = importlib.import_module("sator" + spec.name[len("tvm"):])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        own = module.__spec__.loader_state
        if own is not None:
            module.__spec__ = own  # the import has put that of tvm's name there


def install():
    """From now on `import tvm` gives this package. Does nothing where it is so already."""
    if not any(isinstance(finder, _AsTvm) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AsTvm())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip().splitlines()[-1].strip())
    if sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return
    if not os.path.exists(sys.argv[1]):
        sys.exit(f"error: there is no {sys.argv[1]}\n  needs: a file of Python\n  hint:  python -m sator.compat FILE.py [ARGUMENT...]")
    install()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
