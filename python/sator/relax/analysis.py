"""Questions about graphs."""
import math
from enum import IntEnum

from sator import _core

__path__ = []  # TVM's modules below are found by sator.paths

R = _core.relax


class BaseCheckResult(IntEnum):
    """How far struct info is known to be a base of other struct info; the values are TVM's."""

    FAIL_L0 = 0
    FAIL_L1 = 1
    FAIL_L2 = 2
    PASS = 3


def struct_info_base_check(base, derived):
    """How far what holds of `derived` is known to hold of `base`: FAIL_L0 is never, FAIL_L1 not known, FAIL_L2 left to a check at run time."""
    return BaseCheckResult(_core.base_check(base, derived))


def struct_info_lca(lhs, rhs):
    """The least struct info that holds for both."""
    return _core.common_base(lhs, rhs)


def erase_to_well_defined(sinfo, shape_var_map=None, var_map=None):
    """The struct info over other variables; extents and shapes with a variable that the maps do not have are forgotten.

    shape_var_map   {symbolic size: expression}
    var_map         {variable of a graph: expression}
    """
    sizes = {size: value if not isinstance(value, _core.PrimExpr) or value.dtype == size.dtype else value.astype(size.dtype)
             for size, value in (shape_var_map or {}).items()}
    return _core.erase_to_well_defined(sinfo, sizes, dict(var_map or {}))


def tir_vars_in_struct_info(sinfo):
    """The symbolic sizes that occur in it, each once, in order."""
    return list(dict.fromkeys(v for info in _with_functions(sinfo) for v in _core.vars_of_info(info)))


def derive_call_ret_struct_info(func_sinfo, call, ctx=None):
    """What a call gives by the struct info of its function. Errors: arguments that cannot be what the parameters ask for."""
    return _core.result_of_call(func_sinfo, list(call.args))


def remove_all_unused(func):
    """A function, its body, or a block of bindings, without those bindings that nobody reads and that have no effect.

    What a dataflow block gives out, and everything in any other block, counts as read where only the block is given.
    """
    if isinstance(func, R.SeqExpr):
        return _sequence_without_unused(func)
    return _block_without_unused(func) if isinstance(func, R.BindingBlock) else _core.without_unused(func)


def _block_without_unused(block):
    kept, used = [], set()
    for b in reversed(block.bindings):
        if b.var in used or not b.var.is_dataflow or _core.is_impure_call(b.value):
            kept.insert(0, b)
            used.update(all_vars(b.value))
    return block if len(kept) == len(block.bindings) else _core.make(R.BindingBlock, [kept, block.is_dataflow])


def _sequence_without_unused(seq):
    blocks, used = [], set(all_vars(seq.body))
    for block in reversed(seq.blocks):
        kept = []
        for b in reversed(block.bindings):
            if b.var in used or isinstance(b, R.MatchCast) or _core.is_impure_call(b.value):
                kept.insert(0, b)
                used.update(all_vars(b.value))
        if kept:
            blocks.insert(0, block if len(kept) == len(block.bindings) else _core.make(R.BindingBlock, [kept, block.is_dataflow]))
    return _core.make(R.SeqExpr, [blocks, seq.body, seq.struct_info])


def well_formed(obj, check_struct_info=True):
    """Whether a module or a function obeys the rules of graphs; relax.build says which it breaks."""
    return not (_core.verify(obj) if isinstance(obj, _core.ir.IRModule) else _core.verify_function(obj))


def _bindings(func):
    """All bindings of a function, a block or an expression, in the order of the text."""
    out = []

    def collect(node):
        if isinstance(node, R.BindingBlock):
            for b in node.bindings:
                collect(b.value)
                out.append(b)
        elif isinstance(node, (R.SeqExpr, R.If, R.Function, R.LocalFunction)):
            for part in _inside(node):
                collect(part)

    collect(func)
    return out


def _inside(node):
    if isinstance(node, R.SeqExpr):
        return [*node.blocks, node.body]
    if isinstance(node, R.If):
        return [node.true_branch, node.false_branch]
    return [node.function] if isinstance(node, R.LocalFunction) else [node.body]


