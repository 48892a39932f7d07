"""Schedule search: there is none yet. Every name of this module raises an error that says what there is."""
from sator.error import TVMError


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise TVMError(f"error: meta_schedule.{name}: schedules are not searched\n  needs: a schedule by a rule or by hand\n"
                   "  hint:  sator.dlight.ApplyDefaultSchedule() schedules by the compiler's rules, sator.tir.Schedule by hand")
