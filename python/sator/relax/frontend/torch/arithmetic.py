"""Element-wise functions of two operands, with torch's promotion of dtypes."""
import functools

from sator import relax, tir
from sator.error import TVMError
from sator.relax.frontend.torch.table import FUNCTIONS, apply, const_like, converter, dtype, is_expr, rank
from sator.relax.frontend.torch.values import dtype_of


def _category(name):
    """0 for bool, 1 for integers, 2 for floating dtypes."""
    return 0 if name == "bool" else 1 if name.startswith(("int", "uint")) else 2


def _wider(a, b):
    """The dtype that two tensors of the same rank have together."""
    if a == b:
        return a
    if _category(a) != _category(b):
        return max(a, b, key=_category)
    bits = {d: int("".join(c for c in d.replace("bfloat", "") if c.isdigit())) for d in (a, b)}
    if bits[a] == bits[b]:
        return "float32" if _category(a) == 2 else f"int{2 * bits[a]}"  # float16 and bfloat16; uint8 and int8
    return max(a, b, key=bits.get)


def result_dtype(*operands):
    """The dtype of a result. Tensors with dimensions decide; a tensor of rank 0, then a number, counts only where its category is higher.

    Source: torch.result_type, "Type Promotion" of torch's page on tensor attributes.
    """
    groups = [[], [], []]
    for x in operands:
        if is_expr(x):
            groups[0 if rank(x) else 1].append(dtype(x))
        else:
            groups[2].append("bool" if isinstance(x, bool) else "int64" if isinstance(x, (int, tir.PrimExpr)) else "float32")
    result = None
    for group in groups:
        for d in group:
            if result is None or _category(d) > _category(result):
                result = d
            elif d in groups[0] or not groups[0] and d in groups[1] and group is groups[1]:
                result = _wider(result, d)
    return result


def is_symbolic(x):
    """Whether a value is a size that only a call knows."""
    return isinstance(x, tir.PrimExpr) and not hasattr(x, "value")


def of_numbers(reader, name, python, a, b, is_float=False):
    """What an operator gives of two numbers: a number too; a tensor of rank 0 where a size that only a call knows is one and the result is no integer."""
    if any(map(is_symbolic, (a, b))) and (is_float or any(isinstance(x, float) for x in (a, b))):
        return getattr(relax.op, name)(cast(reader, a, "float32"), cast(reader, b, "float32"))
    return python(a, b)


def cast(reader, x, wanted):
    """A value, or a number as a constant, of a dtype; a symbolic size as a tensor of rank 0."""
    if is_symbolic(x):
        x = reader.emit(relax.op.reshape(reader.emit(relax.op.shape_to_tensor(relax.ShapeExpr([x]))), []))
    if not is_expr(x):
        return relax.const(getattr(x, "value", x), wanted)
    return x if dtype(x) == wanted else reader.emit(relax.op.astype(x, wanted))


def promoted(reader, *operands):
    """The operands in their common dtype."""
    wanted = result_dtype(*operands)
    return [cast(reader, x, wanted) for x in operands]


_NARROW = ("float16", "bfloat16")


def in_float32(convert):
    """A converter that computes tensors of 16 bits as float32 and gives their dtype: inside of an operator torch rounds nothing."""
    @functools.wraps(convert)
    def widened(reader, x, *args, **options):
        narrow = dtype(x)
        if narrow not in _NARROW or options.get("dtype") is not None:
            return convert(reader, x, *args, **options)

        def wide(value):
            return cast(reader, value, "float32") if is_expr(value) and dtype(value) == narrow else value

        out = convert(reader, wide(x), *map(wide, args), **{name: wide(value) for name, value in options.items()})
        if isinstance(out, tuple):
            return tuple(cast(reader, part, narrow) for part in out)
        return cast(reader, reader.emit(out), narrow)

    return widened


def _loses(number, narrow):
    """Whether a dtype of 16 bits has no such number."""
    import ml_dtypes
    import numpy

    with numpy.errstate(over="ignore"):
        kept = numpy.float32(number).astype(ml_dtypes.bfloat16 if narrow == "bfloat16" else narrow)
    return kept.astype("float32") != numpy.float32(number)


def _in_common(reader, compute, *operands):
    """What `compute` gives of operands in their common dtype: as float32 where one is a number that a dtype of 16 bits has not."""
    wanted = result_dtype(*operands)
    numbers = [x for x in operands if isinstance(x, (int, float)) and not isinstance(x, bool)]
    if wanted not in _NARROW or not any(_loses(n, wanted) for n in numbers):
        return compute(*(cast(reader, x, wanted) for x in operands))
    return cast(reader, reader.emit(compute(*(cast(reader, x, "float32") for x in operands))), wanted)


def _binary(name, python=None):
    def convert(reader, a, b, **_options):
        if not is_expr(a) and not is_expr(b):
            return of_numbers(reader, name, python, a, b)
        return getattr(relax.op, name)(*promoted(reader, a, b))

    return convert


