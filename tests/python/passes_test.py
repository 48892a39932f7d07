"""Passes from Python: by name, written in Python, in sequences, under instruments."""
import unittest

import numpy as np

import sator
from build_test import Layer, random
from sator import relax, tir, transform


class Passes(unittest.TestCase):
    def test_a_pipeline_of_passes_by_name(self):
        with transform.PassContext(opt_level=3):
            mod = transform.Sequential([relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(),
                                        relax.transform.FuseOps(), relax.transform.FuseTIR()])(Layer)
        self.assertIn("fused_mm_relu", mod.functions)
        self.assertIn("mm", Layer.functions)

    def test_pipelines_by_name(self):
        self.assertIn("fused_mm_relu", relax.get_pipeline("zero")(Layer).functions)

        @relax.register_pipeline("test")
        def legalized(what):
            return getattr(relax.transform, what)()

        self.assertIn("relu", relax.get_pipeline("test", "LegalizeOps")(Layer).functions)
        with self.assertRaises(ValueError) as caught:
            relax.get_pipeline("none")
        self.assertIn("test, zero", str(caught.exception))

    def test_what_is_searched_elsewhere_says_what_there_is(self):
        with self.assertRaises(sator.TVMError) as caught:
            sator.meta_schedule.tune_tir(mod=Layer, target="llvm")
        self.assertIn("tune_tir", str(caught.exception))
        self.assertIn("dlight", str(caught.exception))
        with self.assertRaisesRegex(sator.TVMError, "meta_schedule.runner: schedules are not searched"):
            from sator.meta_schedule.runner import LocalRunner  # noqa: F401

    def test_options_by_position_and_name(self):
        by_name, by_position = relax.transform.ConvertToDataflow(min_size=1), relax.transform.ConvertToDataflow(1)
        self.assertEqual(by_name(Layer).script(), by_position(Layer).script())
        with self.assertRaises(sator.TVMError) as caught:
            relax.transform.ConvertToDataflow(minsize=1)(Layer)
        self.assertIn("min_size", str(caught.exception))
        with self.assertRaises(AttributeError) as caught:
            relax.transform.LegaliseOps
        self.assertIn("LegalizeOps", str(caught.exception))

    def test_every_pass_of_the_program_is_there(self):
        from sator import _core

        for name, does, _ in _core.passes():
            self.assertIn(does[1:], getattr(relax.transform, name).__doc__)

    def test_passes_written_in_python(self):
        @transform.module_pass(opt_level=0, name="Rename")
        class Rename:
            def __init__(self, name):
                self.name = name

            def transform_module(self, mod, ctx):
                return sator.IRModule({self.name if k == "main" else k: f for k, f in mod.functions.items()})

        self.assertIn("entry", Rename("entry")(Layer).functions)

        @tir.transform.prim_func_pass(opt_level=0)
        def mark(func, mod, ctx):
            return func.with_attr("marked", 1)

        out = mark(Layer)
        self.assertEqual(out["mm"].attrs["marked"], 1)
        self.assertNotIn("marked", out["main"].attrs)

    def test_instruments_hear_of_each_pass(self):
        heard = []

        class Listener:
            def run_before_pass(self, mod, info):
                heard.append(info.name)

            def should_run(self, mod, info):
                return info.name != "FuseOps"

        with transform.PassContext(instruments=[Listener()]):
            transform.Sequential([relax.transform.LegalizeOps(), relax.transform.FuseOps()])(Layer)
        self.assertEqual(heard, ["sequential", "LegalizeOps"])

    def test_a_sequence_leaves_out_passes_as_the_context_says(self):
        ran = []

        def noted(level):
            @transform.module_pass(opt_level=level, name=f"P{level}")
            def run(mod, ctx):
                ran.append(level)
                return mod

            return run

        steps = [noted(level) for level in (0, 2, 3)]
        for context, expected in (({}, [0, 2]), ({"opt_level": 3}, [0, 2, 3]), ({"opt_level": 1}, [0]), ({"required_pass": ["P3"]}, [0, 2, 3]),
                                  ({"disabled_pass": ["P0"]}, [2]), ({"disabled_pass": ["P3"], "required_pass": ["P3"]}, [0, 2])):
            ran.clear()
            with self.subTest(context), transform.PassContext(**context):
                transform.Sequential(steps)(Layer)
                self.assertEqual(ran, expected)
        ran.clear()
        with transform.PassContext(opt_level=0, disabled_pass=["P0"]):
            steps[0](Layer)
            steps[2](Layer)
        self.assertEqual(ran, [0, 3])  # a call alone runs

    def test_a_sequence_runs_what_its_passes_require(self):
        seen = []

        @transform.module_pass(opt_level=0, required=["relax.transform.LegalizeOps"])
        def Count(mod, ctx):
            seen.append(len(mod.get_global_vars()))
            return mod

        before = len(Layer.get_global_vars())
        Count(Layer)  # a call alone requires nothing, as in TVM
        transform.Sequential([Count])(Layer)
        with transform.PassContext(disabled_pass=["Count"]):
            transform.Sequential([Count])(Layer)
        self.assertEqual(seen[0], before)
        self.assertEqual(len(seen), 2)
        self.assertGreater(seen[1], before)

        @transform.module_pass(opt_level=0, required=["LegaliseOps"])
        def Wrong(mod, ctx):
            return mod

        with self.assertRaisesRegex(ValueError, "the pass Wrong requires LegaliseOps, .*\n.*\n.*LegalizeOps"):
            transform.Sequential([Wrong])(Layer)
        with self.assertRaisesRegex(TypeError, "requires 'LegalizeOps', a text"):
            transform.module_pass(Wrong, opt_level=0, name="Letters", required="LegalizeOps")

    def test_an_instrument_that_raises_leaves_no_context(self):
        heard = []

        class Listener:
            def __init__(self, name, raises=""):
                self.name, self.raises = name, raises

            def enter_pass_ctx(self):
                self.hear("enter")

            def exit_pass_ctx(self):
                self.hear("exit")

            def hear(self, event):
                heard.append((self.name, event))
                if event == self.raises:
                    raise ValueError(event)

        before = len(transform.PassContext._stack)
        context = transform.PassContext(instruments=[Listener("a"), Listener("b"), Listener("c", "enter"), Listener("d")])
        with self.assertRaisesRegex(ValueError, "enter"), context:
            self.fail("the context is in force")
        self.assertEqual(heard, [("a", "enter"), ("b", "enter"), ("c", "enter"), ("b", "exit"), ("a", "exit")])
        self.assertEqual((context.instruments, len(transform.PassContext._stack)), ([], before))
        context = transform.PassContext(instruments=[Listener("a", "exit"), Listener("b")])
        with self.assertRaisesRegex(ValueError, "exit"), context:
            pass
        self.assertEqual((context.instruments, len(transform.PassContext._stack)), ([], before))


if __name__ == "__main__":
    unittest.main()
