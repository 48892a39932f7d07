# A filter of five taps along time, 64 channels; then a projection, and shares that sum to 1.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def smooth(x: T.handle, W: T.Buffer((T.int64(5),), "float32"), y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n + 4, T.int64(64)), "float32")
        Y = T.match_buffer(y, (n, T.int64(64)), "float32")
        for i, j, k in T.grid(n, T.int64(64), T.int64(5)):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi + vk, vj] * W[vk]

    @R.function
    def main(
        x: R.Tensor(("m", 64), "float32"),
        taps: R.Tensor((5,), "float32"),
        weight: R.Tensor((64, 16), "float32"),
    ) -> R.Tensor(("m - 4", 16), "float32"):
        m = T.int64()
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.smooth, (x, taps), out_sinfo=R.Tensor((m - 4, 64), "float32"))
            scores = R.matmul(y, weight)
            shares = R.nn.softmax(scores, axis=-1)
            R.output(shares)
        return shares
