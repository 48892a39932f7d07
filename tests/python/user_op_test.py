"""Ops of one's own: their struct info, normal form and lowering by functions of Python's."""
import unittest

import numpy as np

import sator
from sator import relax
from sator.script import ir as I, relax as R

NAME = "test.first_of"


def infer(call, builder):
    return call.args[0].struct_info


def normalize(builder, call):
    return relax.Call(call.op, [call.args[0], relax.Tuple([])]) if len(call.args) == 1 else call


def legalize(builder, call):
    return relax.op.add(call.args[0], call.args[0])


class UserOps(unittest.TestCase):
    def setUp(self):
        for key, value in {"FInferStructInfo": infer, "FNormalize": normalize, "FLegalize": legalize, "FPurity": True}.items():
            sator.ir.register_op_attr(NAME, key, value)
        self.op = op = sator.ir.Op.get(NAME)

        @I.ir_module(check_well_formed=False)
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                y = relax.Call(op, [x])
                return y

        self.module = Module

    def tearDown(self):
        for key in ("FInferStructInfo", "FNormalize", "FLegalize", "FPurity"):
            self.op.reset_attr(key)

    def test_struct_info_is_what_the_function_says(self):
        sator.ir.assert_structural_equal(self.module["main"].ret_struct_info, R.Tensor((4,), "float32")._node())

    def test_a_text_stays_as_it_is_and_a_pass_brings_it_into_normal_form(self):
        self.assertEqual(len(self.module["main"].body.blocks[0].bindings[0].value.args), 1)
        self.assertFalse(relax.analysis.well_formed(self.module))
        normal = relax.transform.Normalize()(self.module)
        self.assertEqual(len(normal["main"].body.blocks[0].bindings[0].value.args), 2)
        self.assertTrue(relax.analysis.well_formed(normal))

    def test_it_prints_and_is_read_again(self):
        text = self.module.script()
        self.assertIn("R.test.first_of(x)", text)
        sator.ir.assert_structural_equal(sator.script.parse(text, check_well_formed=False), self.module)

    def test_it_runs_as_what_it_is_lowered_to(self):
        vm = relax.VirtualMachine(relax.build(relax.transform.Normalize()(self.module), target="llvm"), sator.cpu())
        x = np.arange(4, dtype="float32")
        np.testing.assert_array_equal(vm["main"](x).numpy(), 2 * x)

    def test_an_op_of_the_compiler_s_is_not_redefined(self):
        with self.assertRaises(NotImplementedError):
            sator.ir.register_op_attr("relax.add", "FInferStructInfo", infer)

    def test_without_attributes_it_is_gone(self):
        self.tearDown()
        with self.assertRaises(sator.TVMError):
            sator.ir.Op.get(NAME)


if __name__ == "__main__":
    unittest.main()
