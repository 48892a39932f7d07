"""Names of the tensor intrinsics that are registered, under TVM's: WMMA_LOAD_16x16x16_F16_A_INTRIN is "wmma_load_16x16x16_f16_a_shared"."""
from sator import paths
from sator.tir import TensorIntrin

__path__ = []  # tir.tensor_intrin.cuda is found by sator.paths


def get_wmma_intrin_group(load_scope, store_scope, in_dtype, out_dtype, trans_b):
    """The intrinsics of one product on NVIDIA's tensor cores: {"init", "load_a", "load_b", "compute", "store"} -> name.

    load_scope, store_scope   "shared" or "shared.dyn"; "global" too for the result
    in_dtype, out_dtype       float16 -> float16 or float32, int8 -> int32
    trans_b                   whether the second factor is stored transposed
    Errors: ValueError where no such intrinsic is registered.
    """
    a, c = (({"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32"}.get(d, d)) for d in (in_dtype, out_dtype))
    load, store, t = load_scope.replace(".", "_"), store_scope.replace(".", "_"), "_trans" if trans_b else ""
    size = "16x16x16"
    group = {"init": f"wmma_fill_{size}_{c}", "load_a": f"wmma_load_{size}_{a}_a_{load}", "load_b": f"wmma_load_{size}_{a}_b{t}_{load}",
             "compute": f"wmma_sync_{size}_{a}{a}{c}{t}", "store": f"wmma_store_{size}_{c}_{store}"}
    for name in group.values():
        if TensorIntrin.get(name, allow_missing=True) is None:
            raise ValueError(f"no intrinsic {name} is registered\n  needs: dtypes and scopes of NVIDIA's warp matrices\n"
                             "  hint:  tir.TensorIntrin.register adds one")
    return group


# Of CPUs and of threads of a GPU, by TVM's names (tir.tensor_intrin.x86, .dot_product_common).
VNNI_DOT_16x4_INTRIN, AVX512_DOT_16x4_INTRIN = "dot_16x4_vnni", "dot_16x4_avx512"
DP4A_S8S8S32_INTRIN, DP4A_U8S8S32_INTRIN, DP4A_S8U8S32_INTRIN, DP4A_U8U8U32_INTRIN = (f"dp4a_{kinds}" for kinds in ("s8s8s32", "u8s8s32", "s8u8s32", "u8u8u32"))


def __getattr__(name):
    if name.startswith("WMMA_") and name.endswith("_INTRIN"):
        registered = name[:-len("_INTRIN")].lower()
        if "_load_" in registered:
            registered = registered[:-len("_dyn")] + "_shared_dyn" if registered.endswith("_dyn") else registered + "_shared"
        if TensorIntrin.get(registered, allow_missing=True) is not None:
            return registered
    raise paths.missing(__name__, name, globals())
