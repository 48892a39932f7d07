"""Formulas whose arguments are not those of an op: TVM v0.17's names, order and defaults."""
from sator import _core, te, tir
from sator.topi.signatures import with_one_dtype
from sator.topi.utils import get_const_tuple

__all__ = ["arange", "argmax", "argmin", "argsort", "cast", "cumprod", "cumsum", "einsum", "elemwise_sum", "expand_dims", "full", "full_like",
           "gather_nd", "identity", "layout_transform", "left_shift", "log10", "log2", "matmul", "ndarray_size", "one_hot", "right_shift", "shape",
           "sort", "strided_slice", "take", "tensordot", "topk", "trilu", "trunc"]


def _no(name, what, hint):
    raise ValueError(f"{name}: {what}\n  needs: a form that the compiler has\n  hint:  {hint}")


def _product(tensor_a, tensor_b, transp_a=False, transp_b=False, out_dtype=None):
    m, k = (tensor_a.shape[1], tensor_a.shape[0]) if transp_a else tensor_a.shape
    n = tensor_b.shape[0] if transp_b else tensor_b.shape[1]
    axis = te.reduce_axis((0, k), name="k")
    dtype = out_dtype or tensor_a.dtype

    def element(i, j):
        a = tensor_a[axis, i] if transp_a else tensor_a[i, axis]
        b = tensor_b[j, axis] if transp_b else tensor_b[axis, j]
        return te.sum(a.astype(dtype) * b.astype(dtype), axis=axis)

    return te.compute((m, n), element, name="T_matmul_" + "NT"[bool(transp_a)] + "NT"[bool(transp_b)])


def matmul(a, b, transp_a=False, transp_b=False):
    """The product of two matrices, each transposed first where that is said; its block is called T_matmul_NN, _NT, _TN or _TT.

    a   [m, k], or [k, m] transposed
    b   [k, n], or [n, k] transposed
    """
    return _product(a, b, transp_a, transp_b)


def _shift(name, builtin):
    def formula(lhs, rhs):
        from sator.script import tir as T

        a, b = with_one_dtype([lhs, rhs])
        if not isinstance(b, te.Tensor):
            return te.compute(a.shape, lambda *i: getattr(T, builtin)(a(*i), b), name="T_" + name)
        if len(a.shape) != len(b.shape) or any(str(m) != str(n) for m, n in zip(a.shape, b.shape)):
            raise ValueError(f"{name} of shapes {list(a.shape)} and {list(b.shape)}\n  needs: one shape, or a number of bits\n  hint:  "
                             "topi.broadcast_to first")
        return te.compute(a.shape, lambda *i: getattr(T, builtin)(a(*i), b(*i)), name="T_" + name)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"{name}(lhs, rhs): the bits of integers moved by rhs places, of a tensor of the same shape or a number."
    return formula


left_shift, right_shift = _shift("left_shift", "shift_left"), _shift("right_shift", "shift_right")


def _by_element(name):
    def formula(x):
        return te.compute(x.shape, lambda *i: getattr(tir, name)(x(*i)), name="T_" + name)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"{name}(x): tir.{name} of each element."
    return formula


trunc, log2, log10 = _by_element("trunc"), _by_element("log2"), _by_element("log10")


def identity(x):
    """The same elements."""
    return te.compute(x.shape, lambda *i: x(*i), name="T_identity")


def cast(x, dtype, span=None):
    """The elements in another dtype; of an expression too."""
    return _core.formula("astype", [x], {"dtype": dtype}) if isinstance(x, te.Tensor) else x.astype(dtype)


def full(shape, dtype, fill_value):
    """A tensor of one value."""
    value = _core.const(fill_value, dtype) if isinstance(fill_value, (bool, int, float)) else fill_value
    return _core.formula("full", [], {"shape": tuple(shape), "fill_value": value, "dtype": dtype})


def full_like(x, fill_value):
    """A tensor of one value, of the shape and dtype of x."""
    return full(x.shape, x.dtype, fill_value)


def arange(start, stop=None, step=1, dtype="float32"):
    """start, start + step, ... below stop; from 0 to start where there is no stop."""
    start, stop = (0, start) if stop is None else (start, stop)
    values = [_core.const(v, dtype) if isinstance(v, (int, float)) else v for v in (start, stop, step)]
    return _core.formula("arange", values, {"dtype": dtype})


def elemwise_sum(xs):
    """The sum of tensors of one shape. Errors: TypeError, they are no list."""
    if not isinstance(xs, (list, tuple)) or not xs:
        raise TypeError(f"elemwise_sum of {xs}\n  needs: a list of tensors")

    def element(*i):
        total = xs[0](*i)
        for x in xs[1:]:
            total = total + x(*i)
        return total

    return te.compute(xs[0].shape, element, name="T_elemwise_sum")


