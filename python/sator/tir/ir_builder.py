"""Statements built line by line, for te.extern and tir.PrimFunc.

    ib = tir.ir_builder.create()
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    with ib.for_range(0, 16) as i:
        with ib.if_scope(i < 8):
            b[i] = a[i] + 1
        with ib.else_scope():
            b[i] = a[i]
    func = tir.PrimFunc([pa, pb], ib.get(), buffer_map={pa: A, pb: B})
"""
from sator import _core
from sator.tir import Allocate, AttrStmt, BufferLoad, BufferStore, Evaluate, For, ForKind, IfThenElse, LetStmt, SeqStmt, Var, While, decl_buffer

_KINDS = {"serial": ForKind.SERIAL, "parallel": ForKind.PARALLEL, "vectorize": ForKind.VECTORIZED, "unroll": ForKind.UNROLLED}


class _Scope:
    """What `with` opens and closes; `value` is what it gives."""

    def __init__(self, builder, value, close):
        self._builder, self._value, self._close = builder, value, close

    def __enter__(self):
        self._builder._open.append([])
        return self._value

    def __exit__(self, kind, error, traceback):
        body = self._builder._close()
        if kind is None:
            self._builder.emit(self._close(body))


class BufferVar:
    """A buffer whose elements are read and written by index: `b[i] = a[i] + 1`.

    One index of a buffer of several dimensions counts its elements row by row.
    """

    def __init__(self, builder, buffer):
        self._builder, self._buffer = builder, buffer

    @property
    def dtype(self):
        """Of an element."""
        return self._buffer.dtype

    def _node(self):
        return self._buffer.data

    def _at(self, index):
        given = [getattr(i, "var", i) for i in (index if isinstance(index, (list, tuple)) else [index])]
        shape = list(self._buffer.shape)
        if len(given) == 1 and len(shape) > 1:
            (rest,), given = given, []
            for extent in reversed(shape[1:]):
                given.insert(0, _core.binary("%", rest, extent))
                rest = _core.binary("//", rest, extent)
            given.insert(0, rest)
        return given

    def __getitem__(self, index):
        return BufferLoad(self._buffer, self._at(index))

    def __setitem__(self, index, value):
        value = _constant(value, self.dtype) if isinstance(value, (bool, int, float)) else _core.expr(value)
        if str(value.dtype).split("x")[0] != str(self.dtype).split("x")[0]:
            raise ValueError(f"{self._buffer.name}: an element of {self.dtype} is set to {value}, a {value.dtype}\n  needs: the same dtype\n"
                             f'  hint:  .astype("{self.dtype}")')
        self._builder.emit(BufferStore(self._buffer, value, self._at(index)))


def _constant(value, dtype):
    return _core.const(float(value) if "float" in str(dtype) else value, str(dtype))


