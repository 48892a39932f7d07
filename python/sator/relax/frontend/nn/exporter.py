"""A model's methods as functions of a module."""
from sator import _core, relax, tir
from sator.relax.frontend.nn import core, spec as specs


def export(module, spec):
    spec = specs.ModuleSpec.from_raw(spec, module)
    bb = relax.BlockBuilder()
    params = list(module.named_parameters())
    core._builders.append(bb)
    before = [p._expr for _, p in params]
    try:
        for name, method in zip(spec.method_names, spec.method_specs):
            _export_method(bb, name, method, params)
    finally:
        core._builders.pop()
        for (_, p), expr in zip(params, before):
            p._expr = expr
    return bb.get(), params


def _export_method(bb, name, method, params):
    sizes = {}
    arguments = [_argument(n, s, sizes) for n, s in zip(method.arg_names, method.arg_specs)]
    inputs = [_variable(n, a) for n, a in zip(method.arg_names, arguments)]
    own_sizes = {}
    weights = []
    for path, param in params:
        shape = [own_sizes.setdefault(e.name, tir.Var(e.name, "int64")) if isinstance(e, tir.Var) else e for e in param.shape]
        weights.append(core.Tensor.placeholder(shape, param.dtype, path)._expr)
    packed = relax.Var("packed_params", relax.TupleStructInfo([w.struct_info for w in weights])) if method.param_mode == "packed" else None
    behind = [] if method.param_mode == "none" else [packed] if packed is not None else weights
    with bb.function(name, inputs + behind, {"num_input": len(inputs)}):
        with bb.dataflow():
            for i, (path, param) in enumerate(params):
                param._expr = weights[i] if packed is None else bb.emit(relax.TupleGetItem(packed, i), path)
            given = [_given(a, v) for a, v in zip(arguments, inputs)]
            result = bb.emit_output(_result(method.method(*given)))
        bb.emit_func_output(result)


def _argument(name, spec, sizes):
    """A tensor, a variable of a size, an object, or a tuple of them."""
    if isinstance(spec, specs.Int):
        return sizes.setdefault(name, tir.Var(name, "int64"))
    if isinstance(spec, specs.Tensor):
        shape = [sizes.setdefault(e, tir.Var(e, "int64")) if isinstance(e, str) else e for e in spec.shape]
        return core.Tensor.placeholder(shape, spec.dtype, name)
    if isinstance(spec, specs.Object):
        return core.Object(_name=name)
    if isinstance(spec, specs.Tuple):
        return tuple(_argument(f"{spec.name}_{i}", e, sizes) for i, e in enumerate(spec.elements))
    raise TypeError(f"the argument {name} has a spec of the type {type(spec).__name__}\n  needs: nn.spec.Tensor(shape, dtype), int")


def _variable(name, argument):
    if isinstance(argument, tuple):
        return relax.Var(name, relax.TupleStructInfo([_variable(name, a).struct_info for a in argument]))
    if isinstance(argument, tir.Var):
        return relax.Var(name, relax.ShapeStructInfo([argument]))
    return argument._expr


def _given(argument, variable):
    if isinstance(argument, tuple):
        return core.wrap_nested(variable, variable.name_hint)
    return argument


def _result(value):
    if isinstance(value, (core.Tensor, core.Object)):
        return value._expr
    if isinstance(value, (list, tuple)):
        return relax.Tuple([_result(v) for v in value])
    if isinstance(value, _core.RelaxExpr):
        return value
    raise TypeError(f"a method gave a {type(value).__name__}\n  needs: a Tensor, or a tuple of them")
