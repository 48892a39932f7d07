"""Calls of Python's functions inside of kernels: T.call_packed("name", buffer, 3) as a C function that the extension has.

The kernel passes a text, the function's name, what its arguments are and the dtype that the call has, and 64-bit words: per tensor its
address, the offset of its first element and its extents; per integer its value; per float the bits of its float64. What is constant stands
in the text. The function is looked up by its name when the kernel calls it, in the process that runs the kernel. What it returns is the
value of the call. Where it raises, the value is 0, and the kernel ends at the next check: before the value is stored, and else behind the
statement of the call and before those inside of it.
"""
import ctypes
import json
import os

from sator import _core, tir
from sator.error import TVMError


def with_kernel_calls(mod):
    """The module with each call_packed of its kernels replaced. Errors: ValueError for an argument that has no words."""
    for name, func in list(mod.functions.items()):
        if isinstance(func, _core.tir.PrimFunc) and _core.calls(func, "tir.tvm_call_packed"):
            export()
            mod = mod.clone()
            mod.update_func(name, func.with_body(_Replacer(func.body).visit(func.body)))
    return mod


def _op(call):
    return str(getattr(call.op, "name", call.op)).removeprefix("tir.")


def _is_packed(node):
    return isinstance(node, _core.tir.Call) and _op(node) == "tvm_call_packed"


class _Replacer:
    """A kernel with calls of the extension's functions in place of its call_packed."""

    def __init__(self, body):
        self.calls = 0  # in the expressions of the statement that is being visited
        self.named = None  # of a store: the values of calls that are made whatever other parts say, by name
        self.matched = {}  # of each pointer, what it is a part of
        tir.stmt_functor.post_order_visit(body, lambda n: self.matched.update(
            {m.buffer.data: m for m in n.match_buffers}) if isinstance(n, _core.tir.Block) else None)

    def visit(self, node):
        """The part with its calls replaced."""
        if isinstance(node, _core.tir.Evaluate) and _is_packed(node.value):
            around, self.calls = self.calls, 0
            node = tir.Evaluate(self.replaced(_core.map_children(node.value, self.visit), "void"))
            self.calls = around
            return tir.SeqStmt([node, _check()])
        if isinstance(node, _core.tir.BufferStore):
            return self.store(node)
        if isinstance(node, _core.Stmt):
            around, self.calls = self.calls, 0
            node, calls, self.calls = _core.map_children(node, self.visit), self.calls, around
            return _checked(node) if calls else node
        if isinstance(node, _core.tir.BufferLoad):
            self.refuse_in(node.indices, node.buffer)
        around = self.named
        if isinstance(node, (_core.tir.Select, _core.tir.And, _core.tir.Or)) or isinstance(node, _core.tir.Call) and _op(node) == "if_then_else":
            self.named = None  # parts of these may not be evaluated
        node, self.named = _core.map_children(node, self.visit), around
        if not _is_packed(node):
            return node
        self.calls += 1
        value = self.replaced(node, node.dtype)
        value = tir.Cast(node.dtype, tir.reinterpret("float64", value) if "float" in node.dtype else value)
        if self.named is None:
            return value
        self.named.append((tir.Var(f"packed_{len(self.named)}", node.dtype), value))
        return self.named[-1][0]

    def store(self, node):
        """A store, before which the calls of its value are checked."""
        self.refuse_in(node.indices, node.buffer)
        around, self.calls, self.named = self.calls, 0, []
        node = _core.map_children(node, self.visit)
        named, self.named = self.named, None
        out = _checked(node) if self.calls > len(named) else node
        for var, value in reversed(named):
            out = tir.LetStmt(var, value, tir.SeqStmt([_check(), out]))
        self.calls = around
        return out

    @staticmethod
    def refuse_in(indices, buffer):
        """Errors: ValueError for a call among indices, which would be made once for the check and once for the access."""
        for index in indices:
            found = []
            tir.stmt_functor.post_order_visit(index, lambda n, f=found: f.append(n) if _is_packed(n) else None)
            if found:
                raise ValueError(f"call_packed({found[0].args[0]}) in an index of {buffer.name}\n  needs: a name for its value, which is checked and then used\n"
                                 f"  hint:  x: T.int32 = T.call_packed(...), then {buffer.name}[x]")

    def replaced(self, call, result):
        """The call as one of the extension's, an int64."""
        if not call.args or not isinstance(call.args[0], _core.tir.StringImm):
            raise TVMError(f"error: {call} names no function\n  needs: T.call_packed(\"name\", ...)\n  hint:  the first argument is a text")
        name, kinds, words = call.args[0].value, [], []
        for arg in call.args[1:]:
            if isinstance(arg, (_core.tir.StringImm, _core.tir.FloatImm, _core.tir.IntImm)):
                kinds.append(arg.value)
            elif isinstance(arg, _core.tir.Call) and _op(arg) == "tvm_stack_make_array":
                kind, of_tensor = self.tensor(name, arg)
                kinds.append(kind)
                words += of_tensor
            elif isinstance(arg, _core.PrimExpr) and arg.dtype.startswith(("int", "uint", "bool")):
                kinds.append(("int", -1))
                words.append(arg)
            elif isinstance(arg, _core.PrimExpr) and arg.dtype.startswith(("float", "bfloat")):
                kinds.append(("float", -1))
                words.append(tir.reinterpret("int64", tir.Cast("float64", arg)))
            else:
                raise ValueError(f"call_packed({name!r}): the argument {arg}\n  needs: buffers, numbers and constants\n  hint:  pass the buffer itself, where it is its pointer")
        if len(words) > _core.most_kernel_words:
            raise ValueError(f"call_packed({name!r}): its arguments take {len(words)} words, two and one per dimension of a tensor, one of a number\n"
                             f"  needs: at most {_core.most_kernel_words}\n  hint:  make it several calls")
        words += [0] * (_core.most_kernel_words - len(words))
        passed = [w if isinstance(w, _core.PrimExpr) and w.dtype == "handle" else tir.const(w, "int64") if isinstance(w, int) else tir.Cast("int64", w)
                  for w in words]
        return tir.call_extern("int64", "sator_call_python", tir.StringImm(json.dumps([name, kinds, result])), *passed)

    def tensor(self, name, array):
        """What a tensor is, (dtype, rank), and its words."""
        data, shape, strides, rank, value, offset = array.args
        if isinstance(strides, _core.tir.Call):
            raise ValueError(f"call_packed({name!r}): a buffer with strides\n  needs: a dense, row-major buffer\n  hint:  copy it to one first")
        if data in self.matched:
            part = self.matched[data]
            if not _is_dense(part.source):
                raise ValueError(f"call_packed({name!r}): a part of {part.source.buffer.name} whose rows do not follow each other\n"
                                 "  needs: a dense, row-major buffer\n  hint:  copy it to one first")
            data, offset = tir.address_of(tir.BufferLoad(part.buffer, [0] * len(shape.args))), 0
        return (value.dtype, len(shape.args)), [data, offset, *shape.args]


