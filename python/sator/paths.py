"""TVM's deep paths: `sator.relax.expr.Var` is `sator.relax.Var`.

A module of TVM's that is a file of its own there, and whose names stand in another module here, is made from this table. A name that TVM's
module has and none of ours is no attribute of it.
"""
import difflib
import importlib
import importlib.abc
import importlib.util
import sys
import types

# The modules that hold the names: TVM's modules below each of them, or elsewhere.
_TABLE = {
    "arith": "arith.analyzer arith.bound arith.int_set arith.iter_affine_map arith.pattern",
    "dlight.base": "dlight.base.schedule_rule dlight.base.transform",
    "dlight.gpu": "dlight.gpu.fallback dlight.gpu.gemv dlight.gpu.general_reduction dlight.gpu.low_batch_gemv dlight.gpu.reduction "
                  "dlight.gpu.rmsnorm dlight.gpu.transpose",
    "ir": "ir.base ir.expr ir.function ir.global_info ir.op ir.type runtime.object",
    "transform": "ir.transform",
    "contrib_utils": "contrib.utils",
    "local_session": "rpc",
    "driver": "driver.build_module",
    "ir.instrument": "instrument",
    "relax": "relax.expr relax.struct_info relax.ty",
    "relax.analysis": "relax.analysis.analysis",
    "relax.frontend.torch": "relax.frontend.torch.fx_translator relax.frontend.torch.exported_program_translator",
    "relax.op": "relax.op.base relax.op.binary relax.op.create relax.op.datatype relax.op.index relax.op.linear_algebra relax.op.manipulate "
                "relax.op.mask relax.op.qdq relax.op.sampling relax.op.search relax.op.set relax.op.sorting relax.op.statistical "
                "relax.op.ternary relax.op.unary",
    "relax.op:nn": "relax.op.nn relax.op.nn.nn",
    "relax.op:image": "relax.op.image relax.op.image.image",
    "relax.op:builtin": "relax.op.builtin relax.op.builtin.builtin",
    "relax.op:memory": "relax.op.memory relax.op.memory.memory relax.op.memory.view",
    "relax.op:vm": "relax.op.vm relax.op.vm.vm",
    "relax.op:grad": "relax.op.grad relax.op.grad.grad",
    "relax.op:ccl": "relax.op.ccl relax.op.ccl.ccl",
    "relax.transform": "relax.transform.transform relax.transform.lazy_transform_params relax.transform.optimize_layout_transform "
                       "relax.transform.remove_redundant_reshape relax.backend.dispatch_sampling relax.backend.dispatch_sort_scan",
    "relax.backend_patterns": "relax.backend.patterns",
    "relax.byoc": "relax.backend relax.backend.pattern_registry",
    "error": "_ffi.base",
    "runtime.container": "container ir.container",
    "runtime": "_ffi _ffi.registry runtime.module runtime.profiling runtime.object_generic runtime.relax_vm runtime.packed_func",
    "nd": "runtime.ndarray",
    "script": "script.parser script.parser.core script.parser.core.entry",
    "script.ir": "script.parser.ir script.parser.ir.entry",
    "script.relax": "script.parser.relax script.parser.relax.entry script.ir_builder.relax script.ir_builder.relax.ir",
    "script.tir": "script.parser.tir script.parser.tir.entry script.ir_builder.tir script.ir_builder.tir.ir script.tirx",
    "target": "target.target",
    "te": "te.operation te.tag te.tensor te.tensor_intrin",
    "te_schedule": "te.schedule",
    "testing": "testing.utils",
    "topi": "topi.argwhere topi.broadcast topi.einsum topi.math topi.reduction topi.scan topi.scatter topi.scatter_elements topi.searchsorted "
            "topi.signal topi.sort topi.tensor topi.transform",
    "topi.image": "topi.image.dilation2d topi.image.resize",
    "topi.nn": " ".join(f"topi.nn.{name}" for name in (
        "batch_matmul batch_norm batch_to_space_nd bitserial_conv2d bnn conv1d conv1d_transpose conv2d conv2d_transpose conv3d "
        "conv3d_transpose correlation deformable_conv2d dense depth_to_space depthwise_conv2d dilate elemwise flatten group_norm "
        "instance_norm layer_norm local_response_norm loss mapping pad pooling qnn rms_norm softmax space_to_batch_nd space_to_depth sparse "
        "upsampling").split()),
    "topi.padding": "topi.nn.utils",
    "tir": "tir.buffer tir.expr tir.function tir.op tir.stmt tirx",
    "tir.analysis": "tir.analysis.analysis",
    "tir.block_scope": "tir.block_dependence_info",
    "tir.schedule": "tir.schedule.trace tir.schedule.instruction",
    "tir.tensor_intrin": "tir.tensor_intrin.cuda tir.tensor_intrin.x86 tir.tensor_intrin.dot_product_common",
    "tir.transform": "tir.transform.transform tir.transform.function_pass",
}
_HELD = {path: holder for holder, paths in _TABLE.items() for path in paths.split()}
# Modules above one another: `script.ir_builder` holds no name itself.
_HELD.setdefault("script.ir_builder", "script")


