"""What tensor programs and graphs share: modules, equality, structure."""
import enum

from sator import _core, constructors, node_docs, show  # noqa: F401
from sator.extend import add_constructors

BaseFunc, Object, PrimExpr = _core.BaseFunc, _core.Object, _core.PrimExpr
Array, Dict, Range, VDevice = _core.ir.Array, _core.ir.Dict, _core.ir.Range, _core.ir.VDevice

Node, BaseExpr, RelayExpr = Object, Object, _core.RelaxExpr  # TVM's names of the same classes

from sator.ir.equality import assert_structural_equal, structural_equal, structural_hash  # noqa: E402,F401
from sator.ir.mismatch import get_first_structural_mismatch  # noqa: E402,F401
from sator.ir.module import IRModule  # noqa: E402,F401
from sator.ir.types import FuncType, PointerType, PrimType, TupleType, Type  # noqa: E402,F401
from sator.ir import node_json  # noqa: E402


@show.extends(Range)
class _Range:
    def __init__(self, begin, end=None, span=None):
        if isinstance(end, PrimExpr) and isinstance(begin, int) and not isinstance(begin, bool):
            begin = _core.const(begin, end.dtype)  # a number has the dtype of what it stands beside
        low, extent = (0, begin) if end is None else (begin, _core.binary("-", end, begin))
        Object.__init__(self, _core.make(Range, [low, extent]))

    @staticmethod
    def from_min_extent(min_value, extent, span=None):
        """min_value, min_value + 1, ...: `extent` values."""
        return _core.make(Range, [min_value, extent])


@show.extends(_core.ir.TargetConfig)
class _TargetConfig:
    def __eq__(self, other):
        from sator.target import Target

        return other == self if isinstance(other, Target) else isinstance(other, _core.ir.TargetConfig) and self.same_as(other)

    __hash__ = Object.__hash__


add_constructors(_core.ir, node_docs.IR, constructors.IR)


class CallingConv(enum.IntEnum):
    """How a function is called; the values are TVM's."""

    DEFAULT, C_PACKED_FUNC, DEVICE_KERNEL_LAUNCH = 0, 1, 2


class SourceName:
    """The name of a source, a file for one."""

    def __init__(self, name):
        self.name = str(name)

    def __repr__(self):
        return f"SourceName({self.name})"


class Span:
    """A place in a source. Nodes are made with one and keep none: errors quote the program itself."""

    def __init__(self, source_name, line, end_line, column, end_column):
        self.source_name, self.line, self.end_line, self.column, self.end_column = source_name, line, end_line, column, end_column

    def __repr__(self):
        return f"Span({self.source_name}, {self.line}, {self.end_line}, {self.column}, {self.end_column})"


DictAttrs = Attrs = Map = dict  # attributes are dictionaries


def make_node(type_key, **kwargs):
    """A node by the key of its class, "tir.Var", with a value for each field; "DictAttrs" gives a dictionary. Errors: ValueError for another key."""
    if type_key in ("DictAttrs", "ir.DictAttrs"):
        return dict(kwargs)
    space, _, name = str(type_key).rpartition(".")
    cls = next((getattr(s, name) for s in ([getattr(_core, space, None)] if space else [_core.tir, _core.relax, _core.ir]) if hasattr(s, name)), None)
    if cls is None or not isinstance(cls, type):
        raise ValueError(f"make_node: there is no class {type_key}\n  needs: a class of nodes, as \"tir.Var\", or \"DictAttrs\"")
    kwargs.pop("span", None)
    return cls(**kwargs)


_AS_TEXT = ("IRModule", "PrimFunc", "Function")


def save_json(node):
    """A module, a function or any other node as JSON that load_json reads; programs stand in it as TVMScript, all else by its fields."""
    import json

    if not isinstance(node, Object):
        hint = "\n  hint:  te.create_prim_func([...]) makes a program of tensors" if isinstance(node, _core.Tensor) else ""
        raise TypeError(f"save_json: {node!r} is a {type(node).__name__}\n  needs: a part of a program{hint}")
    data = {"sator": 1, "kind": type(node).__name__}
    script = node._script(True) if data["kind"] in _AS_TEXT else None
    if script is None or not _reads_back(script, node):
        return json.dumps({**data, "nodes": node_json.nodes_of(node)})
    return json.dumps({**data, "script": script})


