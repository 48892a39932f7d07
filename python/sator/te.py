"""Tensor expressions: tensors defined by a formula per element."""
import functools
import operator

from sator import _core
from sator.extend import extends
from sator import te_schedule as schedule  # noqa: F401
from sator.te_schedule import Schedule, create_schedule  # noqa: F401
from sator.te_stage import Stage  # noqa: F401

__path__ = []  # TVM's modules below are found by sator.paths

Tensor = _core.Tensor
create_prim_func = _core.te.create_prim_func


class Operation:
    """What computes a tensor."""

    def __init__(self, tensor):
        self._tensor = tensor

    @property
    def axis(self):
        """The axes of its elements."""
        return self._tensor._axes()

    @property
    def reduce_axis(self):
        """The axes that its reduction runs over."""
        return self._tensor._reduce_axes()

    @property
    def name(self):
        """What it is called; its tensors add .v0, .v1 where there are several."""
        return self._tensor._operation_name()

    @property
    def tag(self):
        """What its maker calls this kind of formula: te.compute(..., tag="gemm"), te.tag_scope; of topi's, topi.tag."""
        return self._tensor._tag()

    @property
    def attrs(self):
        """The attributes of its block."""
        return {k: _core.const(v, "int32") if isinstance(v, int) else v for k, v in self._tensor._attrs().items()}

    @property
    def input_tensors(self):
        """The tensors that it reads."""
        return self._tensor._inputs()

    @property
    def num_outputs(self):
        """How many tensors it computes."""
        return len(self._tensor._outputs())

    def output(self, index):
        """Its tensor of this number."""
        return self._tensor._outputs()[index]

    def __eq__(self, other):
        return isinstance(other, Operation) and self.output(0) == other.output(0)

    def __hash__(self):
        return hash(self.output(0))


class PlaceholderOp(Operation):
    """The operation of a tensor that is given."""

    shape = property(lambda self: self._tensor.shape, doc="The tensor's extents.")
    dtype = property(lambda self: self._tensor.dtype, doc="The tensor's dtype.")


class Reduce:
    """A reduction as the body of a formula: item `value_index` of what `source` comes to over `axis`."""

    def __init__(self, source, axis, value_index):
        self.source, self.axis, self.value_index, self.dtype = source, axis, value_index, source[value_index].dtype

    def __repr__(self):
        return f"Reduce({self.source[self.value_index]}, axis={[str(a.var) for a in self.axis]})"


class ComputeOp(Operation):
    """The operation of a formula per element."""

    @property
    def body(self):
        """What an element is, over the variables of `axis`: an expression for each output, or a Reduce."""
        bodies, axes = self._tensor._bodies(), self.reduce_axis
        return [Reduce(bodies, axes, i) for i in range(len(bodies))] if axes else bodies


class ScanOp(Operation):
    """The operation of te.scan."""


class ExternOp(Operation):
    """The operation of te.extern: a statement."""


_OPERATIONS = {"placeholder": PlaceholderOp, "compute": ComputeOp, "scan": ScanOp, "extern": ExternOp}


def _elementwise(name, swapped=False):
    def operator(self, other):
        from sator import topi

        if not isinstance(other, (Tensor, _core.PrimExpr, int, float)):
            return NotImplemented
        if isinstance(other, _core.PrimExpr):  # one value for all elements
            dtype = self.dtype
            made = compute(self.shape, lambda *i: _PYTHON[name](*_ordered(self(*i), other.astype(dtype), swapped)), name="T_" + name)
        else:
            made = getattr(topi, name)(*_ordered(self, other, swapped))
        return made._tagged(topi.tag.BROADCAST if isinstance(other, Tensor) else topi.tag.ELEMWISE)

    return operator


_PYTHON = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}


def _ordered(a, b, swapped):
    return (b, a) if swapped else (a, b)


class TensorSlice:
    """A tensor with its first indices: A[i] of A[i][j], which is A[i, j]."""

    def __init__(self, tensor, indices):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"TensorSlice: {tensor!r} is a {type(tensor).__name__}\n  needs: a tensor of te")
        self.tensor, self.indices, self.dtype = tensor, tuple(indices), tensor.dtype

    __iter__ = None

    def __getitem__(self, indices):
        return self.tensor[(*self.indices, *(indices if isinstance(indices, tuple) else [indices]))]

    def __repr__(self):
        return f"{self.tensor.name}[{', '.join(map(str, self.indices))}]"

    def asobject(self):
        """The element. Errors: TVMError, which says how many indices are needed."""
        return self.tensor._element(list(self.indices))

    def _no_element(self, *_other):
        return self.asobject()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _no_element