def missing(module, name, names):
    """The error of a name that a module lacks: what there is instead where TVM has it, else an AttributeError with the nearest names."""
    refused = _refused()
    path = f"{module}.{name}".removeprefix("sator.")
    if refused.is_refused(path):
        return refused.error(path)
    near = difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], 3)
    return AttributeError(f"module {module!r} has no attribute {name!r}" + (f"; the nearest are {', '.join(near)}" if near else ""))


def lookup(module):
    """The __getattr__ of a module that is a file: what TVM's module has beside it, each name says what there is instead."""
    def find(name):
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        deep = submodule(module, name)
        if deep is not None:
            return deep
        raise missing(module, name, dir(sys.modules[module]))

    return find


def _holder(path):
    module, _, space = _HELD[path].partition(":")
    held = importlib.import_module("sator." + module)
    return held.Space(space) if space else held


class _Deep(types.ModuleType):
    """A module that holds what another one does."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        path = self.__name__.removeprefix("sator.")
        held = _holder(path)
        try:
            value = getattr(held, name)
        except AttributeError:
            deep = submodule(self.__name__, name)
            if deep is not None:
                return deep
            raise missing(self.__name__, name, dir(held)) from None
        setattr(self, name, value)
        return value

    def __dir__(self):
        return dir(_holder(self.__name__.removeprefix("sator.")))

    def __dir__(self):
        return [name for name in dir(_holder(self.__name__.removeprefix("sator."))) if not name.startswith("__")]


class _Package(types.ModuleType):
    """A package with functions that TVM's modules below it are called like: the functions stay, as in TVM's packages."""

    def __setattr__(self, name, value):
        if not (isinstance(value, _Deep) and name in dir(self)):
            super().__setattr__(name, value)


def keep_functions(package):
    """Lets no module below a package hide its function of the same name, when it is imported."""
    sys.modules[package].__class__ = _Package


def _refused():
    return importlib.import_module("sator.refused")


def _refused_root(path):
    return None if path == "refused" else _refused().root(path)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last: for modules that are no files here."""

    def find_spec(self, name, path=None, target=None):
        root, _, deep = name.partition(".")
        if root != "sator" or deep not in _HELD and not _refused_root(deep):
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        deep = spec.name.partition(".")[2]
        if deep not in _HELD:
            refused = _refused()
            if deep not in refused.NAMES:
                raise refused.error(deep)
            return refused.Module(spec.name)
        module = _Deep(spec.name)
        module.__doc__ = f"What sator.{_HELD[spec.name.partition('.')[2]].replace(':', '.')} holds, under TVM's path."
        return module

    def exec_module(self, module):
        pass


def install():
    """Makes the paths importable, from now on."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.append(_Finder())


def submodule(package, name):
    """The module of a path below `package`, "sator.relax", or None where TVM has none there."""
    path = f"{package}.{name}".removeprefix("sator.")
    return importlib.import_module("sator." + path) if path in _HELD or _refused_root(path) == path else None
