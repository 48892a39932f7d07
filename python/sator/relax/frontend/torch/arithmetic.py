"""Element-wise functions of two operands, with torch's promotion of dtypes."""
from sator import relax, tir
from sator.error import TVMError
from sator.relax.frontend.torch.table import FUNCTIONS, converter, dtype, is_expr, rank


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


def cast(reader, x, wanted):
    """A value, or a number as a constant, of a dtype; a symbolic size as a tensor of rank 0."""
    if isinstance(x, tir.PrimExpr) and not hasattr(x, "value"):
        x = reader.emit(relax.op.reshape(reader.emit(relax.op.shape_to_tensor(relax.ShapeExpr([x]))), []))
    if not is_expr(x):
        return relax.const(getattr(x, "value", x), wanted)
    return x if dtype(x) == wanted else reader.emit(relax.op.astype(x, wanted))


def promoted(reader, *operands):
    """The operands in their common dtype."""
    wanted = result_dtype(*operands)
    return [cast(reader, x, wanted) for x in operands]


def _binary(name, python=None):
    def convert(reader, a, b, alpha=1, **_options):
        if not is_expr(a) and not is_expr(b):
            return python(a, b)
        a, b = promoted(reader, a, b)
        if alpha != 1:
            b = reader.emit(relax.op.multiply(b, relax.const(alpha, dtype(a))))
        return getattr(relax.op, name)(a, b)

    return convert


for _name, _ours, _python in (
        ("add", "add", lambda a, b: a + b), ("sub", "subtract", lambda a, b: a - b), ("mul", "multiply", lambda a, b: a * b),
        ("floordiv", "floor_divide", lambda a, b: a // b), ("maximum", "maximum", max), ("minimum", "minimum", min),
        ("lt", "less", lambda a, b: a < b), ("le", "less_equal", lambda a, b: a <= b), ("gt", "greater", lambda a, b: a > b),
        ("ge", "greater_equal", lambda a, b: a >= b), ("eq", "equal", lambda a, b: a == b), ("ne", "not_equal", lambda a, b: a != b),
        ("mod", "floor_mod", lambda a, b: a % b), ("fmod", "mod", None), ("and_", "bitwise_and", lambda a, b: a & b),
        ("or_", "bitwise_or", lambda a, b: a | b), ("xor", "bitwise_xor", lambda a, b: a ^ b), ("lshift", "left_shift", lambda a, b: a << b),
        ("rshift", "right_shift", lambda a, b: a >> b), ("logical_and", "logical_and", None), ("logical_or", "logical_or", None)):
    converter(_name)(_binary(_ours, _python))


@converter("truediv", "div", "div_", "divide", "true_divide")
def _divide(reader, a, b, rounding_mode=None):
    """a / b: of integers a float32 one; rounding_mode "floor" or "trunc" rounds, and then integers stay integers."""
    if not is_expr(a) and not is_expr(b):
        return a / b
    a, b = promoted(reader, a, b)
    if rounding_mode == "floor":
        return relax.op.floor_divide(a, b)
    if rounding_mode == "trunc" and _category(dtype(a)) < 2:
        return relax.op.floor_divide(reader.emit(relax.op.subtract(a, reader.emit(relax.op.mod(a, b)))), b)
    if rounding_mode not in (None, "trunc"):
        raise TVMError(f"error: div: rounding_mode is {rounding_mode!r}\n  needs: None, \"floor\" or \"trunc\"")
    if _category(dtype(a)) < 2:
        a, b = cast(reader, a, "float32"), cast(reader, b, "float32")
    quotient = relax.op.divide(a, b)
    if rounding_mode is None:
        return quotient
    quotient = reader.emit(quotient)
    negative = reader.emit(relax.op.less(quotient, relax.const(0, dtype(quotient))))
    return relax.op.where(negative, reader.emit(relax.op.ceil(quotient)), reader.emit(relax.op.floor(quotient)))


@converter("pow")
def _power(reader, a, b):
    """a ** b; an integer tensor to the power of a number is multiplied with itself, so that it is exact."""
    if not is_expr(a) and not is_expr(b):
        return a**b
    if isinstance(b, int) and b >= 1 and _category(dtype(a)) == 1:
        result, square = None, a
        while b:
            if b & 1:
                result = square if result is None else reader.emit(relax.op.multiply(result, square))
            b >>= 1
            if b:
                square = reader.emit(relax.op.multiply(square, square))
        return result
    return relax.op.power(*promoted(reader, a, b))


for _alias, _name in (("iadd", "add"), ("isub", "sub"), ("imul", "mul"), ("add_", "add"), ("sub_", "sub"), ("mul_", "mul"),
                      ("multiply", "mul"), ("subtract", "sub"), ("floor_divide", "floordiv"), ("remainder", "mod"),
                      ("bitwise_and", "and_"), ("bitwise_or", "or_"), ("bitwise_xor", "xor")):
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
        from sator.relax.frontend.torch.values import dtype_of

        x = cast(reader, x, sum_dtype(x) if dtype is None else dtype_of(dtype))
        return getattr(relax.op, name)(x, None if dim in ((), []) else dim, keepdims=keepdim)

    return convert


def sum_dtype(x):
    """Integers and booleans are added up as int64."""
    return dtype(x) if _category(dtype(x)) == 2 else "int64"


converter("sum")(_sums("sum"))


@converter("mean")
def _mean(reader, x, dim=None, keepdim=False, dtype=None):
    from sator.relax.frontend.torch.values import dtype_of

    x = x if dtype is None else cast(reader, x, dtype_of(dtype))
    return relax.op.mean(x, dim, keepdims=keepdim)


@converter("cumsum")
def _cumsum(reader, x, dim, dtype=None):
    from sator.relax.frontend.torch.values import dtype_of

    return relax.op.cumsum(cast(reader, x, sum_dtype(x) if dtype is None else dtype_of(dtype)), axis=dim)