def _sum_or_product(name, of_bools, python):
    """Sums and products, of which torch takes truth values too."""
    def convert(reader, a, b, alpha=1, **_options):
        if not is_expr(a) and not is_expr(b):
            return of_numbers(reader, name, python, a, b if alpha == 1 else of_numbers(reader, "multiply", lambda x, y: x * y, b, alpha))
        if result_dtype(a, b) == "bool" and of_bools:
            return getattr(relax.op, of_bools)(*promoted(reader, a, b))
        if is_expr(alpha) or alpha != 1:
            scaled = _in_common(reader, relax.op.multiply, b, alpha) if is_expr(b) else of_numbers(reader, "multiply", lambda x, y: x * y, b, alpha)
            b = reader.emit(scaled)
        return _in_common(reader, getattr(relax.op, name), a, b)

    return convert


for _name, _ours, _of_bools, _python in (("add", "add", "logical_or", lambda a, b: a + b), ("sub", "subtract", None, lambda a, b: a - b),
                                         ("mul", "multiply", "logical_and", lambda a, b: a * b)):
    converter(_name)(_sum_or_product(_ours, _of_bools, _python))


for _name, _ours, _python in (
        ("maximum", "maximum", max), ("minimum", "minimum", min),
        ("lt", "less", lambda a, b: a < b), ("le", "less_equal", lambda a, b: a <= b), ("gt", "greater", lambda a, b: a > b),
        ("ge", "greater_equal", lambda a, b: a >= b), ("eq", "equal", lambda a, b: a == b), ("ne", "not_equal", lambda a, b: a != b),
        ("mod", "floor_mod", lambda a, b: a % b), ("fmod", "mod", None), ("and_", "bitwise_and", lambda a, b: a & b),
        ("or_", "bitwise_or", lambda a, b: a | b), ("xor", "bitwise_xor", lambda a, b: a ^ b), ("lshift", "left_shift", lambda a, b: a << b),
        ("rshift", "right_shift", lambda a, b: a >> b), ("logical_and", "logical_and", None), ("logical_or", "logical_or", None)):
    converter(_name)(_binary(_ours, _python))


@converter("sym_float")
def _sym_float(reader, x):
    return cast(reader, x, "float32") if is_symbolic(x) else float(x)


@converter("sym_max")
def _sym_max(reader, a, b):
    return of_numbers(reader, "maximum", tir.max if is_symbolic(a) or is_symbolic(b) else max, a, b)


@converter("sym_min")
def _sym_min(reader, a, b):
    return of_numbers(reader, "minimum", tir.min if is_symbolic(a) or is_symbolic(b) else min, a, b)


@converter("rsub")
def _rsub(reader, a, b, alpha=1):
    return FUNCTIONS["sub"](reader, b, a, alpha)


@converter("bitwise_not", "invert", "__invert__")
def _bitwise_not(reader, x):
    return relax.op.logical_not(x) if dtype(x) == "bool" else relax.op.bitwise_not(x)


def _quotient_rounded_down(reader, a, b):
    """The whole number below a / b, found by the remainder as Python does: 1.0 // 0.1 is 9. Source: div_floor_floating, c10/util/generic_math.h."""
    remainder = apply(reader, "mod", a, b)
    zero, one = const_like(0, a), const_like(1, a)
    quotient = apply(reader, "divide", apply(reader, "subtract", a, remainder), b)
    signs_differ = apply(reader, "not_equal", apply(reader, "less", b, zero), apply(reader, "less", remainder, zero))
    is_less = apply(reader, "logical_and", apply(reader, "not_equal", remainder, zero), signs_differ)
    quotient = apply(reader, "where", is_less, apply(reader, "subtract", quotient, one), quotient)
    down = apply(reader, "floor", quotient)
    is_more = apply(reader, "greater", apply(reader, "subtract", quotient, down), const_like(0.5, a))
    down = apply(reader, "where", is_more, apply(reader, "add", down, one), down)
    return relax.op.where(apply(reader, "equal", b, zero), apply(reader, "divide", a, b), down)


@converter("floordiv", "floor_divide")
def _floor_divide(reader, a, b):
    if not is_expr(a) and not is_expr(b) and not any(isinstance(x, float) for x in (a, b)):
        return a // b
    if _category(result_dtype(a, b)) < 2:
        return relax.op.floor_divide(*promoted(reader, a, b))
    return _in_common(reader, lambda a, b: _quotient_rounded_down(reader, a, b), a, b)