def shape(array, dtype="int32"):
    """The extents of a tensor, as a tensor of one dimension."""
    def element(i):
        value = _core.const(0, dtype)
        for k, extent in reversed(list(enumerate(array.shape))):
            value = tir.Select(i == k, extent.astype(dtype), value)
        return value

    return te.compute((len(array.shape),), element, name="T_shape")


def ndarray_size(array, dtype="int32"):
    """How many elements a tensor has, as a tensor of rank 0."""
    def element():
        count = _core.const(1, dtype)
        for extent in array.shape:
            count = count * extent.astype(dtype)
        return count

    return te.compute((), element, name="ndarray_size")


def expand_dims(a, axis, num_newaxis=1):
    """num_newaxis dimensions of one element, before the dimension `axis`."""
    first = axis if axis >= 0 else axis + len(a.shape) + 1
    return _core.formula("expand_dims", [a, list(range(first, first + num_newaxis))], {})


def strided_slice(a, begin, end, strides=None, axes=None, slice_mode="end"):
    """The elements begin, begin + stride, ... below end of each dimension of `axes`, by default of the first ones.

    slice_mode   "end"; or "size": `end` has numbers of elements, -1 for all that remain
    """
    if slice_mode not in ("end", "size"):
        _no("strided_slice", f"slice_mode is {slice_mode!r}", "\"end\" or \"size\"")
    rank = len(a.shape)
    begin, end = list(get_const_tuple(begin)), list(get_const_tuple(end))
    axes = [int(k) % rank for k in (range(len(begin)) if axes is None else axes)]
    strides = [int(s) for s in get_const_tuple(strides or [1])]
    strides = [1] * len(axes) if slice_mode == "size" else strides * (len(axes) if len(strides) == 1 else 1)
    first, step, extents = [0] * rank, [1] * rank, list(a.shape)
    for k, low, high, stride in zip(axes, begin, end, strides):
        extent = a.shape[k]
        if slice_mode == "size":
            high = extent if isinstance(high, int) and high == -1 else low + high
        known = get_const_tuple([low, high, extent])
        if all(isinstance(v, int) for v in known):
            chosen = range(*slice(known[0], known[1], stride).indices(known[2]))
            first[k], extents[k] = chosen.start, len(chosen)
        else:
            first[k], extents[k] = low, _core.binary("//", high - low + stride - 1, stride) if stride > 1 else high - low
        step[k] = stride
    return te.compute(extents, lambda *i: a(*[p if b == 0 and s == 1 and isinstance(b, int) else b + p * s for p, b, s in zip(i, first, step)]),
                      name="T_strided_slice")


def take(a, indices, axis=None, batch_dims=0, mode="clip"):
    """The elements, or the parts along `axis`, that the indices name; of the elements counted row by row without an axis.

    mode   what an index outside gives: "clip" the nearest one, "wrap" counts on from the other end, "fast" must not happen
    Errors: ValueError for batch_dims other than 0, and another mode.
    """
    if batch_dims != 0 or mode not in ("clip", "wrap", "fast"):
        _no("take", f"batch_dims is {batch_dims}, mode is {mode!r}", "batch_dims 0, and \"clip\", \"wrap\" or \"fast\"")
    if axis is None:
        count = 1
        for extent in a.shape:
            count = count * extent
        a, axis = _core.formula("reshape", [a, (count,)], {}), 0
    axis, rank = axis % len(a.shape), len(indices.shape)
    extent = a.shape[axis].astype(indices.dtype)

    def element(*i):
        at = indices(*i[axis:axis + rank])
        if mode == "clip":
            at = tir.min(tir.max(at, _core.const(0, indices.dtype)), extent - 1)
        elif mode == "wrap":
            at = tir.floormod(at, extent)
        return a(*i[:axis], at, *i[axis + rank:])

    return te.compute([*a.shape[:axis], *indices.shape, *a.shape[axis + 1:]], element, name="T_take")


def gather_nd(a, indices):
    """The parts of a that the columns of indices [m, ...] name: the first dimension has one index per dimension of a."""
    count = int(indices.shape[0])
    rest = len(indices.shape) - 1
    return te.compute([*indices.shape[1:], *a.shape[count:]],
                      lambda *i: a(*[indices(k, *i[:rest]) for k in range(count)], *i[rest:]), name="T_gather_nd")


def one_hot(indices, on_value, off_value, depth, axis, dtype):
    """on_value where the new dimension `axis` of `depth` elements has the index, off_value elsewhere."""
    at = len(indices.shape) if axis == -1 else axis
    on, off = (_core.const(v, dtype) if isinstance(v, (int, float)) else v.astype(dtype) for v in (on_value, off_value))
    return te.compute([*indices.shape[:at], depth, *indices.shape[at:]],
                      lambda *i: tir.Select(indices(*i[:at], *i[at + 1:]) == i[at].astype(indices.dtype), on, off), name="T_one_hot")


