"""Passes: rewrites of modules. Every pass of the compiler is here by its name, with its options as arguments."""
import contextlib
import difflib

from sator import _core, answers
from sator.target import Target


class PassInfo:
    """What a pass says of itself: the opt_level and names of the passes before it that Sequential goes by, and in words what it does."""

    def __init__(self, opt_level, name, required=None, traceable=False, does=""):
        if isinstance(required, str):
            raise TypeError(f"the pass {name} requires {required!r}, a text\n  needs: a list of names\n  hint:  required=[{required!r}]")
        self.opt_level, self.name, self.required, self.traceable, self.does = opt_level, name, list(required or ()), traceable, does

    def __repr__(self):
        return f"{self.name}: {self.does}"


class PassContext:
    """What passes may know beside the module.

    opt_level     Sequential leaves out passes of a higher one, but not those of required_pass; those of disabled_pass always
    config        options by TVM's names: {"tir.LoopPartition": {"partition_const_loop": True}}; "tir.add_lower_pass": [(phase, pass), ...]
                  puts passes into sator.lower, sator.build and relax.build
    instruments   objects told of each pass: enter_pass_ctx, run_before_pass(mod, info), run_after_pass(mod, info), should_run
    explain       called with (pass, message) where a pass says why it did or did not do something
    bounds        upper bounds of symbolic sizes, {"seq_len": 512}
    """

    _stack = []

    def __init__(self, opt_level=2, required_pass=None, disabled_pass=None, instruments=None, config=None, explain=None,
                 bounds=None):
        self.opt_level = opt_level
        self.required_pass, self.disabled_pass = list(required_pass or ()), list(disabled_pass or ())
        self.instruments = list(instruments or ())
        self.config = _known(_flat(config or {}))
        self.lower_passes = self.config.pop("tir.add_lower_pass", ())  # of sator.lower and the builds: no option of a pass
        self.explain = explain
        self.bounds = dict(bounds or {})

    @staticmethod
    def current():
        """The innermost context; one without options where there is none."""
        return PassContext._stack[-1] if PassContext._stack else PassContext()

    def override_instruments(self, instruments):
        """Other instruments from now on: those so far hear that the context ends, the new ones that it begins."""
        self._leave()
        self.instruments = list(instruments or ())
        self._begin()

    @staticmethod
    def list_configs():
        """The options that `config` may have, by name."""
        return {name: {"type": "object"} for name in sorted({*_core.option_names(), *_WITHOUT_EFFECT})}

    def __enter__(self):
        self._begin()
        PassContext._stack.append(self)
        return self

    def __exit__(self, *_error):
        PassContext._stack.pop()
        self._leave()

    def _begin(self):
        """Tells the instruments that the context begins. One that raises ends those before it, and all are taken out."""
        with contextlib.ExitStack() as begun:
            begun.callback(self.instruments.clear)
            for i in self.instruments:
                _tell(i, "enter_pass_ctx")
                begun.callback(_tell, i, "exit_pass_ctx")
            begun.pop_all()

    def _leave(self):
        """Tells the instruments that the context ends. Where one raises, all are taken out."""
        try:
            for i in self.instruments:
                _tell(i, "exit_pass_ctx")
        except BaseException:
            self.instruments.clear()
            raise

    def _enables(self, info):
        """Whether Sequential runs a pass here, by its name and its opt_level."""
        return info.name not in self.disabled_pass and (info.name in self.required_pass or info.opt_level <= self.opt_level)


def _flat(config):
    """Options of options by dotted names, as passes ask for them."""
    out = {}
    for key, value in config.items():
        if isinstance(value, dict):
            out.update({f"{key}.{k}": v for k, v in value.items()})
        else:
            out[key] = value
    return out


