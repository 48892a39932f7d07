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
_STEERING = ("FNormalize", "FLegalize", "FCallPacked", "FPrimalGradient", "FInferStructInfo", "TCallEffectKind")


def register_op_attr(op_name, attr_key, value=None, level=10):
    """Notes an attribute of an operation, which get_op_attr gives; without a value, a decorator of a function that is the value.

    Errors: NotImplementedError for those that steer TVM's compiler: an op's own row steers this one.
    """
    if attr_key in _STEERING:
        raise NotImplementedError(f"the attribute {attr_key} of {op_name}\n  needs: attributes that the compiler does not ask for\n  hint:  write "
                                  "a pass: relax.transform.function_pass, relax.PyExprMutator")

    def register(given):
        _op_attrs.setdefault(op_name, {})[attr_key] = given
        return given

    return register if value is None else register(value)


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