class IRBuilder:
    """Holds the statements so far; `get()` gives them as one."""

    def __init__(self):
        self._open = [[]]
        self._named = 0

    def emit(self, stmt):
        """Adds a statement or a call, or a function that makes a statement of all that follows in this scope.

        Errors: TypeError for anything else.
        """
        if isinstance(stmt, _core.PrimExpr):
            stmt = Evaluate(stmt)
        if not isinstance(stmt, _core.Stmt) and not callable(stmt):
            raise TypeError(f"emit: {stmt!r} is a {type(stmt).__name__}\n  needs: a statement, a call, or a function body -> statement")
        self._open[-1].append(stmt)

    def _close(self):
        """The statements of the innermost scope as one."""
        out = []
        for stmt in reversed(self._open.pop()):
            if isinstance(stmt, _core.Stmt):
                out.insert(0, stmt)
            else:
                out = [stmt(_sequence(out))]
        return _sequence(out)

    def get(self):
        """The statement that was built. Errors: RuntimeError inside of a scope."""
        if len(self._open) != 1:
            raise RuntimeError("get inside of a scope\n  needs: the end of every `with ib....:` before")
        body = self._close()
        self._open = [[body]]
        return body

    # Scopes.

    def for_range(self, begin, end, name="i", dtype=None, kind="serial"):
        """`with ib.for_range(0, n) as i:` is a loop whose variable runs from begin to end - 1.

        name   "i": i, j, k, then i_0, i_1, ... of loops without a name
        dtype  of the variable; int64 where begin or end has it, else int32
        kind   serial, parallel, vectorize or unroll
        Errors: ValueError for another kind; TypeError for bounds that are no integers.
        """
        if kind not in _KINDS:
            raise ValueError(f"for_range: kind = {kind!r}\n  needs: one of {', '.join(_KINDS)}")
        bounds = [_core.expr(b) for b in (begin, end)]
        for bound in bounds:
            if "int" not in str(bound.dtype):
                raise TypeError(f"for_range: {bound} is a {bound.dtype}\n  needs: integers as bounds")
        if name == "i":
            name = "ijk"[self._named] if self._named < 3 else f"i_{self._named - 3}"
            self._named += 1
        dtype = dtype or ("int64" if any(b.dtype == "int64" for b in bounds) else "int32")
        var, (first, last) = Var(name, dtype), (b.astype(dtype) for b in bounds)
        extent = last if isinstance(first, _core.tir.IntImm) and first.value == 0 else last - first
        return _Scope(self, var, lambda body: For(var, first, extent, _KINDS[kind], body))

    def while_loop(self, condition):
        """`with ib.while_loop(c):` is run again as long as c holds."""
        return _Scope(self, None, lambda body: While(condition, body))

    def if_scope(self, cond):
        """`with ib.if_scope(c):` is run where c holds."""
        return _Scope(self, None, lambda body: IfThenElse(cond, body))

    def else_scope(self):
        """`with ib.else_scope():` is run where the condition of the if_scope directly before does not hold. Errors: RuntimeError without one."""
        before = self._open[-1][-1] if self._open[-1] else None
        if not isinstance(before, IfThenElse) or before.else_case is not None:
            raise RuntimeError("else_scope\n  needs: an if_scope directly before it")

        def close(body):
            self._open[-1].pop()
            return IfThenElse(before.condition, before.then_case, body)

        return _Scope(self, None, close)

    def new_scope(self):
        """`with ib.new_scope():` ends what let, allocate and scope_attr begin inside."""
        return _Scope(self, None, lambda body: body)

    def scope_attr(self, node, attr_key, value):
        """What follows in this scope stands under an attribute: ib.scope_attr(tx, "thread_extent", 32)."""
        node, value = (_core.tir.StringImm(v) if isinstance(v, str) else v for v in (node, value))
        node = node._node() if isinstance(node, BufferVar) else node
        self.emit(lambda body: AttrStmt(node, attr_key, _core.expr(value), body))

    def let(self, var_name, value):
        """A variable that is bound to the value in what follows."""
        value = _core.expr(value)
        var = Var(var_name, value.dtype)
        self.emit(lambda body: LetStmt(var, value, body))
        return var

    # Buffers.

    def allocate(self, dtype, shape, name="buf", axis_separators=None, scope=""):
        """Memory for what follows in this scope, as a BufferVar.

        shape   elements: an extent or a list of them
        scope   "global", "shared", "local", ...
        """
        shape = list(shape) if isinstance(shape, (list, tuple)) else [shape]
        buffer = decl_buffer(shape, dtype, name, scope=scope, axis_separators=axis_separators)
        self.emit(lambda body: Allocate(buffer.data, dtype, list(buffer.shape), _core.const(True, "bool"), body))
        return BufferVar(self, buffer)

    def pointer(self, content_type, name="ptr", scope=""):
        """A pointer to elements that somebody else owns, as a BufferVar."""
        return BufferVar(self, decl_buffer([1], content_type, name, scope=scope))

    def buffer_ptr(self, buf):
        """A buffer that is there, as a BufferVar."""
        return BufferVar(self, buf)

    def likely(self, expr):
        """The condition, marked as one that mostly holds."""
        from sator import tir

        return tir.likely(expr)


def _sequence(stmts):
    if not stmts:
        return Evaluate(0)
    return stmts[0] if len(stmts) == 1 else SeqStmt(stmts)


def create():
    """A builder without statements."""
    return IRBuilder()
