#!/usr/bin/env python3
"""Answers conformance cases through the Python package, as tools/conformance.md says: what a case writes in Python is run by Python, with
`tvm` meaning sator. It takes the kinds that need objects of Python's (builder, construct, te, query, transform2), inference, schedules, and those with
contexts or captured values, which are read from the tests of the checkout that TVM_CHECKOUT names; of the others `sator_conformance` is asked.

    ./dev conformance DIR --python --kind builder
"""
import ast
import contextlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if "SATOR_CONFORMANCE" not in os.environ:  # the package of ./dev, and the interpreter that it was built for
    os.environ.update(SATOR_CONFORMANCE="1", PYTHONPATH=str(ROOT / "build" / "dev" / "python"))
    python = str(ROOT / "build" / "venv" / "bin" / "python")
    os.execv(python, [python, __file__])

import numpy as np

import sator
from conformance_test_file import CHECKOUT, OPEN_FIXTURES, TestFile, Unsupported
from sator import dlight, relax, te, tir, topi
from sator.script import ir as I, relax as R, tir as T


class Failed(Exception):
    """The result is another one."""


class Incomplete(Exception):
    """The case lacks what its test did between: nobody can answer it."""


NO_STEPS = "a te schedule without its steps"
# What tests did to objects in statements of their own is not in the cases.
LOST = {r"^relax\.Call\(relax\.ExternFunc\('test\.blockbuilder\.nop'\), \[\]\)": "a builder without its function",
        r"ExecBuilder\(\)\.(get|convert_constant)": "an executable without its instructions", r"IRBuilder\(\)\.get\(\)": "a builder without what was built", r"PatternContext\([^()]*\)\.match_dfb": "a context without its patterns",
        r"DataflowBlockRewrite\(": "a rewriting without its steps", r"^tir\.Schedule\(mod=\$before, debug_mask='all'\)\.mod": "a schedule without its steps",
        r"get_sref\(None\)": "the place in a schedule that was asked for", r"InferBound\(": NO_STEPS,
        r"MemoryDatabase\(\)\.query|UnionDatabase\(\)": "a database without its records", r"ScheduleState\(": "a schedule's state without its steps",
        r"^(ins|sp)\[": "what a function inside of the test is called with",
        r"attrs=\{'hello': 1, 'arr': \[10, 12\]\}\)\.op\.tag\s*$": "a formula without its tag_scope", r"json\.loads\(\"tvm|lambda data, weight: te\.compute": "a text in which names of the test are written out",
        r"\b_\d+[.,]": "what the test emitted", r"\bexcinfo\b": "the words of an error that the test caught",
        r"nd\.empty\(\(\), 'int32'\)\.numpy": "what a program wrote", r"\.attach_type|\.attach_stage|\.iter_var_attrs|\.group\b|InferTensorizeRegion": NO_STEPS}


# What changes a te schedule, as tests write it.
STEPS = re.compile(r"\]\.(split|fuse|tile|reorder|compute_at|compute_inline|compute_root|bind|vectorize|unroll|parallel|tensorize|pragma|set_scope|env_threads|"
                   r"double_buffer|rolling_buffer|prefetch|storage_align)\(|\.(cache_read|cache_write|rfactor|create_group)\(|AutoInline|stage\.\w+\(")


def shadowed_axis(case, written):
    """Whether an axis of a reduction has the name of a function's own index: the test's names were others."""
    return any(re.search(rf"lambda [^:]*\b{axis}\b[^:]*:.*axis=\[?{axis}\b", written)
               for axis in re.findall(r"^(\w+) = te\.reduce_axis", "\n".join(case.get("defs", ())), re.M))


NAMES = {"tvm": sator, "relax": relax, "rx": relax, "tir": tir, "te": te, "topi": topi, "dl": dlight, "I": I, "R": R, "T": T, "np": np, "os": os,
         "re": re, "json": json, "tempfile": tempfile, "inf": float("inf"), "nan": float("nan")}


