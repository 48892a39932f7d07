"""TVM's modules and names that are not here: the modules can be imported, and each name raises an error that says what there is instead."""
import types

from sator.error import TVMError

_SEARCH = ("schedules are not searched by measuring", "sator.dlight.ApplyDefaultSchedule() schedules by the compiler's rules, sator.tir.Schedule by hand")
_HERE = ("programs run on this machine", "sator.build(mod).export_library(path) here, sator.runtime.load_module(path) there")
_LIBRARIES = ("libraries of kernels are not called", "kernels are the compiler's own; relax.transform.FuseOpsByPattern and RunCodegen call a library of yours")
_GRAPHS = ("graphs are Relax's", "sator.relax: BlockBuilder, frontend.torch.from_fx, or @R.function")
_MODELS = ("models come from PyTorch, Hugging Face and GGUF", "relax.frontend.torch.from_fx(torch.fx's graph), relax.frontend.nn, sator.LM(folder)")
_ONE = ("programs run on one machine", "relax.op.ccl calls functions that sator.register_func has")
_TARGETS = ("schedules of te are written by hand", "te.create_schedule(op) and its steps, or sator.dlight.ApplyDefaultSchedule() on a module")
_FORMULA = ("there is no formula of it", "te.compute(shape, lambda *i: ...), or @T.prim_func, which bb.call_te and relax.call_tir call")
_MEMORY = ("memory is planned by the compiler", "relax.transform.StaticPlanBlockMemory(), tir.transform.StorageRewrite()")
_MACHINE = ("machine code is the compiler's own", "sator.build(mod, target), sator.Target(text)")
_CLASSES = ("classes are not shared with C++", "a Python class, or a function by sator.register_func")
NAMES = {
    "autotvm": _SEARCH,
    "auto_scheduler": _SEARCH,
    "meta_schedule": _SEARCH,
    "relay": _GRAPHS,
    **{f"rpc.{name}": _HERE for name in "base client minrpc proxy server tracker testing server_ios_launcher".split()},
    "micro": _HERE,
    "contrib": _LIBRARIES,
    "contrib.cc": ("libraries are linked by the compiler", "module.export_library(\"NAME.so\"), then sator.runtime.load_module(\"NAME.so\")"),
    "contrib.clang": ("C is not compiled", "sator.register_func(name, f) and tir.call_packed(name, ...), or an instruction's statements as loops: tir.ir_builder"),
    "contrib.nvcc": ("kernels run on CPUs", "sator.build(mod, \"llvm\"); `sator build -o FILE.py` writes what the rules schedule for GPUs"),
    "relax.backend.contrib": _LIBRARIES,
    "relax.distributed": _ONE,
    "relax.op.distributed": _ONE,
    "relax.frontend.nn.llm": ("language models are compiled from their folders", "sator.LM(folder), sator.export_model(folder); relax.frontend.nn.KVCache in a model of one's own"),
    "relax.frontend.onnx": _MODELS,
    "relax.frontend.stablehlo": _MODELS,
    "relax.frontend.torch.dynamo": _MODELS,
    "relax.testing.relay_translator": _GRAPHS,
    "runtime.disco": _ONE,
    "runtime.executor": _GRAPHS,
    **{f"topi.{t}": _TARGETS for t in "adreno arm_cpu bifrost cuda generic gpu hexagon hls intel_graphics mali rocm x86".split()},
    **{f"topi.{t}": _FORMULA for t in "random sparse vision".split()},
    "topi.testing": ("its references are NumPy's", "numpy.matmul, numpy.pad, ..., or scipy.signal and torch.nn.functional"),
    "topi.cpp": ("formulas are written in one place", "sator.topi, with the same names"),
    "script.ir_builder.base": ("programs are built by builders of their kind", "tir.ir_builder.create(), relax.BlockBuilder(), or a text: sator.script.parse(text)"),
    "script.parser.core.diagnostics": ("texts are read by the compiler", "sator.script.parse(text), whose errors have line and column"),
    "script.parser.core.evaluator": ("texts are read by the compiler", "sator.script.parse(text, extra_vars={...})"),
    "script.parser.core.parser": ("texts are read by the compiler", "sator.script.parse(text, extra_vars={...})"),
    "tir.schedule.analysis": ("a schedule is asked by its steps", "sch.can_..., sch.get_producers(block), arith.detect_iter_map"),
    "tir.schedule.transform": ("tiles are chosen by rules", "sator.dlight.gpu.Matmul(), or sch.split, sch.reorder and sch.tensorize"),
    "te.hybrid": ("hybrid scripts are not read", "@T.prim_func, a tensor program as Python"),
    **{f"tir.tensor_intrin.{t}": ("instructions of this device are not known", "tir.TensorIntrin.register(name, desc, impl), sch.tensorize(loop, name)")
       for t in "arm_cpu hexagon metal rocm".split()},
    "relax.training.setup_trainer": ("no pass makes gradients", "a backward pass that is written as a graph; relax.training has losses and optimizers"),
    "relax.backend.utils": ("what backends share is in one place", "relax.backend.pattern_registry, relax.transform.FuseOpsByPattern(patterns)"),
    "relax.backend_tir": ("sampling, sums and products are ops", "relax.op.cumsum, relax.op.multinomial_from_uniform, relax.transform.LegalizeOps()"),
    "relax.transform.legalize_ops": ("each op's row says what it becomes", "relax.transform.LegalizeOps({name: function})"),
    "tir.usmp": _MEMORY,
    "ir.memory_pools": _MEMORY,
    "ir.adt": _GRAPHS,
    "ir.affine_type": _GRAPHS,
    "ir.type_relation": _GRAPHS,
    "ir.json_compact": ("JSON is of this compiler", "sator.ir.save_json(node) and load_json(text)"),
    "ir.diagnostics": ("errors are exceptions", "except sator.error.DiagnosticError as e: e.what, e.line, e.column"),
    "target.codegen": _MACHINE,
    "target.datatype": _MACHINE,
    "target.intrin": _MACHINE,
    "testing.runner": _HERE,
    "testing.auto_scheduler": _SEARCH,
    "testing.autotvm": _SEARCH,
    "dlight.benchmark": ("kernels are measured where they run", "vm.profile(\"main\", ...), module.time_evaluator(name), sator.study(model)"),
}
# Single names: the module, its names, why, what instead.
_ROWS = (
    ("", "register_object register_extension", *_CLASSES),
    ("", "ext_dev hexagon vpi", "there is no such device here", "sator.cpu(), which runs programs; others are described: sator.chips()"),
    ("", "support parser", "they tell of TVM's own build and of Relay's text", "sator.__version__, sator.script.parse(text)"),
    ("script.ir_builder", "IRBuilder", "programs are built by builders of their kind",
     "tir.ir_builder.create(), relax.BlockBuilder(), or a text: sator.script.parse(text)"),
    ("runtime", "ext_dev hexagon vpi", "there is no such device here", "sator.cpu(), which runs programs; others are described: sator.chips()"),
    ("runtime", "system_lib load_static_library", "libraries are opened from files", "sator.runtime.load_module(path)"),
    ("arith", "solve_linear_equations solve_linear_inequalities IntConstraints IntConstraintsTransform IntGroupBounds",
     "systems of several equations are not solved", "arith.deduce_bound(var, condition, hints, relaxed), arith.detect_iter_map(indices, iterators)"),
    ("arith", "PresburgerSet", "sets are intervals", "arith.IntervalSet(least, greatest)"),
    ("arith", "detect_common_subexpr", "common parts are found by a pass", "tir.transform.CommonSubexprElimTIR()(mod)"),
    ("ir", "EnvFunc", "functions are registered by name", "sator.get_global_func(name)"),
    ("ir", "register_intrin_lowering", *_MACHINE),
    ("ir", "TensorAffineType TupleAffineType TypeCall TypeRelation TypeVar TypeData Constructor IncompleteType GlobalTypeVar RelayRefType TypeConstraint TensorType",
     *_GRAPHS),
    ("ir", "WorkspaceMemoryPools WorkspacePoolInfo ConstantMemoryPools ConstantPoolInfo PoolInfo PoolInfoProperties", *_MEMORY),
    ("te", "gradient", "no pass makes gradients", "a backward pass that is written as a graph; relax.training has losses and the steps of optimizers"),
    ("te", "HybridOp TensorComputeOp SpecializedCondition", "operations of te are formulas, scans, statements or placeholders",
     "te.ComputeOp, te.ScanOp, te.ExternOp, te.PlaceholderOp"),
    ("te.schedule", "ScheduleOps SchedulePostProc VerifyCompactBuffer schedule_record create_group", "the loops are those of a tensor program",
     "sator.lower(s, [A, B, C]), te.schedule.InferBound(s)"),
    ("te", "extern_primfunc", "a program of tensors stands for itself", "relax.call_tir(gv, args, out_sinfo), or te.compute"),
    ("tir", "BufferRealize Prefetch ProducerRealize ProducerStore DataProducer Reduce", "te's tensors become buffers at once",
     "te.create_prim_func([...]): BufferStore, BufferLoad, and blocks with T.init() for reductions"),
    ("tir", "Any", "an extent is a number or a variable", "tir.SizeVar(name, dtype)"),
    ("tir", "call_tir", "programs call others in the text of their module", "cls.other(args) in @I.ir_module; relax.call_tir in graphs"),
    ("tir", "trace", "calls are not traced in kernels", "T.call_packed(name, ...), which a kernel calls; T.print"),
    ("relax.frontend.nn", "SourceModule ExternModule ObjectModule add_extern", "code of other languages is not linked",
     "nn.op.extern(name, args, out), which calls what sator.register_func(name) has"),
    ("relax.frontend.torch", "relax_dynamo dynamo_capture_subgraphs", *_MODELS),
    ("relax.transform", "AttachExternModules", *_LIBRARIES),
    ("relax.transform", "tuning_api", *_SEARCH),
    ("relax.transform", "FastMathTransform", "exp, tanh and erf are within 2 units of the last place and vectors", "nothing: they are fast as they are"),
    ("relax.analysis", "suggest_layout_transforms", "layouts are chosen for the whole graph", "relax.transform.ConvertLayout({op: [layouts]})"),
    ("tir.analysis", "detect_buffer_access_lca find_anchor_block", "places of buffers are chosen by passes",
     "tir.transform.PlanAndUpdateBufferAllocationLocation(), tir.Schedule(mod)"),
    ("tir.analysis", "verify_gpu_code", "kernels run on CPUs", "sator.dlight's rules keep to a target's limits"),
    ("tir.analysis", "get_vtcm_compaction_passes apply_prim_func_arg_and_result_memory_constraints get_prim_func_arg_and_result_memory_constraints", *_MEMORY),
    ("relax.testing.nn", "checkpoint emit_checkpoint emit_checkpoint_sequential", "no pass makes gradients", "a backward pass that is written as a graph"),
    ("relax.testing.transform", "dataflow_liveness_analysis dataflow_alias_analysis dataflow_inplace_analysis dataflow_single_inplace_call",
     "what they find is used by a pass", "relax.transform.DataflowUseInplaceCalls()(mod)"),
    ("relax.dpl", "TypePattern DFConstraint", "types are struct info", "wildcard().has_struct_info(...), has_shape, has_dtype"),
    ("relax.frontend.torch.fx_translator", "TorchFXImporter", "graphs of torch are read by a function", "relax.frontend.torch.from_fx(graph_module, input_info)"),
    ("ir", "GlobalInfo DummyGlobalInfo", "modules have devices alone beside functions", "ir.VDevice(target, index, scope)"),
    ("relax.testing", "from_relay get_relax_matmul_module", *_GRAPHS),
    ("testing", "parameters xfail_parameterizations skip_parameterizations", "parameters that vary together are pytest's",
     "@pytest.mark.parametrize(\"a,b\", [(1, 2), (3, 4)])"),
    ("testing", "rpc_run local_run", *_HERE),
    ("topi.nn", "conv conv2d_NCHWc conv2d_NCHWc_int8 conv2d_winograd_nchw conv2d_winograd_nhwc depthwise_conv2d_NCHWc conv2d_winograd_weight_transform "
     "conv2d_gemm_weight_transform conv3d_winograd_weight_transform winograd_transform_matrices unpack_NCHWc_to_nchw scale_shift_nchwc dense_pack",
     "layouts of kernels are the rules' business", "topi.nn.conv2d(data, kernel, ..., layout), sator.dlight.ApplyDefaultSchedule()"),
    ("topi.nn", " ".join(f"{op}_{what}" for what in ("legalize", "alter_layout", "infer_layout") for op in
                         "batch_matmul bitserial_conv2d conv2d conv2d_transpose conv3d conv3d_transpose dense depthwise_conv2d matmul".split()), *_GRAPHS),
    ("topi.nn", "bitserial_conv2d_nchw bitserial_conv2d_nhwc bitserial_dense bitpack binary_op_multiplier binarize_pack binary_dense correlation_nchw "
     "deformable_conv2d_nchw deformable_conv2d_nhwc conv3d_transpose_ncdhw group_conv3d_transpose_ncdhw group_conv1d_nwc group_conv1d_transpose_ncw "
     "depthwise_conv2d_backward_input_nhwc depthwise_conv2d_backward_weight_nhwc fifo_buffer lstm pool_grad simulated_quantize simulated_dequantize "
     "sparse_add sparse_conv2d sparse_dense sparse_transpose sparse_dense_sp_lhs sparse_dense_sp_rhs upsampling3d", *_FORMULA),
    ("topi.image", "affine_grid grid_sample crop_and_resize dilation2d_nchw dilation2d_nhwc resize1d resize3d", *_FORMULA),
    ("topi", "fixed_point_multiply fixed_point_multiply_per_axis binary_search", *_FORMULA),
    ("topi", "unique", "how many elements it gives, its data say", "relax.op.unique(x, ...) in graphs"),
    ("topi", "sparse_to_dense sparse_reshape sparse_fill_empty_rows stft dft scanop hybrid_argwhere_1d", *_FORMULA),
    ("target", "generic_func override_native_generic_func get_native_generic_func GenericFunc", "functions are not chosen by target",
     "if target.kind.name == \"llvm\": ..."),
    ("rpc", "connect connect_tracker Server TrackerSession RPCSession PopenSession with_minrpc", *_HERE),
    ("driver.build_module", "get_binds form_irmodule", "a schedule of te is a program of tensors", "sator.lower(s, args), te.create_prim_func(args)"),
    ("target", "list_tags register_tag", "tags are those of NVIDIA's devices", "Target(\"nvidia/nvidia-a100\"), Target({\"kind\": \"cuda\", \"arch\": \"sm_80\"})"),
    ("target", "micro vta hexagon stm32 rasp riscv_cpu", "nothing is known of these boards", "Target(\"llvm -mtriple=... -mcpu=...\"), arm_cpu(model, options)"),
    ("target", "VirtualDevice make_compilation_config", *_GRAPHS),
)


def error(path):
    """The error of a name below a refused module, or of a refused name."""
    return _said(path, *(NAMES[root(path)] if root(path) else _BELOW[path]))


def _said(path, why, instead):
    return TVMError(f"error: {path}: {why}\n  needs: a name that sator has\n  hint:  {instead}")


_BELOW = {f"{module}.{name}".lstrip("."): (why, instead) for module, names, why, instead in _ROWS for name in names.split()}


def root(path):
    """The refused module that a path is or lies in, or None."""
    while path and path not in NAMES:
        path = path.rpartition(".")[0]
    return path or None


def is_refused(path):
    """Whether a path, "relax.frontend.nn.SourceModule", is refused."""
    return path in _BELOW or root(path) is not None


class Module(types.ModuleType):
    """A module that can be imported and has nothing."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("_"):  # who looks for one asks whether it is there
            raise AttributeError(name)
        from sator import paths

        held = paths.submodule(self.__name__, name)
        if held is not None:
            return held
        raise error(f"{self.__name__.removeprefix('sator.')}.{name}")
