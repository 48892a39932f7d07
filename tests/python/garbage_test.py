"""Every public function, class and method is called with values that nobody means: each is taken, or answered in words; nothing crashes or hangs.

    garbage_test.py --all      prints each answer that is not in words
"""
import enum
import importlib
import inspect
import itertools
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import unittest

LIMIT_S = 20  # of one call: a longer one hangs

MODULES = ("sator", "sator.arith", "sator.dlight", "sator.dlight.gpu", "sator.dlight.base", "sator.error", "sator.ir", "sator.nd", "sator.relax", "sator.relax.analysis",
           "sator.relax.dpl", "sator.relax.frontend.nn", "sator.relax.frontend.torch", "sator.relax.op", "sator.relax.op.nn", "sator.relax.op.image",
           "sator.relax.training.loss", "sator.relax.training.optimizer", "sator.relax.training.utils", "sator.relax.transform", "sator.relax.utils",
           "sator.relax.testing", "sator.script.printer.doc", "sator.script.printer.doc_printer",
           "sator.rpc", "sator.contrib.utils", "sator.runtime", "sator.script", "sator.target", "sator.te", "sator.te.schedule", "sator.testing", "sator.tir", "sator.tir.analysis", "sator.tir.data_layout",
           "sator.tir.ir_builder", "sator.tir.schedule", "sator.tir.stmt_functor", "sator.topi", "sator.topi.nn", "sator.topi.utils", "sator.driver", "sator.transform")

# Python's own answers about the number and the names of arguments, and about what is no function, iterable or item of its own values.
PYTHONS = re.compile(r"missing \d+ required|takes .*positional argument|unexpected keyword|got multiple values|takes no arguments|"
                     r"takes no keyword|takes exactly|expected (at least |at most )?\d+ arg|Can't instantiate abstract")
# Words of the binding, of the standard library of C++ or of Python's machinery under a function that did not look at its arguments.
INSIDE = re.compile(r"incompatible function arguments|no constructor defined|nanobind|std::|basic_string|bad_|internal error|vector::|map::at|_core\.")


def garbage():
    import numpy as np

    from sator import relax, tir

    block = tir.Block([], [], [], "root", tir.Evaluate(0))
    return {"tir.Var": tir.Var("v", "int32"), "relax.Var": relax.Var("v", relax.ObjectStructInfo()), "ExternFunc": relax.ExternFunc("f"), "Block": block,
            "PrimFunc": tir.PrimFunc([], tir.BlockRealize([], True, block)), "[Evaluate]": [tir.Evaluate(0)], "StructInfo": relax.ShapeStructInfo(ndim=2),
            "Buffer": tir.decl_buffer((2,)), "None": None, "nan": float("nan"), "-1": -1, "2**70": 2**70, "''": "", "'x'": "x", "lone surrogate": "\ud800", "[]": [], "[None]": [None],
            "{}": {}, "object()": object(), "lambda": lambda *a: None, "int": int, "complex array": np.zeros((2, 3), "complex64"),
            "float64 array": np.zeros((0, 3)), "module": json}


def program():
    import sator
    from sator.script import ir as I, relax as R, tir as T  # noqa: F401

    return sator.script.parse('''
@I.ir_module
class Program:
    @T.prim_func
    def add(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] + T.float32(1)

    @R.function
    def main(x: R.Tensor((16,), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y
''')


def objects():
    """Makers of objects whose methods are called, by name; each call gets one of its own."""
    import sator
    from sator import arith, relax, te, tir

    mod = program()
    vm = relax.VirtualMachine(relax.build(mod), sator.cpu())
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1, name="B")

    def te_schedule():
        return te.create_schedule(B.op)

    def loop():
        sch = tir.Schedule(mod["add"])
        return sch.get_loops(sch.get_block("B"))[0]

    return {"Schedule": lambda: tir.Schedule(mod["add"]), "IRModule": mod.clone, "PrimFunc": lambda: mod["add"], "Function": lambda: mod["main"],
            "BlockBuilder": relax.BlockBuilder, "NDArray": lambda: sator.nd.empty((2, 3)), "VirtualMachine": lambda: vm, "Analyzer": arith.Analyzer,
            "te.Tensor": lambda: B, "te.Schedule": te_schedule, "te.Stage": lambda: te_schedule()[B], "IRBuilder": tir.ir_builder.create,
            "IndexMap": lambda: tir.IndexMap.from_func(lambda i: i), "Buffer": lambda: tir.decl_buffer((4,)), "PrimExpr": lambda: tir.Var("x", "int32"),
            "Var": lambda: mod["main"].params[0], "Target": lambda: sator.Target("llvm"), "Loop": loop, "Layout": lambda: tir.layout("NC"),
            "BijectiveLayout": lambda: tir.bijective_layout("NC", "CN"), "Trace": lambda: tir.Schedule(mod["add"]).trace,
            "SGD": lambda: relax.training.optimizer.SGD(1), "Pass": lambda: relax.transform.FuseOps(), "PassContext": sator.transform.PassContext,
            "ObjectPath": sator.runtime.ObjectPath.root, "IdDoc": lambda: sator.script.printer.doc.IdDoc("x"),
            "wildcard": relax.dpl.wildcard, "ExecBuilder": relax.ExecBuilder, "PyExprMutator": relax.PyExprMutator}


