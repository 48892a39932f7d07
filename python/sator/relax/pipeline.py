"""Pipelines: passes under one name."""
from sator import transform

_PIPELINES = {}


def register_pipeline(name):
    """Makes a pipeline of a function that gives a pass: `relax.get_pipeline(name)` calls it. Errors: the name is taken."""
    if name in _PIPELINES:
        raise ValueError(f"there is already a pipeline {name}")

    def register(make):
        _PIPELINES[name] = make
        return make

    return register


def get_pipeline(name="zero", *args, **kwargs):
    """The pass of a pipeline. Errors: there is none of that name; those that there are are listed."""
    if name not in _PIPELINES:
        raise ValueError(f"no pipeline is called {name}\n  needs: one of {', '.join(sorted(_PIPELINES))}\n"
                         "  hint:  relax.register_pipeline(name) registers one")
    return _PIPELINES[name](*args, **kwargs)


@register_pipeline("zero")
def zero_pipeline():
    """Ops to tensor programs, and neighbours of them to one: what can be done without a target."""
    return transform.Sequential([transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FoldConstant(),
                                 transform.FuseOps(), transform.FuseTIR()], name="zero")