def _check():
    failures = tir.call_extern("int32", "sator_python_failures")
    return tir.AssertStmt(tir.EQ(failures, tir.const(0, "int32")), tir.StringImm("a function of Python's failed"), tir.Evaluate(0))


def _checked(statement):
    """The statement, checked before those inside of it and behind it."""
    def inside(node):
        if isinstance(node, _core.tir.Block):
            raise ValueError(f"a call_packed in the binding or predicate of the block {node.name_hint}\n  needs: a call in the body of a block\n"
                             "  hint:  store its value before")
        return tir.SeqStmt([_check(), node]) if isinstance(node, _core.Stmt) else node

    return tir.SeqStmt([_core.map_children(statement, inside), _check()])


def _is_dense(region):
    """Whether the elements of a part of a buffer follow each other: it is whole in all dimensions behind the first in which it has several."""
    extents = [r.extent for r in region.region]
    first = next((i for i, e in enumerate(extents) if not _core.structural_equal(_core.expr(e), tir.const(1, e.dtype), False)), len(extents))
    return not region.buffer.strides and all(_core.structural_equal(tir.Cast("int64", e), tir.Cast("int64", whole), False)
                                             for e, whole in list(zip(extents, region.buffer.shape))[first + 1:])


def export():
    """Lets libraries that are opened from now on find the extension's C function."""
    ctypes.CDLL(_core.__file__, mode=os.RTLD_NOW | os.RTLD_GLOBAL | os.RTLD_NOLOAD)
