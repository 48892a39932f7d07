"""Tensor programs: nodes, schedules, index maps, tensor intrinsics."""
import builtins
import inspect
from enum import IntEnum

from sator import _core, constructors, ir, node_docs
from sator.extend import add_constructors, extends

PrimExpr, Stmt = _core.PrimExpr, _core.Stmt


def _bits(name, swapped=False):
    def operator(self, other):
        from sator.script import tir as T

        return getattr(T, name)(other, self) if swapped else getattr(T, name)(self, other)

    return operator


@extends(PrimExpr)
class _PrimExpr:
    __lshift__, __rlshift__ = _bits("shift_left"), _bits("shift_left", True)
    __rshift__, __rrshift__ = _bits("shift_right"), _bits("shift_right", True)
    __and__, __rand__ = _bits("bitwise_and"), _bits("bitwise_and", True)
    __or__, __ror__ = _bits("bitwise_or"), _bits("bitwise_or", True)
    __xor__, __rxor__ = _bits("bitwise_xor"), _bits("bitwise_xor", True)

    def equal(self, other):
        """The expression self == other, whose truth is asked as of any condition."""
        return _core.binary("==", self, other)

    def not_equal(self, other):
        """The expression self != other."""
        return _core.binary("!=", self, other)

    def __invert__(self):
        from sator.script import tir as T

        return T.bitwise_not(self)


