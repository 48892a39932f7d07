"""Patterns that backends ask for, as pairs of a pattern and {name: part of it}: TVM's relax.backend.patterns."""
from sator.relax.dpl import is_op, wildcard


def _finished(out, parts, with_bias, activation):
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.add")(out, parts["bias"])
    return (is_op(activation)(out) if activation else out), parts


def make_fused_bias_activation_pattern(op_name, with_bias=False, activation=None):
    """A call of the op with two arguments, lhs and rhs; a bias added and an activation, the name of an op, where they are asked for."""
    parts = {"lhs": wildcard(), "rhs": wildcard()}
    parts["root"] = is_op(op_name)(parts["lhs"], parts["rhs"])
    return _finished(parts["root"], parts, with_bias, activation)


def make_conv2d_pattern(with_bias=False, activation=None):
    """A convolution of input with weight, as make_fused_bias_activation_pattern."""
    parts = {"input": wildcard(), "weight": wildcard()}
    parts["root"] = is_op("relax.nn.conv2d")(parts["input"], parts["weight"])
    return _finished(parts["root"], parts, with_bias, activation)


def make_matmul_pattern(with_bias=False, activation=None, transposed_rhs=False):
    """A product of lhs and rhs, which permute_dims gives where transposed_rhs says so; as make_fused_bias_activation_pattern."""
    parts = {"lhs": wildcard(), "rhs": wildcard()}
    rhs = is_op("relax.permute_dims")(parts["rhs"]) if transposed_rhs else parts["rhs"]
    parts["root"] = is_op("relax.matmul")(parts["lhs"], rhs)
    return _finished(parts["root"], parts, with_bias, activation)


def make_residual_block_pattern(node_output, binary_op="relax.add", activation=None):
    """A pattern, or a pair as of this module, and what an op adds to it on either side."""
    out, parts = node_output if isinstance(node_output, tuple) else (node_output, {})
    residual, op = wildcard(), is_op(binary_op)
    out = op(out, residual) | op(residual, out)
    return (is_op(activation)(out) if activation else out), {**parts, "residual": residual}


def make_attention_pattern(with_bias=False, var_len=False):
    """Attention of query, key and value; with a bias, or of sequences of several lengths."""
    names = ["query", "key", "value", *(["bias"] if with_bias else ["seqstart_q", "seqstart_k", "max_seqlen_q", "max_seqlen_k"] if var_len else [])]
    parts = {name: wildcard() for name in names}
    op = "attention_bias" if with_bias else "attention_var_len" if var_len else "attention"
    return is_op(f"relax.nn.{op}")(*parts.values()), parts


def make_layer_norm_pattern():
    """A layer_norm of three arguments, without names."""
    return is_op("relax.nn.layer_norm")(wildcard(), wildcard(), wildcard()), {}
