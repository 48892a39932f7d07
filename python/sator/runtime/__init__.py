"""What runs compiled programs: devices, tensors, the virtual machine, functions of Python's that programs call."""
from sator.nd import NDArray  # noqa: F401
from sator.runtime import container, object_path  # noqa: F401
from sator.runtime.device import Device, cpu, cuda, device, metal, opencl, rocm, vulkan  # noqa: F401
from sator.runtime.functions import PackedFunc, get_global_func, list_global_func_names, register_func, remove_global_func  # noqa: F401
from sator.runtime.object_path import ObjectPath  # noqa: F401
from sator.runtime.params import load_param_dict, load_param_dict_from_file, save_param_dict, save_param_dict_to_file  # noqa: F401
from sator.runtime.shape import ShapeTuple  # noqa: F401
from sator.runtime.values import DataType, convert  # noqa: F401
from sator._core import Object  # noqa: F401
from sator.runtime.vm import BenchmarkResult, Module, Report, VirtualMachine, VMInstrumentReturnKind, load_module  # noqa: F401


String = str  # texts are Python's
gpu, cl, mtl = cuda, opencl, metal  # TVM's earlier names
convert_to_object = convert


def num_threads():
    """How many threads a program runs with, where nobody says another number."""
    from sator import _core

    return _core.default_num_threads()


def enabled(target):
    """Whether programs can be built and run for a target of this kind here: "llvm" or "cpu"."""
    if not isinstance(target, str):
        raise TypeError(f"enabled: target = {target!r} is a {type(target).__name__}\n  needs: a text, as \"llvm\"")
    return target.split(" ")[0] in ("llvm", "cpu")


def __getattr__(name):
    from sator import paths

    if name == "const":
        from sator import tir

        return tir.const

    deep = paths.submodule("sator.runtime", name)
    if deep is not None:
        return deep
    raise paths.missing("sator.runtime", name, globals())
