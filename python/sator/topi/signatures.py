"""Formulas that are an op of graphs under TVM v0.17's names of arguments: one row per function."""
import inspect

from sator import _core, te
from sator.relax.op_docs import DOCS

_UNARY = ("abs acos acosh asin asinh atan atanh ceil cos cosh erf exp floor isfinite isinf isnan log negative round rsqrt sigmoid sign sin "
          "sinh sqrt tan tanh")
_BINARY = ("add subtract multiply divide floor_divide mod floor_mod power maximum minimum less less_equal greater greater_equal equal not_equal "
           "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor")

# name of the function: (its parameters, the op, names of the op's arguments in the order of the parameters)
ROWS = {
    **{name: ("x", name, "x") for name in _UNARY.split()},
    **{name: ("lhs, rhs", name, "x1 x2") for name in _BINARY.split()},
    "bitwise_not": ("data", "bitwise_not", "x"),
    "logical_not": ("data", "logical_not", "x"),
    **{name: ("data, axis=None, keepdims=False", name, "x axis keepdims") for name in ("sum", "prod", "max", "min")},
    "broadcast_to": ("data, shape", "broadcast_to", "x shape"),
    "clip": ("x, a_min, a_max", "clip", "x min max"),
    "concatenate": ("a_tuple, axis=0", "concat", "tensors axis"),
    "flip": ("a, axis=0", "flip", "data axis"),
    "gather": ("data, axis, indices", "gather_elements", "data axis indices"),
    "repeat": ("a, repeats, axis", "repeat", "data repeats axis"),
    "reshape": ("a, newshape", "reshape", "x shape"),
    "scatter_elements": ("data, indices, updates, axis=0, reduction='update'", "scatter_elements", "data indices updates axis reduction"),
    "split": ("ary, indices_or_sections, axis=0", "split", "x indices_or_sections axis"),
    "squeeze": ("a, axis=None", "squeeze", "x axis"),
    "stack": ("a, axis", "stack", "tensors axis"),
    "tile": ("a, reps", "tile", "data repeats"),
    "transpose": ("a, axes=None", "permute_dims", "x axes"),
    "where": ("condition, x, y", "where", "condition x1 x2"),
    "nn.relu": ("x", "nn.relu", "data"),
    "nn.leaky_relu": ("x, alpha", "nn.leakyrelu", "data alpha"),
    "nn.softmax": ("x, axis=-1", "nn.softmax", "data axis"),
    "nn.fast_softmax": ("x, axis=-1", "nn.softmax", "data axis"),
    "nn.log_softmax": ("x, axis=-1", "nn.log_softmax", "data axis"),
    "nn.layer_norm": ("data, gamma, beta, axis, epsilon=1e-05", "nn.layer_norm", "data gamma beta axes epsilon"),
    "nn.instance_norm": ("data, gamma, beta, axis, epsilon=1e-05", "nn.layer_norm", "data gamma beta axes epsilon"),
    "nn.rms_norm": ("data, weight, axis, epsilon=1e-05", "nn.rms_norm", "data weight axes epsilon"),
    "nn.group_norm": ("data, gamma, beta, num_groups, channel_axis, axes, epsilon=1e-05", "nn.group_norm",
                      "data gamma beta num_groups channel_axis axes epsilon"),
    "nn.nll_loss": ("predictions, targets, weights, reduction, ignore_index", "nn.nll_loss", "predictions targets weights reduction ignore_index"),
}
# A function of TVM's that is an op of graphs alone: how many elements it gives, its data say.
MISSING = {"unique"}
_BROADCAST = set(_BINARY.split())


def with_one_dtype(args):
    """Numbers beside a tensor as constants of its dtype."""
    dtypes = [a.dtype for a in args if isinstance(a, te.Tensor)]
    return [_core.const(a, dtypes[0]) if dtypes and isinstance(a, (int, float)) and not isinstance(a, bool) else a for a in args]


def by_signature(name):
    """The function of a row."""
    parameters, op, names = ROWS[name]
    signature = inspect.signature(eval(f"lambda {parameters}: None"))
    operands = {word.strip() for word in dict(_core.ops())[op].partition("(")[2].rstrip(")").split(",") if not word.endswith("=...")}

    def formula(*args, **kwargs):
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"topi.{name}: {error}\n  needs: {name}({parameters})") from None
        bound.apply_defaults()
        values = list(bound.arguments.values())
        if op in _BROADCAST:
            return _core.formula(op, with_one_dtype(values), {})
        given = dict(zip(names.split(), values))
        first = [given.pop(k) for k in names.split() if k in operands and k not in ("axis", "axes", "num_groups", "channel_axis")
                 and k != "weights" or k == "weights" and given[k] is not None]
        return _core.formula(op, [list(v) if isinstance(v, tuple) else v for v in first], given)

    formula.__name__ = formula.__qualname__ = name.rpartition(".")[2]
    formula.__signature__ = signature
    words = DOCS.get(op)
    formula.__doc__ = f"{formula.__name__}({parameters}): the formula of the op {op}, over tensors of te." + (f"\n\n{words}" if words else "")
    return formula