def good_calls():
    """{name: (function that makes what is called, arguments that are right)}: each argument in turn is replaced."""
    import numpy as np

    import sator
    from sator import relax, te, tir, topi

    mod = program()
    vm = relax.VirtualMachine(relax.build(mod), sator.cpu())
    module = sator.build(mod["add"])
    x = relax.Var("x", relax.TensorStructInfo((4, 4), "float32"))
    A, i = te.placeholder((4, 4), name="A"), tir.Var("i", "int32")
    buffer = tir.decl_buffer((4,))
    sixteen = np.zeros(16, "float32")

    def step(name):
        def make():
            sch = tir.Schedule(mod["add"])
            block = sch.get_block("B")
            (loop,) = sch.get_loops(block)
            return lambda *args: getattr(sch, name)(*({"block": block, "loop": loop}.get(a, a) if isinstance(a, str) else a for a in args))

        return make

    def building(emit):
        def make():
            bb = relax.BlockBuilder()

            def call(*args):
                with bb.function("main", [x]):
                    with bb.dataflow():
                        result = emit(bb, *args)
                    bb.emit_func_output(result)

            return call

        return make

    return {
        "vm[main]": (lambda: vm["main"], (sixteen,)), "vm.profile": (lambda: vm.profile, ("main", sixteen)),
        "vm.time_evaluator": (lambda: vm.time_evaluator, ("main", None, 1, 1)), "module[add]": (lambda: module["add"], (sixteen, sixteen.copy())),
        "relax.build": (lambda: relax.build, (mod, "llvm")), "sator.build": (lambda: sator.build, (mod["add"], None, "llvm")),
        "VirtualMachine": (lambda: relax.VirtualMachine, (relax.build(mod), sator.cpu())),
        "nd.array": (lambda: sator.nd.array, (sixteen, sator.cpu())), "nd.empty": (lambda: sator.nd.empty, ((2, 3), "float32", sator.cpu())),
        "split": (step("split"), ("loop", [4, None], True)), "fuse": (step("fuse"), ("loop",)), "reorder": (step("reorder"), ("loop",)),
        "vectorize": (step("vectorize"), ("loop",)), "bind": (step("bind"), ("loop", "threadIdx.x")), "annotate": (step("annotate"), ("loop", "k", 1)),
        "cache_read": (step("cache_read"), ("block", 0, "local")), "cache_write": (step("cache_write"), ("block", 0, "local")),
        "transform_layout": (step("transform_layout"), ("block", ("read", 0), lambda i: (i // 4, i % 4), None)), "tensorize": (step("tensorize"), ("loop", "x")),
        "compute_at": (step("compute_at"), ("block", "loop", True)), "pad_einsum": (step("pad_einsum"), ("block", [4])),
        "get_block": (step("get_block"), ("B", "main")), "set_scope": (step("set_scope"), ("block", 0, "local")),
        "emit": (building(lambda bb, e, name: bb.emit_output(e, name)), (x, "y")),
        "emit_te": (building(lambda bb, f, e, n: bb.emit_output(bb.call_te(f, e, primfunc_name_hint=n))), (topi.exp, x, "y")),
        "match_cast": (building(lambda bb, e, info: bb.emit_output(bb.match_cast(e, info))), (x, x.struct_info)),
        "function": (lambda: lambda *args: relax.BlockBuilder().function(*args).__enter__(), ("main", [x], {"a": 1}, True)),
        "relax.Call": (lambda: relax.Call, (sator.ir.Op.get("relax.add"), [x, x], {}, [])), "matmul": (lambda: relax.op.matmul, (x, x, "float32")),
        "reshape": (lambda: relax.op.reshape, (x, (16,))), "call_tir": (lambda: relax.op.call_tir, (mod.get_global_var("add"), (x,), x.struct_info)),
        "TensorStructInfo": (lambda: relax.TensorStructInfo, ((4, 4), "float32")), "relax.const": (lambda: relax.const, (1.0, "float32")),
        "te.placeholder": (lambda: te.placeholder, ((4,), "float32", "A")), "te.compute": (lambda: te.compute, ((4,), lambda i: A[i, i], "B", "t", {})),
        "te.sum": (lambda: te.sum, (A[0, 0], te.reduce_axis((0, 4)))), "reduce_axis": (lambda: te.reduce_axis, ((0, 4), "k")),
        "create_prim_func": (lambda: te.create_prim_func, ([A, topi.exp(A)], "int64")), "topi.matmul": (lambda: topi.matmul, (A, A)),
        "topi.transpose": (lambda: topi.transpose, (A, (1, 0))), "A[...]": (lambda: A.__getitem__, ((0, 0),)),
        "For": (lambda: tir.For, (i, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(0), None, {})), "Buffer store": (lambda: tir.BufferStore, (buffer, tir.const(1.0), [0])),
        "BufferLoad": (lambda: tir.BufferLoad, (buffer, [0])), "decl_buffer": (lambda: tir.decl_buffer, ((4,), "float32", "A", None, None, None, "", 64, 1)),
        "PrimFunc": (lambda: tir.PrimFunc, ([i], tir.Evaluate(0), None, {}, {"a": 1})), "tir.Call": (lambda: tir.Call, ("float32", "tir.exp", [tir.const(1.0)])),
        "Block": (lambda: tir.Block, ([], [], [], "b", tir.Evaluate(0))), "Var": (lambda: tir.Var, ("x", "int32")), "IntImm": (lambda: tir.IntImm, ("int32", 3)),
        "IRModule": (lambda: sator.IRModule, ({"main": mod["main"]}, {"a": 1})), "with_attr": (lambda: mod["add"].with_attr, ("a", 1)),
        "specialize": (lambda: mod["add"].specialize, ({},)), "bind_params": (lambda: mod["main"].bind_params, ({"x": sixteen},)),
        "parse": (lambda: sator.script.parse, ("@T.prim_func\ndef f(): T.evaluate(0)", True, {})), "Target": (lambda: sator.Target, ({"kind": "llvm"},)),
        "PassContext": (lambda: sator.transform.PassContext, (2, [], [], [], {})), "Sequential": (lambda: sator.transform.Sequential, ([relax.transform.FuseOps()],)),
        "FuseOps()": (lambda: relax.transform.FuseOps(), (mod,)), "register_func": (lambda: sator.register_func, ("garbage.test", len, True)),
        "structural_equal": (lambda: sator.ir.structural_equal, (mod, mod, True)), "substitute": (lambda: tir.stmt_functor.substitute, (i + 1, {i: 2})),
        "simplify": (lambda: sator.arith.Analyzer().simplify, (i + 1,)), "can_prove": (lambda: sator.arith.Analyzer().can_prove, (i < i + 1,)),
        "is_op": (lambda: relax.dpl.is_op, ("relax.add",)), "FuseOpsByPattern": (lambda: relax.transform.FuseOpsByPattern, ([("a.b", relax.dpl.is_op("relax.add")(relax.dpl.wildcard(), relax.dpl.wildcard()))],)),
        "call_packed": (lambda: relax.op.call_pure_packed, ("f", x, None)), "get_pipeline": (lambda: relax.get_pipeline, ("zero",)),
    }


# What waits for a user or ends this process, and what asks NumPy, whose words it gives.
HELPERS = ("add_constructors", "copy_library", "extends", "spoken")  # modules use them of each other
SKIPPED = {"sator.testing.main", "sator.testing.assert_allclose", "Schedule.show", "IRModule.show", "PrimFunc.show", "Function.show"}
_OPERATORS = ("__getitem__", "__call__", "__contains__", "__add__", "__radd__", "__mul__", "__floordiv__", "__mod__", "__lt__", "__eq__", "__and__", "__delitem__", "__len__")


def targets():
    """[name, function that gives what is called]: in an order that does not change."""
    out = []
    for path in MODULES:
        parent, _, last = path.rpartition(".")
        module = getattr(importlib.import_module(parent), last) if parent else importlib.import_module(path)
        for name in sorted(dir(module)):
            if name.startswith("_") or f"{path}.{name}" in SKIPPED:
                continue
            value = getattr(module, name)
            if callable(value) and str(getattr(value, "__module__", "sator")).startswith("sator") and name not in HELPERS and not (
                    isinstance(value, type) and issubclass(value, (BaseException, enum.Enum, str, tuple, dict))):
                out.append((f"{path}.{name}", lambda value=value: value))
    for kind, make in objects().items():
        for name in sorted(dir(make())):
            if f"{kind}.{name}" in SKIPPED or kind == "PyExprMutator" and name.startswith("visit_") and name != "visit_expr" or name.startswith("_") and name not in _OPERATORS:
                continue
            if callable(getattr(make(), name, None)):
                out.append((f"{kind}.{name}", lambda make=make, name=name: getattr(make(), name)))
    return out


def arities(function):
    """How many arguments are tried: those that it needs, and one more where it takes more."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return (0, 1, 2)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return (0, 1, 2)
    taken = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in taken)
    return tuple(sorted({needed, min(needed + 1, len(taken)), len(taken)}))


def one_wrong(values):
    """[name, shown arguments, function that calls] of good calls with one argument that is garbage."""
    for name, (get, right) in good_calls().items():
        for at in range(len(right)):
            for shown, value in values.items():
                yield name, f"argument {at} = {shown}", lambda get=get, args=(*right[:at], value, *right[at + 1:]): get()(*args)


def all_wrong(values):
    """The same of calls whose arguments are one garbage."""
    for name, get in targets():
        try:
            counts = arities(get())
        except Exception:  # noqa: BLE001
            counts = (1,)
        for count in (1,) if name.rpartition(".")[2] in _OPERATORS else counts:
            for shown, value in (values.items() if count else [("nothing", None)]):
                yield name, ", ".join([shown] * count), lambda get=get, count=count, value=value: get()(*[value] * count)


def child(first):
    """Calls from the case `first` on: a line before each, and one of what was not in words."""
    values = garbage()
    out, sys.stdout, sys.stderr = sys.stdout, open(os.devnull, "w"), open(os.devnull, "w")
    for number, (name, shown, call) in enumerate(itertools.chain(one_wrong(values), all_wrong(values)), 1):
        if number <= first:
            continue
        shown = f"{name}({shown})"
        out.write(f"{number} {shown}\n")
        out.flush()
        said = answer(call)
        if said:
            out.write(f"! {json.dumps([shown, said])}\n")
    out.write("done\n")
    out.flush()


def answer(call):
    """What is wrong with the answer to a call, or nothing."""
    try:
        result = call()
        repr(result)
        return None
    except (SystemExit, KeyboardInterrupt) as e:
        return f"{type(e).__name__}: {e}"
    except Exception as e:  # noqa: BLE001
        words = f"{type(e).__name__}: {e}"
        if INSIDE.search(words):
            return words
        if "needs:" in words or "the nearest" in words or isinstance(e, TypeError) and PYTHONS.search(words):
            return None
        return words


def faults():
    """[call, what it was answered with] of all that is not in words, and how many calls were made."""
    found, first, last = [], 0, "the start"
    with tempfile.TemporaryDirectory() as folder:
        while True:
            running = subprocess.Popen([sys.executable, "-X", "faulthandler", os.path.abspath(__file__), "--child", str(first)], stdout=subprocess.PIPE,
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
            buffer, hangs, done = b"", False, False
            while not done:
                if not select.select([running.stdout], [], [], LIMIT_S)[0]:
                    hangs = True
                    running.kill()
                    break
                read = os.read(running.stdout.fileno(), 1 << 16)
                if not read:
                    break
                *lines, buffer = (buffer + read).split(b"\n")
                for line in lines:
                    text = line.decode()
                    if text == "done":
                        done = True
                    elif text.startswith("! "):
                        found.append(json.loads(text[2:]))
                    else:
                        number, _, last = text.partition(" ")
                        first = int(number)
            running.stdout.close()
            status = running.wait()
            if done:
                return found, first
            found.append([last, "hangs" if hangs else f"ends the process with status {status}"])
            if sum("ends the process" in said for _, said in found) > 50:
                return found, first


class Garbage(unittest.TestCase):
    def test_each_call_is_answered_in_words(self):
        found, calls = faults()
        self.assertGreater(calls, 40000)
        self.assertEqual([], [f"{call}: {said}" for call, said in found][:20], f"{len(found)} calls")


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(int(sys.argv[-1]))
    elif "--all" in sys.argv:
        for call, said in faults()[0]:
            print(f"{call}\n    {said}".encode("utf-8", "backslashreplace").decode())
    else:
        unittest.main()
