"""Functions of mathematics: of one tensor, of elements of several, statistics."""
import math

from sator import relax
from sator.relax.frontend.torch.arithmetic import cast, in_float32, is_symbolic, promoted, sum_dtype, trunc
from sator.relax.frontend.torch.table import FUNCTIONS, apply, const_like, converter, dtype, is_expr, rank, shape
from sator.relax.frontend.torch.values import dtype_of


def _is_float(x):
    return dtype(x).startswith(("float", "bfloat"))


def of_floats(convert):
    """A converter that has integers and truth values as float32."""
    def converted(reader, x, *args, **options):
        return convert(reader, x if _is_float(x) else cast(reader, x, "float32"), *args, **options)

    return converted


def _unary(name):
    def convert(reader, x, *_more, **_options):
        return getattr(relax.op, name)(x)

    return convert


for _name in ("abs", "isfinite", "isinf", "isnan", "logical_not", "square"):
    converter(_name)(_unary(_name))
for _name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan",
              "tanh"):
    converter(_name)(of_floats(_unary(_name)))


@converter("neg", "negative")
def _negative(reader, x):
    return relax.op.negative(x) if is_expr(x) else -x


def _rounding(name):
    @converter(name)
    def convert(reader, x):
        return getattr(relax.op, name)(x) if _is_float(x) else x


_rounding("ceil"), _rounding("floor")


@converter("sign", "sgn")
def _sign(reader, x):
    """-1, 0 or 1; of NaN 0."""
    signs = relax.op.sign(x)
    return relax.op.where(apply(reader, "isnan", x), const_like(0, x), reader.emit(signs)) if _is_float(x) else signs


@converter("round")
@in_float32
def _round(reader, x, decimals=0):
    if decimals == 0:
        return relax.op.round(x) if _is_float(x) else x
    scale = const_like(10.0**decimals, x)
    return relax.op.divide(apply(reader, "round", apply(reader, "multiply", x, scale)), scale)


@converter("frac")
def _frac(reader, x):
    return relax.op.subtract(x, reader.emit(trunc(reader, x)))


@converter("reciprocal")
def _reciprocal(reader, x):
    return FUNCTIONS["div"](reader, 1.0, x)


@converter("log1p")
@of_floats
@in_float32
def _log1p(reader, x):
    """ln(1 + x) also where x is small beside 1: the logarithm of u = 1 + x, times what rounding made of x."""
    one = const_like(1, x)
    u = apply(reader, "add", one, x)
    kept = apply(reader, "subtract", u, one)
    logarithm = apply(reader, "log", u)
    scaled = apply(reader, "multiply", logarithm, apply(reader, "divide", x, kept))
    plain = apply(reader, "where", apply(reader, "equal", kept, x), logarithm, scaled)
    return relax.op.where(apply(reader, "equal", u, one), x, plain)


@converter("expm1")
@of_floats
@in_float32
def expm1(reader, x):
    """exp(x) - 1 also where x is small: (u - 1) x / ln u of u = exp(x). Source: Higham, "Accuracy and Stability of Numerical Algorithms", 1.14.1."""
    one = const_like(1, x)
    u = apply(reader, "exp", x)
    less_one = apply(reader, "subtract", u, one)
    near = apply(reader, "divide", apply(reader, "multiply", less_one, x), apply(reader, "log", u))
    is_near = apply(reader, "less", apply(reader, "abs", x), one)
    return relax.op.where(apply(reader, "equal", u, one), x, apply(reader, "where", is_near, near, less_one))


def _logarithm(name, base):
    @converter(name)
    @of_floats
    @in_float32
    def convert(reader, x):
        return relax.op.multiply(apply(reader, "log", x), const_like(1 / math.log(base), x))


_logarithm("log2", 2), _logarithm("log10", 10)


@converter("exp2")
@of_floats
@in_float32
def _exp2(reader, x):
    return relax.op.power(const_like(2, x), x)


@converter("erfc")
@of_floats
@in_float32
def _erfc(reader, x):
    return relax.op.subtract(const_like(1, x), apply(reader, "erf", x))


