"""Questions about tensor programs."""
from sator import _core
from sator.tir import PrimFunc

__path__ = []  # TVM's modules below are found by sator.paths


def _functions(mod_or_func):
    """{name: tensor program} of a module, or of one function under the name main."""
    if isinstance(mod_or_func, _core.ir.IRModule):
        return {name: f for name, f in mod_or_func.functions.items() if isinstance(f, PrimFunc)}
    return {"main": mod_or_func}


def is_pure_function(func):
    """Whether calls of the function do no more than give its result: it stores nothing outside of its own memory."""
    return _core.not_pure(func) is None


def assert_pure_function(func):
    """True of a function without effects. Errors: ValueError with what has an effect."""
    reason = _core.not_pure(func)
    if reason is not None:
        raise ValueError(reason)
    return True


def verify_memory(func):
    """Whether a program for a GPU touches its tensors by threads alone. A loop that is bound to none would run on the host, which cannot.

    True of programs for other targets, and of kernels that are split from the host's code. Errors: ValueError for a program without the attribute target.
    """
    if not isinstance(func, PrimFunc):
        raise TypeError(f"verify_memory: {func!r} is a {type(func).__name__}\n  needs: a tir.PrimFunc")
    if "target" not in func.attrs:
        raise ValueError("verify_memory: the program has no attribute target\n  needs: the target that it is for\n"
                         "  hint:  func.with_attr(\"target\", sator.target.Target(\"cuda\"))")
    return not _core.is_touched_by_host(func)


def calculate_workspace_bytes(func, workspace_byte_alignment):
    """The most bytes that allocations take at one time, each rounded up to the alignment in bytes."""
    return _core.workspace_bytes(func, workspace_byte_alignment)


def calculate_constant_bytes(func, constant_byte_alignment):
    """The most bytes that constants take at one time, each rounded up to the alignment in bytes."""
    return _core.constant_bytes(func, constant_byte_alignment)


def calculate_allocated_bytes(func_or_mod):
    """{function: {storage scope: the most bytes that its allocations take at one time}}."""
    return {name: _core.allocated_bytes(f) for name, f in _functions(func_or_mod).items()}


def estimate_tir_flops(stmt_or_mod):
    """Arithmetic operations of what a module's functions, or one function, store: of branches the costlier.

    Loops without a bound count one iteration; the attribute "estimated_flops" stands for a function's own count.
    """
    mod = stmt_or_mod
    return _core.estimate_flops(mod if isinstance(mod, _core.ir.IRModule) else _core.module({"main": mod}, None, None))


def verify_well_formed(obj, assert_mode=True):
    """Whether a function or a module obeys the rules of tensor programs. Errors: ValueError with the first mistake, in assert_mode."""
    if isinstance(obj, _core.ir.IRModule):
        shared = _core.not_separate(obj)
        mistakes = _core.verify(obj) + ([shared] if shared else [])
    else:
        mistakes = _core.verify_function(obj)
    if mistakes and assert_mode:
        raise ValueError(mistakes[0])
    return not mistakes


def verify_ssa(func):
    """Whether each variable is bound once; a let expression may occur again with an equal value."""
    return _core.is_ssa(func)


def undefined_vars(node, defs=()):
    """The variables that a statement or an expression uses and does not bind, without those of `defs`, in the order of their use."""
    return [v for v in _core.undefined_vars(node) if not any(v.same_as(d) for d in defs)]


def expr_deep_equal(lhs, rhs):
    """Whether two expressions are equal in form; their variables have to be the same."""
    return _core.structural_equal(lhs, rhs, False)


def get_block_access_region(block, buffer_var_map):
    """What one instance of a block accesses: regions read, regions written, and those that are accessed through pointers.

    buffer_var_map   {pointer: buffer} of the buffers that the block may access
    """
    reads, writes, opaque = _core.block_regions(block, buffer_var_map)
    whole = []
    for pointer in opaque:
        buffer = next(b for v, b in buffer_var_map.items() if v.same_as(pointer))
        ranges = [_core.make(_core.ir.Range, [_core.const(0, e.dtype), e]) for e in buffer.shape]
        whole.append(_core.make(_core.tir.BufferRegion, [buffer, ranges]))
    return [reads, writes, whole]


def get_block_read_write_region(block, buffer_var_map):
    """What one instance of a block reads and writes; buffers that are accessed through pointers count whole, as both."""
    reads, writes, opaque = get_block_access_region(block, buffer_var_map)
    return [reads + opaque, writes + opaque]


def OOBChecker():  # noqa: N802
    """A pass that leaves the module as it is. Errors: ScheduleError for accesses that surely leave their buffer in some iteration."""
    from sator import error, transform

    def check(mod, ctx):
        found = [text for func in _functions(mod).values() for text in _core.out_of_bounds(func)]
        if found:
            raise error.ScheduleError("\n".join(found))
        return mod

    return transform.module_pass(check, name="tir.analysis.OOBChecker")


def __getattr__(name):
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
