"""The base of rules for GPUs."""
from sator.dlight.base.rule import ScheduleRule


class GPUScheduleRule(ScheduleRule):
    """A rule that takes functions for GPUs alone."""

    def is_target_available(self, target):
        """Whether the target is a GPU."""
        return "gpu" in target.keys
