"""What rules are made of."""
from sator.dlight.base import analysis  # noqa: F401
from sator.dlight.base.analysis import (  # noqa: F401
    BlockInfo, IterInfo, collect_block_iter_vars_used_in_access_region, collect_vars_used_in_prim_expr, detect_dominant_read, is_broadcast_epilogue,
    normalize_prim_func)
from sator.dlight.base.common_schedules import try_inline, try_inline_contiguous_spatial  # noqa: F401
from sator.dlight.base.rule import ApplyDefaultSchedule, ScheduleRule  # noqa: F401