class ForKind(IntEnum):
    """How a loop runs; the values are TVM's."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


@extends(_core.tir.Var)
class _Var:
    def __init__(self, name, dtype="int32", span=None):
        made = dtype._variable(name) if hasattr(dtype, "_variable") else _core.make_var(name, dtype, False)
        _core.Object.__init__(self, made)


    @property
    def type_annotation(self):
        """Its type: ir.PrimType of its dtype, or ir.PointerType of a pointer to elements that are known."""
        if str(self.dtype) == "handle" and self.pointee != "void":
            return ir.PointerType(ir.PrimType(self.pointee), self.scope)
        return ir.PrimType(self.dtype)


@extends(_core.tir.SizeVar)
class _SizeVar:
    def __init__(self, name, dtype="int32", span=None):
        _core.Object.__init__(self, _core.make_var(name, dtype, True))


@extends(_core.tir.IntImm)
class _IntImm:
    def __init__(self, dtype, value, span=None):
        _core.Object.__init__(self, _core.const(value, dtype))


@extends(_core.tir.FloatImm)
class _FloatImm:
    def __init__(self, dtype, value, span=None):
        if "float" not in str(dtype):
            raise ValueError(f"FloatImm: the dtype {dtype}\n  needs: a floating dtype\n  hint:  IntImm, or tir.const")
        _core.Object.__init__(self, const(value, dtype))


_buffer_map = _core.tir.PrimFunc.buffer_map.fget


@extends(_core.tir.PrimFunc)
class _PrimFunc:
    def with_attr(self, attr_key_or_dict, attr_value=None):
        """The function with one attribute, or those of a dictionary. This object stays as it is."""
        return _with_attrs(self, attr_key_or_dict, attr_value)

    @property
    def buffer_map(self):
        """The buffers of those parameters that stand for one."""
        return dict(_buffer_map(self))

    @property
    def struct_info(self):
        """What is known of the function, as relax.FuncStructInfo: tensors of its buffers, scalars, what it returns, whether it has no effects."""
        from sator import relax
        from sator.tir.analysis import is_pure_function

        def of(param):
            buffer = self.buffer_map.get(param)
            if buffer is not None:
                return relax.TensorStructInfo([e.astype("int64") for e in buffer.shape], buffer.dtype)
            return relax.ObjectStructInfo() if str(param.dtype) == "handle" else relax.PrimStructInfo(param.dtype)

        ret = relax.TupleStructInfo([]) if str(self.ret_type) == "void" else relax.PrimStructInfo(str(self.ret_type))
        return relax.FuncStructInfo([of(p) for p in self.params], ret, is_pure_function(self))

    def without_attr(self, attr_key):
        """The function without an attribute."""
        return _core.with_attr(self, attr_key, None)

    def with_attrs(self, attr_map):
        """The function with the attributes of a dictionary. This object stays as it is."""
        return _with_attrs(self, attr_map, None)

    def with_body(self, new_body, span=None):
        """The function with another body."""
        return _core.make(_core.tir.PrimFunc, [new_body if f == "body" else getattr(self, f) for f in self._fields])

    def specialize(self, param_map):
        """The function with values for some of its parameters.

        param_map   {parameter: a value, or of a parameter that stands for a buffer a tir.Buffer with the sizes to put in}
        Errors: what is no parameter; a buffer of another rank or dtype, or with sizes that contradict each other.
        """
        return _core.specialize(self, param_map)


@extends(_core.tir.SeqStmt)
class _SeqStmt:
    def __getitem__(self, i):
        return self.seq[i]

    def __len__(self):
        return len(self.seq)


class OpName(str):
    """The name of an operation of tensor programs, "tir.exp": a text that also answers as an ir.Op does."""

    __slots__ = ()
    name = property(str)
    __class__ = property(lambda self: _core.relax.Op)  # what isinstance(call.op, ir.Op) asks

    def __reduce__(self):
        return OpName, (str(self),)

    def same_as(self, other):
        """Whether it is the same operation."""
        return self == other

    def has_attr(self, attr_name):
        """Whether ir.register_op_attr noted the attribute of the op."""
        return self.get_attr(attr_name) is not None

    def get_attr(self, attr_name):
        """What ir.register_op_attr noted of the op, or None."""
        from sator import ir

        return ir.get_op_attr(self.name, attr_name)


_call_op = _core.tir.Call.op.fget


@extends(_core.tir.Call)
class _Call:
    @property
    def op(self):
        """What is called."""
        return OpName(_call_op(self))


def decl_buffer(shape, dtype=None, name="buffer", data=None, strides=None, elem_offset=None, scope="", data_alignment=-1, offset_factor=0,
                buffer_type="", axis_separators=None, span=None):
    """A buffer: memory under a shape.

    shape, strides   in elements
    elem_offset      where it begins, in elements; a variable of its own where offset_factor is given alone
    data             the pointer; one of its own where it is None
    data_alignment   bytes, 64 where it is -1
    Errors: ValueError for a buffer_type, which programs do not have.
    """
    if buffer_type:
        raise ValueError(f"a buffer of type {buffer_type}\n  needs: buffer_type \"\"")
    shape = shape if isinstance(shape, (list, tuple)) else [shape]
    extents = [_core.expr(e) for e in shape]
    if data is None:
        data = _core.pointer(name, dtype or "float32", scope or "global")
    if elem_offset is None and offset_factor:
        elem_offset = _core.make_var(f"{name}_elem_offset", extents[0].dtype if extents else "int32", False)
    values = {"data": data, "dtype": dtype or "float32", "shape": extents, "strides": list(strides or ()), "elem_offset": elem_offset,
              "name": name, "data_alignment": 64 if data_alignment <= 0 else data_alignment, "offset_factor": offset_factor or 1,
              "axis_separators": list(axis_separators or ())}
    return _core.make(_core.tir.Buffer, [values[f] for f in _core.tir.Buffer._fields])


class ThreadBinding:
    """The threads that a loop runs on: `var` with the domain `dom` is each one's coordinate along `thread_tag`, "threadIdx.x"."""

    def __init__(self, loop):
        self.var, self.thread_tag = loop.loop_var, loop.thread
        self.dom = ir.Range.from_min_extent(loop.min, loop.extent)


@extends(_core.tir.For)
class _For:
    @property
    def thread_binding(self):
        """What the loop is bound to, or None."""
        return ThreadBinding(self) if self.thread else None


@extends(_core.tir.Block)
class _Block:
    name_hint = property(lambda self: self.name.text)


