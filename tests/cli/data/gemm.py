@T.prim_func
def gemm(X: T.Buffer((64, 48), "int8"), W: T.Buffer((48, 32), "int8"), Y: T.Buffer((64, 32), "int32")):
    for i, j, k in T.grid(64, 32, 48):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = 0
            Y[vi, vj] = Y[vi, vj] + T.Cast("int32", X[vi, vk]) * T.Cast("int32", W[vk, vj])