# Options of TVM's that change no result here: they steer its code generators, or turn off what is always done.
_WITHOUT_EFFECT = set("""relax.FuseOps.max_depth relax.backend.use_cuda_graph relax.fallback_device_type relax.transform.apply_legalize_ops
tir.debug_keep_trivial_loop tir.detect_global_barrier tir.disable_assert tir.disable_cse_tir tir.disable_storage_rewrite tir.disable_vectorize
tir.enable_debug tir.enable_equiv_terms_in_cse_tir tir.experimental_dma_bypass_cache tir.instrument_bound_checkers tir.is_entry_func tir.noalias
tir.ptx_ldg32 tir.reset_start_id tir.use_async_copy tir.vtcm_capacity tir.RemoveNoOp.max_simplification_steps cuda.kernels_output_dir ir.enable_si_builder te.keep_schedule_record
testing.immutable_module sator.default_schedule tir.usmp.enable tir.usmp.algorithm tir.usmp.custom_algorithm tir.usmp.use_workspace_io""".split())


def _known(config):
    """The options, all of which some pass has. Errors: ValueError for another name, with the nearest."""
    names = [n for n in config if n not in _WITHOUT_EFFECT and n != "tir.add_lower_pass" and not str(n).startswith("relay.")]
    known = set(_core.option_names()) if names else ()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), [*known, *_WITHOUT_EFFECT], 3, 0.5)
            raise ValueError(f"no pass has the option {name}\n  needs: the name of an option"
                             + (f"\n  hint:  the nearest are: {', '.join(near)}" if near else "\n  hint:  `sator opt --list` lists the passes"))
    return config


def _tell(instrument, event, *args):
    method = getattr(instrument, event, None)
    return method(*args) if method else None


class Pass:
    """A rewrite of a module: `pass_(mod)` is the module after it."""

    info = PassInfo(0, "")

    def __call__(self, mod):
        if isinstance(mod, _core.BaseFunc):  # a function alone is a module of one
            name = (mod.attrs or {}).get("global_symbol") or "main"
            made = self(_core.module({name: mod}, None, None)).functions
            if len(made) != 1:
                raise ValueError(f"{self.info.name} makes {len(made)} functions of one: {', '.join(made)}\n  needs: a module, to hold them\n"
                                 f"  hint:  IRModule({{{name!r}: func}})")
            return next(iter(made.values()))
        ctx = PassContext.current()
        if any(_tell(i, "should_run", mod, self.info) is False for i in ctx.instruments):
            return mod
        for i in ctx.instruments:
            _tell(i, "run_before_pass", mod, self.info)
        mod = self.transform_module(mod, ctx)
        for i in ctx.instruments:
            _tell(i, "run_after_pass", mod, self.info)
        return mod

    def transform_module(self, mod, ctx):
        """The module after the pass, in the context `ctx`."""
        raise NotImplementedError

    def __repr__(self):
        return f"Pass({self.info.name})"


class _Named(Pass):
    """A pass of the compiler's."""

    def __init__(self, info, args, kwargs):
        self.info, self._args, self._kwargs = info, list(args), kwargs

    def transform_module(self, mod, ctx):
        return _core.run_pass(self.info.name, mod, self._args, self._kwargs, ctx.config, Target.current(), ctx.explain, ctx.bounds)


class Sequential(Pass):
    """Passes one after the other: those that the PassContext's opt_level, required_pass and disabled_pass let run."""

    def __init__(self, passes=None, opt_level=0, name="sequential", required=None, traceable=False):
        self.passes = list(passes or ())
        for p in self.passes:
            if not callable(p):
                raise TypeError(f"Sequential: {p!r} is a {type(p).__name__}\n  needs: passes")
        self.info = PassInfo(opt_level, name, required, traceable, "passes one after the other")

    def transform_module(self, mod, ctx):
        """The module after all passes, each behind those that its info requires."""
        for p in self.passes:
            info = getattr(p, "info", None)
            if info is None:
                mod = p(mod)
            elif ctx._enables(info):
                for name in info.required:
                    mod = _of_name(name, info)(mod)
                mod = p(mod)
        return mod


def _of_name(name, by):
    """A pass as its name alone makes it; TVM's names in front ("relax.transform.") are taken. Errors: ValueError for another name."""
    own = str(name).rpartition(".")[2]
    if own not in _TABLE:
        near = difflib.get_close_matches(own, _TABLE, 3)
        raise ValueError(f"the pass {by.name} requires {name}, which no pass is called\n  needs: the name of a pass\n  hint:  "
                         + (f"the nearest are: {', '.join(near)}" if near else "`sator opt --list` lists the passes"))
    return __getattr__(own)()


