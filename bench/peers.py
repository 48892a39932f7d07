#!/usr/bin/env python3
"""Times ops beside ONNX Runtime, in turns: ResNet-50's convolutions, batched products, pooling, sorts of 50,257.

    ./dev peers [--threads N] [--rounds N] [--least RATIO] [--json FILE] [FILTER]

Each op is a graph of one node in both; weights of convolutions are constants, other operands inputs that are in memory. A round runs one, lets
its threads fall asleep, then the other; a time is the median of the rounds' medians. Results are compared. The ratio is ONNX Runtime's time
over Sator's: below 1 Sator is slower. The exit status is 1 where a ratio is below --least.
"""
import argparse
import json
import os
import statistics
import sys
import time

import numpy as np

REST_S = 0.1  # after which the threads of either have stopped spinning


def cases():
    """(name, ONNX op, its attributes, the op of graphs, shapes of inputs, shapes of constants)."""
    def conv(c, size, filters, kernel, stride):
        pad = kernel // 2
        name = f"conv {c}x{size}x{size}, {filters} of {kernel}x{kernel}" + (f", stride {stride}" if stride > 1 else "")
        attrs = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return name, "Conv", attrs, f"R.nn.conv2d(x, w, strides={[stride] * 2}, padding={[pad] * 4})", [(1, c, size, size)], [(filters, c, kernel, kernel)]

    yield conv(3, 224, 64, 7, 2)
    size, width_in = 56, 64
    for stage, width in enumerate((64, 128, 256, 512)):
        stride = 1 if stage == 0 else 2
        before, size = size, size // stride
        yield conv(width_in, before, width, 1, 1)
        yield conv(width, before, width, 3, stride)
        yield conv(width, size, 4 * width, 1, 1)
        if stage:
            yield conv(width_in, before, 4 * width, 1, stride)
        yield conv(4 * width, size, width, 1, 1)
        if stage:
            yield conv(width, size, width, 3, 1)
        width_in = 4 * width
    for batch, m, k, n in ((12, 128, 64, 128), (16, 512, 64, 512), (12, 1, 64, 512), (32, 100, 100, 100), (4, 17, 300, 33)):
        yield f"product {batch} x {m}x{k}x{n}", "MatMul", {}, "R.matmul(x, w)", [(batch, m, k), (batch, k, n)], []
    for m, k, n in ((64, 784, 512), (1, 2048, 1000), (64, 2048, 1000), (64, 512, 10)):
        yield f"product {m}x{k}x{n}", "MatMul", {}, "R.matmul(x, w)", [(m, k), (k, n)], []
        yield f"product {m}x{k}x{n}, transposed", "Gemm", {"transB": 1}, "R.matmul(x, R.permute_dims(w))", [(m, k), (n, k)], []
    yield ("max pool 3x3, stride 2", "MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
           "R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])", [(1, 64, 112, 112)], [])
    yield ("average pool 2x2, stride 2", "AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]},
           "R.nn.avg_pool2d(x, pool_size=[2, 2], strides=[2, 2])", [(1, 64, 112, 112)], [])
    yield "average over 7x7", "GlobalAveragePool", {}, "R.mean(x, axis=[2, 3], keepdims=True)", [(1, 2048, 7, 7)], []
    yield "sort of 50,257 with places", "TopK", {"k": 50257}, 'R.topk(x, k=50257, axis=-1, ret_type="both", largest=True, dtype="int64")', [(1, 50257)], []
    yield "the 50 largest of 50,257", "TopK", {"k": 50}, 'R.topk(x, k=50, axis=-1, ret_type="both", largest=True, dtype="int64")', [(1, 50257)], []


def sator_program(expression, inputs, constants):
    """A function of the arrays, which are copied once."""
    import sator
    from sator import relax

    names = ["x", "w"][: len(inputs) + len(constants)]
    arrays = [*inputs, *constants]
    params = ", ".join(f'{n}: R.Tensor({a.shape}, "float32")' for n, a in zip(names, arrays))
    mod = sator.script.parse(f"@I.ir_module\nclass Module:\n    @R.function\n    def main({params}):\n        with R.dataflow():\n"
                             f"            y = {expression}\n            R.output(y)\n        return y\n")
    if constants:
        mod = relax.transform.BindParams("main", dict(zip(names[len(inputs):], constants)))(mod)
    main = relax.VirtualMachine(relax.build(mod), sator.cpu())["main"]
    given = [sator.nd.array(a) for a in inputs]

    def results():
        out = main(*given)
        return [r.numpy() for r in (out if hasattr(out, "__len__") and not hasattr(out, "numpy") else [out])]

    return lambda: main(*given), results


