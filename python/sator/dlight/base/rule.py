"""Rules written in Python, and the pass that applies rules."""
from sator import _core, transform
from sator.target import Target


class ScheduleRule:
    """A rule: `apply(func, target, tunable)` gives a schedule of the function, or None where it declines."""

    def apply(self, func, target, tunable):
        """A tir.Schedule of the function, a list of them, or None where the rule declines.

        target    the sator.Target
        tunable   False: nobody searches
        """
        raise NotImplementedError

    @staticmethod
    def from_callable(name):
        """A decorator that makes a rule of a function (func, target, tunable) -> a schedule or None: `@ScheduleRule.from_callable("MyRule")`."""
        def decorator(function):
            class Rule(ScheduleRule):
                def apply(self, func, target, tunable):
                    return function(func, target, tunable)

            Rule.__name__ = Rule.__qualname__ = str(name)
            Rule.__doc__ = function.__doc__
            return Rule()

        return decorator

    def is_target_available(self, target):
        """Whether the rule is for this target."""
        return True


class _Rules(transform.Pass):
    info = transform.PassInfo(0, "ApplyDefaultSchedule", does="schedules every tensor program by the first rule that takes it")

    def __init__(self, rules):
        self._rules = rules

    def transform_module(self, mod, ctx):
        around = Target.current() or Target("llvm")
        functions = mod.functions
        for name, func in functions.items():
            if not isinstance(func, _core.tir.PrimFunc) or func.attrs.get("tir.is_scheduled"):
                continue
            own = func.attrs.get("target")
            target = around if own is None else Target(own)
            for rule in self._rules:
                if hasattr(rule, "schedule"):  # a rule of the compiler's
                    made = rule.schedule(_core.module({name: func}, None, None), target)[name]
                    if made.attrs.get("tir.is_scheduled"):
                        functions[name] = made
                        break
                    continue
                apply = rule.apply if hasattr(rule, "apply") else rule
                sch = apply(func, target, False)
                sch = sch[0] if isinstance(sch, list) and sch else sch
                if sch:
                    made = sch.mod
                    scheduled = made.functions.get("main") or next(iter(made.functions.values()))
                    scheduled = scheduled.without_attr("global_symbol").with_attr("tir.is_scheduled", True)
                    symbol = func.attrs.get("global_symbol")
                    functions[name] = scheduled.with_attr("global_symbol", symbol) if symbol else scheduled
                    break
        return _core.module(functions, mod.attrs, mod.global_infos)


def ApplyDefaultSchedule(*rules):  # noqa: N802
    """The pass that schedules every tensor program that is not scheduled yet: by the first of `rules` that takes it, or by the
    compiler's own rules for the target where none is given."""
    return _Rules(rules) if rules else transform.ApplyDefaultSchedule()
