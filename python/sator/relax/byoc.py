"""Bring your own code: groups of ops that a backend of the user's takes, by pattern, and the functions that it makes of them."""
import re

from sator import _core, transform
from sator.error import TVMError
from sator.relax.expr_functor import PyExprMutator


def register_pattern(patterns):
    """Adds patterns for FuseOpsByPattern and get_patterns_with_prefix; those that come later are tried first."""
    _registered[:0] = [FusionPattern(*p) if isinstance(p, tuple) else p for p in patterns]


register_patterns = register_pattern  # v0.17's name


def get_patterns_with_prefix(prefix):
    """The registered patterns whose names begin so."""
    return [p for p in _registered if p.name.startswith(prefix)]


def get_pattern(name):
    """The registered pattern of a name, or None."""
    return next((p for p in _registered if p.name == name), None)


_registered = []


class FusionPattern:
    """What a backend takes whole.

    name                  "BACKEND.WHAT"
    pattern               a pattern of relax.dpl
    annotation_patterns   {word: part of the pattern}, by which `check` asks
    check                 check(PatternCheckContext) -> bool; None: every match is taken
    """

    def __init__(self, name, pattern, annotation_patterns=None, check=None, attrs_getter=None):
        self.name, self.pattern, self.annotation_patterns, self.check = name, pattern, dict(annotation_patterns or {}), check
        self.attrs_getter = attrs_getter


class PatternCheckContext:
    """A match, as a check sees it.

    matched_expr      the expression of the whole pattern
    annotated_expr    {word: expression}, of annotation_patterns
    matched_bindings  {variable: value} of the group
    var_usages        {variable: [variables whose values read it]} of the block
    value_to_bound_var    {value: variable} of the block
    """

    def __init__(self, matched_expr, annotated_expr, matched_bindings, var_usages, value_to_bound_var):
        self.matched_expr, self.annotated_expr, self.matched_bindings = matched_expr, annotated_expr, matched_bindings
        self.var_usages, self.value_to_bound_var = var_usages, value_to_bound_var


def _checked(pattern):
    if pattern.check is None:
        return None

    def check(parts, taken, everything):
        found = pattern.pattern._by_pattern(parts)
        whole = found[pattern.pattern]
        values = dict(everything)
        usages = {}
        for var, value in everything:
            for used in _variables_in(value):
                usages.setdefault(used, []).append(var)
        annotated = {word: found[part] for word, part in pattern.annotation_patterns.items() if part in found}
        return bool(pattern.check(PatternCheckContext(values.get(whole, whole), annotated, dict(taken), usages,
                                                      {v: k for k, v in everything})))

    return check


def _variables_in(expr):
    from sator.relax.dpl.context import _variables

    return list(_variables(expr))


class _FuseOpsByPattern(transform.Pass):
    def __init__(self, info, patterns, bind_constants, annotate_codegen, entry_functions):
        self.info = info
        self._patterns, self._keeps_constants, self._with_codegen = patterns, bind_constants, annotate_codegen
        self._entries = entry_functions

    def transform_module(self, mod, ctx):
        rows = [(p.name, p.pattern._core, _checked(p)) for p in self._patterns]
        unknown = [name for name in self._entries if not isinstance(mod.functions.get(name), _core.relax.Function)]
        if unknown:
            raise TVMError(f"error: FuseOpsByPattern: entry_functions has {', '.join(unknown)}, and the module no graph of that name\n"
                           f"  needs: names of {', '.join(n for n, f in mod.functions.items() if isinstance(f, _core.relax.Function))}")
        # A function that is left alone is a program without a body while the others are looked at: its name stays taken.
        others = {n: f for n, f in mod.functions.items() if self._entries and n not in self._entries and isinstance(f, _core.relax.Function)}
        if others:
            mod = _core.module({**mod.functions, **dict.fromkeys(others, _nothing())}, mod.attrs, mod.global_infos)
        mod = _core.fuse_by_pattern(mod, rows, self._keeps_constants, self._with_codegen, ctx.explain)
        return _core.module({**mod.functions, **others}, mod.attrs, mod.global_infos) if others else mod


def _nothing():
    from sator import tir

    return tir.PrimFunc([], tir.Evaluate(0))


def fuse_ops_by_pattern(info, patterns=None, bind_constants=True, annotate_codegen=False, entry_functions=None, backend=None):
    if patterns is None:
        return None
    if backend is not None:
        raise TVMError(f"error: FuseOpsByPattern is given patterns and the backend {backend}\n  needs: one of them: a backend brings its own patterns")
    patterns = [FusionPattern(*p) if isinstance(p, (tuple, list)) else p for p in patterns]
    for p in patterns:
        if not isinstance(p, FusionPattern):
            raise ValueError(f"FuseOpsByPattern: the pattern {p!r} is a {type(p).__name__}\n  needs: (name, pattern), or a FusionPattern")
    return _FuseOpsByPattern(info, patterns, bind_constants, annotate_codegen, list(entry_functions or ()))


