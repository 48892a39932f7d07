"""Default schedules: the compiler's own, and rules written in Python."""
from sator.dlight import base, gpu  # noqa: F401
from sator.dlight.base import ApplyDefaultSchedule, ScheduleRule  # noqa: F401
from sator.dlight.base.analysis import BlockInfo, IterInfo, normalize_prim_func  # noqa: F401
from sator.dlight.base.common_schedules import try_inline, try_inline_contiguous_spatial  # noqa: F401
from sator.dlight.gpu import GPUScheduleRule  # noqa: F401


def __getattr__(name):
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