def get_var2val(func):
    """{variable: what it is bound to}."""
    return {b.var: b.value for b in _bindings(func) if isinstance(b, R.VarBinding)}


def name_to_binding(func):
    """{name: [bindings of variables of that name]}."""
    out = {}
    for b in _bindings(func):
        out.setdefault(b.var.name_hint, []).append(b)
    return out


def udchain(dfb):
    """{variable: [variables whose values read it]} of a dataflow block."""
    from sator.relax.dpl.context import _Uses

    uses = _Uses(dfb)
    return {var: list(users) for var, users in uses.items()}


def _walk(node, visit, seen):
    if node in seen:
        return
    seen[node] = True
    visit(node)
    for child in _core.children(node):
        _walk(child, visit, seen)


def post_order_visit(expr, fvisit):
    """Calls fvisit with each part of a graph, once, after the parts that it is made of."""
    if not callable(fvisit):
        raise TypeError(f"post_order_visit: {fvisit!r} is a {type(fvisit).__name__}\n  needs: a function of a part of a graph")
    seen = {}

    def walk(node):
        if node in seen:
            return
        seen[node] = True
        for child in _core.children(node):
            walk(child)
        if isinstance(node, (_core.RelaxExpr, R.Function)):
            fvisit(node)

    walk(expr)


def _found(node, kind):
    out = []
    _walk(node, lambda n: out.append(n) if isinstance(n, kind) else None, {})
    return out


def all_vars(expr):
    """The variables of a graph that occur in it."""
    return _found(expr, R.Var)


def all_global_vars(expr):
    """The functions that it names."""
    return _found(expr, R.GlobalVar)


def bound_vars(expr):
    """The variables that are parameters or bound inside of it."""
    params = [p for f in _found(expr, R.Function) for p in f.params]
    return params + [b.var for b in _bindings(expr)]


def free_vars(expr):
    """The variables that it uses and that are not bound in it."""
    bound = set(bound_vars(expr))
    return [v for v in all_vars(expr) if v not in bound]


def rec_global_vars(expr):
    """The function itself where it calls itself."""
    return all_global_vars(expr)


def contains_impure_call(expr, own_name=None):
    """Whether something in it has an effect; calls of the function `own_name` do not count."""
    own = getattr(own_name, "name_hint", own_name)
    expr = expr.function if isinstance(expr, R.LocalFunction) else expr
    body = expr.body if isinstance(expr, R.Function) else expr

    def has(node):
        if isinstance(node, R.Function):
            return False
        if isinstance(node, R.Call) and _core.is_impure_call(node) and not (isinstance(node.op, R.GlobalVar) and node.op.name_hint == own):
            return True
        return any(has(c) for c in _core.children(node))

    return has(body)


def estimate_memory_usage(mod):
    """What the allocations of each graph function come to before and after memory planning, as TVM's text.

    mod   a module, or one function, after StaticPlanBlockMemory: memory.alloc_storage is planned, builtin.alloc_tensor is not
    Branches and calls of other functions are not followed: each allocation counts once. 1 GB is 2^30 bytes.
    """
    functions = mod.functions if isinstance(mod, _core.ir.IRModule) else {"foo": mod}
    text = "".join(_memory_text(name, f) for name, f in functions.items() if isinstance(f, R.Function))
    return "Memory usage estimation:\n" + text if text else ""


def _memory_text(name, func):
    tensors, storages, dynamic = [], [], 0
    for call in (c for c in _found(func, R.Call) if isinstance(c.op, R.Op)):
        op = call.op.name.removeprefix("relax.")
        if op == "memory.alloc_storage":
            storages.append(call.args[0].values[0].value)
        elif op in ("builtin.alloc_tensor", "memory.alloc_tensor"):
            shape, dtype = call.args[:2] if op.startswith("builtin") else call.args[2:4]
            size = _bytes_of(shape, dtype.value)
            dynamic += size is None
            for list_ in (tensors, storages) if op.startswith("builtin") else (tensors,):
                list_.extend([] if size is None else [size])
    lines = [f"- Function {name}:", f" * Without memory planning, there are {len(tensors)} constant-size memory allocation(s) with total size "
             f"{sum(tensors) / 2**30:.4} GB" + (f", and {dynamic} dynamic-size allocation(s)." if dynamic else "."),
             f" * With memory planning, there are {len(storages)} constant-size memory allocation(s) with total size {sum(storages) / 2**30:.4} GB."]
    if sum(tensors):
        lines.append(f" * Memory planning reduces constant memory size to {sum(storages) / sum(tensors):.1%}.")
    return "\n".join(lines) + "\n"


