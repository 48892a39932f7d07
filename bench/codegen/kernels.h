// Kernels in their final scheduled form, as text with sizes to fill in. Weights are packed in panels of 32 columns.
#pragma once

namespace sator::bench {

/// C[M, N] = A[M, K] B. Register tile {R} x {P}, row blocks of {MB}, K blocks of {KC}; A is packed per row block.
inline constexpr const char* kGemmF32 = R"(
@T.prim_func
def gemm(A: T.Buffer(({M}, {K}), "float32"), B: T.Buffer(({N} // 32, {K}, 32), "float32"), C: T.Buffer(({M}, {N}), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    A_packed = T.alloc_buffer(({M} // {R}, {K}, {R}))
    C_local = T.alloc_buffer(({M}, {N}), scope="local")
    for m0, k0 in T.grid({M} // {MB}, {K} // {KC}):
        for p in T.parallel({MB} // {R}):
            for k, i in T.grid({KC}, {R}):
                with T.block("pack"):
                    vp = T.axis.spatial({M} // {R}, m0 * ({MB} // {R}) + p)
                    vk = T.axis.spatial({K}, k0 * {KC} + k)
                    vi = T.axis.spatial({R}, i)
                    A_packed[vp, vk, vi] = A[vp * {R} + vi, vk]
        for n in T.parallel({N} // {P}):
            for m in range({MB} // {R}):
                for i in T.unroll({R}):
                    for j0 in T.unroll({P} // {V}):
                        for j1 in T.vectorized({V}):
                            with T.block("read"):
                                vi = T.axis.spatial({M}, m0 * {MB} + m * {R} + i)
                                vj = T.axis.spatial({N}, n * {P} + j0 * {V} + j1)
                                vk0 = T.axis.opaque({K} // {KC}, k0)
                                C_local[vi, vj] = T.if_then_else(vk0 == 0, T.float32(0), C[vi, vj])
                for k in T.serial({KC}, annotations={"software_prefetch": ["B", 8]}):
                    for i in T.unroll({R}):
                        for j0 in T.unroll({P} // {V}):
                            for j1 in T.vectorized({V}):
                                with T.block("update"):
                                    vi = T.axis.spatial({M}, m0 * {MB} + m * {R} + i)
                                    vj = T.axis.spatial({N}, n * {P} + j0 * {V} + j1)
                                    vk = T.axis.reduce({K}, k0 * {KC} + k)
                                    C_local[vi, vj] = C_local[vi, vj] + A_packed[vi // {R}, vk, vi % {R}] * B[vj // 32, vk, vj % 32]
                for i in T.unroll({R}):
                    for j0 in T.unroll({P} // {V}):
                        for j1 in T.vectorized({V}):
                            with T.block("write"):
                                vi = T.axis.spatial({M}, m0 * {MB} + m * {R} + i)
                                vj = T.axis.spatial({N}, n * {P} + j0 * {V} + j1)
                                C[vi, vj] = C_local[vi, vj]
)";

/// uint8 activations (of zero point 128, taken off through `comp`) x int8 weights, one scale per row and per column.
inline constexpr const char* kGemmInt8 = R"(
@T.prim_func
def gemm(A: T.Buffer(({M}, {K}), "uint8"), B: T.Buffer(({N} // 32, {K} // 4, 32, 4), "int8"), SA: T.Buffer(({M},), "float32"), SW: T.Buffer(({N} // 32, 32), "float32"), comp: T.Buffer(({N} // 32, 32), "int32"), C: T.Buffer(({M}, {N}), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    C_local = T.alloc_buffer(({M}, {N}), "int32", scope="local")
    for n in T.parallel({N} // 32):
        for m in range({M} // {R}):
            for i in T.unroll({R}):
                for j0 in T.unroll(32 // {V}):
                    for j1 in T.vectorized({V}):
                        with T.block("init"):
                            vi = T.axis.spatial({M}, m * {R} + i)
                            vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                            C_local[vi, vj] = T.int32(0) - comp[vj // 32, vj % 32]
            for k in T.serial({K} // 4, annotations={"software_prefetch": ["B", 16]}):
                for i in T.unroll({R}):
                    for j0 in T.unroll(32 // {V}):
                        for j1 in T.vectorized({V}):
                            for k4 in range(4):
                                with T.block("update"):
                                    vi = T.axis.spatial({M}, m * {R} + i)
                                    vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                                    vk = T.axis.reduce({K}, k * 4 + k4)
                                    C_local[vi, vj] = C_local[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vj // 32, vk // 4, vj % 32, vk % 4])
            for i in T.unroll({R}):
                for j0 in T.unroll(32 // {V}):
                    for j1 in T.vectorized({V}):
                        with T.block("write"):
                            vi = T.axis.spatial({M}, m * {R} + i)
                            vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                            C[vi, vj] = T.Cast("float32", C_local[vi, vj]) * (SA[vi] * SW[vj // 32, vj % 32])
)";

/// y[N] = W x, f32, four sums per panel so that the fused multiply-adds do not wait for each other.
inline constexpr const char* kGemvF32 = R"(
@T.prim_func
def gemv(W: T.Buffer(({N} // 32, {K}, 32), "float32"), x: T.Buffer(({K},), "float32"), y: T.Buffer(({N},), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    acc = T.alloc_buffer((2, {N}), scope="local")
    for n in T.parallel({N} // 32):
        for s in T.unroll(2):
            for j0 in T.unroll(32 // {V}):
                for j1 in T.vectorized({V}):
                    with T.block("init"):
                        vs = T.axis.spatial(2, s)
                        vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                        acc[vs, vj] = T.float32(0)
        for k in T.serial({K} // 2, annotations={"software_prefetch": ["W", 16]}):
            for s in T.unroll(2):
                for j0 in T.unroll(32 // {V}):
                    for j1 in T.vectorized({V}):
                        with T.block("update"):
                            vs = T.axis.spatial(2, s)
                            vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                            vk = T.axis.reduce({K} // 2, k)
                            acc[vs, vj] = acc[vs, vj] + x[vk * 2 + vs] * W[vj // 32, vk * 2 + vs, vj % 32]
        for j0 in T.unroll(32 // {V}):
            for j1 in T.vectorized({V}):
                with T.block("write"):
                    vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                    y[vj] = acc[0, vj] + acc[1, vj]
)";

/// int8 weights stored as uint8 (+128) x int8 activations whose sum is xs: corrected by -128 xs.
inline constexpr const char* kGemvInt8 = R"(
@T.prim_func
def gemv(W: T.Buffer(({N} // 32, {K} // 8, 2, 32, 4), "uint8"), x: T.Buffer(({K} // 8, 2, 4), "int8"), xs: T.Buffer((1,), "int32"), y: T.Buffer(({N},), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    acc = T.alloc_buffer((2, {N}), "int32", scope="local")
    for n in T.parallel({N} // 32):
        for s in T.unroll(2):
            for j0 in T.unroll(32 // {V}):
                for j1 in T.vectorized({V}):
                    with T.block("init"):
                        vs = T.axis.spatial(2, s)
                        vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                        acc[vs, vj] = T.int32(0)
        for k in T.serial({K} // 8, annotations={"software_prefetch": ["W", 16]}):
            for s in T.unroll(2):
                for j0 in T.unroll(32 // {V}):
                    for j1 in T.vectorized({V}):
                        for k4 in range(4):
                            with T.block("update"):
                                vs = T.axis.spatial(2, s)
                                vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                                vk = T.axis.reduce({K} // 8, k)
                                vr = T.axis.reduce(4, k4)
                                acc[vs, vj] = acc[vs, vj] + T.Cast("int32", W[vj // 32, vk, vs, vj % 32, vr]) * T.Cast("int32", x[vk, vs, vr])
        for j0 in T.unroll(32 // {V}):
            for j1 in T.vectorized({V}):
                with T.block("write"):
                    vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                    y[vj] = T.Cast("float32", acc[0, vj] + acc[1, vj] - 128 * xs[0])
)";

/// int4 codes in groups of 32 with their f16 scales beside them (576 bytes for 32 columns x 32 k) x int8 activations.
/// xs: -8 times the sum of each group of activations.
inline constexpr const char* kGemvInt4 = R"(
@T.prim_func
def gemv(W: T.Buffer(({N} // 32, {K} // 32, 576), "uint8"), x: T.Buffer(({K} // 32, 8, 4), "int8"), xs: T.Buffer(({K} // 32,), "int32"), y: T.Buffer(({N},), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    acc = T.alloc_buffer(({N},), "float32", scope="local")
    q = T.alloc_buffer(({K} // 32, {N}), "int32", scope="local")
    for n in T.parallel({N} // 32):
        for j0 in T.unroll(32 // {V}):
            for j1 in T.vectorized({V}):
                with T.block("init"):
                    vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                    acc[vj] = T.float32(0)
        for g in T.serial({K} // 32, annotations={"software_prefetch": ["W", 7]}):
            for j0 in T.unroll(32 // {V}):
                for j1 in T.vectorized({V}):
                    with T.block("group_init"):
                        vg = T.axis.spatial({K} // 32, g)
                        vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                        q[vg, vj] = xs[vg]
            for k in T.unroll(8):
                for j0 in T.unroll(32 // {V}):
                    for j1 in T.vectorized({V}):
                        for k4 in range(4):
                            with T.block("dot"):
                                vg = T.axis.spatial({K} // 32, g)
                                vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                                vk = T.axis.reduce(8, k)
                                vr = T.axis.reduce(4, k4)
                                q[vg, vj] = q[vg, vj] + T.Cast("int32", T.bitwise_and(T.shift_right(W[vj // 32, vg, 64 + vk * 64 + vj % 16 * 4 + vr], T.Cast("uint8", vj % 32 // 16 * 4)), T.uint8(15))) * T.Cast("int32", x[vg, vk, vr])
            for j0 in T.unroll(32 // {V}):
                for j1 in T.vectorized({V}):
                    with T.block("scale"):
                        vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                        vg = T.axis.reduce({K} // 32, g)
                        acc[vj] = acc[vj] + T.Cast("float32", q[vg, vj]) * T.Cast("float32", T.reinterpret("float16", W[vj // 32, vg, vj % 32 * 2:vj % 32 * 2 + 2]))
        for j0 in T.unroll(32 // {V}):
            for j1 in T.vectorized({V}):
                with T.block("write"):
                    vj = T.axis.spatial({N}, n * 32 + j0 * {V} + j1)
                    y[vj] = acc[vj]
)";

}  // namespace sator::bench
