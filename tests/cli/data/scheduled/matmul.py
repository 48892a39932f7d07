@T.prim_func
def matmul(A: T.Buffer((4, 3), "float32"), B: T.Buffer((3, 2), "float32"), C: T.Buffer((4, 2), "float32")):
    for i_0 in T.thread_binding(2, thread="blockIdx.x"):
        for j in T.thread_binding(2, thread="threadIdx.y"):
            for i_1 in T.thread_binding(2, thread="threadIdx.x"):
                for k in range(3):
                    with T.block("C"):
                        vi = T.axis.spatial(4, i_0 * 2 + i_1)
                        vj = T.axis.spatial(2, j)
                        vk = T.axis.reduce(3, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
