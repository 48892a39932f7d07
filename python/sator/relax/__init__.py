"""Graphs: nodes, ops, building, rewriting, running."""
import importlib

from sator import _core, constructors, ir, node_docs, paths  # noqa: F401
from sator.driver import Executable, relax_build as build  # noqa: F401
from sator.extend import add_constructors, extends
from sator.runtime.vm import VirtualMachine, VMInstrumentReturnKind  # noqa: F401
from sator.relax import operators  # noqa: F401

Expr, StructInfo, Binding = _core.RelaxExpr, _core.StructInfo, _core.Binding


@extends(_core.relax.Var)
class _Var:
    @property
    def vid(self):
        """What identifies the variable: itself. `var.vid.name_hint` is its name."""
        return self

    def __init__(self, name_hint, struct_info=None, span=None):
        _core.Object.__init__(self, _core.graph_var(name_hint, struct_info, False))


@extends(_core.relax.DataflowVar)
class _DataflowVar:
    def __init__(self, name_hint, struct_info=None, span=None):
        _core.Object.__init__(self, _core.graph_var(name_hint, struct_info, True))


@extends(_core.relax.GlobalVar)
class _GlobalVar:
    def __init__(self, name_hint, struct_info=None):
        _core.Object.__init__(self, _core.make(_core.relax.GlobalVar, [name_hint, struct_info]))


_call_attrs = _core.relax.Call.attrs.fget


class Attrs(dict):
    """The attributes of a call: `call.attrs["axis"]`, or `call.attrs.axis`, where lists are of IntImm as in TVM."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(f"the call has no attribute {name}\n  needs: one of {', '.join(self) or 'none'}")
        value = self[name]
        return [_core.const(v, "int64") if type(v) is int else v for v in value] if isinstance(value, list) else value


@extends(_core.relax.Call)
class _Call:
    @property
    def attrs(self):
        """The op's own attributes, by name."""
        return Attrs(_call_attrs(self))

    def __init__(self, op, args, attrs=None, sinfo_args=None, span=None):
        _core.Object.__init__(self, _core.graph_call(op, args, attrs, sinfo_args))


@extends(_core.relax.Tuple)
class _Tuple:
    def __init__(self, fields, span=None):
        _core.Object.__init__(self, _core.tuple(fields))

    def __getitem__(self, index):
        return self.fields[index]

    def __len__(self):
        return len(self.fields)


@extends(_core.relax.TupleGetItem)
class _TupleGetItem:
    def __init__(self, tuple_value, index, span=None):
        _core.Object.__init__(self, _core.tuple_get(tuple_value, index))


@extends(_core.relax.ShapeExpr)
class _ShapeExpr:
    def __init__(self, values, span=None):
        _core.Object.__init__(self, _core.shape(values))

    def __getitem__(self, index):
        return self.values[index]

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)


@extends(_core.relax.PrimValue)
class _PrimValue:
    def __init__(self, value, span=None):
        _core.Object.__init__(self, _core.graph_expr(value))


class _OfObjects:
    @property
    def struct_info(self):
        """R.Object: no other struct_info tells texts and dtypes from other values."""
        return _core.make(_core.relax.ObjectStructInfo, [])


extends(_core.relax.StringImm)(_OfObjects)
extends(_core.relax.DataTypeImm)(_OfObjects)


@extends(_core.relax.StringImm)
class _StringImm:
    def __init__(self, value, span=None):
        if not isinstance(value, str):
            raise TypeError(f"StringImm: value = {value!r} is a {type(value).__name__}\n  needs: a text")
        _core.Object.__init__(self, _core.graph_expr(value))


_op_name = _core.relax.Op.name.fget