@extends(_core.tir.ProducerLoad)
class _ProducerLoad:
    @property
    def indices(self):
        """Which element."""
        return _core.children(self)


@extends(Tensor)
class _Tensor:
    @property
    def axis(self):
        """The axes of its operation."""
        return self.op.axis

    __iter__ = None  # an index beyond the shape is a formula too: without an end, there is nothing to go through

    def __call__(self, *indices):
        return self._element(list(indices))

    def __getitem__(self, indices):
        indices = list(indices) if isinstance(indices, tuple) else [indices]
        return TensorSlice(self, indices) if len(indices) < len(self.shape) else self._element(indices)

    def __len__(self):
        return int(self.shape[0])

    @property
    def op(self):
        """The operation that computes it: its axes, and what it reads."""
        return _OPERATIONS[self._kind()](self)

    def astype(self, dtype, span=None):
        """The tensor of its elements in another dtype."""
        from sator import topi

        return topi.cast(self, dtype)

    def __repr__(self):
        return f"Tensor(shape={list(self.shape)}, name={self.name}, dtype={self.dtype})"

    def __neg__(self):
        from sator import topi

        return topi.negative(self)._tagged(topi.tag.ELEMWISE)

    __add__, __radd__ = _elementwise("add"), _elementwise("add", True)
    __sub__, __rsub__ = _elementwise("subtract"), _elementwise("subtract", True)
    __mul__, __rmul__ = _elementwise("multiply"), _elementwise("multiply", True)
    __truediv__, __rtruediv__ = _elementwise("divide"), _elementwise("divide", True)


def placeholder(shape, dtype=None, name="placeholder"):
    """A tensor that is given.

    shape   extents: integers or expressions
    dtype   None: "float32"
    """
    return _core.te.placeholder(_extents("placeholder", shape), "float32" if dtype is None else dtype, name)


def _extents(function, shape):
    """Extents, or bounds; what Python's `/` gives, such as 128 / 32, as an integer. Errors: TypeError for a number that is not whole."""
    if isinstance(shape, str):
        raise TypeError(f"{function}: the extents {shape!r} are a text\n  needs: a list of numbers and variables\n  hint:  te.var({shape!r}) makes a variable")
    if not isinstance(shape, (list, tuple)):
        return shape
    for extent in shape:
        if isinstance(extent, float) and not extent.is_integer():
            raise TypeError(f"{function}: the extent {extent!r}\n  needs: a whole number\n  hint:  a // b divides and rounds down")
    return [int(e) if isinstance(e, float) else e for e in shape]


def compute(shape, fcompute, name="compute", tag="", attrs=None, varargs_names=None):
    """The tensor whose element at (i, j, ...) is fcompute(i, j, ...): an expression, or a reduction such as te.sum.

    A list of tensors, one each, where fcompute gives several expressions or reduces several together.
    attrs   of the block
    tag     what the caller calls this kind of formula; te.tag_scope gives it to all formulas inside
    """
    if not callable(fcompute):
        raise TypeError(f"compute: fcompute = {fcompute!r} is a {type(fcompute).__name__}\n  needs: a function of indices, such as lambda i, j: A[i, j] + 1")
    return _core.te.compute(_extents("compute", shape), fcompute, name, dict(attrs or {}), _tag(tag))


class tag_scope:  # noqa: N801
    """`with te.tag_scope("gemm"):`, or a decorator: the tag of the formulas that are made inside. Errors: ValueError for one inside of another."""

    current = None

    def __init__(self, tag):
        self.tag = tag

    def __enter__(self):
        if tag_scope.current is not None:
            raise ValueError(f"the tag {self.tag} inside of the tag {tag_scope.current}\n  needs: one tag for a formula")
        tag_scope.current = self.tag
        return self

    def __exit__(self, *_error):
        tag_scope.current = None

    def __call__(self, function):
        @functools.wraps(function)
        def tagged(*args, **kwargs):
            with tag_scope(self.tag):
                return function(*args, **kwargs)

        return tagged


def _tag(tag):
    if tag and tag_scope.current is not None:
        raise ValueError(f"the tag {tag} inside of the tag {tag_scope.current}\n  needs: one tag for a formula")
    return tag or tag_scope.current or ""


