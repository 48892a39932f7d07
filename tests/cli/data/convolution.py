# A convolution of 3 x 3 over 16 channels: 32 x 14 x 14 x 16 x 9 = 903,168 multiply-accumulates.
@T.prim_func
def conv(x: T.Buffer((16, 16, 16), "float16"), w: T.Buffer((32, 16, 3, 3), "float16"), y: T.Buffer((32, 14, 14), "float16")):
    for o, i, j, c, p, q in T.grid(32, 14, 14, 16, 3, 3):
        with T.block("conv"):
            vo, vi, vj, vc, vp, vq = T.axis.remap("SSSRRR", [o, i, j, c, p, q])
            with T.init():
                y[vo, vi, vj] = T.float16(0)
            y[vo, vi, vj] = y[vo, vi, vj] + x[vc, vi + vp, vj + vq] * w[vo, vc, vp, vq]