def parsed(text, names):
    """The module or function of a script; captured names have the values of the case."""
    return sator.script.parse(text, check_well_formed=False, extra_vars={k: v for k, v in names.items() if not k.startswith("__")})


def names_of(case, helpers):
    names = {**NAMES, **helpers}
    for line in case.get("defs", ()):
        exec(line, names)
    opaque = [name for name in case.get("opaque") or () if name not in names]
    if opaque:
        file = TestFile(case, names)
        for name in opaque:
            if name in names:  # another one's value needed it: both have the same object
                continue
            try:
                file.define(name)
            except Unsupported:  # a name that the script itself may define
                if not CHECKOUT or case["kind"].endswith("_error"):
                    raise
    return names


class Shared(ast.NodeTransformer):
    """Calls of one text are one object: the cases write an object's making wherever their tests name it.

    apart   how the names of functions begin whose calls are each an object of their own
    """

    def __init__(self, names, apart=()):
        self.names, self.made, self.apart = names, names.setdefault("__made__", {}), tuple(apart)
        self.bound = []

    def value(self, expr):
        tree = self.visit(ast.parse(expr, mode="eval"))
        return eval(compile(ast.fix_missing_locations(tree), "case", "eval"), self.names)

    def visit_Lambda(self, node):  # noqa: N802
        return self.inside(node, {a.arg for a in [*node.args.args, *([node.args.vararg] if node.args.vararg else [])]})

    def visit_ListComp(self, node):  # noqa: N802
        return self.inside(node, {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)})

    visit_GeneratorExp = visit_DictComp = visit_ListComp

    def inside(self, node, names):
        self.bound.append(names)
        node = self.generic_visit(node)
        self.bound.pop()
        return node

    def visit_Call(self, node):  # noqa: N802
        text = ast.dump(node)
        node = self.generic_visit(node)
        if free_names(node) & set().union(*self.bound) or self.apart and ast.unparse(node.func).startswith(self.apart):
            return node
        if text not in self.made:
            key = f"__value{len(self.made)}"
            self.names[key] = eval(compile(ast.fix_missing_locations(ast.Expression(node)), "case", "eval"), self.names)
            self.made[text] = key
        return ast.copy_location(ast.Name(self.made[text], ast.Load()), node)


