"""What TVM's users' tests call of tvm.testing, over pytest: parameters, fixtures, features that a test needs. sator.testing offers it.

There is one target here, "llvm" on cpu(): tests of others are skipped.
"""
import inspect
import itertools
import textwrap

from sator.error import TVMError

_HERE = ("llvm", "x86")  # features that a test may need and that are here


def _pytest():
    try:
        import pytest
    except ImportError:
        raise TVMError("error: the tests use pytest, which is not installed\n  needs: pytest\n  hint:  pip install pytest") from None
    return pytest


def parameter(*values, ids=None, by_dict=None):
    """A pytest fixture that has each value in turn. by_dict: {id: value} in their place."""
    if by_dict is not None:
        if values or ids:
            raise ValueError("parameter: values beside by_dict\n  needs: one of them")
        ids, values = list(by_dict), list(by_dict.values())
    pytest = _pytest()

    @pytest.fixture(params=list(values), ids=ids)
    def as_fixture(*_cls, request):
        return request.param

    return as_fixture


def fixture(func=None, *, cache_return_value=False):
    """pytest.fixture; with cache_return_value one result for the tests of a module."""
    made = _pytest().fixture(scope="module" if cache_return_value else "function")
    return made if func is None else made(func)


def enabled_targets():
    """[("llvm", cpu())]: what tests of all targets run on."""
    from sator.runtime import cpu

    return [("llvm", cpu())]


def device_enabled(target):
    """Whether a target's device is here."""
    from sator.runtime import enabled

    return enabled(str(getattr(target, "kind", target)))


def parametrize_targets(*targets):
    """Runs a test with each target as `target` and its device as `dev`, those of which it takes; on the targets that are not here it is skipped."""
    pytest = _pytest()
    if len(targets) == 1 and callable(targets[0]):
        return parametrize_targets("llvm")(targets[0])

    def decorator(func):
        from sator.runtime import cpu

        names = [n for n in ("target", "dev") if n in inspect.signature(func).parameters]
        rows = []
        for target in targets or ("llvm",):
            is_here = device_enabled(target)
            row = [{"target": target, "dev": cpu() if is_here else None}[n] for n in names]
            rows.append(pytest.param(*row, id=str(target), marks=() if is_here else pytest.mark.skip(reason=f"there is no {target} here")))
        return pytest.mark.parametrize(names, rows)(func)

    return decorator


def exclude_targets(*_targets):
    """A test that leaves targets out; there is one here."""
    return lambda func: func


known_failing_targets = exclude_targets


class Feature:
    """What a test needs, as a decorator: @requires_cuda; `marks()` are pytest's marks of it. Tests of what is not here are skipped."""

    def __init__(self, name, is_here):
        self.name, self._is_here = name, is_here

    def marks(self, support_required="compile-and-run"):
        """pytest's marks."""
        return [] if self._is_here else [_pytest().mark.skip(reason=f"there is no {self.name} here")]

    def __call__(self, func=None, *args, **_options):
        if not callable(func):
            return self._mark
        return self._mark(func)

    def _mark(self, func):
        for mark in self.marks():
            func = mark(func)
        return func


def feature(name):
    """The feature of a name, requires_cuda or uses_gpu."""
    word = name.partition("_")[2]
    return Feature(word, name.startswith("uses_") or word in _HERE)


def requires_package(*packages):
    """A test that needs Python's packages; where one is missing it is skipped."""
    import importlib.util

    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return Feature(", ".join(missing), not missing)


def assert_prim_expr_equal(lhs, rhs):
    """Checks that two expressions have one value always. Errors: ValueError where that is not known."""
    from sator.arith import Analyzer

    if not Analyzer().can_prove_equal(lhs, rhs):
        raise ValueError(f"{lhs} and {rhs} are not known to be equal\n  needs: two expressions of one value")


def check_bool_expr_is_true(bool_expr, vranges, cond=None):
    """Checks a condition at every point of ranges, {variable: Range}, where `cond` holds. Errors: AssertionError with the first point that fails."""
    from sator import tir
    from sator.arith import Analyzer

    analyzer, names = Analyzer(), list(vranges)
    spans = [range(int(r.min.value), int(r.min.value + r.extent.value)) for r in vranges.values()]

    def value(expr, at):
        return bool(analyzer.simplify(tir.stmt_functor.substitute(expr, at)).value)

    for point in itertools.product(*spans):
        at = {v: tir.const(i, v.dtype) for v, i in zip(names, point)}
        if (cond is None or value(cond, at)) and not value(bool_expr, at):
            raise AssertionError(f"{bool_expr} does not hold for {', '.join(f'{v} = {i}' for v, i in zip(names, point))}")


