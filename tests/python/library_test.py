"""Tensors, and libraries as files: what they hold, and which function a call of a library runs."""
import os
import tarfile
import tempfile
import unittest

import numpy as np

import sator
from sator import relax
from sator.script import ir as I, relax as R, tir as T


@I.ir_module
class Two:
    @T.prim_func
    def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)

    @T.prim_func
    def thrice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(3)


class Tensors(unittest.TestCase):
    def test_elements_of_python_keep_the_dtype_that_numpy_gives_them(self):
        for values in ([2**40, 5], [[0.1, 2.5]], 3, 1.5, [True], [], [1, 2.0]):
            tensor, expected = sator.nd.array(values), np.array(values)
            self.assertEqual((tensor.dtype, tensor.shape), (str(expected.dtype), expected.shape))
            np.testing.assert_array_equal(tensor.numpy(), expected)

    def test_arguments_by_the_names_of_tvm(self):
        self.assertEqual(sator.nd.array(arr=np.ones(2), device=sator.cpu(dev_id=0)).shape, (2,))
        self.assertEqual(sator.device(dev_type="cpu", dev_id=0), sator.cpu(0))
        self.assertEqual(sator.device(1), sator.cpu(0))  # DLPack's number of the CPU


class Calls(unittest.TestCase):
    def setUp(self):
        self.x, self.y = np.arange(4, dtype="float32"), np.zeros(4, "float32")

    def test_a_call_of_several_functions_names_them(self):
        library = sator.build(Two, target="llvm")
        for call in (lambda: library(self.x, self.y), lambda: library["__tvm_main__"], lambda: library.entry_name):
            with self.assertRaisesRegex(sator.TVMError, "(?s)2 functions.*thrice.*twice"):
                call()
        library["thrice"](self.x, self.y)
        np.testing.assert_array_equal(self.y, self.x * 3)

    def test_a_call_runs_the_only_function_or_the_marked_one(self):
        """As TVM's entries: the name "main" alone makes none."""
        main = Two["twice"].with_attr("global_symbol", "main")
        marked = sator.IRModule({"other": Two["twice"].with_attr("tir.is_entry_func", True).with_attr("global_symbol", "other"), "thrice": Two["thrice"]})
        private = sator.IRModule({"main": main, "thrice": Two["thrice"].without_attr("global_symbol")})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "marked.so")
            sator.build(marked, target="llvm").export_library(path)
            for library in *(sator.build(mod, target="llvm") for mod in (Two["twice"], main, marked, private)), sator.runtime.load_module(path):
                for call in (library, library["__tvm_main__"], library.entry_func, library[library.entry_name]):
                    self.y[:] = 0
                    call(self.x, self.y)
                    np.testing.assert_array_equal(self.y, self.x * 2)
                self.assertGreater(library.time_evaluator("__tvm_main__", sator.cpu(), number=1)(self.x, self.y).mean, 0)
        library = sator.build(sator.IRModule({"main": main, "thrice": Two["thrice"]}), target="llvm")
        with self.assertRaisesRegex(sator.TVMError, "2 functions.*\n.*main, thrice\n  hint:  module.\"main\"."):
            library(self.x, self.y)


class Archives(unittest.TestCase):
    def test_a_tar_holds_the_library_and_is_read_back(self):
        x, y = np.arange(4, dtype="float32"), np.zeros(4, "float32")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.tar")
            sator.build(Two, target="llvm").export_library(path)
            with tarfile.open(path) as archive:
                self.assertEqual(archive.getnames(), ["lib0.so"])
                self.assertEqual(archive.extractfile("lib0.so").read(4), b"\x7fELF")
            sator.runtime.load_module(path)["twice"](x, y)
            np.testing.assert_array_equal(y, x * 2)

    def test_a_tar_of_a_graph(self):
        bb = relax.BlockBuilder()
        x = relax.Var("x", R.Tensor((4,), "float32"))
        with bb.function("main", [x]):
            bb.emit_func_output(bb.emit(relax.op.add(x, x)))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.tar")
            relax.build(bb.get(), "llvm").export_library(path)
            vm = relax.VirtualMachine(sator.runtime.load_module(path), sator.cpu())
        np.testing.assert_array_equal(vm["main"](np.arange(4, dtype="float32")).numpy(), [0, 2, 4, 6])

    def test_what_is_no_library_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "empty.tar")
            with tarfile.open(path, "w"):
                pass
            with self.assertRaisesRegex(sator.TVMError, "(?s)0 libraries.*needs:"):
                sator.runtime.load_module(path)
            sator.build(Two, target="llvm").export_library(path)
            os.chmod(path, 0o666)
            with self.assertRaises(sator.TVMError):
                sator.runtime.load_module(path)
            for name in ("x.o", "x.wasm"):
                with self.assertRaisesRegex(ValueError, "needs: a path that ends in .so or .tar"):
                    sator.build(Two, target="llvm").export_library(os.path.join(folder, name))
            self.assertEqual(os.listdir(folder), ["empty.tar"])