def tensordot(a, b, axes):
    """The sum of products over the last dimensions of a and the first of b (axes a number), or over pairs of dimensions."""
    if isinstance(axes, int):
        left, right = list(range(len(a.shape) - axes, len(a.shape))), list(range(axes))
    else:
        left, right = ([k] if isinstance(k, int) else list(k) for k in axes)
    left, right = [k % len(a.shape) for k in left], [k % len(b.shape) for k in right]
    summed = [te.reduce_axis((0, a.shape[k]), name=f"k{n}") for n, k in enumerate(left)]
    free_a, free_b = [k for k in range(len(a.shape)) if k not in left], [k for k in range(len(b.shape)) if k not in right]

    def element(*i):
        at_a, at_b = dict(zip(left, summed)), dict(zip(right, summed))
        at_a.update(zip(free_a, i))
        at_b.update(zip(free_b, i[len(free_a):]))
        product = a(*[at_a[k] for k in range(len(a.shape))]) * b(*[at_b[k] for k in range(len(b.shape))])
        return te.sum(product, axis=summed) if summed else product

    return te.compute([*[a.shape[k] for k in free_a], *[b.shape[k] for k in free_b]], element, name="T_tensordot")


def einsum(subscripts, *operand):
    """Einstein's sum of tensors: einsum("ij,jk->ik", a, b)."""
    return _core.formula("einsum", [list(operand)], {"subscripts": subscripts})


def trilu(data, k, upper):
    """The part of matrices on and above their k-th diagonal, or on and below it, with zeros in the other part."""
    return _core.formula("triu" if upper else "tril", [data, _core.const(k, "int64") if isinstance(k, int) else k], {})


def layout_transform(array, src_layout, dst_layout, schedule_rule="None"):
    """The elements in another layout: "NCHW" as "NHWC" or "NCHW4c"."""
    layouts = tir.bijective_layout(src_layout, dst_layout)
    return te.compute(layouts.forward_shape(array.shape), lambda *i: array(*layouts.backward_index(i)), name="T_layout_trans")


def sort(data, axis=-1, is_ascend=1):
    """The elements along `axis` in order, the smallest first, or the largest first where is_ascend is 0."""
    return _core.formula("sort", [data], {"axis": axis, "descending": not is_ascend})


def argsort(data, valid_count=None, axis=-1, is_ascend=1, dtype="float32"):
    """The positions of the elements along `axis` in order. Errors: ValueError for valid_count, which no op has."""
    if valid_count is not None:
        _no("argsort", "valid_count is given", "None: all elements are valid")
    return _core.formula("argsort", [data], {"axis": axis, "descending": not is_ascend, "dtype": dtype})


def topk(data, k=1, axis=-1, ret_type="both", is_ascend=False, dtype="int64"):
    """The k largest elements along `axis`, or the smallest where is_ascend: ret_type "both", "values" or "indices"."""
    return _core.formula("topk", [data], {"k": k, "axis": axis, "ret_type": ret_type, "largest": not is_ascend, "dtype": dtype})


def _scan(name):
    def formula(data, axis=None, dtype=None, exclusive=None):
        options = {"axis": axis, "exclusive": bool(exclusive)}
        return _core.formula(name, [data], options if dtype is None else {**options, "dtype": dtype})

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"{name}(data, axis=None, dtype=None, exclusive=None): the formula of the op {name}; exclusive leaves each element itself out."
    return formula


cumsum, cumprod = _scan("cumsum"), _scan("cumprod")


def _position(name):
    def formula(data, axis=None, keepdims=False, select_last_index=False):
        if select_last_index:
            _no(name, "select_last_index is given", "the first of equal elements is chosen")
        return _core.formula(name, [data], {"axis": axis, "keepdims": bool(keepdims)})

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"{name}(data, axis=None, keepdims=False, select_last_index=False): the formula of the op {name}; the first of equal elements."
    return formula


argmax, argmin = _position("argmax"), _position("argmin")


def _truth(name, fold, identity_value):
    def formula(data, axis=None, keepdims=False):
        rank = len(data.shape)
        chosen = sorted(k % rank for k in (range(rank) if axis is None else [axis] if isinstance(axis, int) else axis))
        reducer = te.comm_reducer(fold, lambda dtype: tir.const(identity_value, dtype), name=name)
        summed = {k: te.reduce_axis((0, data.shape[k]), name=f"k{k}") for k in chosen}
        kept = [k for k in range(rank) if k not in summed]
        out = [1 if k in summed else data.shape[k] for k in range(rank)] if keepdims else [data.shape[k] for k in kept]

        def element(*i):
            places = iter([p for k, p in enumerate(i) if k not in summed] if keepdims else i)
            return reducer(data(*[summed[k] if k in summed else next(places) for k in range(rank)]), axis=list(summed.values()))

        return te.compute(out, element, name=f"T_{name}")

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"{name}(data, axis=None, keepdims=False): whether {name} elements of a boolean tensor are true, along the axes."
    return formula


# Under these names in topi alone: here `all` is Python's.
all_, any_ = _truth("all", lambda x, y: tir.all(x, y), True), _truth("any", lambda x, y: tir.any(x, y), False)
