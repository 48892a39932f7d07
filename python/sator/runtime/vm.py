"""Compiled programs at work."""
import json
import os
import re
import statistics
import tarfile
import weakref
from enum import IntEnum

from sator import _core, words
from sator.error import TVMError
from sator.extend import extends
from sator.runtime.functions import PackedFunc
from sator.runtime.shape import ShapeTuple
from sator.whole_file import write_whole


def copy_library(library, path):
    """Puts a copy there as a whole: a library of that path that somebody has loaded goes on as it was.

    path    one that ends in .tar gets an archive with the library, lib0.so, in it
    Errors: ValueError for a path that ends in .o, .a or .wasm.
    """
    import shutil

    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"export_library: there is no folder {folder}\n  needs: a folder that is there\n  hint:  os.makedirs({folder!r})")
    suffix = os.path.splitext(path)[1]
    if suffix in (".o", ".a", ".wasm"):
        raise ValueError(f"export_library: {path} asks for a file of the kind {suffix}\n  needs: a path that ends in .so or .tar")
    write_whole(path, lambda whole: _archive(library, whole) if suffix == ".tar" else shutil.copyfile(library, whole))


def _archive(library, path):
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("lib0.so")
        member.size, member.mode = os.path.getsize(library), 0o755
        with open(library, "rb") as content:
            archive.addfile(member, content)


def _from_archive(path):
    """The library of an archive that copy_library wrote, as a file of its own."""
    import shutil

    from sator.driver import _Library

    with open(path, "rb") as opened, tarfile.open(fileobj=opened) as archive:
        _core.need_private_file(opened.fileno(), f"model library {path}")
        members = [m for m in archive if m.isfile() and m.name.endswith(".so")]
        if len(members) != 1:
            raise TVMError(f"error: {path} has {len(members)} libraries in it: {', '.join(archive.getnames()) or 'no file'}\n"
                           "  needs: an archive that export_library(\"NAME.tar\") wrote")
        library = _Library()
        with archive.extractfile(members[0]) as content, open(library.file, "wb") as file:
            shutil.copyfileobj(content, file)
    return library


class VMInstrumentReturnKind(IntEnum):
    """What a hook of `VirtualMachine.set_instrument` answers before a call; the values are TVM's."""

    NO_OP = 0
    SKIP_RUN = 1


class BenchmarkResult:
    """Durations of calls in seconds: `results`, one per repetition, and what they come to."""

    def __init__(self, results):
        self.results = tuple(results)
        if not self.results or not all(isinstance(r, (int, float)) for r in self.results):
            raise ValueError(f"BenchmarkResult: results = {results!r}\n  needs: durations in seconds, one or more")

    mean = property(lambda self: statistics.fmean(self.results), doc="Their mean.")
    median = property(lambda self: statistics.median(self.results), doc="Their median.")
    min = property(lambda self: min(self.results), doc="The least one.")
    max = property(lambda self: max(self.results), doc="The greatest one.")
    std = property(lambda self: statistics.pstdev(self.results), doc="Their standard deviation, as of a whole population.")

    def __repr__(self):
        return "BenchmarkResult(" + ", ".join(f"{n}={getattr(self, n) * 1e6:.4g} us" for n in ("mean", "median", "min", "max")) + ")"