def check_numerical_grads(function, input_values, grad_values, function_value=None, delta=1e-3, atol=1e-2, rtol=0.1):
    """Compares gradients with differences of the function's values.

    function       of arrays (a list, or {name: array}) -> a number
    grad_values    of the inputs, as those; None leaves one out
    Errors: AssertionError where the distance is beyond atol * sqrt(elements) + rtol * the gradient's length.
    """
    import numpy

    names = list(input_values) if isinstance(input_values, dict) else range(len(input_values))
    given = {n: numpy.array(input_values[n], "float64") for n in names}

    def at(values):
        return float(function(**values) if isinstance(input_values, dict) else function(*values.values()))

    for name in names:
        grad = grad_values.get(name) if isinstance(grad_values, dict) else grad_values[name]
        if grad is None:
            continue
        found = numpy.zeros_like(given[name])
        for place in numpy.ndindex(found.shape):
            ends = []
            for step in (delta, -delta):
                moved = given[name].copy()
                moved[place] += step
                ends.append(at({**given, name: moved}))
            found[place] = (ends[0] - ends[1]) / (2 * delta)
        distance, length = numpy.linalg.norm(found - grad), numpy.linalg.norm(found)
        if not distance <= atol * numpy.sqrt(found.size) + rtol * length:
            raise AssertionError(f"the gradient of input {name} is {distance:g} away from differences of the function, whose length is {length:g}")


def _is_fixture(thing):
    return hasattr(thing, "_pytestfixturefunction") or type(thing).__name__ == "FixtureFunctionDefinition"


def _takes_self(thing):
    return inspect.isfunction(thing) and "self" in inspect.signature(thing).parameters


class CompareBeforeAfter:
    """A test of a pass: a subclass says `before`, `transform` and `expected`, and test_compare compares.

    transform           a pass, or a method or fixture that gives one
    before, Before      a PrimFunc or an IRModule; a function or class of T.prim_funcs without the decorator; a method or fixture that gives one
    expected, Expected  the same, or the class of an exception that the pass raises
    """

    check_well_formed = True

    def __init_subclass__(cls):
        for small, large in (("before", "Before"), ("expected", "Expected")):
            name = large if hasattr(cls, large) else small
            if hasattr(cls, name):
                setattr(cls, small, cls._program(inspect.getattr_static(cls, name)))
        if hasattr(cls, "transform"):
            cls.transform = cls._pass(inspect.getattr_static(cls, "transform"))

    @classmethod
    def _program(cls, given):
        from sator import IRModule, tir
        from sator.ir import BaseFunc

        if _is_fixture(given):
            return given
        if isinstance(given, (tir.PrimFunc, IRModule)) or inspect.isclass(given) and issubclass(given, BaseException):
            return _pytest().fixture(lambda self: given)
        if _takes_self(given):
            return _pytest().fixture(lambda self: given(self))

        def of_source(function):
            from sator.script import parse

            return parse("@T.prim_func\n" + textwrap.dedent(inspect.getsource(function)), check_well_formed=cls.check_well_formed)

        def program(self):
            if not inspect.isclass(given):
                return of_source(given)
            members = {n: f for n, f in vars(given).items() if not n.startswith("_")}
            return IRModule({n: (f if isinstance(f, BaseFunc) else of_source(f)).with_attr("global_symbol", n) for n, f in members.items()})

        return _pytest().fixture(program)

    @classmethod
    def _pass(cls, given):
        from sator.transform import Pass

        if _is_fixture(given):
            return given
        if isinstance(given, Pass):
            return _pytest().fixture(lambda self: given)
        if _takes_self(given):
            return _pytest().fixture(lambda self: given(self))
        raise TypeError(f"transform = {given!r}\n  needs: a pass, or a method or a fixture that gives one")

    def test_compare(self, before, expected, transform):
        """Runs the pass on `before` and compares the result with `expected`."""
        from sator import IRModule
        from sator.ir import BaseFunc, assert_structural_equal

        is_function = isinstance(before, BaseFunc)
        mod = IRModule({"main": before}) if is_function else before
        if inspect.isclass(expected):
            with _pytest().raises(expected):
                transform(mod)
            return
        after = transform(mod)
        if is_function:
            after, expected = after["main"].with_attr("global_symbol", "main"), expected.with_attr("global_symbol", "main")
        assert_structural_equal(after, expected)
