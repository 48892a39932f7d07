"""Modules to machine code."""
import shutil
import tempfile
import weakref
from pathlib import Path

from sator import _core, paths
from sator.error import TVMError
from sator.packed import with_kernel_calls
from sator.runtime import vm_text
from sator.runtime.vm import Module, copy_library
from sator.target import Target
from sator.te_schedule import Schedule, module_of

__path__ = []  # TVM's modules below are found by sator.paths


class _Library:
    """The compiled library as a file, removed with the last who uses it."""

    def __init__(self):
        self._folder = tempfile.mkdtemp(prefix="sator-")
        self.file = Path(self._folder) / "program.so"
        weakref.finalize(self, shutil.rmtree, self._folder, True)


def _compile(mod, target, keeps_schedules, bounds, dump="", lower_passes=None):
    if not isinstance(mod, (_core.ir.IRModule, _core.BaseFunc)):
        raise TypeError(f"build: {mod!r} is a {type(mod).__name__}\n  needs: an IRModule or a function")
    if not isinstance(mod, _core.ir.IRModule):
        mod = _core.module({mod.attrs.get("global_symbol", "main"): mod}, None, None)
    mod = with_kernel_calls(mod)
    library = _Library()
    target = Target(target) if target is not None else Target.current() or Target("llvm")
    return _core.build(mod, str(library.file), str(target), keeps_schedules, dict(bounds or {}), dump, lower_passes or {}), library


# TVM's phases of tvm.lower, by pass.
_LOWERING = ("LowerInitBlock", "PlanAndUpdateBufferAllocationLocation", "ConvertBlocksToOpaque", "LiftThreadBinding", "CompactBufferAllocation",
             "LowerMatchBuffer", "LowerOpaqueBlock", "FlattenBuffer", "NarrowDataType", "LoopPartition", "VectorizeLoop", "InjectVirtualThread",
             "InjectDoubleBuffer", "StorageRewrite", "UnrollLoop", "Simplify", "RemoveNoOp", "CommonSubexprElimTIR")


# Behind which of them the phases of the option "tir.add_lower_pass" follow; 0 is before all.
_PHASES = {"NarrowDataType": 1, "UnrollLoop": 2, "RemoveNoOp": 3}


def _user_passes():
    """{phase: passes} of the option "tir.add_lower_pass", [(phase, pass), ...]. Errors: ValueError for another form."""
    from sator import transform

    out = {}
    for pair in transform.PassContext.current().lower_passes:
        phase, step = pair if isinstance(pair, (list, tuple)) and len(pair) == 2 else (None, None)
        if not isinstance(phase, int) or phase < 0 or not isinstance(step, transform.Pass):
            raise ValueError(f"tir.add_lower_pass has {pair!r}\n  needs: (phase, pass), a phase from 0 on and a pass of sator.tir.transform or prim_func_pass")
        out.setdefault(min(phase, 3), []).append(step)
    return out


def _with_binds(mod, args, binds):
    """The module of a schedule of te with these buffers for some of its arguments, {tensor: buffer}."""
    if not binds:
        return mod
    ((name, func),) = mod.functions.items()
    params = dict(zip(args or (), func.params))
    for tensor in binds:
        if tensor not in params:
            raise ValueError(f"binds has {tensor!r}\n  needs: tensors among args")
        func = _core.with_buffer(func, params[tensor], binds[tensor])
    return _core.module({name: func}, mod.attrs, mod.global_infos)


def schedule_to_module(sch, args=None, name="main", binds=None):
    """The module of a schedule of te with its arguments, before any lowering.

    binds   as of lower
    """
    mod = _with_binds(module_of(sch, args, name), args, binds)
    (func,) = mod.functions.values()
    return _core.module({name: func.with_attrs({"global_symbol": name, "tir.noalias": True})}, None, None)


def __getattr__(name):
    deep = paths.submodule("sator.driver", name)
    if deep is not None:
        return deep
    raise paths.missing("sator.driver", name, globals())


def lower(inp, args=None, name="main", binds=None, simple_mode=False):
    """The module with blocks lowered to loops over flat buffers; sator.build does this by itself.

    inp           an IRModule of tensor programs, one PrimFunc, which gets the name `name`, or a schedule of te with its arguments in `args`
    binds         {tensor: buffer} of a schedule's arguments that have a buffer of the user's, with its strides and offset
    simple_mode   of a schedule of te: its program as it is
    """
    from sator import transform

    if isinstance(inp, _core.tir.PrimFunc):
        inp = inp.with_attrs({"global_symbol": name, "tir.noalias": True})
    mod = _with_binds(module_of(inp, args, name), args, binds)
    own = _user_passes()
    if simple_mode:
        return transform.Sequential(own.get(0, []))(mod)
    steps = [*own.get(0, [])]
    for step in _LOWERING:
        steps.append(getattr(transform, step)())
        steps += own.get(_PHASES.get(step), [])
    return transform.Sequential(steps)(mod)


