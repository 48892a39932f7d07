# Causal attention of 2 heads without softmax's exponentials: scores, and their sums with values.
@T.prim_func
def attention(Q: T.Buffer((2, 512, 64), "int8"), K: T.Buffer((2, 512, 64), "int8"), V: T.Buffer((2, 512, 64), "int8"), O: T.Buffer((2, 512, 64), "int32")):
    S = T.alloc_buffer((2, 512, 512), "int32")
    P = T.alloc_buffer((2, 512, 512), "int8")
    for h, i, j, d in T.grid(2, 512, 512, 64):
        with T.block("scores"):
            vh, vi, vj, vd = T.axis.remap("SSSR", [h, i, j, d])
            with T.init():
                S[vh, vi, vj] = 0
            if vj <= vi:
                S[vh, vi, vj] = S[vh, vi, vj] + T.cast(Q[vh, vi, vd], "int32") * T.cast(K[vh, vj, vd], "int32")
    for h, i, j in T.grid(2, 512, 512):
        with T.block("codes"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            if vj <= vi:
                P[vh, vi, vj] = T.cast(T.shift_right(S[vh, vi, vj], 8), "int8")
    for h, i, d, j in T.grid(2, 512, 64, 512):
        with T.block("values"):
            vh, vi, vd, vj = T.axis.remap("SSSR", [h, i, d, j])
            with T.init():
                O[vh, vi, vd] = 0
            if vj <= vi:
                O[vh, vi, vd] = O[vh, vi, vd] + T.cast(P[vh, vi, vj], "int32") * T.cast(V[vh, vj, vd], "int32")