def onnx_program(op, attrs, inputs, constants, threads):
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    attrs = dict(attrs)
    weights = [numpy_helper.from_array(a, f"w{i}") for i, a in enumerate(constants)]
    if op == "TopK":
        weights.append(numpy_helper.from_array(np.array([attrs.pop("k")], "int64"), "k"))
    names = [f"x{i}" for i in range(len(inputs))]
    outputs = ["y", "places"] if op == "TopK" else ["y"]
    node = helper.make_node(op, [*names, *(w.name for w in weights)], outputs, **attrs)
    graph = helper.make_graph([node], "op", [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in zip(names, inputs)],
                              [helper.make_tensor_value_info(o, TensorProto.INT64 if o == "places" else TensorProto.FLOAT, [None] * inputs[0].ndim) for o in outputs], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for n, a in zip(names, inputs):
        binding.bind_ortvalue_input(n, onnxruntime.OrtValue.ortvalue_from_numpy(a))
    for o in outputs:
        binding.bind_output(o)
    return lambda: session.run_with_iobinding(binding), lambda: (session.run_with_iobinding(binding), binding.copy_outputs_to_cpu())[1]


def median_us(run, seconds=0.03):
    """Of as many runs as fit, at least five."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def compare(name, ours, theirs, terms):
    for a, b in zip(ours(), theirs()):
        # Sums of that many terms in another order; places of equal numbers may differ, and there are none.
        if not np.allclose(a, b, rtol=1e-5, atol=terms * 2e-6):
            sys.exit(f"error: {name}: the results differ by {np.abs(a.astype('float64') - b).max()}\n  needs: equal results\n  hint:  ./dev test programs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--least", type=float, default=0.3, help="the lowest ratio that is accepted")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there")
    parser.add_argument("filter", nargs="?", default="", help="ops whose names contain this")
    args = parser.parse_args()
    os.environ["SATOR_NUM_THREADS"] = str(args.threads)
    random = np.random.default_rng(0)
    rows = []
    print(f"{'op':44} {'Sator (us)':>12} {'ONNX Runtime (us)':>18} {'ratio':>7}")
    for name, op, attrs, expression, shapes, constant_shapes in cases():
        if args.filter not in name:
            continue
        inputs = [random.standard_normal(s).astype("float32") for s in shapes]
        if op == "TopK":  # numbers that are all different
            inputs = [random.permutation(shapes[0][-1]).astype("float32").reshape(shapes[0])]
        constants = [random.standard_normal(s).astype("float32") for s in constant_shapes]
        ours, our_results = sator_program(expression, inputs, constants)
        theirs, their_results = onnx_program(op, attrs, inputs, constants, args.threads)
        compare(name, our_results, their_results, np.prod(constant_shapes[0][1:]) if constants else inputs[0].shape[-1])
        ours_us, theirs_us = [], []
        for _ in range(args.rounds):
            for run, times in ((ours, ours_us), (theirs, theirs_us)):
                time.sleep(REST_S)
                times.append(median_us(run))
        mine, other = statistics.median(ours_us), statistics.median(theirs_us)
        ratio = other / mine
        rows.append({"op": name, "sator_us": mine, "onnxruntime_us": other, "ratio": ratio})
        print(f"{name:44} {mine:12,.1f} {other:18,.1f} {ratio:7.2f}{'  *' if ratio < args.least else ''}", flush=True)
    low = [r for r in rows if r["ratio"] < args.least]
    print(f"{len(rows)} ops on {args.threads} threads, {len(low)} below {args.least} of ONNX Runtime's speed"
          + (f", geometric mean {np.exp(np.mean([np.log(r['ratio']) for r in rows])):.2f}" if rows else ""))
    if args.json:
        with open(args.json, "w") as out:
            json.dump(rows, out, indent=1)
    return bool(low)


if __name__ == "__main__":
    sys.exit(main())