class _Written(Pass):
    """A pass that is a function of Python's."""

    def __init__(self, info, run):
        if not isinstance(info, PassInfo) or not callable(run):
            raise TypeError(f"{type(self).__name__}: {info!r} is a {type(info).__name__}\n  needs: a function under the decorator of its name")
        self.info, self._run = info, run

    def transform_module(self, mod, ctx):
        out = self._run(mod, ctx)
        if not isinstance(out, _core.ir.IRModule):
            raise TypeError(f"the pass {self.info.name} gave a {type(out).__name__}\n  needs: an IRModule as result")
        return out


class ModulePass(_Written):
    """A pass that module_pass made."""


class FunctionPass(_Written):
    """A pass that relax.transform.function_pass made."""


class PrimFuncPass(_Written):
    """A pass that tir.transform.prim_func_pass made."""


class DataflowBlockPass(_Written):
    """A pass that relax.transform.dataflowblock_pass made."""


def module_pass(pass_func=None, opt_level=0, name=None, required=None, traceable=False):
    """Makes a pass of a function (mod, ctx) -> mod, or of a class with `transform_module(self, mod, ctx)`."""
    return _written(pass_func, name, opt_level, required, "transform_module", lambda run: run, ModulePass)


def _over_functions(kind):
    def pass_of(run):
        def transform(mod, ctx):
            functions = {}
            for name, func in mod.functions.items():
                functions[name] = run(func, mod, ctx) if isinstance(func, kind) else func
            return _core.module(functions, mod.attrs, mod.global_infos)

        return transform

    return pass_of


def function_pass_of(kind, method):
    """The decorator of passes over the functions of one kind."""

    def decorator(pass_func=None, opt_level=0, name=None, required=None, traceable=False):
        return _written(pass_func, name, opt_level, required, method, _over_functions(kind), base)

    base = FunctionPass if kind is _core.relax.Function else PrimFuncPass
    decorator.__name__ = decorator.__qualname__ = "function_pass" if kind is _core.relax.Function else "prim_func_pass"
    decorator.__doc__ = f"Makes a pass of a function (func, mod, ctx) -> func, or of a class with `{method}`."
    return answers.spoken(decorator)


def _over_blocks(run):
    from sator.relax.expr_functor import PyExprMutator

    def transform(mod, ctx):
        class Blocks(PyExprMutator):
            def visit_dataflow_block_(self, block):
                done = run(block, mod, ctx)
                if not isinstance(done, _core.relax.BindingBlock) or not done.is_dataflow:
                    raise TypeError(f"the pass gave a {type(done).__name__}\n  needs: a DataflowBlock as result")
                return done

        blocks = Blocks(mod)
        return _core.module({name: blocks.visit_expr(f) if isinstance(f, _core.relax.Function) else f for name, f in mod.functions.items()},
                            mod.attrs, mod.global_infos)

    return transform


def dataflowblock_pass(pass_func=None, opt_level=0, name=None, required=None, traceable=False):
    """Makes a pass of a function (block, mod, ctx) -> block over dataflow blocks, or of a class with `transform_dataflowblock`."""
    return _written(pass_func, name, opt_level, required, "transform_dataflowblock", _over_blocks, DataflowBlockPass)


def _written(given, name, opt_level, required, method, wrap, base):
    def make(thing):
        info = PassInfo(opt_level, name or thing.__name__, required, does=(thing.__doc__ or "").strip().split("\n")[0])
        if not isinstance(thing, type):
            return base(info, wrap(thing))

        class WrittenPass(base):
            __doc__ = thing.__doc__

            def __init__(self, *args, **kwargs):
                self.inner = thing(*args, **kwargs)
                super().__init__(info, wrap(getattr(self.inner, method)))

            def __getattr__(self, attribute):
                return getattr(self.inner, attribute)

        WrittenPass.__name__ = thing.__name__
        return WrittenPass

    return make if given is None else make(given)