def extern(shape, inputs, fcompute, name="extern", dtype=None, in_buffers=None, out_buffers=None, tag="", attrs=None):
    """Tensors that a statement computes: one, or a list where `shape` is a list of shapes.

    shape      of the result, or a list of shapes
    inputs     the tensors that the statement reads
    fcompute   (buffers of the inputs, buffers of the results) -> a statement or a call, such as tir.call_packed(...)
    dtype      of the result, or one for each; that of the inputs where they have one
    """
    if not isinstance(shape, (list, tuple)) or not shape:
        raise TypeError(f"extern: shape = {shape!r} is a {type(shape).__name__}\n  needs: a shape, or a list of shapes")
    if in_buffers or out_buffers:
        raise NotImplementedError("te.extern makes its own buffers\n  needs: in_buffers and out_buffers None")
    shapes = shape if isinstance(shape[0], (list, tuple)) else [shape]
    if dtype is None:
        dtypes = {t.dtype for t in inputs}
        if len(dtypes) != 1:
            raise ValueError(f"te.extern {name}: the dtype of its result is not known\n  needs: dtype=..., where the inputs do not have one dtype")
        dtype = dtypes.pop()
    made = _core.te.extern_tensors(name, inputs, list(shapes), [dtype] * len(shapes) if isinstance(dtype, str) else list(dtype), fcompute)
    return made[0] if len(made) == 1 else made


class TensorIntrin:
    """What a hardware instruction computes, as te writes it: decl_tensor_intrin makes it.

    op             the operation of the formula that the instruction computes
    inputs         the tensors that the formula reads
    buffers        those of the inputs, then of the results: what the instruction accesses
    scalar_params  scalars that the formula reads
    body, reduce_init, reduce_update   statements that call it; the latter two None where there is no reduction
    """

    def __init__(self, name, op, inputs, buffers, scalar_params, bodies):
        self.name, self.op, self.inputs, self.buffers, self.scalar_params = name, op, inputs, buffers, scalar_params
        self.body, self.reduce_init, self.reduce_update = (*bodies, None, None)[:3]
        self.registered = {}  # {one of these three: its name among tir's intrinsics}


def decl_tensor_intrin(op, fcompute, name="tensor_intrin", binds=None, scalar_params=None, default_buffer_params=None):
    """An instruction that computes the operation `op` of te.compute.

    fcompute               (buffers of the inputs, buffers of the results[, scalars]) -> a statement or a call, or of a reduction
                           (update, initialise, update from the start)
    binds                  {tensor: buffer} where a buffer has a form of its own
    default_buffer_params  of the other buffers: {"offset_factor": 16}
    """
    from sator import tir

    def buffer_of(tensor):
        made = (binds or {}).get(tensor)
        return made if made is not None else tir.decl_buffer(tensor.shape, tensor.dtype, tensor.name, **(default_buffer_params or {}))

    inputs, results = list(op.input_tensors), [op.output(i) for i in range(op.num_outputs)]
    ins, outs = [buffer_of(t) for t in inputs], [buffer_of(t) for t in results]
    scalars = list(scalar_params or ())
    made = fcompute(ins, outs, scalars) if scalars else fcompute(ins, outs)
    bodies = [tir.Evaluate(b) if isinstance(b, _core.PrimExpr) else b for b in (made if isinstance(made, (list, tuple)) else [made])]
    return TensorIntrin(name, op, inputs, [*ins, *outs], scalars, bodies)


def reduce_axis(dom, name="rv", thread_tag="", span=None):
    """An axis that a reduction runs over: dom is (begin, end)."""
    if not isinstance(dom, (list, tuple, _core.ir.Range)) or not isinstance(dom, _core.ir.Range) and len(dom) != 2:
        raise TypeError(f"reduce_axis: dom = {dom!r} is a {type(dom).__name__}\n  needs: (begin, end), such as (0, 16)")
    begin, end = (dom.min, dom.min + dom.extent) if isinstance(dom, _core.ir.Range) else _extents("reduce_axis", dom)
    for bound in (begin, end):
        if isinstance(bound, _core.PrimExpr) and _reads_a_tensor(bound):
            raise ValueError(f"reduce_axis: the bound {bound} reads a tensor\n  needs: bounds of numbers and variables\n"
                             "  hint:  go over the largest extent, where=... leaves terms out: te.sum(x, axis=k, where=k < bound)")
    return _core.te.reduce_axis(begin, end, name)


def _reads_a_tensor(expr):
    return isinstance(expr, _core.tir.ProducerLoad) or any(isinstance(c, _core.PrimExpr) and _reads_a_tensor(c) for c in _core.children(expr))


def _is_axes(axis):
    return isinstance(axis, _core.tir.IterVar) or isinstance(axis, (list, tuple)) and all(isinstance(a, _core.tir.IterVar) for a in axis)


def _reduction(name, neutral, expr, axis, where, init):
    """A reduction over axes, of the elements where `where` holds; of two values their sum, product, maximum or minimum."""
    from sator import tir

    if not _is_axes(axis) and isinstance(axis, (_core.PrimExpr, int, float)):
        return _core.binary({"sum": "+", "prod": "*"}.get(name, name), expr, axis)
    if where is not None:
        expr = tir.if_then_else(where, expr, neutral(tir, expr.dtype))
    reduction = getattr(_core.te, name)(expr, axis)
    return reduction if init is None else reduction._beginning_with([init])