def _bytes_of(shape, dtype):
    from sator.runtime.values import DataType

    extents = [getattr(e, "value", None) for e in shape.values]
    return None if None in extents else math.prod(extents) * DataType(dtype).itemsize()


def has_reshape_pattern(func):
    """Whether a tensor program copies all elements in their order: a reshape."""
    return _core.is_reshape(func)


def definable_tir_vars_in_struct_info(sinfo):
    """The sizes that a value of this struct info tells: those that stand alone as an extent, or as a number's value."""
    return list(dict.fromkeys(v for info in _with_functions(sinfo) for v in _core.definable_vars(info)))


def _with_functions(sinfo):
    """Struct info, and what the functions in it take and give."""
    return [sinfo, *(info for f in _found(sinfo, R.FuncStructInfo) for info in (*(f.params or ()), f.ret) if info is not None)]


def _sizes_in(node):
    from sator import tir

    return _found(node, tir.Var)


def defined_symbolic_vars(func):
    """The symbolic sizes that it defines: those that its parameters and match_casts tell."""
    known = [p.struct_info for f in _found(func, R.Function) for p in f.params]
    known += [b.struct_info for b in _found(func, R.MatchCast)]
    return list(dict.fromkeys(v for info in known for v in definable_tir_vars_in_struct_info(info)))


def free_symbolic_vars(func):
    """The symbolic sizes that it uses and does not define."""
    defined = set(defined_symbolic_vars(func))
    return [v for v in dict.fromkeys(_sizes_in(func)) if v not in defined]


def computable_at_compile_time(func):
    """The variables that are known before the function runs: parameters beyond the attribute num_input, and what follows from them alone."""
    if "num_input" not in (func.attrs or {}):
        known = {}
    else:
        known = dict.fromkeys(func.params[int(func.attrs["num_input"]):])
    sizes = {v for p in known for v in definable_tir_vars_in_struct_info(p.struct_info)}
    for b in _bindings(func):
        if all(v in known for v in free_vars(b.value)) and all(v in sizes for v in free_symbolic_vars(b.value)):
            known[b.var] = None
            sizes.update(definable_tir_vars_in_struct_info(b.var.struct_info))
    return list(known)


def detect_recursion(mod):
    """The sets of functions that call one another in a circle, a list of GlobalVars each; of one that calls itself, itself."""
    calls = {gv: [c for c in all_global_vars(f) if c.name_hint in mod.functions] for gv, f in
             ((mod.get_global_var(name), f) for name, f in mod.functions.items()) if isinstance(f, R.Function)}
    named = {gv.name_hint: gv for gv in calls}
    reach = {name: set() for name in named}
    for name in named:
        todo = [name]
        while todo:
            for callee in (c.name_hint for c in calls[named[todo.pop()]]):
                if callee in named and callee not in reach[name]:
                    reach[name].add(callee)
                    todo.append(callee)
    circles = []
    for name in named:
        circle = [other for other in named if other in reach[name] and name in reach[other]]
        if name in reach[name] and circle[0] == name:
            circles.append([named[n] for n in circle])
    return circles


def get_static_type(sinfo):
    """What struct info says without sizes, a type: DynTensorType, ShapeType, ..."""
    from sator.relax.types import _type_of

    return _type_of(sinfo)


def collect_non_negative_expressions(sinfo):
    """The extents in it that are no constants: none of them is negative."""
    if isinstance(sinfo, R.TupleStructInfo):
        out = [e for field in sinfo.fields for e in collect_non_negative_expressions(field)]
    else:
        shape = sinfo.shape if isinstance(sinfo, R.TensorStructInfo) else sinfo
        out = [e for e in getattr(shape, "values", None) or [] if not isinstance(getattr(e, "value", e), int)]
    return list(dict.fromkeys(out))


def __getattr__(name):
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
