"""Ops that draw tokens: multinomial_from_uniform, and the choice among the likeliest (top_p, top_k)."""
from sator import relax, te, tir
from sator.relax.frontend.nn.core import Tensor, wrap_nested


def multinomial_from_uniform(prob, uniform_sample, sample_indices=None, dtype="int64", name="multinomial_from_uniform"):
    """Draws from rows of probabilities, each of which sums to 1.

    prob             [rows, vocab]
    uniform_sample   [n, 1]     numbers from 0 to 1, not 1
    sample_indices   [n, 1]     the row of each draw; without it n is rows, and each draws once
    The result is [n, 1] of `dtype`: the first column whose running sum exceeds the number.
    Errors: ValueError for other shapes.
    """
    indices = _rows(name, prob, uniform_sample, sample_indices)
    return wrap_nested(relax.op.multinomial_from_uniform(prob._expr, uniform_sample._expr, indices._expr, dtype), name)


def sample_top_p_top_k_from_sorted_prob(sorted_prob, sorted_index, top_p, top_k, uniform_sample, sample_indices=None):
    """Draws from the likeliest columns of each row: from as few as reach top_p together, and at most top_k.

    sorted_prob, sorted_index       [rows, vocab]   probabilities from large to small, and the columns they come from
    top_p, top_k                    [rows, 1]
    uniform_sample, sample_indices  [n, 1]          as of multinomial_from_uniform
    The result is [n, 1] of sorted_index's dtype.
    """
    from sator.relax.frontend.nn.op import cumsum, tensor_expr_op

    indices = _rows("sample_top_p_top_k_from_sorted_prob", sorted_prob, uniform_sample, sample_indices)
    def kept_sum(sums, p, k):
        vocab = sums.shape[1]
        j = te.reduce_axis((0, vocab), "j")
        return te.compute((sums.shape[0], 1), lambda i, _: te.min(
            tir.Select(_is_last(sums, p, k, i, j, vocab), sums[i, j], tir.max_value(sums.dtype)), axis=j), name="kept_sum")

    def drawn(sums, kept, sample, rows):
        vocab = sums.shape[1]
        j = te.reduce_axis((0, vocab), "j")
        return te.compute((sample.shape[0], 1), lambda i, _: te.sum(tir.Select(
            tir.all(j + 1 < vocab, sample[i, 0] >= sums[rows[i, 0], j] / kept[rows[i, 0], 0]), tir.const(1, "int64"), tir.const(0, "int64")),
            axis=j), name="position")

    def column(order, position, rows):
        return te.compute(position.shape, lambda i, _: order[rows[i, 0], position[i, 0]], name="column")

    sums = cumsum(sorted_prob, axis=1)
    kept = tensor_expr_op(kept_sum, "get_renorm_prob", [sums, top_p, top_k])
    position = tensor_expr_op(drawn, "get_position", [sums, kept, uniform_sample, indices])
    return tensor_expr_op(column, "get_index_from_sorted", [sorted_index, position, indices])


def renormalize_top_p_top_k_prob(prob, sorted_prob, top_p, top_k):
    """Each row's likeliest columns, as few as reach top_p together and at most top_k, divided by their sum; 0 elsewhere.

    prob, sorted_prob   [rows, vocab]   probabilities, and the same from large to small
    top_p, top_k        [rows, 1]
    Columns as likely as the last of them stay too.
    """
    from sator.relax.frontend.nn.op import cumsum, sum, tensor_expr_op  # noqa: A004

    def least(ordered, sums, p, k):
        vocab = ordered.shape[1]
        j = te.reduce_axis((0, vocab), "j")
        return te.compute((ordered.shape[0], 1), lambda i, _: te.max(
            tir.Select(_is_last(sums, p, k, i, j, vocab), ordered[i, j], tir.min_value(ordered.dtype)), axis=j), name="cutoff")

    def likely(values, cutoff):
        return te.compute(values.shape, lambda i, j: tir.Select(values[i, j] >= cutoff[i, 0], values[i, j], tir.const(0, values.dtype)),
                          name="filter_with_top_p_top_k")

    cutoff = tensor_expr_op(least, "get_renorm_cutoff", [sorted_prob, cumsum(sorted_prob, axis=1), top_p, top_k])
    kept = tensor_expr_op(likely, "filter_with_top_p_top_k", [prob, cutoff])
    return kept / sum(kept, axis=1, keepdims=True)


def _is_last(sums, top_p, top_k, i, j, vocab):
    """Whether no column behind j is kept: sums reach top_p, or there are top_k, or the row ends."""
    return tir.any(sums[i, j] >= top_p[i, 0], tir.Cast("int64", j) + 1 >= tir.Cast("int64", top_k[i, 0]), j + 1 >= vocab)


def _rows(name, prob, uniform_sample, sample_indices):
    import numpy

    n = uniform_sample.shape[0]
    if sample_indices is None:
        if prob.shape[0] != n:
            raise ValueError(f"{name}: {n} samples of {prob.shape[0]} rows\n  needs: one sample a row\n  hint:  sample_indices says the row of each")
        return Tensor.from_const(numpy.arange(n).reshape(n, 1))
    if sample_indices.shape != uniform_sample.shape:
        raise ValueError(f"{name}: sample_indices of shape {sample_indices.shape} for samples of shape {uniform_sample.shape}\n  needs: one shape")
    return sample_indices