@extends(_core.relax.Op)
class Op:
    """An op of graphs; `Op.get` gives those of tensor programs too. Two of the same name are equal."""

    @property
    def name(self):
        name = _op_name(self)
        from sator.relax import op

        return "relax." + name if name in op._SIGNATURES else name  # an op of the user's has the name that it was given

    @staticmethod
    def get(op_name):
        """The op of a name: "tir.exp", or one of graphs, with or without "relax.". Errors: there is none; the nearest names are listed."""
        from sator import tir

        if op_name in _core.builtin_names():
            return tir.OpName(op_name)
        return _core.op_ref(op_name.removeprefix("relax."))

    @staticmethod
    def list_op_names():
        """The names of all ops: "relax.abs", ..., "tir.exp", ..."""
        return sorted([*("relax." + name for name, _ in _core.ops()), *_core.builtin_names()])

    def get_attr(self, attr_name):
        """What ir.register_op_attr noted of the op; None for an attribute that nobody noted."""
        from sator import ir

        return ir.get_op_attr(self.name, attr_name)

    def has_attr(self, attr_name):
        """Whether ir.register_op_attr noted the attribute of the op."""
        return self.get_attr(attr_name) is not None

    def set_attr(self, attr_name, value, plevel=10):
        """Notes an attribute of the op, as ir.register_op_attr does. Errors: as of it."""
        from sator import ir

        ir.register_op_attr(self.name, attr_name, value, plevel)

    def reset_attr(self, attr_name):
        """Forgets an attribute of an op of one's own."""
        from sator import ir

        ir.reset_op_attr(self.name, attr_name)

    def __eq__(self, other):
        return isinstance(other, _core.relax.Op) and other.name == self.name

    def same_as(self, other):
        """Whether it is the same op."""
        return self == other

    def __hash__(self):
        return hash(self.name)


@extends(_core.relax.Function)
class _Function:
    @staticmethod
    def create_empty(params, ret_struct_info, is_pure=True, attrs=None, span=None):
        """Refused: a function has a body. Errors: TVMError, which says how others call one before it is there."""
        from sator.error import TVMError

        raise TVMError("error: Function.create_empty: a function has a body\n  needs: relax.Function(params, body, ret_struct_info)\n"
                       "  hint:  GlobalVar(name, FuncStructInfo(params, ret)) names one that is still to come, and calls take it")

    @property
    def struct_info(self):
        """What is known of the function, as FuncStructInfo: of its parameters, of its result, whether it has no effects."""
        return FuncStructInfo([p.struct_info for p in self.params], self.ret_struct_info, self.is_pure)

    def with_attr(self, attr_key_or_dict, attr_value=None):
        """The function with one attribute, or those of a dictionary. This object stays as it is."""
        func = self
        for k, v in (attr_key_or_dict if isinstance(attr_key_or_dict, dict) else {attr_key_or_dict: attr_value}).items():
            func = _core.with_attr(func, k, v)
        return func

    def without_attr(self, attr_key):
        """The function without an attribute."""
        return _core.with_attr(self, attr_key, None)

    def with_attrs(self, attr_map):
        """The function with the attributes of a dictionary. This object stays as it is."""
        return self.with_attr(attr_map)

    def inline_functions(self, function_map):
        """The function with calls of others replaced by their bodies, again and again.

        function_map   {function of the module, or its name: relax.Function}
        Errors: a function that calls itself; two of one name.
        """
        named = {}
        for key, callee in function_map.items():
            name = str(getattr(key, "name_hint", key))
            if name in named:
                raise ValueError(f"two functions are given for {name}\n  needs: one function for each name")
            named[name] = callee
        return _core.inline_functions(self, named)

    def bind_params(self, binding_map):
        """The function with parameters bound to values: they are parameters no more.

        binding_map   {parameter or its name: an expression, an array or a number}
        Errors: no such parameter, or two of the name; a value that cannot be what the parameter is.
        """
        return _core.bind_params(self, {k: _bound(v) for k, v in binding_map.items()})

    def bind_symbolic_vars(self, binding_map):
        """The function with symbolic sizes bound to expressions.

        binding_map   {size or its name: an expression or a number}
        Errors: the function defines no such size, or two of the name.
        """
        return _core.bind_sizes(self, dict(binding_map))


def _bound(value):
    """A value of a parameter as an expression: numbers are scalars."""
    return _core.graph_expr(value) if isinstance(value, (_core.PrimExpr, int)) else value


@extends(_core.relax.Op)
class _CalledOp:
    def __call__(self, *args, **attrs):
        return _core.graph_call(self, list(args), attrs or None, None)


@extends(_core.relax.ExternFunc)
class _ExternFunc:
    def __init__(self, global_symbol, struct_info=None, span=None):
        made = _core.evaluate("R.ExternFunc(name)", lambda name: (global_symbol,) if name == "name" else None)
        if struct_info is not None:
            made = _core.make(_core.relax.ExternFunc, [global_symbol, struct_info])
        _core.Object.__init__(self, made)


