"""Passes that ask functions of the user's, or that take an argument which the compiler's own do not have."""
import warnings

from sator import _core, transform
from sator.error import TVMError
from sator.relax.expr_functor import PyExprMutator


class _LegalizeOps(transform._Named):
    def __init__(self, info, functions, warns, form):
        super().__init__(info, [form], {})
        self._functions, self._warns = functions, warns

    def transform_module(self, mod, ctx):
        if not self._functions and not self._warns:
            return super().transform_module(mod, ctx)
        config = {**ctx.config, **({"LegalizeOps.form": self._args[0]} if self._args[0] is not None else {})}
        return _core.legalize_ops(mod, self._functions, _warn if self._warns else None, config, ctx.explain)


def _warn(op):
    warnings.warn(f"LegalizeOps: nothing says what takes the place of {op}", stacklevel=2)


def legalize_ops(info, customize_legalize_map=None, enable_warning=False, form=None):
    """LegalizeOps: ops become calls of tensor functions.

    customize_legalize_map   {"relax.nn.relu": function(builder, call) -> expression}: in front of the compiler's own way. It is asked where the
                             extents of all arguments are known; what the builder emits stands before the call; the call itself means: it stays
    enable_warning           warns of each op that nothing says how to replace
    Errors: TVMError for a name that no op has.
    """
    functions = {}
    for op, function in dict(customize_legalize_map or {}).items():
        name = str(op).removeprefix("relax.")
        _core.op_ref(name)
        if not callable(function):
            raise TVMError(f"error: LegalizeOps: {op} is replaced by {function!r}\n  needs: a function (builder, call) -> expression")
        functions[name] = function
    return _LegalizeOps(info, functions, enable_warning, form)


class _FuseOps(transform._Named):
    """Groups calls, unless the level of fusion is 0."""

    def __init__(self, info, level):
        super().__init__(info, [], {})
        self._level = level

    def transform_module(self, mod, ctx):
        level = ctx.opt_level if self._level == -1 else self._level
        return super().transform_module(mod, ctx) if level > 0 else mod


def fuse_ops(info, fuse_opt_level=-1):
    """FuseOps: groups calls that one kernel can do.

    fuse_opt_level   0: nothing is grouped; -1: that of the PassContext; another one: everything that can be
    """
    if not isinstance(fuse_opt_level, int):
        raise TypeError(f"FuseOps: fuse_opt_level = {fuse_opt_level!r} is a {type(fuse_opt_level).__name__}\n  needs: an integer, -1 or more")
    return _FuseOps(info, fuse_opt_level)


class _CombineParallelMatmul(transform._Named):
    def __init__(self, info, check):
        super().__init__(info, [], {})
        self._check = check

    def transform_module(self, mod, ctx):
        from sator.relax.analysis import get_var2val

        def asked(function, *group):
            return bool(self._check(*group, get_var2val(function)))

        return _core.combine_parallel_matmul(mod, asked)


def combine_parallel_matmul(info, check=None):
    """CombineParallelMatmul: multiplies by several weights at once.

    check   check(input, [weight], [bias], {variable: value}) of each such set: whether it shall be one product
    """
    return None if check is None else _CombineParallelMatmul(info, check)


class _NewParameters(PyExprMutator):
    """Functions with other struct info of their parameters; what follows from it is inferred again."""

    def __init__(self, sinfo_func):
        super().__init__()
        self._sinfo_func = sinfo_func

    def visit_function_(self, f):
        params = []
        for p in f.params:
            info = self._sinfo_func(p)
            params.append(p if info is None else _core.graph_var(p.name_hint, getattr(info, "_node", lambda: info)(), False))
            self.set_var_remap(p, params[-1])
        if all(new.same_as(old) for new, old in zip(params, f.params)):
            return f
        return super().visit_function_(_core.make(
            _core.relax.Function, [params if n == "params" else None if n == "ret" else getattr(f, n) for n in f._fields]))


class _UpdateParamStructInfo(transform.Pass):
    def __init__(self, info, sinfo_func):
        self.info, self._sinfo_func = info, sinfo_func

    def transform_module(self, mod, ctx):
        functions = {name: _NewParameters(self._sinfo_func).visit_expr(f) if isinstance(f, _core.relax.Function) else f
                     for name, f in mod.functions.items()}
        return _core.module(functions, mod.attrs, mod.global_infos)


def update_param_struct_info(info, sinfo_func):
    """UpdateParamStructInfo: other struct info of parameters, and what follows from it.

    sinfo_func   sinfo_func(parameter) gives its new struct info; None: it stays
    Errors: those of the ops whose inputs do not fit any more.
    """
    if not callable(sinfo_func):
        raise TypeError(f"UpdateParamStructInfo: {sinfo_func!r} is a {type(sinfo_func).__name__}\n  needs: a function of a relax.Var")
    return _UpdateParamStructInfo(info, sinfo_func)