def free_names(node):
    """The names that an expression uses and does not bind itself."""
    if isinstance(node, ast.Name):
        return {node.id}
    inner = set().union(*map(free_names, ast.iter_child_nodes(node)))
    if isinstance(node, ast.Lambda):
        return inner - {a.arg for a in [*node.args.args, *([node.args.vararg] if node.args.vararg else [])]}
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.DictComp)):
        return inner - {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    return inner


def with_scripts(expr, case, names):
    """The expression with $before, $s0, ... as names of their programs."""
    scripts = case.get("scripts") or {}
    if isinstance(scripts, list):  # those of comparisons have no keys: the expression names their functions
        scripts = dict(enumerate(scripts))
    for key, text in scripts.items() if isinstance(case.get("scripts"), dict) else ():
        name = "_" + key.strip("$")
        names[name] = parsed(text, names)
        expr = expr.replace(key, name)
    for key in ("before", "after"):
        if f"${key}" in expr:
            if f"_{key}" not in names:
                names[f"_{key}"] = parsed(case[key], names)
            if f"${key}['main']" in expr and isinstance(names[f"_{key}"], tir.PrimFunc):  # the test was given it in a module
                names[f"_{key}"] = sator.IRModule({"main": names[f"_{key}"]})
            expr = expr.replace(f"${key}", f"_{key}")
    if "<script:" in expr:
        for name in set(re.findall(r"<script:(\w+)>", expr)):
            found = [t for t in scripts.values() if re.search(rf"def {name}\b|class {name}\b", t)]
            if not found:
                raise Unsupported("a script that the case does not hold")
            names["_s_" + name] = parsed(found[0], names)
            expr = expr.replace(f"<script:{name}>", "_s_" + name)
    return expr


# Where passes have a form of TVM's beside their own, the cases are written in TVM's.
FORM = {"LegalizeOps.form": "topi", "FlattenBuffer.keep_axis_separators": 1, "VectorizeLoop.serial_conditions": 1,
        "BF16ComputeLegalize.bits": 1, "FP8ComputeLegalize.bits": 1}


def evaluated(expr, case, names, apart=()):
    expr = with_scripts(expr, case, names)
    with contextlib.ExitStack() as stack:
        stack.enter_context(sator.transform.PassContext(config=FORM))
        for ctx in case.get("ctx", ()):
            value = Shared(names).value(ctx)
            if isinstance(value, sator.transform.PassContext):
                value.config = {**FORM, **value.config}
            if hasattr(value, "__enter__"):
                stack.enter_context(value)
        # Each wildcard() is one of its own, where nothing asks for what it matched.
        if "PatternContext" not in expr + str(case.get("ctx")) and "[relax.dpl." not in expr:
            apart = (*apart, "relax.dpl.wildcard")
        return Shared(names, apart).value(expr)


def same(got, wanted):
    """Raises Failed where two programs differ; names of functions do not count.

    The wanted program was completed by the reader; the other one may be read again from its text.
    """
    program = isinstance(got, (sator.IRModule, tir.PrimFunc, relax.Function))
    got, wanted = comparable(got, wanted)
    if not sator.ir.structural_equal(got, wanted, map_free_vars=True):
        if program:
            with contextlib.suppress(sator.TVMError):
                if sator.ir.structural_equal(*comparable(parsed(got.script(show_meta=True), {}), wanted), map_free_vars=True):
                    return
        try:
            sator.ir.assert_structural_equal(got, wanted, map_free_vars=True)
        except ValueError as e:
            raise Failed("the result differs\n" + str(e)) from None
        raise Failed("the result differs")


def comparable(a, b):
    module = sator.IRModule
    if isinstance(b, module) and len(b.functions) > 1 and isinstance(a, (tir.PrimFunc, relax.Function)) and a.attrs.get("global_symbol") in b:
        b = b[a.attrs["global_symbol"]]
    if isinstance(a, module) and not isinstance(b, module) and len(a.functions) == 1:
        a = next(iter(a.functions.values()))
    if isinstance(b, module) and not isinstance(a, module) and len(b.functions) == 1:
        b = next(iter(b.functions.values()))
    return nameless(a), nameless(b)


def without_declarations(x):
    """Where a buffer is declared says nothing, nor does the dtype of an allocation's constant size."""
    if isinstance(x, sator.IRModule):
        return sator.IRModule({n: without_declarations(f) for n, f in x.functions.items()}, None, x.attrs, x.global_infos)
    if not isinstance(x, tir.PrimFunc):
        return x

    def plain_statement(node):
        if isinstance(node, tir.DeclBuffer):
            return node.body
        extents = [tir.IntImm("int32", e.value) if isinstance(e, tir.IntImm) and e.value < 2**31 else e for e in node.extents]
        return tir.Allocate(node.buffer_var, node.dtype, extents, node.condition, node.body, node.annotations)

    return x.with_body(tir.stmt_functor.ir_transform(x.body, None, plain_statement, ["tir.DeclBuffer", "tir.Allocate"]))


class Renamed(relax.PyExprMutator):
    """Calls of functions by other names."""

    def __init__(self, names):
        super().__init__()
        self.names = names

    def visit_global_var_(self, var):
        return sator._core.make(relax.GlobalVar, [self.names.get(var.name_hint, var.name_hint), var.struct_info])


def by_calls(mod):
    """The module with the functions that main calls, or its public ones, named in the order of their calls: what they are called does not count."""
    order = []

    def collect(func):
        for var in relax.analysis.all_global_vars(func):
            name = var.name_hint
            if name in mod.functions and name not in order:
                order.append(name)
                if isinstance(mod[name], relax.Function):
                    collect(mod[name])

    public = ["main"] if "main" in mod else [n for n, f in mod.functions.items() if f.attrs.get("global_symbol")]
    for name in public:
        if isinstance(mod[name], relax.Function):
            collect(mod[name])
    names = {n: f"f{i}" for i, n in enumerate(n for n in order if n not in public)}
    if not names:
        return mod
    functions = {names.get(n, n): Renamed(names).visit_expr(f) if isinstance(f, relax.Function) else f for n, f in mod.functions.items()}
    return sator.IRModule(functions, None, mod.attrs, mod.global_infos)


def nameless(x):
    """Without the names that a function goes by, and completed as the reader completes programs."""
    if isinstance(x, sator.IRModule):
        x = by_calls(x)
        return sator.IRModule({n: nameless(f) for n, f in x.functions.items()}, None, x.attrs, x.global_infos)
    if isinstance(x, (tir.PrimFunc, relax.Function)):
        for key in x.attrs:
            if key == "global_symbol" or key.startswith("memory."):  # what StaticPlanBlockMemory notes besides
                x = x.without_attr(key)
        return x
    return x


def plain(value):
    """A value as its test compares it."""
    if isinstance(value, (tir.IntImm, tir.FloatImm, tir.StringImm)):
        return value.value
    if isinstance(value, sator.nd.NDArray):
        return value.numpy()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    return value


def holds(op, got, case, names):
    if op == "true":
        return bool(got)
    if op == "false":
        return not got
    wanted = case["after"]
    if isinstance(got, str) and op == "==" and got == wanted:
        return True
    if isinstance(wanted, str):
        wanted = re.sub(r"^<\w+\.\w+: (-?\d+)>$", r"\1", wanted)  # a member of an enumeration
        try:
            wanted = Shared(names).value(with_scripts(wanted, case, names))
        except (NameError, SyntaxError, AttributeError):
            pass
    if op == "in":
        return wanted in got
    wanted = wanted._node() if hasattr(wanted, "_node") else wanted
    a, b = plain(got), plain(wanted)
    if isinstance(a, list) and isinstance(b, list) and any(isinstance(x, np.ndarray) for x in a + b):
        return len(a) == len(b) and all(np.allclose(x, y, rtol=1e-5, atol=1e-6) for x, y in zip(a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.allclose(a, b, rtol=1e-5, atol=1e-6)
    if a is b or (type(a) in (int, float, str, bool, list, dict, type(None)) and a == b) or str(a) == str(b):
        return True
    if hasattr(a, "same_as") and hasattr(b, "same_as"):
        return a.same_as(b) or sator.ir.structural_equal(a, b, map_free_vars=False)
    return bool(a == b)


def operand(value, handles, names):
    """An argument of an action, as tools/conformance.md writes it."""
    if isinstance(value, list):
        return [operand(v, handles, names) for v in value]
    if not isinstance(value, dict):
        return handles["schedule"] if value == "<schedule>" else value
    if "$" in value:
        return eval(value["$"], {}, handles)
    if "lambda" in value:
        return eval(f"lambda {', '.join(value['lambda'])}: {value['body']}", {**names, **handles})
    if "expr" in value:
        return eval(value["expr"], {**names, **handles})
    if "script" in value:
        return parsed(value["script"], names)
    if "dict" in value:
        return {k: operand(v, handles, names) for k, v in value["dict"].items()}
    raise Unsupported("an operand of another form")


def program_of(source, names):
    """The program that statements of Python make: the value of the last one."""
    *before, last = ast.parse(source).body
    exec(compile(ast.Module(before, []), "case", "exec"), names)
    return Shared(names).value(ast.unparse(last))


def act(case, names, last_fails):
    """The schedule after the actions, and what they gave; where the last one shall fail, whether it did."""
    before = parsed(case["before"], names) if "before" in case else program_of(case["before_expr"], names)
    if CHECKOUT and any(a["do"] == "tensorize" for a in case["actions"]):
        TestFile(case, dict(names)).register_intrinsics({w for a in case["actions"] if a["do"] == "tensorize" for w in a["args"] if isinstance(w, str)})
    sch = tir.Schedule(before)
    handles = {"schedule": sch}
    for i, action in enumerate(case["actions"]):
        if action["do"] == "@call":
            raise Unsupported("a helper of TVM's: " + action["fn"].split("(")[0])
        args, kwargs = [], {k: operand(v, handles, names) for k, v in (action.get("kwargs") or {}).items()}
        for a in action.get("args") or ():
            if isinstance(a, dict) and "star" in a:
                args.extend(operand(a["star"], handles, names))
            else:
                args.append(operand(a, handles, names))
        is_last = last_fails and i + 1 == len(case["actions"])
        method = getattr(sch, action["do"])
        try:
            handles[action.get("out", "_")] = method(*args, **kwargs)
        except Exception:
            if is_last:
                return sch, handles, True
            raise
    return sch, handles, False


def run_schedule(case, names):
    sch, handles, failed = act(case, names, case["kind"] == "schedule_error")
    if case["kind"] == "schedule_error":
        if not failed:
            raise Failed("the last step is accepted")
        return
    observe = (case.get("observe") or "<schedule>.mod").replace("<schedule>", "schedule")
    got = eval(observe, {**names, **handles})
    if case["kind"] == "schedule_query":
        if not holds(case["op"], got, case, {**names, **handles}):
            raise Failed(f"it is {str(got)[:200]}")
        return
    wanted = parsed(case["after"], names)
    same(got, wanted)
    if (case.get("check") or {}).get("trace_roundtrip"):
        again = tir.Schedule(parsed(case["before"], names))
        sch.trace.apply_to_schedule(again)
        same(again.mod, wanted)


def normalized(value):
    """An expression of a graph with what is inferred of it, as the tests ask a builder for it."""
    return relax.BlockBuilder().normalize(value) if isinstance(value, relax.Expr) else value


def run_builder(lines, names):
    names["bb"] = relax.BlockBuilder()
    exec("\n".join(lines), names)


def run_case(case, helpers):
    kind = case["kind"]
    written = " ".join(str(case.get(k, "")) for k in ("expr", "lhs", "rhs", "ctx"))
    for pattern, words in LOST.items():
        if re.search(pattern, written) and not (words == NO_STEPS and CHECKOUT and not STEPS.search(TestFile(case, {}).source())):
            raise Incomplete(words)
    if kind == "transform_error" and "tvm.build(" in written and "def imm_" in case.get("before", ""):
        raise Incomplete("the constants that its test cannot fold")
    if shadowed_axis(case, written):
        raise Incomplete("an axis without its name")
    names = names_of(case, helpers)
    called = set(re.findall(r"\"(test\.[\w.]+)\"", case.get("before", "")))
    if CHECKOUT and called and kind != "parse":
        TestFile(case, dict(names)).register(called)
    if kind in ("builder", "builder2"):
        run_builder(case["builder"], names)
        got = eval(case["expr"], names)
        if kind == "builder2":
            other = names_of(case, helpers)
            run_builder(case["after_builder"], other)
            same(got, eval(case["after_expr"], other))
        else:
            same(got, parsed(case["after"], names))
    elif kind in ("parse", "roundtrip", "equiv", "script_error") and not case.get("opaque"):
        raise Unsupported(f"the kind {kind}, which needs no Python")
    elif kind == "parse":
        parsed(case["before"], names)
    elif kind == "roundtrip":
        before = parsed(case["before"], names)
        same(parsed(before.script(show_meta=True), names), before)
    elif kind == "equiv":
        same(parsed(case["before"], names), parsed(case["after"], names))
    elif kind == "script_error":
        try:
            sator.script.parse(case["before"], extra_vars={k: v for k, v in names.items() if not k.startswith("__")})
        except sator.error.DiagnosticError:
            return
        raise Failed("it is accepted")
    elif kind == "construct":
        same(evaluated(case["expr"], case, names, ("relax.op.",)), parsed(case["after"], names))
    elif kind in ("transform", "transform2"):
        got = evaluated(case["expr"], case, names)
        if kind == "transform2":
            wanted = Shared(names).value(with_scripts(case["after_expr"], case, names))
        else:
            wanted = parsed(case["before"] if case.get("unchanged") else case["after"], names)
        if re.search(r"FlattenBuffer|tvm\.lower\(", case["expr"]):
            got, wanted = without_declarations(got), without_declarations(wanted)
        same(got, wanted)
    elif kind.startswith("schedule"):
        run_schedule(case, names)
    elif kind == "infer":
        got = normalized(evaluated(case["expr"], case, names)).struct_info
        wanted = Shared(names).value(case["after"])
        wanted = wanted._node() if hasattr(wanted, "_node") else wanted
        if not sator.ir.structural_equal(got, wanted, map_free_vars=False):
            raise Failed(f"it is {got}")
    elif kind in ("query", "expr_query"):
        got = evaluated(case["expr"], case, names)
        if not holds(case["op"], got, case, names):
            raise Failed(f"it is {str(got)[:200]}")
    elif kind == "expr_print":
        text = str(evaluated(case["expr"], case, names))
        wanted, op = case.get("after", ""), case.get("op")  # an empty text is left out
        # Where a test formats a constant into the text, the case has what makes the constant.
        wanted = re.sub(r"tir\.IntImm\('\w+', -?\d+\)", lambda m: str(Shared(names).value(m[0])), wanted)
        if op is None:  # tests compare scripts without the blank lines around them
            text, wanted = text.strip(), wanted.strip()
        if not (wanted in text if op == "in" else text == wanted):
            raise Failed(f"it prints {text}")
    elif kind == "expr_equal":
        a, b = (evaluated(case[key], case, names) for key in ("lhs", "rhs")) if "lhs" in case else (
            evaluated(case["expr"], case, names), Shared(names).value(with_scripts(case["after"], case, names)))
        a, b = plain(a), plain(b)
        nodes = all(hasattr(v, "same_as") for side in (a, b) for v in (side if isinstance(side, list) and side else [side]))
        equal = sator.ir.structural_equal(a, b, map_free_vars=True) if nodes else a == b
        if not equal:
            raise Failed(f"{a} and {b}")
    elif kind in ("expr_error", "transform_error"):
        try:
            normalized(evaluated(case["expr"], case, names))
        except NameError:
            raise
        except AttributeError as e:
            raise Unsupported(missing_name(e)) from None
        except Exception:
            return
        raise Failed("it is accepted")
    else:
        raise Unsupported(f"the kind {kind}, which needs no Python")


def missing_name(error):
    return str(error).splitlines()[0]


def undefined_name(error):
    """The name that Python's code or a script has no value for."""
    if isinstance(error, NameError):
        return error.name
    found = re.search(r"the name (\w+) is not defined", str(error))
    return found and found[1]


def run_with_helpers(case):
    """Runs the case; helper functions that it names are those of its test's file."""
    helpers = {}
    try:
        for _ in range(6):
            try:
                return run_case(case, helpers)
            except (NameError, sator.error.DiagnosticError) as e:
                name = undefined_name(e)
                if not CHECKOUT or name is None or name in helpers:
                    raise
                names = {**NAMES, **helpers}
                try:
                    TestFile(case, names).define(name)
                except Unsupported:
                    raise e from None
                helpers.update({k: v for k, v in names.items() if k not in NAMES})
    finally:
        while OPEN_FIXTURES:
            next(OPEN_FIXTURES.pop(), None)


def answer(case):
    try:
        run_with_helpers(case)
    except Incomplete as e:
        return "incomplete", str(e)
    except Unsupported as e:
        return "unsupported", str(e)
    except Failed as e:
        return "failed", str(e)
    except (AttributeError, NameError, ModuleNotFoundError) as e:
        return "unsupported", missing_name(e)
    except Exception as e:  # the case expects none
        return "failed", f"{type(e).__name__}: {e}"
    return "passed", ""


def main():
    out = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        case = json.loads(line)
        status, detail = answer(case)
        out.write(json.dumps({"id": case["id"], "status": status, "detail": detail}) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
