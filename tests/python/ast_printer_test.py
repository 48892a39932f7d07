"""The tree of a graph as text, and the types of its expressions."""
import unittest

import sator
from sator import relax, tir
from sator.relax.testing import dump_ast
from sator.relax.testing.ast_printer import ASTPrinter
from sator.script import relax as R


def plain(node, **options):
    """The tree without annotations, on one line."""
    return "".join(dump_ast(node, indent_str="", include_struct_info_annotations=False, **options).split("\n"))


class Trees(unittest.TestCase):
    def test_a_function(self):
        @R.function
        def f(x: R.Tensor((4, "n"), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(ndim=1, dtype="float32"):
            with R.dataflow():
                s = R.sum(x, axis=[0])
                R.output(s)
            if c:
                y = R.call_pure_packed("ext", s, sinfo_args=R.Tensor(ndim=1, dtype="float32"))
            else:
                y = R.add(s, s)
            return y

        var = 'Var(name_hint="{}")'.format
        call = 'Call(op=Op(name="relax.call_pure_packed"),args=[ExternFunc(global_symbol="ext"),' + var("s") + "],sinfo_args=[TensorStructInfo(dtype=float32,ndim=1)])"
        self.assertEqual(plain(f), "Function(params=[" + var("x") + "," + var("c") + "],body=SeqExpr(blocks=[DataflowBlock(bindings=[VarBinding(var=" + var("s")
                         + ',value=Call(op=Op(name="relax.sum"),args=[' + var("x") + '],attrs={"axis": [0],"keepdims": False}))]),BindingBlock(bindings=[VarBinding(var='
                         + var("y") + ",value=If(cond=" + var("c") + ",true_branch=SeqExpr(blocks=[BindingBlock(bindings=[VarBinding(var=" + var("y_then") + ",value=" + call
                         + ")])],body=" + var("y_then") + "),false_branch=SeqExpr(blocks=[BindingBlock(bindings=[VarBinding(var=" + var("y_else")
                         + ',value=Call(op=Op(name="relax.add"),args=[' + var("s") + "," + var("s") + "]))])],body=" + var("y_else") + ")))])],body=" + var("y")
                         + '),ret_struct_info=TensorStructInfo(dtype=float32,ndim=1),is_pure=True,attrs={"global_symbol": "f"})')
        self.assertNotIn("keepdims", plain(f, include_call_attrs=False))

    def test_lines(self):
        n = tir.Var("n", "int64")
        self.assertEqual(dump_ast(relax.ShapeExpr([n, 2]), indent_str="  ", include_struct_info_annotations=False),
                         "ShapeExpr(\n  values=[\n    PrimExpr(value=`n`),\n    PrimExpr(value=`T.int64(2)`)\n  ]\n)")

    def test_annotations(self):
        x = relax.Var("x", relax.TupleStructInfo([relax.TensorStructInfo(dtype="int8", ndim=2), relax.ShapeStructInfo(ndim=1)]))
        self.assertEqual("".join(dump_ast(x, "", include_type_annotations=True).split("\n")),
                         'Var(name_hint="x",struct_info=TupleStructInfo(fields=[TensorStructInfo(dtype=int8,ndim=2),ShapeStructInfo(ndim=1)]),'
                         "checked_type_=TupleType(fields=[DynTensorType(ndim=2,dtype=int8),ShapeType(ndim=1)]))")
        self.assertEqual(dump_ast(relax.Var("x")), 'Var(name_hint="x")')
        info = relax.FuncStructInfo([relax.PrimStructInfo("int64")], relax.ObjectStructInfo())
        self.assertEqual("".join(ASTPrinter("").visit_struct_info_(info).split("\n")),
                         "FuncStructInfo(params=[PrimStructInfo(dtype=int64)],ret=ObjectStructInfo(),purity=True)")

    def test_small_nodes(self):
        x = relax.Var("x")
        for node, text in ((relax.const(3, "int8"), "Constant(data="), (relax.StringImm("a"), 'StringImm(value="a")'), (relax.DataTypeImm("int8"), "DataTypeImm(value=int8)"),
                           (relax.PrimValue(1), "PrimValue(value=PrimExpr(value=`T.int64(1)`))"), (relax.Tuple([x]), 'Tuple(fields=[Var(name_hint="x")])'),
                           (relax.GlobalVar("g"), 'GlobalVar(name_hint="g")'), (relax.MatchCast(x, relax.Var("y"), R.Tensor(ndim=1)), "MatchCast(var=")):
            self.assertTrue(plain(node).startswith(text), plain(node))
        with self.assertRaisesRegex(TypeError, "an expression of a graph"):
            dump_ast(3)


class Types(unittest.TestCase):
    def test_what_struct_info_says(self):
        x = relax.Var("x", relax.TensorStructInfo((2, tir.Var("n", "int64")), "int8"))
        self.assertEqual(x.checked_type, relax.DynTensorType(2, "int8"))
        self.assertEqual(relax.Tuple([x, relax.ShapeExpr([1, 2])]).checked_type, relax.TupleType([relax.DynTensorType(2, "int8"), relax.ShapeType(2)]))
        self.assertEqual(relax.PrimValue(3).checked_type, sator.ir.PrimType("int64"))
        self.assertEqual([relax.StringImm("a").checked_type, relax.DataTypeImm("int8").checked_type], [relax.ObjectType()] * 2)
        func = relax.Function([x], relax.SeqExpr([], x), relax.TensorStructInfo(dtype="int8", ndim=2))
        self.assertEqual(func.checked_type, relax.FuncType([relax.DynTensorType(2, "int8")], relax.DynTensorType(2, "int8")))
        with self.assertRaisesRegex(ValueError, "normalize"):
            relax.Var("y").checked_type

    def test_equality_and_text(self):
        kinds = [relax.ShapeType(), relax.ShapeType(1), relax.ObjectType(), relax.PackedFuncType(), relax.DynTensorType(1), relax.DynTensorType(1, "int8"), relax.TupleType([]),
                 relax.TupleType([relax.ObjectType()]), relax.FuncType([], relax.ObjectType()), sator.ir.PrimType("int8"), sator.ir.PointerType(sator.ir.PrimType("int8"))]
        self.assertEqual(len(set(kinds)), len(kinds))
        self.assertTrue(sator.ir.structural_equal(relax.ShapeType(2), relax.ShapeType(ndim=2)))
        with self.assertRaisesRegex(ValueError, "ndim=1"):
            sator.ir.assert_structural_equal(relax.ShapeType(2), relax.ShapeType(1))
        self.assertEqual(str(sator.ir.TupleType([sator.ir.PrimType("int8")])), "T.Tuple(T.int8)")
        self.assertEqual(relax.FuncType([relax.ObjectType(), relax.DynTensorType(1)], relax.TupleType([relax.ShapeType(0)]))._relax_script(),
                         'R.Callable((R.Object, R.Tensor(ndim=1, dtype="float32")), R.Tuple(R.Shape(ndim=0)))')
        for make in (lambda: relax.ShapeType("a"), lambda: relax.DynTensorType(-2), lambda: relax.TupleType([3]), lambda: relax.FuncType([], None)):
            with self.assertRaisesRegex(TypeError, "needs:"):
                make()


if __name__ == "__main__":
    unittest.main()
