"""What formulas are called by how their elements depend on each other: TVM's tags of operations, `tensor.op.tag`."""

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"


def is_broadcast(tag):
    """Whether the formula is element-wise, also where operands repeat."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag):
    """Whether each element depends on one element of each operand."""
    return tag.startswith((ELEMWISE, BROADCAST, INJECTIVE))