@extends(_core.tir.Buffer)
class _Buffer:
    def scope(self):
        """Where it lies: "global", "shared", "local", ..."""
        return _core.scope_of(self.data)

    READ, WRITE = 1, 2
    __iter__ = None  # an index beyond the shape is an expression too: without an end, there is nothing to go through

    def __getitem__(self, indices):
        """The element at an index per dimension; with slices among them the BufferRegion. Errors: ValueError for a slice with a step."""
        indices = list(indices) if isinstance(indices, tuple) else [indices]
        if not builtins.any(isinstance(i, slice) for i in indices):
            return _core.make(_core.tir.BufferLoad, [self, indices])
        region = []
        for index, extent in zip(indices, self.shape):
            if isinstance(index, slice) and index.step not in (None, 1):
                raise ValueError(f"{self.name}[{index.start}:{index.stop}:{index.step}]\n  needs: slices without a step")
            first, last = (index.start or 0, extent if index.stop is None else index.stop) if isinstance(index, slice) else (index, None)
            region.append(ir.Range(first, last) if last is not None else ir.Range.from_min_extent(first, 1))
        return _core.tir.BufferRegion(self, region)

    def access_ptr(self, access_mask, ptr_type="handle", content_lanes=1, offset=0, extent=None):
        """A pointer to the buffer's elements for functions outside.

        access_mask     "r", "w", "rw", or READ and WRITE joined: what is done there
        content_lanes   elements in each that is counted
        offset, extent  where the access begins, and over how many elements; all of them where they are not given
        Errors: ValueError for another access_mask.
        """
        if access_mask not in ("r", "w", "rw", "wr", 1, 2, 3):
            raise ValueError(f"access_ptr: access_mask = {access_mask!r}\n  needs: \"r\", \"w\" or \"rw\"")
        mask = access_mask if isinstance(access_mask, int) else ("r" in access_mask) + 2 * ("w" in access_mask)
        return _called_on(self, "access_ptr", {"access_mask": mask, "ptr_type": None if ptr_type == "handle" else ptr_type,
                                               "content_lanes": content_lanes, "offset": offset, "extent": extent})

    def _groups(self):
        """The dimensions that lie behind each other: all of them, or as many lists as axis separators make."""
        cuts = [0, *(int(c) for c in self.axis_separators), len(self.shape)]
        return [list(range(a, b)) for a, b in zip(cuts, cuts[1:])]

    def get_flattened_buffer(self):
        """The same memory as one dimension, or as one for each group between axis separators."""
        groups = self._groups()
        if len(self.shape) == len(groups) and not self.strides:
            return self
        shape = []
        for group in groups:
            extent = self.shape[group[0]] * self.strides[group[0]] if self.strides else _core.const(1, self.shape[0].dtype)
            for d in () if self.strides else group:
                extent = extent * self.shape[d]
            shape.append(extent)
        values = {f: getattr(self, f) for f in self._fields}
        return _core.make(_core.tir.Buffer, [{**values, "shape": shape, "strides": [], "axis_separators": list(range(1, len(groups)))}[f] for f in self._fields])

    def offset_of(self, indices):
        """Where an element lies in get_flattened_buffer(): an index for each of its dimensions."""
        from sator.arith import Analyzer

        indices = [_core.expr(i) for i in (indices if isinstance(indices, (list, tuple)) else [indices])]
        if len(indices) != len(self.shape):
            raise ValueError(f"offset_of: {len(indices)} indices for the buffer {self.name}\n  needs: {len(self.shape)}")
        out = []
        for group in self._groups():
            at = _core.const(0, indices[0].dtype)
            for d in group:
                at = at + indices[d] * self.strides[d] if self.strides else at * self.shape[d] + indices[d]
            out.append(at + self.elem_offset if self.elem_offset is not None and len(self._groups()) == 1 else at)
        analyzer = Analyzer()
        return [analyzer.simplify(at) for at in out]

    def vload(self, begin, dtype=None, predicate=None):
        """Elements from `begin` on: one, or a vector of `dtype`; with a predicate those lanes where it holds, 0 in the others."""
        return _called_on(self, "vload", {"begin": begin, "dtype": dtype, "predicate": predicate})

    def vstore(self, begin, value, predicate=None):
        """The statement that stores a value from `begin` on; with a predicate the lanes where it holds."""
        return _called_on(self, "vstore", {"begin": begin, "value": value, "predicate": predicate})


