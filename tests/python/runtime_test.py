"""What TVM's runtime has beside calls: instruments, inputs by name, files of parameters, arrays of other libraries."""
import gc
import re
import struct
import tempfile
import traceback
import unittest
import weakref
from pathlib import Path

import numpy as np

import sator
from sator import relax
from sator.script import ir as I, relax as R

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            R.output(z)
        return z

    @R.function
    def nested(x: R.Tensor((4,), "float32")):
        return (x, (R.add(x, x), R.shape([1, 2])))


X = np.arange(12, dtype="float32").reshape(3, 4) - 5
W = np.eye(4, dtype="float32") * 2


class Machines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.compiled = relax.build(Model, "llvm")

    def machine(self):
        return relax.VirtualMachine(self.compiled, sator.cpu())

    def test_an_instrument_sees_each_call_before_and_after(self):
        vm, seen = self.machine(), []

        def instrument(func, name, before_run, ret_value, *args):
            if "matmul" in name:
                seen.append((before_run, ret_value, [a.shape for a in args], func.name))
                if before_run:
                    args[1].copyfrom(np.eye(4) * 3)  # the program's own memory
                else:
                    seen.append(args[-1].numpy())

        vm.set_instrument(instrument)
        w = sator.nd.array(W)
        result = vm["main"](X, w).numpy()
        shapes = [(3, 4), (4, 4), (3, 4)]
        self.assertEqual([seen[0], seen[1]], [(True, None, shapes, seen[0][3]), (False, None, shapes, seen[0][3])])
        np.testing.assert_array_equal(seen[2], result)
        np.testing.assert_array_equal(result, np.maximum(X * 3, 0))
        vm.set_instrument(None)
        vm["main"](X, w)
        self.assertEqual(len(seen), 3)

    def test_an_instrument_may_leave_a_call_out(self):
        vm, ran = self.machine(), []

        def instrument(func, name, before_run, ret_value, *args):
            ran.append((name, before_run))
            if before_run and "matmul" in name:
                np.copyto(args[-1]._numpy(), 7)
                return relax.VMInstrumentReturnKind.SKIP_RUN
            return relax.VMInstrumentReturnKind.NO_OP

        vm.set_instrument(instrument)
        np.testing.assert_array_equal(vm["main"](X, W).numpy(), np.full((3, 4), 7))
        kernel = [before for name, before in ran if "matmul" in name]
        self.assertEqual(kernel, [True])

    def test_what_an_instrument_raises_arrives(self):
        vm = self.machine()

        def instrument(*args):
            raise ValueError("not this one")

        vm.set_instrument(instrument)
        try:
            vm["main"](X, W)
            self.fail("it ran")
        except ValueError:
            self.assertIn('raise ValueError("not this one")', traceback.format_exc())
        vm.set_instrument(None)
        self.assertEqual(vm["main"](X, W).shape, (3, 4))
        with self.assertRaisesRegex(TypeError, "before_run"):
            vm.set_instrument(3)

    def test_views(self):
        whole = sator.nd.array(np.arange(12, dtype="float32"))
        rows = whole._create_view((3, 4))
        self.assertEqual((rows.shape, rows.data_ptr), ((3, 4), whole.data_ptr))
        rows[:] = np.full((3, 4), 2, "float32")
        np.testing.assert_array_equal(whole.numpy(), np.full(12, 2, "float32"))
        np.testing.assert_array_equal(whole._create_view((4,), "int8", 4).numpy(), np.float32([2]).view("int8"))
        del whole
        self.assertEqual(rows.numpy().sum(), 24)
        for wrong in (((13,),), ((1,), "float64", 44), ((1,), "float32", 2), ((-1,),), ((1,), "float32", -4)):
            with self.assertRaises(sator.TVMError):
                rows._create_view(*wrong)

    def test_inputs_by_name(self):
        vm = self.machine()
        for args, kwargs in (((X, W), {}), ((), {"w": W, "x": X}), ((W,), {"x": X})):
            vm.set_input("main", *args, **kwargs)
            vm.invoke_stateful("main")
            np.testing.assert_array_equal(vm.get_outputs("main").numpy(), np.maximum(X * 2, 0))
        with self.assertRaisesRegex(TypeError, "no parameter is called v\n  needs: one argument for each of x, w"):
            vm.set_input("main", X, v=W)
        for wrong in ((X,), (X, W, W)):
            with self.assertRaisesRegex(TypeError, f"{len(wrong)} arguments\n  needs: 2: "):
                vm.set_input("main", *wrong)
        with self.assertRaisesRegex(TypeError, "0 arguments by position and 1 by name"):
            vm.set_input("main", x=X)
        with self.assertRaisesRegex(ValueError, "set_input"):
            vm.invoke_stateful("nested")

    def test_inputs_are_kept_as_they_were(self):
        vm, x = self.machine(), np.ascontiguousarray(X.T).T  # columns: set_input copies, so that any strides will do
        vm.set_input("main", x, sator.nd.array(W))
        x[:] = 0
        vm.invoke_stateful("main")
        np.testing.assert_array_equal(vm.get_outputs("main").numpy(), np.maximum(X * 2, 0))

    def test_outputs_of_tuples(self):
        vm = self.machine()
        vm.set_input("nested", np.ones(4, "float32"))
        vm.invoke_stateful("nested")
        first, (second, shape) = vm.get_outputs("nested")
        self.assertIsInstance(vm.get_outputs("nested"), tuple)
        self.assertEqual((first.numpy().tolist(), second.numpy().tolist(), shape), ([1] * 4, [2] * 4, (1, 2)))

    def test_a_report_as_comma_separated_values(self):
        lines = self.machine().profile("main", X, W).csv().splitlines()
        self.assertEqual(lines[0], "Argument Shapes,Count,Device,Duration (us),Name,Percent")
        kernel = next(line for line in lines if "matmul" in line)
        self.assertTrue(kernel.startswith('"float32[3, 4], float32[4, 4], float32[3, 4]",1,"cpu0",'), kernel)