def ApplyPassToFunction(transform, func_name_regex, error_if_no_function_matches_regex=False):  # noqa: N802
    """A pass that changes those functions alone whose whole name matches, and adds what the changed ones need.

    Errors: ValueError where no function matches, if that is asked for.
    """
    import re

    def run(mod, ctx):
        names = [name for name in mod.functions if re.fullmatch(func_name_regex, name)]
        if not names and error_if_no_function_matches_regex:
            raise ValueError(f"no function matches {func_name_regex}\n  needs: one of {', '.join(mod.functions)}")
        after = transform(mod)
        functions = {**after.functions, **mod.functions}
        functions.update({name: after[name] for name in names if name in after.functions})
        return _core.module(functions, after.attrs, after.global_infos)

    return _Written(PassInfo(0, "ApplyPassToFunction", does=transform.info.does), run)


def PrintIR(header="", show_meta_data=False):  # noqa: N802
    """A pass that prints the module, with its constants where `show_meta_data`, and leaves it as it is."""
    def run(mod, ctx):
        print(header + mod.script(show_meta=show_meta_data))
        return mod

    return _Written(PassInfo(0, "PrintIR", does="prints the module"), run)


_TABLE = {name: (does, tuple(options)) for name, does, options in _core.passes()}
# TVM's arguments that steer what our passes always do.
_WITHOUT_MEANING = {"CanonicalizeBindings": {}}


# Passes that take functions or patterns of Python's, or arguments that the compiler does not know: their makers give None where there are none.
_WITH_PYTHON = {"FuseOpsByPattern": ("byoc", "fuse_ops_by_pattern"), "RunCodegen": ("byoc", "run_codegen"), "LegalizeOps": ("with_functions", "legalize_ops"),
                "FuseOps": ("with_functions", "fuse_ops"), "CombineParallelMatmul": ("with_functions", "combine_parallel_matmul"),
                "UpdateParamStructInfo": ("with_functions", "update_param_struct_info")}


# Passes that bind names: their dictionaries may name a variable by itself.
_BINDING = ("BindParams", "BindSymbolicVars")


def _pairs(value):
    return [[k, v] for k, v in value.items()] if isinstance(value, dict) else value


class _Own:
    """The default of an option: the compiler's own value."""

    def __repr__(self):
        return "..."


def _signature(options, maker):
    """What a pass is made of."""
    import inspect

    if maker:
        return inspect.Signature(list(inspect.signature(maker).parameters.values())[1:])  # without its PassInfo
    return inspect.Signature([inspect.Parameter(o, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=_Own()) for o in options])


def _factory(name):
    does, options = _TABLE[name]
    maker = None
    if name in _WITH_PYTHON:
        import importlib

        module, maker = _WITH_PYTHON[name]
        maker = getattr(importlib.import_module("sator.relax." + module), maker)
        maker.__name__ = maker.__qualname__ = name  # what Python's own errors call it

    def make(*args, **kwargs):
        if maker:
            make.__signature__.bind(*args, **kwargs)  # its TypeError counts what the user gave
            own = maker(PassInfo(0, name, does=does), *args, **kwargs)
            if own is not None:
                return own
        if name in _BINDING:
            args, kwargs = [_pairs(a) for a in args], {k: _pairs(v) for k, v in kwargs.items()}
        for key, allowed in _WITHOUT_MEANING.get(name, {}).items():
            if key in kwargs and kwargs[key] in allowed:
                del kwargs[key]
        return _Named(PassInfo(0, name, does=does), args, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{does[0].upper()}{does[1:]}."
    make.__signature__ = _signature(options, maker)
    return answers.spoken(make)


def __getattr__(name):
    if name in _TABLE:
        value = _factory(name)
        globals()[name] = value
        return value
    if name.startswith("__"):
        raise AttributeError(name)
    near = difflib.get_close_matches(name, _TABLE, 3)
    raise AttributeError(f"there is no pass {name}" + (f"; the nearest are {', '.join(near)}" if near else ""))


def __dir__():
    return sorted([*globals(), *_TABLE])
