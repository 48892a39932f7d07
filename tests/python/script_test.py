"""Programs written as Python functions: read, printed, compared."""
import contextlib
import inspect
import io
import re
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

import sator
from sator import tir
from sator.script import ir as I, relax as R, tir as T

SIZE = 16
OFFSETS = (1, 2)


def flat(i, j):
    return i * 4 + j


class Settings:
    dtype = "float16"
    sizes = {"rows": 8}


@I.ir_module
class Added:
    @T.prim_func
    def main(A: T.Buffer[128, "float32"], B: T.Buffer[128, "float32"], C: T.Buffer[128, "float32"]):
        # extra annotations for the function
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = A[vi] + B[vi]


# What the notebook of the seed 001 shows.
ADDED = '''# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        # with T.block("root"):
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                T.reads(A[vi], B[vi])
                T.writes(C[vi])
                C[vi] = A[vi] + B[vi]'''


class Parse(unittest.TestCase):
    def test_import_loads_no_compiler_and_is_quick(self):
        code = ("import sys, time; t = time.perf_counter(); import sator; s = time.perf_counter() - t; "
                "print(s, 'sator._core' in sys.modules, 'numpy' in sys.modules)")
        seconds, core, numpy = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        self.assertLess(float(seconds), 0.2)
        self.assertEqual((core, numpy), ("False", "False"))

    def test_the_notebook_s_module_prints_as_it_shows(self):
        self.assertEqual(Added.script(), ADDED)
        self.assertEqual(f"{type(Added).__module__}.{type(Added).__name__}", "sator.ir.module.IRModule")

    def test_a_text_gives_the_same_program(self):
        again = sator.script.parse(ADDED)
        sator.ir.assert_structural_equal(again, Added)
        self.assertEqual(sator.ir.structural_hash(again), sator.ir.structural_hash(Added))

    def test_a_text_of_one_function_is_a_function(self):
        f = sator.script.parse("@T.prim_func\ndef f(A: T.Buffer((n,), 'float32')):\n    A[0] = T.float32(1)\n", extra_vars={"n": 4})
        self.assertIsInstance(f, sator.tir.PrimFunc)
        self.assertEqual([int(d) for d in f.buffer_map[f.params[0]].shape], [4])

    def test_parts_of_programs_that_differ_are_underlined_in_both(self):
        other = sator.script.parse(ADDED.replace("A[vi] + B[vi]", "A[vi] - B[vi]"))
        self.assertFalse(sator.ir.structural_equal(other, Added))
        with self.assertRaises(ValueError) as caught:
            sator.ir.assert_structural_equal(other, Added)
        words = str(caught.exception)
        self.assertIn("left, line 15", words)
        self.assertIn("C[vi] = A[vi] - B[vi]", words)
        self.assertIn("C[vi] = A[vi] + B[vi]", words)
        self.assertEqual(words.count("^"), 2 * len("- B[vi]"))

    def test_names_of_variables_are_no_difference(self):
        renamed = re.sub(r"\bvi\b", "place", re.sub(r"\bA\b", "first", ADDED)).replace("first[place] + B[place]", "first[place] + first[place]")
        with self.assertRaises(ValueError) as caught:
            sator.ir.assert_structural_equal(Added, sator.script.parse(renamed))
        words = str(caught.exception)
        self.assertIn("C[place] = first[place] + first[place]", words)  # and not the names above it
        self.assertEqual(words.count("^"), len("B[vi]") + len("first[place]"))