class Report:
    """What a profiled call spent where; its text is the table.

    calls      one dictionary per kernel call, as the table's columns
    total_us   from the begin to the end of the call, in microseconds
    cost       what the call costs on the chip that was named, or None: {"latency_s", "macs", "kernels": [...], ...}
    """

    def __init__(self, profile, costs=()):
        if not isinstance(profile, _core.Profile):
            raise TypeError(f"Report: {profile!r} is a {type(profile).__name__}\n  needs: what a machine measured\n  hint:  vm.profile(\"main\", ...)")
        self._profile, self._cost_tables = profile, list(costs[:1])
        self.total_us = profile.total_us
        self.cost = json.loads(costs[1]) if costs else None

    @property
    def calls(self):
        """One dictionary per kernel call: the table's columns by name."""
        return [{column: next(iter(cell.values())) for column, cell in row.items()} for row in json.loads(self.json())["calls"]]

    def table(self, sort=True, aggregate=True, col_sums=True):
        """The tables: of this machine, and of the chip where one was named.

        sort        the longest calls first; else in their order
        aggregate   whether calls of one function with equal shapes are one row
        col_sums    whether there is a row of sums
        """
        return "\n".join([self._profile.table(bool(sort), bool(aggregate), bool(col_sums)), *self._cost_tables])

    def csv(self):
        """The calls as lines of comma-separated values under a line of the columns' names; texts are in quotes."""
        rows = json.loads(self.json())["calls"]
        columns = sorted({column for row in rows for column in row})
        cells = [[_csv_cell(next(iter(row[c].values()))) if c in row else "" for c in columns] for row in rows]
        return "".join(",".join(line) + "\n" for line in [columns, *cells])

    def json(self):
        """The profile as TVM's profiler writes it."""
        return self._profile.json()

    def __str__(self):
        return self.table()

    __repr__ = __str__

    def __contains__(self, words):
        return words in self.table()


def _csv_cell(value):
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else f"{value:.6g}" if isinstance(value, float) else str(value)


class _Shape:
    """A shape that is no tuple: the machine takes those for tuples of numbers."""

    def __init__(self, extents):
        self._shape_tuple = list(extents)


def _shape_parameters(signature):
    """The positions of parameters that are shapes: 0 and 2 of `main(s: shape[a, 4], t[0]: float32[2], u: shape[?, ?])`."""
    kinds = {}
    for name, field, kind in re.findall(r"[(,] ?([\w.]+)((?:\[\d+\])*): (\w+)", signature.partition(" -> ")[0]):
        kinds.setdefault(name, "tuple" if field else kind)
    return {i for i, kind in enumerate(kinds.values()) if kind == "shape"}


def _as_tuples(value):
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _kept(value):
    """An argument that stays as it is now: NumPy's arrays as tensors of their own."""
    import numpy

    from sator import nd

    if isinstance(value, numpy.ndarray):
        return nd.array(value)
    return [_kept(v) for v in value] if type(value) in (list, tuple) and not _is_extents(value) else value


def _is_extents(value):
    return isinstance(value, (list, tuple)) and all(hasattr(v, "__index__") and not isinstance(v, bool) for v in value)


class Function(PackedFunc):
    """A function of a compiled program: called with tensors and numbers."""

    def __init__(self, machine, name, returned=None, signatures=dict):
        self._machine, self.name, self._returned, self._machine_signatures = machine, name, returned, signatures

    def __call__(self, *args):
        if any(_is_extents(a) for a in args):
            args = self._with_shapes(args)
        if self._returned is None:
            return self._machine.call(self.name, *args)
        from sator import nd

        result = nd.empty((1,), self._returned)  # the last parameter takes the number
        self._machine.call(self.name, *args, result)
        return result.numpy()[0].item()

    def _with_shapes(self, args):
        """Lists and tuples of integers as shapes, where the parameter is one or the argument is a ShapeTuple."""
        try:
            shapes = _shape_parameters(self._machine_signatures()[self.name])
        except (TVMError, KeyError):  # a function whose parameters are objects has none
            shapes = ()
        return [_Shape(int(v) for v in a) if isinstance(a, ShapeTuple) or i in shapes and _is_extents(a) else a for i, a in enumerate(args)]

    def _closure(self):
        return self._machine.closure_of(self.name)

    def __repr__(self):
        return f"Function({self.name})"


Closure = _core.Closure


@extends(Closure)
class _Closure:
    def __call__(self, *args):
        """Runs it on the machine that made it, as vm.invoke_closure does. Errors: as of a function of that machine."""
        return _invoke(self._machine, self, args)

    def __repr__(self):
        return f"Closure({self.name})"


