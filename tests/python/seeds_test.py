"""What the seed documents do, as pages of docs/seeds: their blocks run, and print what the pages show."""
import unittest

import numpy as np

import pages
import sator
from sator import tir
from sator.script import tir as T


class FashionMnist(unittest.TestCase):
    """Seed 003: the page's blocks, and what its figures have to be."""

    @classmethod
    def setUpClass(cls):
        cls.page = pages.run("docs/seeds/fashion-mnist.md")

    def logits(self, image):
        p = self.page["params"]
        hidden = np.maximum(image.reshape(1, 784) @ p["fc1.weight"].T + p["fc1.bias"], 0)
        return hidden @ p["fc2.weight"].T + p["fc2.bias"]

    def test_all_builds_give_the_logits_of_torch(self):
        expected = self.page["read_safetensors"](pages.ROOT / self.page["FOLDER"] / "models/fashion-mlp/expected.safetensors")
        np.testing.assert_array_equal(expected["input_u8"], self.page["images"])
        np.testing.assert_array_equal(expected["labels"], self.page["labels"])
        self.assertEqual(len(self.page["predictions"]), 8)
        for name, got in self.page["predictions"].items():
            np.testing.assert_allclose(got, expected["logits"][:1], rtol=1e-3, atol=1e-3, err_msg=str(name))
            np.testing.assert_allclose(got, self.logits(self.page["img"]), rtol=1e-4, atol=1e-4)

    def test_the_baseline_runs_each_op_and_the_fused_one_two_products(self):
        reports = self.page["reports"]
        kernels = {name: [c["Name"] for c in reports["as written", name].calls if not c["Name"].startswith("vm.")] for name in self.page["builds"]}
        self.assertEqual(sorted(kernels["baseline"]), ["add", "add1", "matmul", "matmul1", "relu"])
        self.assertEqual(sorted(kernels["Fused matmul_add"]), ["fused_matmul_add0", "fused_matmul_add1", "relu"])
        self.assertEqual(kernels["tiled_matmul"], kernels["baseline"])
        self.assertEqual(kernels["tiled_matmul+fused"], kernels["Fused matmul_add"])
        for report in reports.values():
            self.assertGreater(report.total_us, 0)
            self.assertEqual(report.cost["macs"], 784 * 128 + 128 * 10)

    def test_default_schedules_do_not_make_a_tiled_program_slower_by_much(self):
        reports = self.page["reports"]
        for name in self.page["builds"]:
            self.assertLess(reports["by default rules", name].total_us, 5 * reports["as written", name].total_us + 100)

    def test_the_illegal_step_is_refused_alone_and_beside_another_block(self):
        for mod, function in ((self.page["MLPModelTIR1"], "matmul"), (self.page["MLPModelFinal"], "fused_matmul_add0")):
            sch = tir.Schedule(mod)
            with self.assertRaises(sator.tir.schedule.schedule.ScheduleError) as caught:
                self.page["tile_matmul"](sch, function, "T_matmul_NN", 64, 64)
            self.assertIn("reverse_compute_at", caught.exception.what)
            self.assertTrue(caught.exception.needs)
            self.assertEqual([s.split("(")[0].split(".")[-1] for s in sch.trace.as_python() if "split" in s or "reorder" in s],
                             ["split", "split", "reorder"])
        with self.assertRaises(sator.tir.schedule.schedule.ScheduleError) as caught:
            self.page["tile_matmul"](tir.Schedule(self.page["MLPModelTIR1"]), "relu", "T_matmul_NN", 64, 64)
        self.assertIn("T_matmul_NN", caught.exception.what)

    def test_at_batch_64_the_same_tile_runs_64_times(self):
        @T.prim_func
        def product(A: T.Buffer((64, 784), "float32"), B: T.Buffer((784, 128), "float32"), C: T.Buffer((64, 128), "float32")):
            for i, j, k in T.grid(64, 128, 784):
                with T.block("T_matmul_NN"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

        tiled = self.page["apply_tiling_pass"](sator.IRModule({"main": product}), 64, 64)
        self.assertNotIn("T.where", tiled.script())
        cost = [sator.estimate(f, chip="edge_npu32")[0] for f in (self.page["MLPModelTIR1"]["matmul"], tiled["main"])]
        self.assertEqual(cost[1]["macs"], 64 * cost[0]["macs"])
        # 64 times the work, and the weights are still read once.
        self.assertLess(cost[1]["memories"][0]["read_bytes"], 2 * cost[0]["memories"][0]["read_bytes"])


class Pages(unittest.TestCase):
    """The other seeds' pages hold themselves what their blocks print."""

    def test_the_notebook(self):
        pages.run("docs/seeds/notebook.md")

    def test_the_slides(self):
        pages.run("docs/seeds/slides.md")

    def test_the_pipeline_and_a_rule_for_products(self):
        page = pages.run("docs/seeds/mlc-pipeline.md")
        self.assertTrue(page["Matmul"]().is_target_available(sator.Target("nvidia/geforce-rtx-3090")))
        with sator.Target("llvm"):
            self.assertNotIn("thread_binding", sator.dlight.ApplyDefaultSchedule(page["Matmul"]())(page["Product"]).script())

    def test_a_page_that_shows_something_else_fails(self):
        self.assertTrue(pages.matches("a ... c\n...", "a b  c\nd\n"))
        self.assertFalse(pages.matches("a ... c", "a b d\n"))
        self.assertFalse(pages.matches("a", "a\nb\n"))


if __name__ == "__main__":
    unittest.main()
