"""Turns the arithmetic cases of TVM's tests into queries: conformance.py asks for them.

The cases are Python expressions over tvm's names. They are evaluated over stand-ins that write down what is computed:
expressions become text (text_form.h), calls of the analyzer become query trees. A case outside of that has the reason
under "unsupported".
"""

class Unsupported(Exception):
    pass


def bool_name(dtype):
    return str(dtype).replace("uint1x", "boolx") if str(dtype).startswith("uint1x") else "bool" if dtype == "uint1" else dtype


class E:
    """An expression: its text."""

    def __init__(self, text, dtype=None):
        self.text, self.dtype = text, dtype

    def __hash__(self):
        return hash(self.text)

    def _bin(self, other, op, swap=False):
        a, b = (lift(other), self) if swap else (self, lift(other))
        return E(f"({a.text} {op} {b.text})")

    def __add__(self, o): return self._bin(o, "+")
    def __radd__(self, o): return self._bin(o, "+", True)
    def __sub__(self, o): return self._bin(o, "-")
    def __rsub__(self, o): return self._bin(o, "-", True)
    def __mul__(self, o): return self._bin(o, "*")
    def __rmul__(self, o): return self._bin(o, "*", True)
    def __floordiv__(self, o): return self._bin(o, "//")
    def __rfloordiv__(self, o): return self._bin(o, "//", True)
    def __mod__(self, o): return self._bin(o, "%")
    def __rmod__(self, o): return self._bin(o, "%", True)
    def __truediv__(self, o): return E(f"div({self.text}, {lift(o).text})")
    def __lt__(self, o): return self._bin(o, "<")
    def __le__(self, o): return self._bin(o, "<=")
    def __gt__(self, o): return self._bin(o, ">")
    def __ge__(self, o): return self._bin(o, ">=")
    def __eq__(self, o): return self._bin(o, "==")
    def __ne__(self, o): return self._bin(o, "!=")
    def __neg__(self): return E(f"(-{self.text})")
    def __and__(self, o): return E(f"bitwise_and({self.text}, {lift(o).text})")
    def __rshift__(self, o): return E(f"shift_right({self.text}, {lift(o).text})")
    def __lshift__(self, o): return E(f"shift_left({self.text}, {lift(o).text})")
    def equal(self, o): return self == o
    def astype(self, dtype): return E(f'cast("{bool_name(dtype)}", {self.text})')
    def __bool__(self): raise Unsupported("truth of an expression")


def lift(v):
    if isinstance(v, E):
        return v
    if isinstance(v, Q):
        raise Unsupported("arithmetic on a result")
    if v is True or v is False:
        return E("true" if v else "false")
    if isinstance(v, int):
        return E(str(v) if v >= 0 else f"({v})")
    if isinstance(v, float):
        return E(repr(float(v)) if v == v and abs(v) < 1e300 else "bad")
    raise Unsupported(f"a {type(v).__name__} as expression")


class Q:
    """A query; attributes and indices make another."""

    def __init__(self, **tree):
        self.tree = tree

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "value":
            return self
        if name == "same_as":
            return lambda o: Q(fn="equal", a=self.tree, b=node(o))
        if name in ("is_nothing", "is_everything"):
            return lambda: Q(fn=name, arg=self.tree)
        return Q(fn="get", arg=self.tree, name=name)

    def __getitem__(self, i):
        return Q(fn="item", arg=self.tree, i=i)

    def _op(self, other, op, swap=False):
        a, b = (node(other), self.tree) if swap else (self.tree, node(other))
        return Q(fn="op", op=op, a=a, b=b)

    def __add__(self, o): return self._op(o, "+")
    def __radd__(self, o): return self._op(o, "+", True)
    def __sub__(self, o): return self._op(o, "-")
    def __mul__(self, o): return self._op(o, "*")
    def __rmul__(self, o): return self._op(o, "*", True)
    def __lt__(self, o): return self._op(o, "<")
    def __le__(self, o): return self._op(o, "<=")
    def __gt__(self, o): return self._op(o, ">")
    def __ge__(self, o): return self._op(o, ">=")


def node(v):
    if v is POS_INF or v is NEG_INF:
        return {"fn": "open_end"}
    if isinstance(v, Q):
        return v.tree
    if isinstance(v, Set):
        return v.tree()
    return {"expr": lift(v).text}


class Set:
    def __init__(self, low, high, empty=False):
        self.low, self.high, self.empty = low, high, empty

    def tree(self):
        if self.empty:
            return {"fn": "nothing"}
        return {"fn": "interval", "min": None if self.low is None else node(self.low),
                "max": None if self.high is None else node(self.high)}

    @property
    def min_value(self): return Q(fn="get", arg=self.tree(), name="min_value")
    @property
    def max_value(self): return Q(fn="get", arg=self.tree(), name="max_value")


POS_INF, NEG_INF = object(), object()


def make_set(min_value, max_value):
    if min_value is POS_INF and max_value is NEG_INF:
        return Set(None, None, True)
    return Set(None if min_value is NEG_INF else min_value, None if max_value is POS_INF else max_value)