@converter("truediv", "div", "div_", "divide", "true_divide")
def _divide(reader, a, b, rounding_mode=None):
    """a / b: of integers a float32 one; rounding_mode "floor" or "trunc" rounds, and then integers stay integers."""
    if rounding_mode == "floor":
        return _floor_divide(reader, a, b)
    if rounding_mode not in (None, "trunc"):
        raise TVMError(f"error: div: rounding_mode is {rounding_mode!r}\n  needs: None, \"floor\" or \"trunc\"")
    if not is_expr(a) and not is_expr(b):
        return of_numbers(reader, "divide", lambda x, y: x / y, a, b, True)
    if _category(result_dtype(a, b)) < 2:
        a, b = promoted(reader, a, b)
        if rounding_mode == "trunc":
            return relax.op.floor_divide(apply(reader, "subtract", a, apply(reader, "mod", a, b)), b)
        a, b = cast(reader, a, "float32"), cast(reader, b, "float32")
    quotient = _in_common(reader, relax.op.divide, a, b)
    return quotient if rounding_mode is None else trunc(reader, reader.emit(quotient))


@converter("trunc", "fix")
def trunc(reader, x):
    """The whole number between x and 0 that is nearest to it."""
    if _category(dtype(x)) < 2:
        return x
    return relax.op.where(apply(reader, "less", x, const_like(0, x)), apply(reader, "ceil", x), apply(reader, "floor", x))


@converter("pow")
def _power(reader, a, b):
    """a ** b; an integer tensor to the power of a number is multiplied with itself, so that it is exact."""
    if not is_expr(a) and not is_expr(b) and not is_symbolic(a) and not is_symbolic(b):
        return a**b
    if is_symbolic(a) and isinstance(b, int) and b >= 0:
        return functools.reduce(lambda product, _: product * a, range(b), 1)
    if is_expr(a) and isinstance(b, int) and b >= 1 and _category(dtype(a)) == 1:
        result, square = None, a
        while b:
            if b & 1:
                result = square if result is None else reader.emit(relax.op.multiply(result, square))
            b >>= 1
            if b:
                square = reader.emit(relax.op.multiply(square, square))
        return result
    return relax.op.power(*(promoted(reader, a, b) if is_expr(a) or is_expr(b) else [cast(reader, x, "float32") for x in (a, b)]))


for _alias, _name in (("iadd", "add"), ("isub", "sub"), ("imul", "mul"), ("add_", "add"), ("sub_", "sub"), ("mul_", "mul"),
                      ("multiply", "mul"), ("subtract", "sub"), ("remainder", "mod"), ("bitwise_and", "and_"), ("bitwise_or", "or_"),
                      ("bitwise_xor", "xor"), ("bitwise_left_shift", "lshift"), ("bitwise_right_shift", "rshift"), ("__and__", "and_"), ("__or__", "or_"),
                      ("__xor__", "xor"), ("__lshift__", "lshift"), ("__rshift__", "rshift"), ("less", "lt"), ("less_equal", "le"), ("greater", "gt"),
                      ("greater_equal", "ge"), ("not_equal", "ne")):
    converter(_alias)(FUNCTIONS[_name])


def _extremum(name, pairwise, index):
    def convert(reader, x, dim=None, keepdim=False, other=None):
        other = dim if is_expr(dim) else other
        if other is not None:
            return FUNCTIONS[pairwise](reader, x, other)
        if dim is None:
            return getattr(relax.op, name)(x)
        values = reader.emit(getattr(relax.op, name)(x, dim, keepdims=keepdim))
        return values, reader.emit(getattr(relax.op, index)(x, dim, keepdim))

    return convert


converter("max")(_extremum("max", "maximum", "argmax"))
converter("min")(_extremum("min", "minimum", "argmin"))


@converter("amax")
def _amax(reader, x, dim=None, keepdim=False):
    return relax.op.max(x, None if dim in ((), []) else dim, keepdims=keepdim)


@converter("amin")
def _amin(reader, x, dim=None, keepdim=False):
    return relax.op.min(x, None if dim in ((), []) else dim, keepdims=keepdim)


def _sums(name):
    def convert(reader, x, dim=None, keepdim=False, dtype=None):
        x = cast(reader, x, sum_dtype(x) if dtype is None else dtype_of(dtype))
        return getattr(relax.op, name)(x, None if dim in ((), []) else dim, keepdims=keepdim)

    return convert


def sum_dtype(x):
    """Integers and booleans are added up as int64."""
    return dtype(x) if _category(dtype(x)) == 2 else "int64"


converter("sum")(_sums("sum"))


@converter("mean")
def _mean(reader, x, dim=None, keepdim=False, dtype=None):
    x = x if dtype is None else cast(reader, x, dtype_of(dtype))
    return relax.op.mean(x, dim, keepdims=keepdim)


def _cumulative(name):
    @converter(name)
    @in_float32
    def convert(reader, x, dim, dtype=None):
        return getattr(relax.op, name)(cast(reader, x, sum_dtype(x) if dtype is None else dtype_of(dtype)), axis=dim)


_cumulative("cumsum"), _cumulative("cumprod")
