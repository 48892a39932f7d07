"""What tensor programs and graphs share: modules, equality, structure."""
from sator import _core, constructors, show  # noqa: F401
from sator.extend import add_constructors

BaseFunc, Object, PrimExpr = _core.BaseFunc, _core.Object, _core.PrimExpr
Array, Dict, Range, VDevice = _core.ir.Array, _core.ir.Dict, _core.ir.Range, _core.ir.VDevice

from sator.ir.equality import assert_structural_equal, structural_equal, structural_hash  # noqa: E402,F401
from sator.ir.module import IRModule  # noqa: E402,F401


@show.extends(Range)
class _Range:
    def __init__(self, begin, end=None, span=None):
        low, extent = (0, begin) if end is None else (begin, _core.binary("-", end, begin))
        Object.__init__(self, _core.make(Range, [low, extent]))

    @staticmethod
    def from_min_extent(low, extent, span=None):
        return _core.make(Range, [low, extent])


@show.extends(_core.ir.TargetConfig)
class _TargetConfig:
    def __eq__(self, other):
        from sator.target import Target

        return other == self if isinstance(other, Target) else isinstance(other, _core.ir.TargetConfig) and self.same_as(other)

    __hash__ = Object.__hash__


add_constructors(_core.ir, constructors.IR)


def save_json(node):
    """A module, a function, an expression or a statement as JSON that load_json reads; programs stand in it as TVMScript."""
    import json

    return json.dumps({"sator": 1, "kind": type(node).__name__, "script": node._script(True)})


def load_json(text):
    """What save_json wrote. Errors: ValueError for any other JSON, TVM's among it."""
    import json

    from sator import script

    data = json.loads(text)
    if not isinstance(data, dict) or "sator" not in data:
        raise ValueError("the JSON is not of save_json\n  needs: a text that sator.ir.save_json wrote")
    kinds = {"IRModule": script.parse, "PrimFunc": script.parse, "Function": script.parse}
    if data["kind"] not in kinds:
        raise ValueError(f"a {data['kind']} cannot be read back from its text\n  needs: a module or a function")
    return script.parse(data["script"])


_op_attrs = {}
_OF_USERS_OPS = ("FInferStructInfo", "FNormalize", "FLegalize", "FPurity")
_STEERING = ("FCallPacked", "FPrimalGradient", "TCallEffectKind")


def register_op_attr(op_name, attr_key, value=None, level=10):
    """Notes an attribute of an operation, which get_op_attr gives; without a value, a decorator of a function that is the value.

    FInferStructInfo(call, builder), FNormalize(builder, call), FLegalize(builder, call) and FPurity of a name that no op has
    make an op of the user's, which `ir.Op.get(name)` gives.
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
    _core.add_user_op(name, attrs.get("FInferStructInfo"), attrs.get("FNormalize"), attrs.get("FLegalize"), bool(attrs.get("FPurity", True)))


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
    raise AttributeError(f"module 'sator.ir' has no attribute {name!r}")