@extends(_core.relax.PrimStructInfo)
class _PrimStructInfo:
    def __init__(self, dtype=None, value=None, span=None):
        if value is not None and not isinstance(value, _core.PrimExpr):
            value = _core.const(value, dtype or "int64")
        _core.Object.__init__(self, _core.make(_core.relax.PrimStructInfo, [dtype or value.dtype, value]))


def _need_one(extents, ndim):
    if extents is not None and ndim != -1:
        raise ValueError(f"extents and ndim={ndim} are both given\n  needs: one of them: extents tell the rank")


@extends(_core.relax.ShapeStructInfo)
class _ShapeStructInfo:
    def __init__(self, values=None, ndim=-1, span=None):
        _need_one(values, ndim)
        values = None if values is None else _core.shape(values).values
        _core.Object.__init__(self, _core.make(_core.relax.ShapeStructInfo, [values, ndim if values is None else len(values)]))


@extends(_core.relax.TupleStructInfo)
class _TupleStructInfo:
    def __init__(self, fields, span=None):
        _core.Object.__init__(self, _core.make(_core.relax.TupleStructInfo, [list(fields)]))


@extends(_core.StructInfo)
class _StructInfo:
    def __eq__(self, other):
        from sator import ir

        other = other._node() if hasattr(type(other), "_node") else other  # R.Tensor((4,), "float32") outside of a program
        return ir.structural_equal(self, other) if isinstance(other, StructInfo) else NotImplemented

    def __hash__(self):
        return hash(_core.structural_hash(self))

    def is_base_of(self, derived):
        """Whether what holds of `derived` holds of this struct info too."""
        from sator.relax import analysis

        return analysis.struct_info_base_check(self, derived) == analysis.BaseCheckResult.PASS


@extends(_core.relax.FuncStructInfo)
class _FuncStructInfo:
    @staticmethod
    def opaque_func(*, ret=None, derive_func=None, purity=False, span=None):
        """A function of unknown parameters. Errors: ValueError for derive_func, a function of TVM's compiler."""
        if derive_func is not None:
            raise ValueError("derive_func\n  needs: ret, the struct info of the result")
        return _core.make(_core.relax.FuncStructInfo, [{"params": None, "ret": ret or _core.make(_core.relax.ObjectStructInfo, []),
                                                        "pure": purity}[f] for f in _core.relax.FuncStructInfo._fields])


@extends(_core.relax.DataTypeImm)
class _DataTypeImm:
    def __init__(self, value, span=None):
        _core.Object.__init__(self, _core.make(_core.relax.DataTypeImm, [str(value), _core.make(_core.relax.ObjectStructInfo, [])]))


@extends(_core.relax.TensorStructInfo)
class _TensorStructInfo:
    """What is known of a tensor: extents (integers, variables; a ShapeExpr) or None, dtype."""

    def __init__(self, shape=None, dtype="float32", vdevice=None, ndim=-1, span=None):
        from sator.script import relax as R

        _need_one(shape, ndim)
        more = {} if vdevice is None else {"vdevice": vdevice}
        if shape is None:
            made = R.Tensor(dtype=dtype, ndim=ndim, **more)
        else:
            made = R.Tensor(shape if isinstance(shape, _core.relax.Var) else tuple(shape), dtype, **more)
        _core.Object.__init__(self, made._node())


add_constructors(_core.relax, node_docs.RELAX, constructors.RELAX)
globals().update({name: cls for name, cls in vars(_core.relax).items() if not name.startswith("_")})


class _Dataflow(type):
    def __instancecheck__(cls, value):
        return isinstance(value, _core.relax.BindingBlock) and value.is_dataflow


class DataflowBlock(metaclass=_Dataflow):
    """A BindingBlock whose bindings have no effects."""

    def __new__(cls, bindings, span=None):
        if not isinstance(bindings, (list, tuple)):
            raise TypeError(f"DataflowBlock: {bindings!r} is a {type(bindings).__name__}\n  needs: a list of bindings")
        return _core.make(_core.relax.BindingBlock, [list(bindings), True])


def extern(name, struct_info=None, span=None):
    """A function outside of the module, by its name."""
    return _core.relax.ExternFunc(name, struct_info)