def _called_on(buffer, method, given):
    """What the method gives in a script."""
    names = {"buffer": buffer, **{k: v for k, v in given.items() if v is not None}}
    words = ", ".join(f"{k}={k}" for k in names if k != "buffer")
    return _core.evaluate(f"buffer.{method}({words})", lambda name: (names[name],) if name in names else None)


@extends(_core.tir.IterVar)
class _IterVar:
    """An iterator; of type ThreadIndex an axis of threads, which `T.attr` takes."""

    DataPar, ThreadIndex, CommReduce, Ordered, DimInfo, Unrolled, Vectorized, Parallelized, Tensorized = range(9)

    @property
    def iter_type(self):
        """One of the numbers above; `kind` is ours."""
        return (self.DataPar, self.CommReduce, self.Ordered, self.DimInfo)[int(self.kind)]

    def __init__(self, dom, var, iter_type, thread_tag="", span=None):
        kinds = {self.DataPar: 0, self.CommReduce: 1, self.Ordered: 2, self.DimInfo: 3}
        if isinstance(dom, (list, tuple)):
            if len(dom) != 2:
                raise TypeError(f"IterVar: dom = {dom!r} has {len(dom)} parts\n  needs: a Range, or its begin and end")
            dom = ir.Range(*dom)
        if isinstance(var, str):  # a name of a new variable
            var = Var(var, dom.extent.dtype if isinstance(dom, ir.Range) else "int32")
        if iter_type == self.ThreadIndex:
            made = _core.make(_core.tir.ThreadAxis, [var, thread_tag])
        elif iter_type in kinds:
            made = _core.make(_core.tir.IterVar, [dom, var, kinds[iter_type]])
        else:
            raise ValueError(f"an iterator of type {iter_type}\n  needs: DataPar, ThreadIndex, CommReduce, Ordered or DimInfo")
        _core.Object.__init__(self, made)


def _of_var(name):
    def operate(self, *other):
        return getattr(self.var, name)(*(o.var if isinstance(o, _core.tir.IterVar) else o for o in other))

    operate.__name__ = name
    return operate


# An axis in an expression is its variable; == asks whether two axes are the same.
for _name in ("neg", "lt", "le", "gt", "ge", *(side + word for word in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")
                                               for side in ("", "r"))):
    setattr(_core.tir.IterVar, f"__{_name}__", _of_var(f"__{_name}__"))


@extends(_core.tir.IndexMap)
class _IndexMap:
    AXIS_SEPARATOR = "axis_separator"

    @staticmethod
    def from_func(mapping_function, ndim=None, inverse_index_map=None, *, index_dtype="int32"):
        """The map that a function of index variables computes.

        ndim         how many indices it takes, where that is not to be seen: `lambda *i: ...`
        index_dtype  of its variables: int32 or int64
        Errors: ValueError for a function with axis separators.
        """
        index_map, separators = _IndexMap.from_func_with_separators(mapping_function, ndim, inverse_index_map, index_dtype=index_dtype)
        if separators:
            raise ValueError("an index map with axis separators\n  needs: a function of indices\n  hint:  from_func_with_separators gives both")
        return index_map

    @staticmethod
    def from_func_with_separators(mapping_function, ndim=None, inverse_index_map=None, *, index_dtype="int32"):
        """The map, and the positions in its result before which its function gives IndexMap.AXIS_SEPARATOR."""
        if not callable(mapping_function) or isinstance(mapping_function, type):
            raise TypeError(f"from_func: {mapping_function!r} is a {type(mapping_function).__name__}\n  needs: a function of indices, such as lambda i, j: (j, i)")
        separators = []

        def indices(*variables):
            out = []
            result = mapping_function(*variables)
            for value in result if isinstance(result, (list, tuple)) else [result]:
                if isinstance(value, str) and value == _IndexMap.AXIS_SEPARATOR:
                    separators.append(len(out))
                else:
                    out.append(value)
            return out

        indices.__signature__ = inspect.signature(mapping_function)
        return _core.index_map(indices, ndim, index_dtype), separators

    def is_equivalent_to(self, other_map):
        """Whether both take equal indices to equal indices, whatever their variables are called."""
        if len(self.initial_indices) != len(other_map.initial_indices):
            return False
        ours, theirs = (_core.map_indices(m, list(self.initial_indices)) for m in (self, other_map))
        return len(ours) == len(theirs) and builtins.all(_core.structural_equal(a, b, False) for a, b in zip(ours, theirs))

    def map_indices(self, indices):
        """The image of one point."""
        return _core.map_indices(self, indices)

    def map_shape(self, shape):
        """The shape after the map: [14] through i -> (i // 4, i % 4) is [4, 4]."""
        return _core.map_shape(self, shape)

    def map_ndarray(self, arr_src):
        """The tensor whose element lies at the image of its old indices; 0 where none comes to lie.

        Errors: ValueError for a tensor of another rank; TypeError for indices that are no quasi-affine expressions.
        """
        from sator import nd
        from sator.tir.index_values import mapped

        return nd.array(mapped(self, nd.array(arr_src).numpy()))

    def inverse(self, shape):
        """The map back, of a map that is bijective on the shape."""
        return _core.inverse_map(self, shape, True)[0]

    def non_surjective_inverse(self, shape):
        """The map back, and which points of the image come from no point of the shape."""
        return _core.inverse_map(self, shape, False)