def build(inputs, args=None, target=None, target_host=None, runtime=None, name="default_function", binds=None, bounds=None):
    """Tensor programs to machine code for this machine, with the loops as they are: no rule schedules them.

    inputs   an IRModule of tensor programs, one PrimFunc, or a schedule of te with its arguments in `args`
    binds    as of sator.lower
    target   "llvm" where it is None and no Target is around; beside a module it may stand in the place of args
    name     of the function of a PrimFunc or a schedule; by default its own, and "main" where it has none
    A program that returns a number (T.ret) gives it to its caller. T.call_packed as a statement calls a Python function (register_func) of the
    process that runs it with tensors in the program's memory, integers and constants.
    Errors: those of the compiler; a target for which nothing is built.
    """
    from sator import transform

    mod = inputs
    if not isinstance(mod, Schedule) and args is not None:
        if target is not None or not isinstance(args, (str, dict, Target)):
            raise TypeError(f"build: args = {args!r} beside a {type(mod).__name__}\n  needs: args only with a schedule of te\n"
                            "  hint:  build(mod, target=\"llvm\")")
        args, target = None, args
    if name == "default_function":
        name = "main"
    elif isinstance(mod, _core.tir.PrimFunc):
        mod = mod.with_attr("global_symbol", name)
    module = _with_binds(module_of(mod, args, name), args, binds)
    if own := _user_passes():
        module = lower(module) if set(own) != {0} else transform.Sequential(own[0])(module)
    program, library = _compile(transform.ReturnByStore()(transform.InlinePrimFuncs()(module)), target, True, bounds)
    return Module(program, library)


class Executable:
    """A compiled program with graphs; VirtualMachine runs it. From a module that load_module opened: Executable(module)."""

    def __init__(self, mod, library=None):
        if library is None:
            if not hasattr(mod, "_program"):
                raise TypeError(f"Executable: {mod!r} is a {type(mod).__name__}\n  needs: what relax.build or load_module gave")
            mod, library = mod._program, mod._path
        self._program, self._path = mod, library
        self.mod = self

    def __getitem__(self, name):
        """A function of the program: executable["main"](x). "vm_load_executable" is TVM's name of what gives the executable itself."""
        return (lambda: self) if name == "vm_load_executable" else self.jit()[name]

    def jit(self, fcompile=None, addons=None, **_options):
        """The program as a module, ready to run: VirtualMachine takes it. It is compiled already: the arguments have no effect."""
        return Module(self._program, self._path)

    def as_text(self):
        """The bytecode as text."""
        return self._program.as_text()

    def as_python(self):
        """The bytecode as calls of TVM's builder of instructions."""
        return vm_text.as_python(self.as_text())

    def stats(self):
        """The program's constants and functions as text."""
        return vm_text.stats(self.as_text())

    def signatures(self):
        """What each function takes and gives, as text."""
        return self._program.signatures()

    def export_library(self, file_name, fcompile=None, workspace_dir=None, **_options):
        """Copies the compiled library; `sator run` and sator.runtime.load_module open it. Errors: FileNotFoundError for a folder that is not there."""
        copy_library(self._path.file, file_name)


def relax_build(mod, target=None, params=None, pipeline="default_build", exec_mode="bytecode", bounds=None, *, system_lib=None):
    """A module of graphs and tensor programs to machine code; default rules schedule what nobody did.

    params     of TVM, for libraries of functions; parameters stay parameters: relax.transform.BindParams binds them
    bounds     upper bounds of symbolic sizes, {"n": 512}
    system_lib  of TVM, for programs that are linked into others: libraries are files here
    pipeline   a pass that runs first; its name means the compiler's own steps, which run in any case
    Passes of the option "tir.add_lower_pass" run while the scheduled tensor programs are lowered, once for each level of the target: those of
    phase 0 before it, of 1 once buffers are flat, of 2 once loops are unrolled, of 3 and above behind all.
    Errors: as of sator.build; those of the passes.
    """
    from sator import transform

    dump = ""
    if hasattr(pipeline, "debug_dump"):  # the compiler's own phases, which run in any case
        bounds, dump = {**pipeline.bounds, **(bounds or {})}, pipeline.debug_dump or ""
        target = pipeline.target if target is None else target
    elif callable(pipeline) and not getattr(pipeline, "is_of_build", False):
        mod = pipeline(mod)
    own = {phase: transform.Sequential(steps) for phase, steps in _user_passes().items()}
    program, library = _compile(mod, target, False, bounds, str(dump), own)
    return Executable(program, library)
