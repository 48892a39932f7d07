"""Formulas of neural networks' ops."""
from sator.topi.formulas import formula_of, matmul as _matmul


def matmul(tensor_a, tensor_b, bias=None, out_dtype=None, transpose_a=False, transpose_b=False, **_options):
    """As topi.matmul, and a bias added to each row."""
    from sator import topi

    product = _matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)
    return product if bias is None else topi.add(product, bias)


def dense(data, weight, bias=None, out_dtype=None, **_options):
    """data @ weight.T: weight is [out, in]."""
    return matmul(data, weight, bias, out_dtype, False, True)


def __getattr__(name):
    return formula_of("nn." + name, "nn." + name)