# RunCodegen: functions with the attribute Codegen = NAME go to the function registered as relax.ext.NAME.


class _RunCodegen(transform.Pass):
    """Hands each group to its backend. The compiler's own backends take the others."""

    def __init__(self, info, target_options=None, entry_functions=None):
        self.info, self._options = info, dict(target_options or {})

    def transform_module(self, mod, ctx):
        by_backend = {}
        for name, func in mod.functions.items():
            backend = func.attrs.get("Codegen")
            if isinstance(func, _core.relax.Function) and backend and _core.registered_func(f"relax.ext.{backend}") is not None:
                by_backend.setdefault(backend, []).append(name)
        for backend, names in by_backend.items():
            mod = self._with_backend(mod, backend, names)
        left = {f.attrs["Codegen"]: name for name, f in mod.functions.items() if f.attrs.get("Codegen")}
        for backend in left:
            if not _is_own(backend):
                raise TVMError(f"error: the function {left[backend]} is for the backend {backend}, and no function is registered as relax.ext.{backend}\n"
                               f"  needs: sator.register_func(\"relax.ext.{backend}\", f) with f(functions, options, constant_names)\n"
                               "  hint:  the compiler's own backends are dnnl and the names of described chips; without RunCodegen the function is the program's own code")
        if left:
            mod = _core.run_pass(self.info.name, mod, [], {}, ctx.config, transform.Target.current(), ctx.explain, ctx.bounds)
        return mod

    def _with_backend(self, mod, backend, names):
        functions = mod.functions
        groups = [functions[n].with_attr("global_symbol", n) for n in names]
        made = _core.registered_func(f"relax.ext.{backend}")(groups, self._options.get(backend, {}), _constant_names(groups))
        symbols = dict(zip(names, _as_packed(backend, names, made)))
        kept = {n: f for n, f in functions.items() if n not in symbols}
        rest = _core.module(kept, mod.attrs, mod.global_infos)
        for name, func in kept.items():
            if isinstance(func, _core.relax.Function):
                calls = _Calls(rest, symbols)
                rest.update_func(name, calls.visit_expr(func))
        return rest


def _is_own(backend):
    """Whether the compiler makes this backend's kernels: oneDNN's, and those of a chip, shipped or compiled for."""
    from sator import commands

    current = transform.Target.current()
    chips = {re.sub(r"\W", "_", chip) for chip in commands.chips()}
    return backend in ("dnnl", "chip") or backend in chips or current is not None and current.kind.name not in ("llvm", "cuda")


def _constant_names(groups):
    """{constant: a name}, as TVM gives them to backends."""
    names = {}
    for group in groups:
        symbol = group.attrs["global_symbol"]

        def collect(node, seen):
            if node in seen:
                return
            seen[node] = True
            if isinstance(node, _core.relax.Constant):
                names.setdefault(node, f"{symbol}_const_{len(names)}")
            for child in _core.children(node):
                collect(child, seen)

        collect(group, {})
    return names


def _as_packed(backend, names, made):
    """The functions of what a backend gave, registered: a callable or a compiled module for each group, or one module for all."""
    made = list(made) if isinstance(made, (list, tuple)) else [made] * len(names)
    if len(made) == 1 and len(names) > 1:
        made = made * len(names)
    if len(made) != len(names):
        raise TVMError(f"error: relax.ext.{backend} gave {len(made)} functions for {len(names)} groups\n"
                       "  needs: a callable, or a module of sator.build, for each of them")
    for name, one in zip(names, made):
        if not callable(one) and not hasattr(one, "get_function"):
            raise TVMError(f"error: relax.ext.{backend} gave {one!r}, a {type(one).__name__}, for the group {name}\n"
                           "  needs: a callable, or a module of sator.build, for each group")
        function = one if callable(one) and not hasattr(one, "get_function") else _function_of(one, name)
        symbol, number = name, 0
        while _core.registered_func(symbol) is not None:
            number += 1
            symbol = f"{name}_{number}"
        _core.register_func(symbol, function, False)
        yield symbol


def _function_of(module, name):
    return module.get_function(name if name in module.signatures() else module.entry_name)


class _Calls(PyExprMutator):
    """Calls of groups as calls of the functions that stand for them: each writes its result to its last argument."""

    def __init__(self, mod, symbols):
        super().__init__(mod)
        self._symbols = symbols

    def visit_call_(self, call):
        info = call.struct_info
        call = self.visit_expr_post_order(call)
        if not isinstance(call.op, _core.relax.GlobalVar) or call.op.name_hint not in self._symbols:
            return call
        from sator import relax

        return relax.op.call_dps_packed(self._symbols[call.op.name_hint], list(call.args), info)


def run_codegen(info, target_options=None, entry_functions=None):
    return _RunCodegen(info, target_options, entry_functions)


def __getattr__(name):
    if name in ("DispatchSampling", "DispatchSortScan"):
        from sator import transform

        return getattr(transform, name)
    from sator import paths

    raise paths.missing("sator.relax.backend", name, globals())