def _scaled(name, factor):
    @converter(name)
    @of_floats
    @in_float32
    def convert(reader, x):
        return relax.op.multiply(x, const_like(factor, x))


_scaled("deg2rad", math.pi / 180), _scaled("rad2deg", 180 / math.pi)


@converter("nan_to_num")
def _nan_to_num(reader, x, nan=None, posinf=None, neginf=None):
    import numpy

    if not _is_float(x):
        return x
    finite = 3.3895313892515355e38 if dtype(x) == "bfloat16" else float(numpy.finfo(dtype(x)).max)
    is_number = apply(reader, "equal", x, x)
    greatest, least = (const_like(sign * math.inf, x) for sign in (1, -1))
    out = apply(reader, "where", is_number, x, const_like(0 if nan is None else nan, x))
    out = apply(reader, "where", apply(reader, "equal", x, greatest), const_like(finite if posinf is None else posinf, x), out)
    return relax.op.where(apply(reader, "equal", x, least), const_like(-finite if neginf is None else neginf, x), out)


# Of several tensors.


@converter("atan2", "arctan2")
def _atan2(reader, a, b):
    return relax.op.atan2(*promoted(reader, a, b))


@converter("addcmul")
@in_float32
def _addcmul(reader, x, a, b, value=1):
    product = apply(reader, "multiply", a, b)
    return relax.op.add(x, product if value == 1 else apply(reader, "multiply", product, const_like(value, x)))


@converter("addcdiv")
@in_float32
def _addcdiv(reader, x, a, b, value=1):
    return relax.op.add(x, apply(reader, "divide", a if value == 1 else apply(reader, "multiply", a, const_like(value, x)), b))


@converter("lerp")
@in_float32
def _lerp(reader, x, end, weight):
    """x + weight (end - x), from the end where the weight is at least 1/2. Source: lerp, aten/src/ATen/native/Lerp.h."""
    weight = weight if is_expr(weight) else const_like(weight, x)
    way = apply(reader, "subtract", end, x)
    from_start = apply(reader, "add", x, apply(reader, "multiply", weight, way))
    rest = apply(reader, "subtract", const_like(1, x), weight)
    from_end = apply(reader, "subtract", end, apply(reader, "multiply", way, rest))
    return relax.op.where(apply(reader, "less", apply(reader, "abs", weight), const_like(0.5, x)), from_start, from_end)