def _invoke(machine, closure, args):
    return machine.invoke(closure, *[_Shape(int(v) for v in a) if isinstance(a, ShapeTuple) else a for a in args])


class _Runs:
    def _open(self, program, num_threads=0):
        self._program = program
        self._machine = words.make(_core.Machine, program, num_threads)
        self._returned = program.returned()

    def _function(self, name):
        if not self._machine.has(name):
            known = ", ".join(self._program.signatures()) or "none"
            raise TVMError(f"error: the program has no function {name}\n  needs: one of {known}")
        return Function(self._machine, name, self._returned.get(name), self._program.signatures)

    def _time_evaluator(self, name, number, repeat, min_repeat_ms):
        name = self._function(name).name
        for what, value, least in (("number", number, 1), ("repeat", repeat, 1), ("min_repeat_ms", min_repeat_ms, 0)):
            if not isinstance(value, (int, float)) or value < least:
                raise ValueError(f"time_evaluator: {what} = {value!r}\n  needs: at least {least}")
        return lambda *args: BenchmarkResult(self._machine.time(name, number, repeat, float(min_repeat_ms), *args))


class Module(_Runs):
    """Tensor programs compiled to machine code: `module["main"](a, b, c)`; results are among the arguments."""

    def __init__(self, program, path):
        if not isinstance(program, _core.Program):
            raise TypeError(f"Module: {program!r} is a {type(program).__name__}\n  needs: a compiled program\n"
                            "  hint:  sator.build(mod) and sator.runtime.load_module(path) give modules")
        self._path = path
        self._open(program)

    def __getitem__(self, name):
        """A function of a name; "__tvm_main__" is that of entry_name. Errors: TVMError, there is none; those there are are listed."""
        return self._function(name)

    def _function(self, name):
        return super()._function(self.entry_name if name == "__tvm_main__" else name)

    def get_function(self, name, query_imports=False):
        """As module[name]."""
        return self._function(name)

    @property
    def entry_name(self):
        """The function that a call of the module runs: the one with the attribute "tir.is_entry_func", else the only one.

        Errors: TVMError, there are several.
        """
        names = list(self._program.signatures())
        found = self._program.marked_entries() or names
        if len(found) <= 1:
            return found[0] if found else "main"  # what nobody named is called main
        how_many = f"{len(names)} functions, and none" if found is names else f"{len(found)} functions marked as its entry, and not one"
        example = "main" if "main" in names else names[0]
        raise TVMError(f"error: the module has {how_many} of them is what a call of the module runs\n  needs: the name of one of {', '.join(names)}\n"
                       f"  hint:  module[\"{example}\"](...), or func.with_attr(\"tir.is_entry_func\", True) before the build")

    def __call__(self, *args):
        return self._function(self.entry_name)(*args)

    type_key, format, imported_modules, is_runnable, is_dso_exportable = "library", "so", (), True, True

    @property
    def entry_func(self):
        """The function of entry_name."""
        return self._function(self.entry_name)

    def implements_function(self, name, query_imports=False):
        """Whether it has a function of that name."""
        return self._machine.has(name)

    def get_source(self, fmt=""):
        """Machine code has no source. Errors: TVMError, always."""
        raise TVMError("error: get_source: the library holds machine code alone\n  needs: a module of source code\n"
                       "  hint:  export_library(path), then `objdump -d path`; mod.script() prints the program before it is compiled")

    def import_module(self, module):
        """Libraries are not put into one another. Errors: TVMError, always."""
        raise TVMError("error: import_module: a library is one file\n  needs: the functions in one IRModule, which sator.build compiles\n"
                       "  hint:  ir.IRModule({**a.functions, **b.functions})")

    def signatures(self):
        """What each function takes and gives, as text."""
        return self._program.signatures()

    def time_evaluator(self, func_name, dev=None, number=10, repeat=1, min_repeat_ms=0, **_options):
        """A function that measures calls: `time_evaluator("main", dev)(a, b, c).mean` in seconds. One call before warms up."""
        return self._time_evaluator(func_name, number, repeat, min_repeat_ms)

    def export_library(self, file_name, fcompile=None, addons=None, workspace_dir=None, **_options):
        """Copies the compiled library; `sator run` and sator.runtime.load_module open it. Errors: FileNotFoundError for a folder that is not there."""
        copy_library(self._path.file, file_name)

    def save(self, file_name, fmt=""):
        """As export_library. Errors: ValueError for another format than ""."""
        if fmt not in ("", "so"):
            raise ValueError(f"save: fmt = {fmt!r}\n  needs: \"\" or \"so\", a library")
        copy_library(self._path.file, file_name)