def _with_attrs(func, key, value):
    for k, v in (key if isinstance(key, dict) else {key: value}).items():
        func = _core.with_attr(func, k, v)
    return func


class TensorIntrin:
    """What a piece of hardware computes, `desc`, and how it is called, `impl`: two functions of the same parameters."""

    def __init__(self, desc, impl):
        self.desc, self.impl = desc, impl

    @staticmethod
    def register(name, desc, impl, override=False):
        """Adds an intrinsic for `tensorize`. Errors: bodies that are not one block; different parameters."""
        _core.register_tensor_intrin(name, desc, impl)
        return TensorIntrin(desc, impl)

    @staticmethod
    def get(name, allow_missing=False):
        """The intrinsic of a name. Errors: there is none; the nearest names are listed."""
        try:
            return TensorIntrin(*_core.tensor_intrin(name))
        except _error.TVMError:
            if allow_missing:
                return None
            raise


from sator import error as _error, paths as _paths  # noqa: E402
from sator.tir import stmt_functor  # noqa: E402,F401
from sator.tir.schedule import BlockRV, LoopRV, Schedule, ScheduleError, ScheduleState  # noqa: E402,F401

add_constructors(_core.tir, node_docs.TIR, constructors.TIR)
globals().update({name: cls for name, cls in vars(_core.tir).items() if not name.startswith("_")})


def const(value, dtype=None, span=None):
    """A constant; without a dtype that of a NumPy scalar, else int32 or float32, 64 bits where the value needs them, or bool.

    Errors: ValueError for a finite number that the dtype cannot hold.
    """
    if dtype is None:
        dtype = getattr(value, "dtype", None) or ("bool" if isinstance(value, bool) else "int32" if isinstance(value, int) and -(2**31) <= value < 2**31
                                                  else "int64" if isinstance(value, int) else "float64" if _LARGEST["float32"] < abs(value) < float("inf") else "float32")
    largest = _LARGEST.get(str(dtype))
    if largest is not None and isinstance(value, (int, float)) and largest < abs(value) < float("inf"):
        raise ValueError(f"const: {value} is outside of {dtype}\n  needs: a number from {-largest:g} to {largest:g}, or an infinity")
    return _core.const(value, str(dtype))


# The largest finite number of each dtype, as it is written: IEEE 754, bfloat16, and "FP8 formats for deep learning" (Micikevicius et al., 2022).
_LARGEST = {"float16": 65504.0, "float32": 3.4028235e38, "bfloat16": 3.3895313892515355e38, "float8_e4m3fn": 448.0, "e4m3_float8": 448.0,
            "float8_e5m2": 57344.0, "e5m2_float8": 57344.0}


def min(a, b, *more):  # noqa: A001
    """The smallest of several expressions; with axes of a reduction as `b`, te.min of the expression over them."""
    return _extreme("min", a, b, more)


