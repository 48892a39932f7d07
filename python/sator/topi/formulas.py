"""How formulas of ops that TVM's topi has not are found: by the op's name, with its arguments."""
import difflib

from sator import _core
from sator.relax.op_docs import DOCS
from sator.topi.signatures import MISSING, ROWS, by_signature

_OPS = {name for name, _ in _core.ops()}


def _raise(error):
    raise error


def formula_of(name, op):
    """The formula of an op as a function of tensors. Errors: AttributeError for an op that there is not."""
    if name in ROWS:
        return by_signature(name)
    if op not in _OPS or name in MISSING:
        from sator import paths, refused

        if refused.is_refused(f"topi.{name}"):
            return paths.submodule("sator.topi", name) or _raise(refused.error(f"topi.{name}"))
        near = difflib.get_close_matches(str(op), _OPS - MISSING, 3)
        raise AttributeError(f"topi has no formula {name}\n  needs: the name of an op that has a formula"
                             + (f"\n  hint:  the nearest are {', '.join(near)}" if near else "\n  hint:  write it with te.compute"))

    def formula(*args, **kwargs):
        return _core.formula(op, list(args), kwargs)

    formula.__name__ = formula.__qualname__ = name
    words = DOCS.get(op)
    formula.__doc__ = f"{dict(_core.ops())[op]}: the formula of the op {op}, over tensors of te." + (f"\n\n{words}" if words else "")
    return formula
