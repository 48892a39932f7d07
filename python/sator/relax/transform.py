"""Passes over graphs, by name; those written in Python with `function_pass`."""
from sator import _core, paths, refused, transform as passes

__path__ = []  # TVM's modules below are found by sator.paths

FunctionPass, DataflowBlockPass, dataflowblock_pass = passes.FunctionPass, passes.DataflowBlockPass, passes.dataflowblock_pass
function_pass = passes.function_pass_of(_core.relax.Function, "transform_function")


def __getattr__(name):
    if name in ("FusionPattern", "PatternCheckContext"):
        from sator.relax import byoc

        return getattr(byoc, name)
    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    try:
        return getattr(passes, name)
    except AttributeError:
        if not name.startswith("__") and refused.is_refused(f"relax.transform.{name}"):
            raise refused.error(f"relax.transform.{name}") from None
        raise


def __dir__():
    return sorted([*globals(), *dir(passes)])