class _File:
    def __init__(self, path):
        self.file = path


def load_module(path, fmt=""):
    """A library that export_library or `sator build` wrote, as a file or in a .tar; VirtualMachine takes it where it has graphs.

    Errors: no such file; another kind of file; a library of another version; one that another user can change.
    """
    library = _from_archive(path) if os.path.isfile(path) and tarfile.is_tarfile(path) else _File(path)
    try:
        program = _core.open_program(str(library.file))
    except TVMError as error:
        if "undefined symbol: sator_call_python" not in str(error):
            raise
        from sator.packed import export

        export()  # a kernel calls functions by name
        program = _core.open_program(str(library.file))
    return Module(program, library)


class VirtualMachine(_Runs):
    """Runs a program's graph functions: `vm["main"](x)`.

    Programs that a machine runs know the functions that register_func had before the machine was made.
    """

    def __init__(self, rt_mod, device=None, memory_cfg=None, profile=False, num_threads=0):
        from sator.nd import _need_cpu

        if not hasattr(rt_mod, "_program"):
            raise TypeError(f"VirtualMachine: {rt_mod!r} is a {type(rt_mod).__name__}\n  needs: what relax.build or load_module gave")
        _need_cpu(device[0] if isinstance(device, (list, tuple)) else device)
        self._inputs = {}
        self._outputs = {}
        self._saved = {}
        self._library = rt_mod
        self._open(rt_mod._program, num_threads)

    def __getitem__(self, name):
        return self._saved[name] if name in self._saved else self._function(name)

    def save_function(self, func_name, saved_name, *args, include_return=True, **kwargs):
        """Keeps a call: `vm[saved_name]()` makes it, and time_evaluator(saved_name) measures it. Arguments as of set_input.

        Without `include_return` it gives nothing.
        """
        called, args = self._function(func_name), self._arguments("save_function", func_name, args, kwargs)

        def saved():
            result = called(*args)
            return result if include_return else None

        saved.of = func_name, args
        self._saved[saved_name] = saved

    @property
    def module(self):
        """The machine: `vm.module["main"]` is `vm["main"]`."""
        return self

    def set_input(self, func_name, *args, **kwargs):
        """Keeps arguments for invoke_stateful, by position or by the names of the function's parameters.

        Those by name take their places, those by position fill the others in order. NumPy's arrays are copied, at any level of lists.
        Errors: TypeError for a name that no parameter has, for parameters that are left, and for arguments beyond them.
        """
        self._function(func_name)
        self._inputs[func_name] = self._arguments("set_input", func_name, args, kwargs)

    def _arguments(self, method, func_name, args, kwargs):
        names = self._machine.parameters(func_name)
        if not kwargs and len(args) != len(names):
            raise TypeError(f"{method}({func_name!r}): {len(args)} arguments\n  needs: {len(names)}: {', '.join(names)}")
        if kwargs:
            unknown = [name for name in kwargs if name not in names]
            if unknown or len(args) + len(kwargs) != len(names):
                what = f"no parameter is called {', '.join(unknown)}" if unknown else f"{len(args)} arguments by position and {len(kwargs)} by name"
                raise TypeError(f"{method}({func_name!r}): {what}\n  needs: one argument for each of {', '.join(names) or 'no parameters'}")
            others = iter(args)
            args = [kwargs[name] if name in kwargs else next(others) for name in names]
        return [_kept(a) for a in args]

    def invoke_stateful(self, func_name):
        """Calls a function on the arguments of set_input; get_outputs has the result. Errors: ValueError before set_input."""
        if func_name not in self._inputs:
            raise ValueError(f"invoke_stateful({func_name!r}) without arguments\n  needs: vm.set_input({func_name!r}, ...) before")
        self._outputs[func_name] = self._function(func_name)(*self._inputs[func_name])

    def get_outputs(self, func_name):
        """What the last invoke_stateful of a function gave; of a tuple its fields, as a tuple. Errors: ValueError before it."""
        if func_name not in self._outputs:
            raise ValueError(f"get_outputs({func_name!r}) before a call\n  needs: vm.invoke_stateful({func_name!r})")
        return _as_tuples(self._outputs[func_name])

    def invoke_closure(self, closure, *args):
        """Calls a function that a function of this machine returned, `vm["main"](x)`, or one of the program, vm["main"].

        The values that it captured follow the arguments.
        Errors: TypeError for what is no function; TVMError for one of another machine, and for another number of arguments.
        """
        return _invoke(self._machine, closure, args)

    def set_instrument(self, instrument):
        """Has a function called before and after each call that the program's graph functions make: of kernels, builtins, functions.

            instrument(func, name, before_run, ret_value, *args)

        func        what is called, as a function; None once the VirtualMachine is gone
        name        its name: "fused_matmul_relu", "vm.builtin.alloc_tensor"
        before_run  True before the call, False after it
        ret_value   what the call gave; None before it, and of kernels, which write to their last arguments
        args        the call's arguments; the tensors share the program's memory
        Before a call it may return VMInstrumentReturnKind.SKIP_RUN, which leaves the call out; then it is not called after it.
        None stops it. Errors: TypeError for what cannot be called. What the function raises ends the run and arrives as it is.
        """
        if instrument is None:
            self._machine.set_call_hook(None)
            return
        if not callable(instrument):
            raise TypeError(f"set_instrument: {instrument!r} is a {type(instrument).__name__}\n  needs: instrument(func, name, before_run, ret_value, *args)")
        owner = weakref.ref(self)  # the machine keeps the hook, so the hook does not keep the machine

        def hook(name, is_before, result, *args):
            vm = owner()
            called = vm and Function(vm._machine, name, None, vm._program.signatures)
            answer = instrument(called, name, is_before, result, *args)
            return not (is_before and answer == VMInstrumentReturnKind.SKIP_RUN)

        self._machine.set_call_hook(hook)

    def time_evaluator(self, func_name, dev=None, number=10, repeat=1, min_repeat_ms=0, **_options):
        """As of Module; of what save_function kept, it is called without arguments."""
        if func_name in self._saved:
            func_name, kept = self._saved[func_name].of
            timed = self._time_evaluator(func_name, number, repeat, min_repeat_ms)
            return lambda: timed(*kept)
        return self._time_evaluator(func_name, number, repeat, min_repeat_ms)

    def profile(self, func_name, *args, chip=None, rounds=1):
        """What a call spends where: a Report, whose text is a table. Name, Duration (us), Percent, Device, Count, Argument Shapes.

        chip     a described chip, its name or file: the report's `cost` is what the call costs there, kernel by kernel
        rounds   calls of which the medians are taken, after one that warms up
        Errors: as of a call; no such chip.
        """
        self._function(func_name)
        if chip is not None:
            import sator.commands  # noqa: F401  (says where the shipped chips lie)
        return Report(*self._machine.profile(func_name, None if chip is None else str(chip), rounds, *args))