def make_shape(shape):
    """A ShapeExpr of a list of extents. Errors: TypeError for what is no list."""
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"make_shape: {shape!r} is a {type(shape).__name__}\n  needs: a list of extents")
    return _core.shape(list(shape))


def te_tensor(value, tir_var_map=None, name="rxplaceholder"):
    """A placeholder of te of a tensor's shape and dtype, sizes replaced as {size: expression} says. Errors: its extents are not known."""
    from sator import te, tir

    info = value.struct_info
    if not isinstance(info, _core.relax.TensorStructInfo) or info.shape is None:
        raise ValueError(f"te_tensor: {value} is a {info}\n  needs: a tensor whose extents are known")
    return te.placeholder([tir.stmt_functor.substitute(e, tir_var_map or {}) for e in info.shape.values], info.dtype, name)


def get_shape_of(expr):
    """The shape of a tensor as a graph writes it: its extents where they are known, else a call of shape_of. Errors: it is no tensor."""
    info = expr.struct_info
    if not isinstance(info, _core.relax.TensorStructInfo):
        raise TypeError(f"the shape of a {type(info).__name__}\n  needs: a tensor")
    return info.shape if info.shape is not None else op.shape_of(expr)


def const(value, dtype=None):
    """A tensor that is known before the program runs, from a number or an array.

    dtype   of the tensor, or its TensorStructInfo; without one float64 becomes float32 and int64 int32, of NumPy's arrays too, as in TVM;
            an NDArray stays what it is
    Errors: a shape of the TensorStructInfo that the array has not; a dtype that no tensor has; without one an integer beyond int32.
    """
    import numpy

    from sator import nd

    info = dtype if isinstance(dtype, _core.relax.TensorStructInfo) else None
    dtype = dtype if info is None else None if info.dtype in ("", "void") else info.dtype
    if dtype in ("bfloat16",) or isinstance(dtype, str) and "float8" in dtype:
        import ml_dtypes

        dtype = getattr(ml_dtypes, {"e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2"}.get(dtype, dtype))

    if isinstance(value, _core.NDArray):
        return _core.constant(value)
    array = numpy.asarray(value, dtype=dtype)
    if dtype is None:
        narrow = array.astype({"float64": "float32", "int64": "int32"}.get(array.dtype.name, array.dtype))
        if array.dtype == "int64" and not numpy.array_equal(narrow, array):
            raise ValueError("const: an integer beyond int32\n  needs: a dtype: without one integers are int32\n  hint:  const(value, \"int64\")")
        array = narrow
    if info is not None and (info.ndim not in (-1, array.ndim) or info.shape is not None and [str(d) for d in array.shape] != [
            str(getattr(d, "value", d)) for d in info.shape.values]):
        raise ValueError(f"const: an array of shape {array.shape} as {info}\n  needs: the shape of the array, or none")
    return _core.constant(nd.copied(numpy.ascontiguousarray(array).reshape(array.shape)))


from sator.ir.types import FuncType, TupleType, Type  # noqa: E402,F401
from sator.relax import expr_functor, op  # noqa: E402,F401
from sator.relax.types import DynTensorType, ObjectType, PackedFuncType, ShapeType  # noqa: E402,F401
from sator.relax.block_builder import BlockBuilder  # noqa: E402,F401
from sator.relax.binding_rewrite import DataflowBlockRewrite  # noqa: E402,F401
from sator.relax.exec_builder import ExecBuilder  # noqa: E402,F401
from sator.relax.pipeline import get_pipeline, register_pipeline  # noqa: E402,F401
from sator.relax.expr_functor import ExprFunctor, PyExprMutator, PyExprVisitor  # noqa: E402,F401
from sator.relax.utils import args_converter, convert_to_expr  # noqa: E402,F401


_SUBMODULES = ("analysis", "dpl", "frontend", "testing", "training", "transform", "utils", "vm_build")
# Ops that TVM has here too.
_OPS = ("call_tir", "call_tir_with_grad", "call_tir_inplace", "call_dps_packed", "call_packed", "call_pure_packed")


def __dir__():
    return sorted([*globals(), *_SUBMODULES, *_OPS])


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module("sator.relax." + name)
    if name in _OPS:
        return getattr(op, name)
    deep = paths.submodule("sator.relax", name)
    if deep is not None:
        return deep
    raise paths.missing("sator.relax", name, [*globals(), *_SUBMODULES, *_OPS])
