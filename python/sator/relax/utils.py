"""What those who rewrite graphs need besides."""
import functools
import inspect

from sator import _core


def copy_with_new_vars(func):
    """The same function with variables and symbolic sizes of its own, so that both may stand in one module."""
    return _core.fresh_graph(func)


def convert_to_expr(value):
    """The value as an expression of a graph: numbers are PrimValue, texts StringImm, lists and tuples Tuple. Errors: TypeError for others."""
    if isinstance(value, (_core.RelaxExpr, _core.relax.Function)):
        return value
    if isinstance(value, _core.tir.StringImm):
        raise TypeError(f"convert_to_expr: {value} is a tir.StringImm\n  needs: a relax.StringImm, or a relax.PrimValue")
    if isinstance(value, (bool, int, float, str, _core.PrimExpr)):
        return _core.graph_expr(value)
    if isinstance(value, (list, tuple)):
        return _core.tuple([convert_to_expr(v) for v in value])
    raise TypeError(f"convert_to_expr: {value!r} is a {type(value).__name__}\n  needs: an expression, a number, a text, or a list of them")


def gen_call_tir_inputs(func, *args, primfunc_attrs=None, **kwargs):
    """What relax.call_tir takes to compute a function over te's tensors: (PrimFunc, arguments, struct info of each result, tir_vars or None).

    args, kwargs     of `func`; expressions of graphs among them become te's tensors, as in BlockBuilder.call_te
    primfunc_attrs   attributes of the PrimFunc
    """
    from sator.relax.block_builder import BlockBuilder

    bb = BlockBuilder()
    call = bb.call_te(func, *args, primfunc_attrs=primfunc_attrs, **kwargs)
    program = bb.get()[call.args[0].name_hint]
    infos = [field for info in call.sinfo_args for field in (info.fields if isinstance(info, _core.relax.TupleStructInfo) else [info])]
    return program, call.args[1], infos, call.args[2] if len(call.args) > 2 else None


class args_converter:  # noqa: N801
    """Decorators of functions over expressions, which then take numbers, texts, lists and tuples too."""

    @staticmethod
    def to_expr(*names):
        """The parameters of these names become expressions."""
        return _converted({n: convert_to_expr for n in names})

    @staticmethod
    def to_list_expr(*names):
        """The parameters of these names become lists of expressions."""
        return _converted({n: lambda values: [convert_to_expr(v) for v in values] for n in names})

    @staticmethod
    def auto(func):
        """Parameters that are annotated with Expr, Optional[Expr] or List[Expr] become that."""
        converters = {}
        for name, parameter in inspect.signature(func).parameters.items():
            kind = parameter.annotation if isinstance(parameter.annotation, str) else getattr(parameter.annotation, "__name__", str(parameter.annotation))
            kind = str(parameter.annotation) if "[" in str(parameter.annotation) else kind
            if "Expr" in kind:
                is_list = "List[" in kind or "Sequence[" in kind or "list[" in kind
                converters[name] = (lambda values: [convert_to_expr(v) for v in values]) if is_list else convert_to_expr
        return _converted(converters)(func)


def _converted(converters):
    def decorator(func):
        signature = inspect.signature(func)

        @functools.wraps(func)
        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            for name, convert in converters.items():
                if bound.arguments.get(name) is not None:
                    bound.arguments[name] = convert(bound.arguments[name])
            return func(*bound.args, **bound.kwargs)

        return call

    return decorator
