"""Calls of Python's functions inside of kernels: T.call_packed("name", buffer, 3) as a C function that the extension has.

The kernel passes a text, the function's name and what its arguments are, and 64-bit words: per tensor its address, the offset of its first
element and its extents; per integer its value. What is constant stands in the text. The function is looked up by its name when the
kernel calls it, in the process that runs the kernel.
"""
import ctypes
import json
import os

from sator import _core, tir
from sator.error import TVMError


def with_kernel_calls(mod):
    """The module with each call_packed that stands as a statement replaced. Errors: ValueError for an argument that has no words."""
    for name, func in list(mod.functions.items()):
        if isinstance(func, _core.tir.PrimFunc) and _core.calls(func, "tir.tvm_call_packed"):
            export()
            matched = {}
            tir.stmt_functor.post_order_visit(func.body, lambda n: matched.update(
                {m.buffer.data: m for m in n.match_buffers}) if isinstance(n, _core.tir.Block) else None)
            body = tir.stmt_functor.ir_transform(func.body, None, lambda statement, m=matched: _replaced(statement, m), ["tir.Evaluate"])
            mod = mod.clone()
            mod.update_func(name, func.with_body(body))
    return mod


def _op(call):
    return str(getattr(call.op, "name", call.op)).removeprefix("tir.")


def _replaced(statement, matched):
    """The call of a packed function as one of the extension's. matched: {pointer: what it is a part of}."""
    call = statement.value
    if not isinstance(call, _core.tir.Call) or _op(call) != "tvm_call_packed":
        return None
    if not call.args or not isinstance(call.args[0], _core.tir.StringImm):
        raise TVMError(f"error: {call} names no function\n  needs: T.call_packed(\"name\", ...)\n  hint:  the first argument is a text")
    name, kinds, words = call.args[0].value, [], []
    for arg in call.args[1:]:
        if isinstance(arg, (_core.tir.StringImm, _core.tir.FloatImm, _core.tir.IntImm)):
            kinds.append(arg.value)
        elif isinstance(arg, _core.tir.Call) and _op(arg) == "tvm_stack_make_array":
            data, shape, strides, rank, value, offset = arg.args
            if isinstance(strides, _core.tir.Call):
                raise ValueError(f"call_packed({name!r}): a buffer with strides\n  needs: a dense, row-major buffer\n  hint:  copy it to one first")
            if data in matched:
                if not _is_dense(matched[data].source):
                    raise ValueError(f"call_packed({name!r}): a part of {matched[data].source.buffer.name} whose rows do not follow each other\n"
                                     "  needs: a dense, row-major buffer\n  hint:  copy it to one first")
                data, offset = tir.address_of(tir.BufferLoad(matched[data].buffer, [0] * len(shape.args))), 0
            kinds.append((value.dtype, len(shape.args)))
            words += [data, offset, *shape.args]
        elif isinstance(arg, _core.PrimExpr) and arg.dtype.startswith(("int", "uint", "bool")):
            kinds.append(("", -1))
            words.append(arg)
        else:
            raise ValueError(f"call_packed({name!r}): the argument {arg}\n  needs: buffers, integers, and constants\n  hint:  pass a buffer of one element")
    if len(words) > _core.most_kernel_words:
        raise ValueError(f"call_packed({name!r}): its arguments take {len(words)} words, two and one per dimension of a tensor, one of an integer\n"
                         f"  needs: at most {_core.most_kernel_words}\n  hint:  make it several calls")
    words += [0] * (_core.most_kernel_words - len(words))
    passed = [w if isinstance(w, _core.PrimExpr) and w.dtype == "handle" else tir.const(w, "int64") if isinstance(w, int) else tir.Cast("int64", w)
              for w in words]
    status = tir.call_extern("int32", "sator_call_by_name", tir.StringImm(json.dumps([name, kinds])), *passed)
    return tir.AssertStmt(tir.EQ(status, tir.const(0, "int32")), tir.StringImm(f"the function {name} failed"), tir.Evaluate(0))


def _is_dense(region):
    """Whether the elements of a part of a buffer follow each other: it is whole in all dimensions behind the first in which it has several."""
    extents = [r.extent for r in region.region]
    first = next((i for i, e in enumerate(extents) if not _core.structural_equal(_core.expr(e), tir.const(1, e.dtype), False)), len(extents))
    return not region.buffer.strides and all(_core.structural_equal(tir.Cast("int64", e), tir.Cast("int64", whole), False)
                                             for e, whole in list(zip(extents, region.buffer.shape))[first + 1:])


def export():
    """Lets libraries that are opened from now on find the extension's C function."""
    ctypes.CDLL(_core.__file__, mode=os.RTLD_NOW | os.RTLD_GLOBAL | os.RTLD_NOLOAD)