@I.ir_module
class Closures:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        @R.function
        def inner(y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            return R.subtract(x, y)

        return inner

    @R.function
    def bound(x: R.Tensor((2, 3), "float32"), scale: R.Tensor((), "float32")) -> R.Object:
        closure = R.make_closure(Closures.scaled, (x, scale))
        return closure

    @R.function
    def pair(x: R.Tensor((2, 3), "float32"), scale: R.Tensor((), "float32")):
        closure = R.make_closure(Closures.scaled, (x, scale))
        return (closure, (x, closure))

    @R.function
    def second(pair: R.Tuple(R.Tensor((2, 3), "float32"), R.Object)) -> R.Object:
        return pair[1]

    @R.function(pure=False)
    def asked(closure: R.Object, y: R.Tensor((2, 3), "float32")) -> R.Object:
        return R.call_packed("test.closures.ask", closure, y, sinfo_args=R.Object)

    @R.function(pure=False)
    def applied(closure: R.Object, y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        return R.invoke_closure(closure, (y,), sinfo_args=R.Tensor((2, 3), "float32"))

    @R.function
    def scaled(y: R.Tensor((2, 3), "float32"), x: R.Tensor((2, 3), "float32"), scale: R.Tensor((), "float32")) -> R.Tensor((2, 3), "float32"):
        return R.add(R.multiply(y, scale), x)

    @R.function
    def doubled(y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        return R.add(y, y)


class ReturnedFunctions(unittest.TestCase):
    x, y, scale = np.arange(6, dtype="float32").reshape(2, 3), np.full((2, 3), 5, "float32"), np.array(3, "float32")

    @classmethod
    def setUpClass(cls):
        sator.register_func("test.closures.ask", lambda closure, y: [closure, closure(y)], override=True)
        cls.compiled = relax.build(Closures, "llvm")

    def machine(self):
        return relax.VirtualMachine(self.compiled, sator.cpu())

    def expect(self, got, expected):
        np.testing.assert_array_equal(got.numpy(), expected)

    def test_called_by_the_machine_and_as_they_are(self):
        vm = self.machine()
        inner = vm["main"](self.x)
        self.expect(vm.invoke_closure(inner, self.y), self.x - self.y)
        self.expect(inner(self.y), self.x - self.y)
        vm.set_input("bound", self.x, self.scale)
        vm.invoke_stateful("bound")
        self.expect(vm.invoke_closure(vm.get_outputs("bound"), self.y), self.y * 3 + self.x)
        self.assertEqual(repr(vm.get_outputs("bound")), "Closure(scaled)")
        self.expect(vm.invoke_closure(vm["doubled"], self.y), self.y * 2)

    def test_what_it_captured_lives_as_long(self):
        closure = self.machine()["bound"](np.copy(self.x), sator.nd.array(self.scale))  # nobody else has machine and tensors
        gc.collect()
        other = [np.full((2, 3), 9, "float32") for _ in range(100)]
        self.expect(closure(self.y), self.y * 3 + self.x)
        self.assertEqual(len(other), 100)

    def test_in_tuples_and_back(self):
        vm = self.machine()
        first, (x, second) = vm["pair"](self.x, self.scale)
        self.expect(first(self.y), self.y * 3 + self.x)
        back = vm["second"]((x, second))
        self.expect(vm["applied"](back, self.y), self.y * 3 + self.x)
        self.expect(vm["applied"](vm["doubled"], self.y), self.y * 2)
        again, result = vm["asked"](back, self.y)  # a function of Python's calls it while the machine runs
        self.expect(result, self.y * 3 + self.x)
        self.expect(again(self.y), self.y * 3 + self.x)

    def test_wrong_use(self):
        vm, other = self.machine(), self.machine()
        closure = vm["bound"](self.x, self.scale)
        for args in (), (self.y, self.y), (self.y,) * 3:
            with self.assertRaisesRegex(sator.TVMError, f"scaled, with 2 captured values, is called with {len(args)} arguments\n  needs: 1 arguments: y"):
                vm.invoke_closure(closure, *args)
        with self.assertRaisesRegex(sator.TVMError, "another VirtualMachine"):
            other.invoke_closure(closure, self.y)
        with self.assertRaisesRegex(sator.TVMError, "another VirtualMachine"):
            other["second"]((self.x, closure))
        for what in self.y, 3, None, len, "scaled":
            with self.assertRaisesRegex(TypeError, "a function that a program returned"):
                vm.invoke_closure(what, self.y)
        with self.assertRaisesRegex(sator.TVMError, "parameter y: extent 1 is 2"):
            closure(np.zeros((2, 2), "float32"))
        with self.assertRaisesRegex(TypeError, "makes no object"):
            type(closure)()

    def test_cycles_are_collected(self):
        vm = self.machine()
        closure = vm["bound"](self.x, self.scale)

        def instrument(*args, held=closure):
            return relax.VMInstrumentReturnKind.NO_OP

        vm.set_instrument(instrument)
        gone = weakref.ref(instrument)
        del vm, closure, instrument
        gc.collect()
        self.assertIsNone(gone())


class Parameters(unittest.TestCase):
    def test_both_ways(self):
        arrays = {"w": X, "flags": np.array([True, False]), "half": X.astype("float16"), "number": np.array(-7, "int64"),
                  "bytes": np.arange(3, dtype="uint8"), "none": np.zeros((0, 3), "float32")}
        if ml_dtypes is not None:
            arrays |= {"bf": X.astype(ml_dtypes.bfloat16), "f8": X.astype(ml_dtypes.float8_e4m3fn)}
        back = sator.runtime.load_param_dict(sator.runtime.save_param_dict(arrays))
        self.assertEqual(list(back), list(arrays))
        for name, array in arrays.items():
            self.assertEqual((back[name].numpy().dtype, back[name].shape), (array.dtype, array.shape))
            np.testing.assert_array_equal(back[name].numpy(), array)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "params.bin"
            sator.runtime.save_param_dict_to_file({"w": sator.nd.array(X)}, path)
            taken = Path(folder) / "taken"
            taken.mkdir()
            for wrong in (taken, Path(folder) / "none" / "params.bin"):
                with self.assertRaisesRegex(OSError, "needs: a path where a file can be written"):
                    sator.runtime.save_param_dict_to_file({"w": X}, wrong)
            self.assertEqual({f.name for f in Path(folder).iterdir()}, {"params.bin", "taken"})  # nothing half-written
            np.testing.assert_array_equal(sator.runtime.load_param_dict_from_file(path)["w"].numpy(), X)

    def test_the_bytes_are_those_of_apache_tvm(self):
        # tvm.runtime.save_param_dict({"b": [True, False]}) of apache-tvm 0.27
        theirs = bytes.fromhex("b79c04054f8de5f70000000000000000010000000000000001000000000000006201000000000000003fa1b496f0405edd"
                               "000000000000000001000000000000000100000006080100020000000000000002000000000000000100")
        self.assertEqual(sator.runtime.save_param_dict({"b": np.array([True, False])}), theirs)
        self.assertEqual(sator.runtime.load_param_dict(theirs)["b"].numpy().tolist(), [True, False])

    def test_damaged_bytes_are_refused(self):
        good = bytes(sator.runtime.save_param_dict({"w": X}))
        for end in range(len(good)):
            with self.assertRaisesRegex(ValueError, "needs: the bytes that save_param_dict gave"):
                sator.runtime.load_param_dict(good[:end])
        rank = good.index(struct.pack("<iii", 1, 0, 2)) + 8
        for damaged in (b"x" + good[1:], good[:rank] + b"\xff\xff\xff\x7f" + good[rank + 4:], good[:rank + 4] + b"\x09" + good[rank + 5:]):
            with self.assertRaisesRegex(ValueError, "load_param_dict"):
                sator.runtime.load_param_dict(damaged)
        with self.assertRaisesRegex(TypeError, "needs: the bytes"):
            sator.runtime.load_param_dict("text")


class Shared:
    """A consumer of DLPack: reads a capsule's address, dtype and shape."""

    def __init__(self, capsule):
        import ctypes

        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        at = get(capsule, b"dltensor")
        self.data, _, _, self.rank, self.code, self.bits, _ = struct.unpack("<QiiiBBH", ctypes.string_at(at, 24))


class DLPack(unittest.TestCase):
    @unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
    def test_dtypes_of_ml_dtypes_leave_without_copies(self):
        for dtype, code, bits in (("bfloat16", 4, 16), ("float8_e4m3fn", 10, 8), ("float8_e5m2", 12, 8)):
            tensor = sator.nd.array(X.astype(dtype))
            for capsule in (tensor.to_dlpack(), tensor.__dlpack__()):
                shared = Shared(capsule)
                self.assertEqual((shared.data, shared.rank, shared.code, shared.bits), (tensor.data_ptr, 2, code, bits))
            back = sator.nd.from_dlpack(tensor)
            self.assertEqual((back.dtype, back.data_ptr), (tensor.dtype, tensor.data_ptr))
            self.assertTrue(back.same_as(tensor))

    def test_other_dtypes(self):
        tensor = sator.nd.array(X)
        self.assertEqual(sator.nd.from_dlpack(tensor.to_dlpack()).data_ptr, tensor.data_ptr)
        self.assertEqual(np.from_dlpack(tensor).ctypes.data, tensor.data_ptr)

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        for dtype in (torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.int64, torch.bool):
            given = torch.arange(4).to(dtype)
            tensor = sator.nd.from_dlpack(given)
            back = torch.from_dlpack(tensor)
            self.assertEqual((back.dtype, back.data_ptr()), (given.dtype, given.data_ptr()))

    def views(self):
        """Arrays of 3 times 2 elements whose memory is not in that order."""
        big = np.arange(48, dtype="float32").reshape(6, 8)
        pairs = np.zeros((3, 2), [("a", "float32"), ("b", "float32")])
        pairs["a"] = np.arange(6).reshape(3, 2)
        return {"transposed": big[:2, :3].T, "steps": big[::2, ::4], "backwards": big[3:0:-1, 1::-1], "columns": np.asfortranarray(big[:3, :2]),
                "field": pairs["a"]}

    def test_views_are_copied_densely(self):
        for name, view in {**self.views(), "one row many times": np.broadcast_to(X[:1, :2], (3, 2)), "bfloat16": None}.items():
            if view is None:
                if ml_dtypes is None:
                    continue
                view = X.astype("bfloat16").T
            with self.subTest(name):
                tensor = sator.nd.array(view)
                self.assertTrue(tensor.is_contiguous())
                np.testing.assert_array_equal(tensor.numpy(), view)
                np.testing.assert_array_equal(sator.nd.empty(view.shape, str(view.dtype)).copyfrom(view).numpy(), view)
                view = view if view.flags.writeable else view.copy()
                view[0, 0] += 1
                self.assertEqual(float(view[0, 0] - tensor.numpy()[0, 0]), 1)

    def test_views_are_not_shared(self):
        vm = relax.VirtualMachine(relax.build(Model, "llvm"), sator.cpu())
        for name, view in self.views().items():
            strides = [s // view.itemsize for s in view.strides]
            words = f"the array .3, 2. is not dense and row-major: its strides are {re.escape(str(strides))}.*\n.*\n.*ascontiguousarray"
            for share in sator.nd.from_dlpack, sator.nd.numpyasarray, vm["nested"], lambda v: vm["main"](X, v):
                with self.subTest(name), self.assertRaisesRegex(ValueError, words):
                    share(view)
        column = np.arange(8, dtype="float32").reshape(4, 2)[:, :1]  # dense all the same: the strides of single elements say nothing
        for view in column[:1], column.T[:, ::8], np.zeros((0, 3), "float32").T:
            np.testing.assert_array_equal(sator.nd.from_dlpack(view).numpy(), view)

    def test_arrays_of_other_libraries(self):
        class Plain:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        class Torchlike(Plain):
            def contiguous(self):
                return Plain(np.ascontiguousarray(self.array))

        for library, hint in (Plain, "the library that it is of"), (Torchlike, "array.contiguous()"):
            for name, view in self.views().items():
                with self.subTest(name, library=library.__name__):
                    np.testing.assert_array_equal(sator.nd.array(library(view)).numpy(), view)
                    with self.assertRaisesRegex(ValueError, f"not dense.*\n.*\n  hint: .*{re.escape(hint)}"):
                        sator.nd.from_dlpack(library(view))
                    with self.assertRaisesRegex(ValueError, "not dense"):
                        sator.nd.from_dlpack(library(view).__dlpack__())

    def test_names_of_the_module(self):
        import sator.runtime.ndarray as ndarray

        self.assertIs(ndarray.NDArray, sator.nd.NDArray)
        view = ndarray.numpyasarray(X)
        self.assertEqual((view.data_ptr, ndarray.cpu(0), ndarray.device("cpu")), (X.ctypes.data, sator.cpu(), sator.cpu()))
        with self.assertRaisesRegex(sator.TVMError, "vpi"):
            ndarray.vpi(0)


if __name__ == "__main__":
    unittest.main()