def _reads_back(script, node):
    """Whether a text is the program: an attribute may have no text, and a part of a program may not stand alone."""
    from sator.script import parse

    try:
        return structural_equal(parse(script, check_well_formed=False), node)
    except RuntimeError:
        return False


def _of_nodes(text):
    import json

    return node_json.node_from(json.loads(text))


def load_json(json_str):
    """What save_json wrote. Errors: ValueError for any other JSON, TVM's among it."""
    import json

    from sator import script

    try:
        data = json.loads(json_str)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"load_json: {error}\n  needs: a text that sator.ir.save_json wrote") from None
    if not isinstance(data, dict) or "sator" not in data or not ("script" in data or data.get("nodes")):
        raise ValueError("the JSON is not of save_json\n  needs: a text that sator.ir.save_json wrote")
    return node_json.node_from(data["nodes"]) if "nodes" in data else script.parse(data["script"], check_well_formed=False)


@show.extends(Object)
class _Object:
    def __reduce__(self):
        import json

        return _of_nodes, (json.dumps(node_json.nodes_of(self)),)


_op_attrs = {}
_OF_USERS_OPS = ("FInferStructInfo", "FNormalize", "FLegalize", "FPurity", "RequiresArgumentShapes")
_STEERING = ("FCallPacked", "FPrimalGradient", "TCallEffectKind")


def register_op_attr(op_name, attr_key, value=None, level=10):
    """Notes an attribute of an operation, which get_op_attr gives; without a value, a decorator of a function that is the value.

    FInferStructInfo(call, builder), FNormalize(builder, call), FLegalize(builder, call) and FPurity of a name that no op has
    make an op of the user's, which `ir.Op.get(name)` gives. The builder of the last two is a relax.BlockBuilder while they run; what they
    emit stands before the call. FLegalize is asked where all extents are known, or always where RequiresArgumentShapes is False.
    Errors: NotImplementedError for such an attribute of an op of the compiler's, which its own row steers, and for
    FCallPacked, FPrimalGradient and TCallEffectKind.
    """
    if attr_key in _STEERING or attr_key in _OF_USERS_OPS and op_name.startswith("relax."):
        raise NotImplementedError(f"the attribute {attr_key} of {op_name}\n  needs: {', '.join(_OF_USERS_OPS)} of an op of one's own\n"
                                  "  hint:  write a pass: relax.transform.function_pass, relax.PyExprMutator")

    def register(given):
        _op_attrs.setdefault(op_name, {})[attr_key] = given
        if attr_key in _OF_USERS_OPS:
            _make_user_op(op_name)
        return given

    return register if value is None else register(value)


def _make_user_op(name):
    """Tells the compiler of an op by the attributes that are noted of it."""
    attrs = _op_attrs.get(name, {})
    if not any(key in attrs for key in _OF_USERS_OPS):
        _core.remove_user_op(name)
        return
    _core.add_user_op(name, attrs.get("FInferStructInfo"), attrs.get("FNormalize"), attrs.get("FLegalize"), bool(attrs.get("FPurity", True)),
                        bool(attrs.get("RequiresArgumentShapes", True)))


def reset_op_attr(op_name, attr_key):
    """Forgets what register_op_attr noted."""
    _op_attrs.get(op_name, {}).pop(attr_key, None)
    if attr_key in _OF_USERS_OPS:
        _make_user_op(op_name)


def get_op_attr(op_name, attr_key):
    """What register_op_attr noted, or None."""
    return _op_attrs.get(op_name, {}).get(attr_key)


def __getattr__(name):
    if name in ("Op", "GlobalVar"):
        from sator import relax

        return getattr(relax, name)
    if name == "transform":
        from sator import transform

        return transform
    if name == "instrument":
        import importlib

        return importlib.import_module("sator.ir.instrument")
    from sator import paths

    deep = paths.submodule("sator.ir", name)
    if deep is not None:
        return deep
    raise paths.missing("sator.ir", name, globals())