def sum(expr, axis, where=None, init=None):  # noqa: A001
    """The sum of an expression over one axis or several, where a condition holds, and of the number `init`; of two values expr + axis."""
    return _reduction("sum", lambda tir, dtype: tir.const(0, dtype), expr, axis, where, init)


def prod(expr, axis, where=None, init=None):
    """The product of an expression over one axis or several, where a condition holds, and of the number `init`; of two values expr * axis."""
    return _reduction("prod", lambda tir, dtype: tir.const(1, dtype), expr, axis, where, init)


def max(expr, axis, where=None, init=None):  # noqa: A001
    """The largest value of an expression over one axis or several, where a condition holds, and of the number `init`; of two values the larger one."""
    return _reduction("max", lambda tir, dtype: tir.min_value(dtype), expr, axis, where, init)


def min(expr, axis, where=None, init=None):  # noqa: A001
    """The smallest value of an expression over one axis or several, where a condition holds, and of the number `init`; of two values the smaller one."""
    return _reduction("min", lambda tir, dtype: tir.max_value(dtype), expr, axis, where, init)


def scan(init, update, state_placeholder, inputs=None, name="scan", tag="", attrs=None):
    """Rows that are computed from the rows before them: one tensor, or a list where lists are given.

        s = te.placeholder((n, m))
        total = te.scan(te.compute((1, m), lambda _, i: x[0, i]), te.compute((n, m), lambda t, i: s[t - 1, i] + x[t, i]), s)

    init                [begin, ...]  the first rows
    update              [n, ...]      what row t becomes, from `begin` on
    state_placeholder   [n, ...]      what updates read the result by: rows before their own
    inputs              no meaning here: what the formulas read is known
    """
    made = _core.te.scan(init, update, state_placeholder, name)
    return made[0] if isinstance(update, Tensor) else made


def comm_reducer(fcombine, fidentity, name="reduce"):
    """A reduction of one's own: a function (expr, axis, where=None, init=None) that te.compute takes as it takes te.sum.

    fcombine    (x, y) -> x joined with y, associative and commutative; of tuples where several expressions are reduced together
    fidentity   (dtype, ...) -> what leaves any y as it is, one for each expression
    """

    def reducer(expr, axis, where=None, init=None):
        sources = list(expr) if isinstance(expr, (list, tuple)) else [expr]
        neutral = fidentity(*(e.dtype for e in sources))
        if where is not None:
            from sator import tir

            neutrals = neutral if isinstance(neutral, (list, tuple)) else [neutral]
            sources = [tir.if_then_else(where, e, n) for e, n in zip(sources, neutrals)]
        reduction = _core.te.reduced_by(fcombine, neutral, sources, axis)
        return reduction if init is None else reduction._beginning_with(list(init) if isinstance(init, (list, tuple)) else [init])

    reducer.__name__ = name
    return reducer


def var(name="tindex", dtype="int32", span=None):
    """A variable. `dtype`: a dtype, ir.PrimType or ir.PointerType."""
    return _core.tir.Var(name, dtype)


def thread_axis(dom=None, tag="", name="", span=None):
    """Threads of a GPU, which `bind` of a schedule and ib.scope_attr take: te.thread_axis("threadIdx.x"), te.thread_axis((0, 32), "threadIdx.x").

    dom   (0, how many), or None: as many as the loop has iterations; the tag may stand in its place
    """
    if isinstance(dom, str):
        dom, tag = None, dom
    if not isinstance(tag, str) or not tag:
        raise ValueError(f"thread_axis: tag = {tag!r}\n  needs: a thread's tag, such as \"threadIdx.x\"")
    return _core.make(_core.tir.ThreadAxis, [_core.make_var(name or tag, "int32", False), tag])


AXIS_SEPARATOR = "axis_separator"  # tir.IndexMap's


def size_var(name="size", dtype="int32", span=None):
    """A variable that is never negative."""
    return _core.make_var(name, dtype, True)


def __getattr__(name):
    # Functions of elements: te.exp, te.if_then_else, ...
    if name.startswith("_"):
        raise AttributeError(name)
    from sator import paths, tir

    deep = paths.submodule("sator.te", name)
    if deep is not None:
        return deep
    try:
        return getattr(tir, name)
    except AttributeError:
        raise paths.missing("sator.te", name, [*globals(), *dir(tir)]) from None


from sator import tir as _tir  # noqa: E402,F401  (its classes get their constructors)
