"""What tests of schedules call."""
from sator.ir import assert_structural_equal
from sator.tir.schedule.schedule import Schedule, Trace


def assert_structural_equal_ignore_global_symbol(func1, func2, *args, **kwargs):
    """assert_structural_equal of two programs whatever they are called."""
    assert_structural_equal(func1.with_attr("global_symbol", "main"), func2.with_attr("global_symbol", "main"), *args, **kwargs)


def verify_trace_roundtrip(sch, mod, *, debug_mask="all", text_format=("python", "json")):
    """Takes a schedule's steps from their text on `mod` again, and gives that schedule.

    text_format   "python", "json", or both
    Errors: ValueError where the program or the steps are others then, and for another format; those of the steps.
    """
    formats = [text_format] if isinstance(text_format, str) else list(text_format)
    again = None
    for form in formats:
        again = Schedule(mod, debug_mask=debug_mask)
        if form == "json":
            Trace.apply_json_to_schedule(sch.trace.as_json(), again)
        elif form == "python":
            from sator import tir
            from sator.script import tir as T

            exec("\n".join(sch.trace.as_python()), {"T": T, **vars(tir)}, {"sch": again})  # noqa: S102  (the trace's own text)
        else:
            raise ValueError(f"verify_trace_roundtrip: text_format = {form!r}\n  needs: \"python\" or \"json\"")
        assert_structural_equal(again.mod, sch.mod)
        if again.trace.as_python() != sch.trace.as_python():
            raise ValueError(f"the steps by {form} are others\n  needs: those of the schedule\n" + "\n".join(again.trace.as_python()))
    return again
