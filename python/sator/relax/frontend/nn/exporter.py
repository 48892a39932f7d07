"""A model's methods as functions of a module."""
from sator import _core, relax, tir
from sator.relax.frontend.nn import core, spec as specs


def export(module, spec, debug=False):
    from sator.relax.frontend.nn.modules import IOEffect

    spec = specs.ModuleSpec.from_raw(spec, module)
    bb = relax.BlockBuilder()
    params = list(module.named_parameters())
    io = IOEffect() if debug else None
    effects = ([("", io)] if debug else []) + list(core._named(module, "", core.Effect))
    core._builders.append(bb)
    core._io_effects.append(io)
    before = [p._expr for _, p in params]
    try:
        if effects:
            _export_first_states(bb, effects)
        for name, method in zip(spec.method_names, spec.method_specs):
            _export_method(bb, name, method, params, effects)
    finally:
        core._builders.pop()
        core._io_effects.pop()
        for (_, p), expr in zip(params, before):
            p._expr = expr
    return bb.get(), params


def _export_first_states(bb, effects):
    with bb.function("_initialize_effect", []):
        with bb.dataflow():
            states = [state for name, effect in effects for state in effect.emit_init(name, bb)]
            result = bb.emit_output(bb.emit(relax.Tuple(states)))
        bb.emit_func_output(result)


def _export_method(bb, name, method, params, effects):
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
    states = [effect.create(prefix) for prefix, effect in effects]
    flat = [s for group in states for s in group]
    packed_states = relax.Var("packed_effects", relax.TupleStructInfo([s.struct_info for s in flat])) if method.effect_mode == "packed" and flat else None
    between = [] if method.effect_mode == "none" else [packed_states] if packed_states is not None else flat
    with bb.function(name, inputs + between + behind, {"num_input": len(inputs) + len(between)}):
        with bb.dataflow():
            for i, (path, param) in enumerate(params):
                param._expr = weights[i] if packed is None else bb.emit(relax.TupleGetItem(packed, i), path)
            fields = iter(range(len(flat)))
            for (_, effect), group in zip(effects, states):
                effect.set_state(group if packed_states is None else [bb.emit(relax.TupleGetItem(packed_states, next(fields)), s.name_hint) for s in group])
            given = [_given(a, v) for a, v in zip(arguments, inputs)]
            result = _result(method.method(**dict(zip(method.arg_names, given))))
            last = [s for _, effect in effects for s in effect.finalize()]
            result = bb.emit_output(relax.Tuple([result, relax.Tuple(last)]) if between else result)
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
    if isinstance(spec, (tuple, list)):
        return type(spec)(_argument(f"{name}_{i}", e, sizes) for i, e in enumerate(spec))
    raise TypeError(f"the argument {name} has a spec of the type {type(spec).__name__}\n  needs: nn.spec.Tensor(shape, dtype), int")


def _variable(name, argument):
    if isinstance(argument, (tuple, list)):
        return relax.Var(name, relax.TupleStructInfo([_variable(name, a).struct_info for a in argument]))
    if isinstance(argument, tir.Var):
        return relax.Var(name, relax.ShapeStructInfo([argument]))
    return argument._expr


def _given(argument, variable):
    if not isinstance(argument, (tuple, list)):
        return argument if isinstance(argument, tir.Var) or argument._expr is variable else type(argument)(_expr=variable)
    fields = [_given(a, a if isinstance(a, tir.Var) else core.current_builder().emit(relax.TupleGetItem(variable, i), f"{variable.name_hint}_{i}"))
              for i, a in enumerate(argument)]
    return type(argument)(fields)


def _result(value):
    if isinstance(value, (core.Tensor, core.Object)):
        return value._expr
    if isinstance(value, (list, tuple)):
        return relax.Tuple([_result(v) for v in value])
    if isinstance(value, _core.RelaxExpr):
        return value
    raise TypeError(f"a method gave a {type(value).__name__}\n  needs: a Tensor, or a tuple of them")