def max(a, b, *more):  # noqa: A001
    """The largest of several expressions; with axes of a reduction as `b`, te.max of the expression over them."""
    return _extreme("max", a, b, more)


def _extreme(name, a, b, more):
    if isinstance(b, _core.tir.IterVar) or isinstance(b, (list, tuple)):
        from sator import te

        return getattr(te, name)(a, b)
    out = _core.binary(name, a, b)
    for expr in more:
        out = _core.binary(name, out, expr)
    return out


def floordiv(a, b, span=None):
    """The quotient rounded down."""
    return _core.binary("//", a, b)


def floormod(a, b, span=None):
    """The remainder of floordiv."""
    return _core.binary("%", a, b)


indexdiv, indexmod = floordiv, floormod  # of positions, which are never negative


def truncdiv(a, b, span=None):
    """The quotient rounded toward zero."""
    return _core.binary("truncdiv", a, b)


def truncmod(a, b, span=None):
    """The remainder of truncdiv."""
    return _core.binary("truncmod", a, b)


def all(*conditions, span=None):  # noqa: A001
    """Whether all conditions hold."""
    return _joined("and", conditions)


def any(*conditions, span=None):  # noqa: A001
    """Whether one of the conditions holds."""
    return _joined("or", conditions)


def call_intrin(dtype, func_name, *args, span=None):
    """The call of an intrinsic by its name: call_intrin("float32", "tir.exp", x)."""
    if not isinstance(func_name, str):
        raise TypeError(f"call_intrin: func_name = {func_name!r} is a {type(func_name).__name__}\n  needs: a name, such as \"tir.exp\"")
    return _core.tir.Call(dtype, func_name, [_core.expr(a) for a in args])


def stmt_seq(*args):
    """The statement that runs these one after the other: statements, and expressions whose values nobody asks for."""
    return _core.tir.SeqStmt([a if isinstance(a, Stmt) else _core.tir.Evaluate(a) for a in args])


def stmt_list(stmt):
    """The statements that a statement runs one after the other."""
    if not isinstance(stmt, _core.tir.SeqStmt):
        return [stmt]
    return [inner for part in stmt.stmts for inner in stmt_list(part)]


def _joined(op, conditions):
    if not conditions:
        raise ValueError("no condition is given\n  needs: at least one")
    out = conditions[0]
    for c in conditions[1:]:
        out = _core.binary(op, out, c)
    return out


AXIS_SEPARATOR = _IndexMap.AXIS_SEPARATOR
_language = {name.split(".")[0] for name in _core.script_names()} - {"call_tir"}  # calls a program of its module: only scripts have those


_LAYOUTS = ("BijectiveLayout", "Layout", "bijective_layout", "layout")
_GENERIC = ("CallEffectKind", "add", "call_intrin", "divide", "get_vscale_expr", "multiply", "subtract", "sum")
_FAMILIES = ("BinaryOpExpr", "CmpExpr", "ConstExpr", "EqualOp", "ExprOp", "LogicalExpr", "NotEqualOp", "PrimExprWithOp")
_PLACES = ("BlockDependenceInfo", "BlockScope", "DepKind", "Dependency", "StmtSRef")
_SUBMODULES = ("analysis", "block_scope", "data_layout", "generic", "ir_builder", "tensor_intrin", "transform")


def __dir__():
    return sorted([*globals(), *_GENERIC, *_FAMILIES, *_LAYOUTS, *_PLACES, *_SUBMODULES, *_language])


def __getattr__(name):
    if name in _LAYOUTS:
        from sator.tir import data_layout

        return getattr(data_layout, name)
    if name in _GENERIC:
        from sator.tir import generic

        return getattr(generic, name)
    if name in _FAMILIES:
        from sator.tir import families

        return getattr(families, name)
    if name in _PLACES:
        from sator.tir import block_scope

        return getattr(block_scope, name)
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module("sator.tir." + name)
    deep = _paths.submodule("sator.tir", name)
    if deep is not None:
        return deep
    if name not in _language:
        raise _paths.missing("sator.tir", name, [*globals(), *_language])
    # Functions of the language of tensor programs: tir.exp, tir.if_then_else, ...
    from sator.script import tir as T

    return getattr(T, name)