class Range:
    def __init__(self, a, b=None):
        self.min, self.extent = (0, a) if b is None else (a, b - a)

    @staticmethod
    def from_min_extent(a, n, span=None):
        r = Range(0, 1)
        r.min, r.extent = a, n
        return r


def ranges(d):
    return {k.text: [node(r.min), node(r.extent)] for k, r in d.items()}


class Analyzer:
    def canonical_simplify(self, e): return Q(fn="canonical", arg=node(e))
    def rewrite_simplify(self, e): return Q(fn="rewrite", arg=node(e))
    def simplify(self, e, steps=2): return Q(fn="simplify", arg=node(e))
    def const_int_bound(self, e): return Q(fn="bounds", arg=node(e))
    def modular_set(self, e): return Q(fn="modular", arg=node(e))
    def can_prove(self, e, strength=0): return Q(fn="prove", arg=node(e), strength=strength)
    def can_prove_equal(self, a, b): return Q(fn="prove_equal", a=node(a), b=node(b))

    def int_set(self, e, domains):
        for s in domains.values():
            if not isinstance(s, Set):
                raise Unsupported("a domain that is a query")
        return Q(fn="set", arg=node(e), domains={k.text: s.tree() for k, s in domains.items()})

    def bind(self, var, value):
        if isinstance(value, Range):
            return {"bind": var.text, "range": [node(value.min), node(value.extent)]}
        return {"bind": var.text, "value": node(value)}

    def update(self, var, info, override=False):
        return {"bind": var.text, "bounds": info}

    def constraint_scope(self, e): return {"assume": node(e)}


class Names:
    """A namespace whose missing names say so."""

    def __init__(self, name, **members):
        self.__dict__.update(members)
        self._name = name

    def __getattr__(self, attr):
        raise Unsupported(f"{self.__dict__.get('_name', '')}.{attr}")


VARS = {}


def var(size):
    def make(name="v", dtype="int32"):
        VARS[name] = [str(dtype), size]
        return E(name, str(dtype))
    return make


def fn(name):
    return lambda *a: E(f"{name}({', '.join(lift(x).text for x in a)})")


def const(v, dtype=None):
    if dtype in (None, "int32") and isinstance(v, int) and not isinstance(v, bool):
        return lift(v)
    if str(dtype) == "bool":
        return E("true" if v else "false")
    return E(f'cast("{dtype or "float32"}", {lift(v).text})')


def combine(op):
    def run(*args):
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = args[0]
        e = lift(args[0])
        for a in args[1:]:
            e = E(f"({e.text} {op} {lift(a).text})")
        return e
    return run


def lanes(n):
    if isinstance(n, E) and n.text.startswith('cast("int64", '):
        return n.text[len('cast("int64", '):-1]
    if not isinstance(n, int):
        raise Unsupported("scalable vectors")
    return n


def call_intrin(dtype, op, *args):
    return E(f'call("{dtype}", "{op}", {", ".join(lift(a).text for a in args)})')


def iter_map_simplify(indices, iters, predicate=True, check_level="surjective", simplify_trivial_iterators=True):
    return Q(fn="iter_map_simplify", indices=[node(i) for i in indices], iters=ranges(iters), predicate=node(predicate),
             level=str(check_level), trivial=simplify_trivial_iterators)


def sets(domains):
    return {k.text: s.tree() for k, s in domains.items()}


def deduce_bound(var, cond, hints, relax):
    return Q(fn="deduce_bound", var=var.text, arg=node(cond), hints=sets(hints), relax=sets(relax))


def detect_clip_bound(cond, variables):
    return Q(fn="detect_clip_bound", arg=node(cond), vars=[v.text for v in variables])


def detect_linear_equation(e, variables):
    return Q(fn="detect_linear", arg=node(e), vars=[v.text for v in variables])


def narrow_predicate(cond, free):
    return Q(fn="narrow_predicate", arg=node(cond), free=ranges(free))


class Buffer:
    def __init__(self, shape, dtype="float32", name="buffer"):
        self.name, self.dtype = name, dtype

    def vload(self, index):
        return E(f'load("{self.dtype}", "{self.name}", {lift(index).text})')


class Interval:
    interval = staticmethod(make_set)
    vector = staticmethod(lambda e: Q(fn="vector_set", arg=node(e)))
    single_point = staticmethod(lambda e: Set(e, e))


def binary_node(name):
    return lambda a, b: E(f"{name}({lift(a).text}, {lift(b).text})")