@converter("isclose")
def _isclose(reader, a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """|a - b| <= atol + rtol |b|, or both the same, infinity too."""
    a, b = promoted(reader, a, b)
    if not _is_float(a):
        a, b = cast(reader, a, "float32"), cast(reader, b, "float32")
    limit = apply(reader, "add", apply(reader, "multiply", apply(reader, "abs", b), const_like(rtol, b)), const_like(atol, b))
    distance = apply(reader, "abs", apply(reader, "subtract", a, b))
    is_near = apply(reader, "logical_and", apply(reader, "isfinite", distance), apply(reader, "less_equal", distance, limit))
    is_same = apply(reader, "equal", a, b)
    if equal_nan:
        is_same = apply(reader, "logical_or", is_same, apply(reader, "logical_and", apply(reader, "isnan", a), apply(reader, "isnan", b)))
    return relax.op.logical_or(is_near, is_same)


@converter("hypot")
@in_float32
def _hypot(reader, a, b):
    """sqrt(a^2 + b^2), scaled by the larger one so that no square overflows."""
    a, b = apply(reader, "abs", a), apply(reader, "abs", b)
    most, least = apply(reader, "maximum", a, b), apply(reader, "minimum", a, b)
    scaled = apply(reader, "where", apply(reader, "equal", most, least), const_like(1, a), apply(reader, "divide", least, most))
    root = apply(reader, "sqrt", apply(reader, "add", const_like(1, a), apply(reader, "multiply", scaled, scaled)))
    return relax.op.where(apply(reader, "equal", most, const_like(0, a)), const_like(0, a), apply(reader, "multiply", most, root))


@converter("cosine_similarity", method=False)
@in_float32
def _cosine_similarity(reader, a, b, dim=1, eps=1e-8):
    def length(x):
        squares = apply(reader, "sum", apply(reader, "multiply", x, x), dim, keepdims=True)
        return apply(reader, "maximum", apply(reader, "sqrt", squares), const_like(eps, x))

    scaled = apply(reader, "multiply", apply(reader, "divide", a, length(a)), apply(reader, "divide", b, length(b)))
    return relax.op.sum(scaled, dim)


@converter("logaddexp")
@in_float32
def _logaddexp(reader, a, b):
    most, least = apply(reader, "maximum", a, b), apply(reader, "minimum", a, b)
    difference = apply(reader, "where", apply(reader, "equal", most, least), const_like(0, a), apply(reader, "subtract", least, most))
    return relax.op.add(most, reader.emit(_log1p(reader, apply(reader, "exp", difference))))


@converter("logsumexp")
@of_floats
@in_float32
def _logsumexp(reader, x, dim, keepdim=False):
    most = apply(reader, "max", x, dim, keepdims=True)
    shift = apply(reader, "where", apply(reader, "isfinite", most), most, const_like(0, x))
    total = apply(reader, "sum", apply(reader, "exp", apply(reader, "subtract", x, shift)), dim, keepdims=True)
    out = apply(reader, "add", apply(reader, "log", total), shift)
    return out if keepdim else relax.op.squeeze(out, dim)


# Statistics.


def _count(reader, x, dim):
    """How many elements `dim` has together: a number, or a tensor where sizes are symbolic."""
    count = 1
    for axis in range(rank(x)) if dim is None else dim if isinstance(dim, (list, tuple)) else [dim]:
        count = count * shape(x)[axis]
    return cast(reader, count, dtype(x)) if is_symbolic(count) else int(count)


def _variance(reader, x, dim, unbiased, keepdim, correction):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    dim = None if dim in ((), []) else dim
    out = relax.op.variance(x, dim, keepdims=keepdim)
    less = correction if correction is not None else 0 if unbiased is False else 1
    if less == 0:
        return out
    count = _count(reader, x, dim)
    if not is_expr(count):
        return relax.op.multiply(reader.emit(out), const_like(count / (count - less) if count > less else math.nan if count == less else math.inf, x))
    total = apply(reader, "multiply", reader.emit(out), count)
    return relax.op.divide(total, apply(reader, "subtract", count, const_like(less, x)))


def _spread(name, of_variance):
    @converter(name)
    @in_float32
    def convert(reader, x, dim=None, unbiased=True, keepdim=False, correction=None):
        """Of a sample (divided by the count less one) unless unbiased=False or correction=0."""
        return of_variance(reader, _variance(reader, x, dim, unbiased, keepdim, correction))

    @converter(name + "_mean")
    @in_float32
    def with_mean(reader, x, dim=None, unbiased=True, keepdim=False, correction=None):
        whole = isinstance(dim, bool) or dim in ((), [])
        return reader.emit(convert(reader, x, dim, unbiased, keepdim, correction)), apply(reader, "mean", x, None if whole else dim, keepdims=keepdim)


_spread("var", lambda reader, variance: variance), _spread("std", lambda reader, variance: relax.op.sqrt(reader.emit(variance)))


@converter("prod")
@in_float32
def _prod(reader, x, dim=None, keepdim=False, dtype=None):
    return relax.op.prod(cast(reader, x, sum_dtype(x) if dtype is None else dtype_of(dtype)), dim, keepdims=keepdim)


@converter("count_nonzero")
def _count_nonzero(reader, x, dim=None):
    is_one = x if dtype(x) == "bool" else apply(reader, "not_equal", x, const_like(0, x))
    return relax.op.sum(apply(reader, "astype", is_one, "int64"), dim)


def _over_truths(name, reduction):
    @converter(name)
    def convert(reader, x, dim=None, keepdim=False):
        truths = apply(reader, "astype", x if dtype(x) == "bool" else apply(reader, "not_equal", x, const_like(0, x)), "int32")
        return relax.op.astype(apply(reader, reduction, truths, dim, keepdims=keepdim), "uint8" if dtype(x) == "uint8" else "bool")


_over_truths("any", "max"), _over_truths("all", "min")