class Captured(unittest.TestCase):
    def test_numbers_tuples_attributes_and_functions_around_the_program(self):
        rows = 4

        @T.prim_func
        def f(A: T.Buffer((rows, 4), Settings.dtype), B: T.Buffer((SIZE,), "float16")):
            for i, j in T.grid(rows, 4):
                B[flat(i, j)] = A[i, j] * T.float16(OFFSETS[1]) + T.float16(Settings.sizes["rows"])

        @T.prim_func
        def g(A: T.Buffer((4, 4), "float16"), B: T.Buffer((16,), "float16")):
            for i, j in T.grid(4, 4):
                B[i * 4 + j] = A[i, j] * T.float16(2) + T.float16(8)

        sator.ir.assert_structural_equal(f.without_attr("global_symbol"), g.without_attr("global_symbol"))

    def test_a_parameter_of_a_function_that_makes_programs(self):
        def make(n, dtype="float32"):
            @T.prim_func
            def f(A: T.Buffer((n,), dtype)):
                for i in range(n):
                    A[i] = T.Cast(dtype, i)

            return f

        self.assertIn('T.Buffer((7,), "int8")', make(7, "int8").script())
        self.assertIn('T.Buffer((9,), "float32")', make(9).script())

    def test_a_name_of_the_program_hides_one_around_it(self):
        i = 1000

        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            for i in range(4):
                A[i] = i

        self.assertNotIn("1000", f.script())
        self.assertEqual(i, 1000)

    def test_expressions_from_outside_are_parts_of_the_program(self):
        value = T.float32(3) + T.float32(4)

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = value

        self.assertIn("A[i] = T.float32(7)", f.script())

    def test_an_error_of_python_code_arrives_as_it_was_raised(self):
        def wrong(i):
            raise KeyError("from the helper")

        with self.assertRaises(KeyError) as caught:

            @T.prim_func
            def f(A: T.Buffer((4,), "int32")):
                for i in range(4):
                    A[i] = wrong(i)

        self.assertIn("from the helper", str(caught.exception))
        if sys.version_info >= (3, 11):
            (note,) = caught.exception.__notes__
            self.assertRegex(note, r"^raised where a program is read\n  in .*script_test.py line \d+, column 28\n  \|    A\[i\] = wrong\(i\)\n  \|           \^{8}$")

    def test_integers_beyond_64_bits(self):
        big, most = 2 ** 70, 2 ** 64 - 1

        @T.prim_func
        def f(A: T.Buffer((4,), "uint64")):
            A[0] = T.uint64(most)

        self.assertIn("18446744073709551615", f.script())
        for wrong in (big, -(2 ** 63) - 1):
            with self.assertRaisesRegex(sator.TVMError, r"an integer of (71|64) bits from Python\n.*\n.*A\[0\] = T.uint64\(wrong\)"):
                @T.prim_func
                def g(A: T.Buffer((4,), "uint64")):
                    A[0] = T.uint64(wrong)

    def test_comprehensions_are_evaluated_by_python(self):
        sizes, table = {"a": 4, "b": 8}, [3, 1, 2]

        @T.prim_func
        def f(A: T.Buffer(tuple(v * 2 for v in sizes.values()), "int32"), B: T.Buffer((8, 16), "int32")):
            for i, j in T.grid(*[T.int32(v * 2) for _, v in sorted(sizes.items())]):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = sum([A[vi, vj] * k for k in table if k > 1], T.int32(0))

        @T.prim_func
        def same(A: T.Buffer((8, 16), "int32"), B: T.Buffer((8, 16), "int32")):
            for i, j in T.grid(8, 16):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 3 + A[vi, vj] * 2

        sator.ir.assert_structural_equal(f.without_attr("global_symbol"), same.without_attr("global_symbol"))
        with self.assertRaises(ZeroDivisionError):
            @T.prim_func
            def g(A: T.Buffer(tuple(1 // k for k in [0]), "int32")):
                T.evaluate(0)

        # A text is only read: plain comprehensions have a meaning there, and no Python runs.
        text = "@T.prim_func\ndef f(A: T.Buffer([k for k in (1, 2){}], 'int32')):\n    T.evaluate(0)\n"
        self.assertIn("T.Buffer((1, 2)", sator.script.parse(text.format("")).script())
        with self.assertRaises(sator.error.DiagnosticError) as caught:
            sator.script.parse(text.format(" if (j := k)"))
        self.assertIn("comprehension", str(caught.exception))

    def test_constants_of_a_class_are_values(self):
        @I.ir_module
        class Module:
            K = 6

            @T.prim_func
            def f(A: T.Buffer((K,), "int32")):  # noqa: F821  (Python does not evaluate it)
                A[0] = K * 2  # noqa: F821

        @T.prim_func
        def f(A: T.Buffer((6,), "int32")):
            A[0] = 12

        sator.ir.assert_structural_equal(Module["f"].without_attr("global_symbol"), f.without_attr("global_symbol"))

    def test_arrays_of_numpy_s_are_constants_of_graphs(self):
        import numpy as np

        weight = np.arange(6, dtype="float16").reshape(2, 3)

        @R.function
        def f(x: R.Tensor((2, 3), "float16")):
            with R.dataflow():
                y = R.add(x, R.const(weight))
                R.output(y)
            return y

        constant = f.body.blocks[0].bindings[0].value.args[1]
        self.assertEqual(constant.struct_info.dtype, "float16")
        np.testing.assert_array_equal(constant.data.numpy(), weight)

    def test_an_unknown_name_is_refused_with_file_line_and_column(self):
        with self.assertRaises(sator.error.DiagnosticError) as caught:

            @T.prim_func
            def f(A: T.Buffer((4,), "int32")):
                for i in range(4):
                    A[i] = nobody  # noqa: F821

        e = caught.exception
        self.assertIsInstance(e, sator.TVMError)
        self.assertIsInstance(e, RuntimeError)
        self.assertIn("nobody", e.what)
        line = inspect.getsourcelines(Captured.test_an_unknown_name_is_refused_with_file_line_and_column)[1] + 6
        self.assertEqual(e.line, line)
        self.assertIn(Path(__file__).name, e.where)
        self.assertIn("^^^^^^", str(e))
        self.assertTrue(e.needs and e.hint)


class Graphs(unittest.TestCase):
    def test_a_graph_with_symbolic_sizes_and_captured_ones(self):
        width = 8

        @I.ir_module
        class M:
            @R.function
            def main(x: R.Tensor(("n", width), "float32")) -> R.Tensor(("n", width), "float32"):
                with R.dataflow():
                    y = R.nn.relu(x)
                    R.output(y)
                return y

        main = M["main"]
        self.assertIsInstance(main, sator.relax.Function)
        self.assertEqual(main.params[0].name_hint, "x")
        self.assertEqual(str(main.ret_struct_info), 'n = T.int64()\nR.Tensor((n, 8), dtype="float32")')
        binding = main.body.blocks[0].bindings[0]
        self.assertEqual(binding.value.op.name, "relax.nn.relu")
        self.assertTrue(binding.value.args[0].same_as(main.params[0]))


class Nodes(unittest.TestCase):
    def test_every_node_class_of_the_headers_is_in_the_table(self):
        source = Path(__file__).resolve().parents[2] / "src"
        table = set(re.findall(r"row<(?:\w+::)*(\w+)>\(", (source / "bind/node_table.cc").read_text()))
        classes = set()
        for header in source.rglob("*.h"):
            classes.update(re.findall(r"struct (\w+) final : (?:Node|BinaryNode|CompareNode)<", header.read_text()))
        self.assertGreater(len(classes), 80)
        self.assertEqual(classes - table, set())

    def test_fields_have_our_names_and_tvm_s(self):
        loop = Added["main"].body.block.body
        self.assertIsInstance(loop, sator.tir.For)
        self.assertIsInstance(loop, sator.tir.Stmt)
        self.assertEqual(loop.loop_var.name, "i")
        self.assertTrue(loop.loop_var.same_as(loop.var))
        self.assertEqual(int(loop.extent), 128)
        self.assertEqual(loop.kind, sator.tir.ForKind.SERIAL)
        self.assertEqual(loop.body.block.name_hint, "C")
        self.assertEqual(Added["main"].attrs["tir.noalias"], True)

    def test_arithmetic_on_expressions_folds_as_tvm_s(self):
        x = sator.tir.Var("x", "int32")
        self.assertEqual(str(x + 0), "x")
        self.assertEqual(str(x * 2 + 1), "x * 2 + 1")
        self.assertEqual(int(sator.tir.IntImm("int32", -7) // 2), -4)
        self.assertEqual((x + 1.5).dtype, "float32")
        self.assertTrue(bool(x == x))
        self.assertFalse(bool(x == sator.tir.Var("x", "int32")))
        with self.assertRaises(ValueError):
            bool(x < 3)

    def test_constants_of_64_bits(self):
        self.assertEqual(sator.tir.const(2**64 - 1, "uint64").script(), sator.script.tir.uint64(2**64 - 1).script())
        with self.assertRaises(ValueError):
            sator.tir.const(2**64, "int64")

    def test_walks_see_children_first_or_last(self):
        first, last = [], []
        tir = sator.tir
        tir.stmt_functor.post_order_visit(Added["main"].body, lambda n: last.append(type(n).__name__))
        tir.stmt_functor.pre_order_visit(Added["main"].body, lambda n: first.append(type(n).__name__))
        for names, order in ((first, ("For", "BufferStore", "Add")), (last, ("Add", "BufferStore", "For"))):
            self.assertEqual(sorted(order, key=names.index), list(order))
        self.assertEqual(last.count("BufferStore"), 1)
        outer = []
        tir.stmt_functor.pre_order_visit(Added["main"].body, lambda n: outer.append(n) or not isinstance(n, tir.For))
        self.assertNotIn("BufferStore", [type(n).__name__ for n in outer])

    def test_constructors_take_fields_by_position_and_by_name(self):
        x = sator.tir.Var("x", "int32")
        loop = sator.tir.For(loop_var=x, min=0, extent=4, kind=sator.tir.ForKind.PARALLEL, thread="", annotations={},
                             body=sator.tir.Evaluate(x))
        self.assertIn("for x in T.parallel(4):", loop.script())
        with self.assertRaises(TypeError) as caught:
            sator.tir.Add(1)
        self.assertIn("missing b", str(caught.exception))

    def test_a_module_takes_functions(self):
        module = sator.IRModule({"f": Added["main"]})
        module["g"] = Added["main"]
        self.assertEqual(sorted(module.functions), ["f", "g"])
        self.assertEqual(len(Added), 1)
        with self.assertRaises(ValueError) as caught:
            module["h"]
        self.assertIn("f, g", str(caught.exception))


class Printed(unittest.TestCase):
    """The options of script()."""

    def test_parts_are_underlined(self):
        f = Named["mm"]
        store = f.body.block.body.body.body.body.block.body
        lines = Named.script(obj_to_underline=[store, Named["main"].body.blocks[0].bindings[1]], name="Mine", tir_prefix="TT").splitlines()
        self.assertIn("class Mine:", lines)
        self.assertIn("    @TT.prim_func", lines)
        under = [i for i, line in enumerate(lines) if line.strip() and not line.strip(" ^")]
        self.assertEqual([lines[i - 1].strip() for i in under],
                         ["C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]", 'z: R.Tensor((n, 4), dtype="float32") = R.nn.relu(y)'])
        for i in under:
            self.assertEqual(lines[i], " " * (len(lines[i - 1]) - len(lines[i - 1].lstrip())) + "^" * len(lines[i - 1].strip()))

    def test_paths_lines_and_context(self):
        path = sator.runtime.ObjectPath.root().attr("body").attr("block").attr("body")
        text = Named["mm"].script(path_to_underline=[path.attr("loop_var")], num_context_lines=1, print_line_numbers=True, indent_spaces=2)
        self.assertEqual(text, """(... 4 lines skipped ...)
 5   # with T.block("root"):
 6   for i, j, k in T.grid(8, 8, 8):
         ^
 7     with T.block("C"):
(... 6 lines skipped ...)""")
        (line,) = [line for line in Named["mm"].script(path_to_annotate={path.attr("extent").attr("value"): "eight"}).splitlines() if "eight" in line]
        self.assertEqual(line.strip(), "# eight")  # the number has no text of its own: above the loop that has it
        with self.assertRaisesRegex(ValueError, r"there is nothing at <root>.body.nope"):
            Named["mm"].script(path_to_underline=[sator.runtime.ObjectPath.root().attr("body").attr("nope")])

    def test_comments_of_parts(self):
        # As TVM's own test of this option has them.
        @T.prim_func
        def func():
            T.evaluate(-1)
            T.evaluate(1)
            T.evaluate(2)

        func = func.with_attr("global_symbol", "main")
        self.assertEqual(func.script(obj_to_annotate={func.body.seq[1]: "annotation 1", func.body.seq[2]: "annotation 2"}), """\
# from tvm.script import tir as T

@T.prim_func
def main():
    T.evaluate(-1)
    T.evaluate(1)  # annotation 1
    T.evaluate(2)  # annotation 2""")

    def test_other_forms(self):
        self.assertIn("T.axis.spatial(8, i)", Named["mm"].script(syntax_sugar=False))
        self.assertIn("y = R.add(x, x)", Named["main"].script(show_all_struct_info=False))
        x = tir.Var("x", "int32")
        self.assertEqual(((x + 1).script(), (x + 1).script(verbose_expr=True)), ("x + 1", "x = T.int32()\nx + 1"))
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            Named["mm"].show(print_line_numbers=True)
        self.assertTrue(shown.getvalue().startswith(" 1 # from tvm.script"))
        for options, words in (({"int_dtype": "int64"}, "needs: int_dtype='int32'"), ({"show_object_address": True}, "needs: show_object_address=False"),
                               ({"obj_to_underline": [x]}, "does not stand in the text"), ({"indent_spaces": -1}, "an integer from 0 on")):
            with self.assertRaisesRegex(ValueError, words):
                Named["mm"].script(**options)
        with self.assertRaisesRegex(TypeError, "black"):
            Named.script(black=True)


@I.ir_module
class Named:
    @T.prim_func
    def mm(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
        for i, j, k in T.grid(8, 8, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            z = R.nn.relu(y)
            R.output(z)
        return z


class StoredConstants(unittest.TestCase):
    def test_what_an_element_cannot_hold_is_refused(self):
        """As TVM does, whose conversion of a constant makes a constant of the other dtype."""
        program = "@T.prim_func\ndef f(A: T.Buffer((2,), {dtype!r})):\n    for i in range(2):\n        A[i] = {value}\n"
        for dtype, value, words in (("int8", "300", "300 as int8"), ("int8", "-129", "-128 to 127"), ("uint8", "-1", "0 to 255"),
                                    ("int32", "3000000000", "3000000000 as int32"), ("int8", "300.5", "300.5 as int8"),
                                    ("int8", "T.int32(300).astype('int8')", "300 as int8"), ("float16", "70000", "-65504 to 65504"),
                                    ("float16", "1e6", "-65504 to 65504")):
            with self.assertRaisesRegex(sator.error.DiagnosticError, words):
                sator.script.from_source(program.format(dtype=dtype, value=value))
        for dtype, value, held in (("int8", "-128", -128), ("int8", "1.75", 1), ("uint8", "255", 255), ("int8", 'T.Cast("int8", 300)', 44),
                                   ("float16", "65504", 65504), ("uint64", "18446744073709551615", 18446744073709551615)):
            a = np.zeros(2, dtype)
            sator.build(sator.script.from_source(program.format(dtype=dtype, value=value)))(a)
            self.assertEqual(a.tolist(), [held] * 2)
        with self.assertRaisesRegex(ValueError, "300 as int8"):
            tir.const(300, "int32").astype("int8")


if __name__ == "__main__":
    unittest.main()
