"""Rules for GPUs: the compiler's own by their names, Matmul(), GEMV(), ...; and what rules written in Python share.

They schedule; programs are built for CPUs.
"""
import sys

from sator import _core, tir
from sator.dlight.gpu.base import GPUScheduleRule  # noqa: F401
from sator.dlight.gpu.matmul import (  # noqa: F401
    auto_inline_consumer_chain, auto_inline_consumers, auto_inline_producers, check_sm_version, get_in_out_dtypes, get_index_map,
    get_reduction_blocks)


class _Named:
    """A rule of the compiler's for NVIDIA's GPUs."""

    def __init__(self, bucket=4):
        self._bucket = bucket

    def schedule(self, mod, target):
        return _core.schedule_for_gpu(mod, str(target), [type(self).__name__], self._bucket)

    def apply(self, func, target, tunable=False):
        """A tir.Schedule of the function, or None where the rule declines."""
        if not isinstance(func, _core.tir.PrimFunc):
            raise TypeError(f"apply: func = {func!r} is a {type(func).__name__}\n  needs: a tir.PrimFunc")
        made = self.schedule(_core.module({"main": func.with_attr("global_symbol", "main")}, None, None), target)["main"]
        if not made.attrs.get("tir.is_scheduled"):
            return None
        return tir.Schedule(_core.module({"main": made.without_attr("tir.is_scheduled")}, None, None))


for _name, _does, _ in _core.gpu_rules():
    setattr(sys.modules[__name__], _name, type(_name, (_Named,), {"__doc__": _does[:1].upper() + _does[1:] + ".", "__module__": __name__}))
