"""Pipelines: passes under one name."""
from pathlib import Path

from sator import _core, transform
from sator.error import TVMError

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


class _Phases(transform.Pass):
    """The phases of a target, 0 to 5, as `sator passes` lists them."""

    def __init__(self, target, bounds, additional_tirs, debug_dump, last_phase):
        self.info = transform.PassInfo(0, "mlc_llm", does="the phases of the compiler for a target")
        self.target = transform.Target(target) if target is not None else transform.Target.current() or transform.Target("llvm")
        self.bounds, self.additional, self.debug_dump, self.last_phase = dict(bounds or {}), dict(additional_tirs or {}), debug_dump, last_phase

    def transform_module(self, mod, ctx):
        for name, func in self.additional.items():
            mod = _core.module({**mod.functions, name: func}, mod.attrs, mod.global_infos)
        with self.target, transform.PassContext(config=ctx.config, instruments=ctx.instruments, explain=ctx.explain, bounds=self.bounds,
                                                disabled_pass=ctx.disabled_pass):
            for number, _, steps in _core.pipeline(str(self.target)):
                if number > self.last_phase:
                    break
                for name, skipped in steps:
                    if not skipped:
                        mod = getattr(transform, name)()(mod)
                if self.debug_dump:
                    folder = Path(self.debug_dump)
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / f"debug-phase{number}.py").write_text(mod.script(), encoding="utf-8")
        return mod


@register_pipeline("mlc_llm")
def mlc_llm_pipeline(target=None, flashinfer=False, cublas_gemm=False, faster_transformer=False, allreduce_strategy=None,
                     variable_bounds=None, cuda_graph_symbolic_capture_hints=None, additional_tirs=None, ext_mods=None, metadata=None,
                     debug_dump=None, last_phase=5):
    """The compiler's phases 0 to 5 under the names that MLC-LLM's have, for a target.

    variable_bounds   upper bounds of symbolic sizes, {"seq_len": 512}; or {function: {size: bound}}, as MLC-LLM gives them
    debug_dump        a folder for debug-phase0.py ... debug-phase5.py
    last_phase        where to stop: 3 is the program before any schedule
    Errors: libraries of GPUs that are asked for (flashinfer, cublas_gemm, faster_transformer).
    """
    for name, asked in (("flashinfer", flashinfer), ("cublas_gemm", cublas_gemm), ("faster_transformer", faster_transformer)):
        if asked:
            raise TVMError(f"error: {name}=True: a library for GPUs, and programs run on the CPU\n  needs: {name}=False")
    bounds = {}
    for key, value in (variable_bounds or {}).items():
        bounds.update(value if isinstance(value, dict) else {key: value})
    return _Phases(target, bounds, additional_tirs, debug_dump, last_phase)


class _DefaultBuild(transform.Sequential):
    """What relax.build does by itself: as its pipeline it adds nothing."""

    is_of_build = True


@register_pipeline("default_build")
def default_build_pipeline():
    """The steps of relax.build from ops to the builtins of the machine."""
    steps = ("DispatchSortScan LegalizeOps RewriteDataflowReshape ToNonDataflow RemovePurityChecking CallTIRRewrite StaticPlanBlockMemory "
             "LowerAllocTensor KillAfterLastUse VMBuiltinLower VMShapeLower AttachGlobalSymbol")
    return _DefaultBuild([getattr(transform, step)() for step in steps.split()], name="default_build")


@register_pipeline("zero")
def zero_pipeline():
    """Ops to tensor programs, and neighbours of them to one: what can be done without a target."""
    return transform.Sequential([transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FoldConstant(),
                                 transform.FuseOps(), transform.FuseTIR()], name="zero")