tir = Names("tir", const=const, floordiv=fn("floordiv"), floormod=fn("floormod"), truncdiv=fn("truncdiv"),
            truncmod=fn("truncmod"), Var=var(False), SizeVar=var(True), min=fn("min"), max=fn("max"),
            Cast=lambda d, e: E(f'cast("{d}", {lift(e).text})'),
            Ramp=lambda b, s, n: E(f"ramp({lift(b).text}, {lift(s).text}, {lanes(n)})"),
            Broadcast=lambda v, n: E(f"broadcast({lift(v).text}, {lanes(n)})"),
            Select=fn("Select"), if_then_else=fn("if_then_else"), Not=fn("Not"), all=combine("and"), any=combine("or"),
            And=fn("And"), Or=fn("Or"), IntImm=lambda dtype, value: const(value, dtype), call_intrin=call_intrin,
            vscale=lambda: E('call("int32", "tir.vscale")'),
            log=lambda e: E(f'call("float32", "tir.log", {lift(e).text})'), decl_buffer=Buffer,
            buffer=Names("tir.buffer", decl_buffer=Buffer), BufferLoad=lambda b, i: b.vload(i[0]),
            op=Names("tir.op", call_intrin=call_intrin),
            Let=lambda v, value, body: E(f"let({v.text}, {lift(value).text}, {lift(body).text})"),
            **{n: binary_node(n) for n in ("LT", "LE", "GT", "GE", "EQ", "NE", "Add", "Sub", "Mul", "Div", "Mod",
                                           "FloorDiv", "FloorMod", "Min", "Max")})
te = Names("te", var=var(False), size_var=var(True), min=fn("min"), max=fn("max"), floordiv=fn("floordiv"),
           floormod=fn("floormod"), truncdiv=fn("truncdiv"), truncmod=fn("truncmod"),
           min_value=lambda d: const({"int32": -2**31, "int64": -2**63}[d], d))
arith = Names("tvm.arith", Analyzer=Analyzer, IntervalSet=make_set, IntSet=Interval,
              ConstIntBound=lambda a, b: [a, b], ProofStrength=Names("strength", DEFAULT=0, SYMBOLIC_BOUND=1),
              iter_map_simplify=iter_map_simplify, deduce_bound=deduce_bound, detect_clip_bound=detect_clip_bound,
              detect_linear_equation=detect_linear_equation,
              _ffi_api=Names("tvm.arith._ffi_api", NarrowPredicateExpression=narrow_predicate),
              int_set=Names("int_set", pos_inf=lambda: POS_INF, neg_inf=lambda: NEG_INF,
                            union_lower_bound=lambda s: Q(fn="unite_lower_bound", sets=[x.tree() for x in s])))
arith.ConstIntBound.POS_INF = (1 << 63) - 1
arith.ConstIntBound.NEG_INF = -((1 << 63) - 1)
tvm = Names("tvm", arith=arith, te=te, tir=tir,
            ir=Names("tvm.ir", Range=Range, structural_equal=lambda a, b, *r: Q(fn="equal", a=node(a), b=node(b))),
            runtime=Names("tvm.runtime", convert=lambda v: v), error=Names("tvm.error", TVMError="error"))
PROVED = ("test_arith_deduce_bound", "test_arith_detect_clip_bound", "test_arith_detect_linear_equation")
SCOPE = {"te": te, "tir": tir, "tvm": tvm, "T": Names("T", vscale=lambda: E('call("int32", "tir.vscale")')), "True": True, "False": False}


def convert(case):
    VARS.clear()
    scope = dict(SCOPE)
    for d in case.get("defs", []):
        exec(d, scope)
    setup = []
    analyzer = Analyzer()
    for s in case.get("setup", []):
        s = s.removeprefix("with ").replace("tvm.arith.Analyzer()", "analyzer")
        if "tvm.target.Target(" in s:  # machines with scalable vectors: nothing is asked of them but vscale's values
            continue
        setup.append(eval(s, dict(scope, analyzer=analyzer)))
    if case["kind"] == "arith":
        if case.get("after") == "tvm.error.TVMError":
            raise Unsupported("an error of a vector divided by zero")
        if case.get("precondition"):
            p = eval(case["precondition"], scope)
            setup.append({"assume": node(combine("and")(p) if isinstance(p, list) else p)})
        query = {"fn": "equal", "a": {"fn": "rewrite", "arg": node(eval(case["expr"], scope))},
                 "b": node(eval(case["after"], scope))}
    elif case["kind"] == "expr_equal":
        # What assert_prim_expr_equal compares need not be written alike.
        how = "prove_equal" if any(name in case["source_test"] for name in PROVED) else "equal"
        query = {"fn": how, "a": node(eval(case["lhs"], scope)), "b": node(eval(case["rhs"], scope))}
    elif case["kind"] == "expr_query":
        q = node(eval(case["expr"], scope))
        if case["op"] in ("true", "false"):
            query = q if case["op"] == "true" else {"fn": "not", "arg": q}
        elif case["op"] == "==":
            query = {"fn": "equal", "a": q, "b": node(eval(str(case["after"]), scope))}
        else:
            raise Unsupported(f"op {case['op']}")
    else:
        raise Unsupported(f"kind {case['kind']}")
    return {"vars": dict(VARS), "setup": setup, "query": query}


def query_of(case):
    """The case as an `arith_query`; with "unsupported" and the reason in words where it is none."""
    out = {key: case[key] for key in ("source_test", "n", "category", "id") if key in case} | {"kind": "arith_query"}
    try:
        if "TestBoundsUsingReciprocals" in case["source_test"]:
            raise Unsupported("expected to fail in TVM itself")
        return out | convert(case)
    except Unsupported as e:
        return out | {"unsupported": str(e)}
    except Exception as e:  # a name or method without a stand-in
        return out | {"unsupported": f"{type(e).__name__}: {e}"}
