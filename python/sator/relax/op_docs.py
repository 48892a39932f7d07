"""What each op of graphs computes, for help(). Tensors of several inputs are broadcast by NumPy's rules where it says "element by element"."""

_EACH = """acos arc cosine|acosh hyperbolic arc cosine|asin arc sine|asinh hyperbolic arc sine|atan arc tangent|atanh hyperbolic arc tangent|cos cosine|
cosh hyperbolic cosine|exp e^x|log natural logarithm|rsqrt 1 / sqrt(x)|sigmoid 1 / (1 + exp(-x))|sin sine|sinh hyperbolic sine|sqrt square root|tan tangent|
tanh hyperbolic tangent|erf error function"""
_ROUNDED = "ceil the integer above|floor the integer below|round the nearest integer"
_PAIRS = """add x1 + x2|subtract x1 - x2|multiply x1 * x2|divide x1 / x2; of integers rounded toward zero|floor_divide x1 / x2 rounded down|
mod what is left of x1 / x2 rounded toward zero; its sign is that of x1|floor_mod what is left of x1 / x2 rounded down; its sign is that of x2|power x1 ^ x2|
minimum the smaller one|maximum the larger one|logical_and whether both hold|logical_or whether one of both holds|logical_xor whether one alone holds|
bitwise_and bits of both|bitwise_or bits of either|bitwise_xor bits of one alone|left_shift the bits of x1 moved up by x2 places|
right_shift the bits of x1 moved down by x2 places|atan2 the angle of the point (x2, x1)"""
_COMPARED = "equal x1 == x2|not_equal x1 != x2|less x1 < x2|less_equal x1 <= x2|greater x1 > x2|greater_equal x1 >= x2"
_REDUCED = """sum the sum|prod the product|max the largest value|min the smallest value|mean the mean|variance the mean of (x - mean)^2: divided by n|
std the square root of the variance"""


def _rows(text):
    return (row.strip().split(" ", 1) for row in text.split("|"))


def _pooled(kind):
    return {f"nn.{short}_pool{d}d": f"The {words} of windows of [batch, channels, {space}] (layout): pool_size, strides, padding (befores, then afters) and dilation "
                                    "are a number or one for each axis. →  the dtype of data" for short, words in kind for d, space in
            ((1, "width"), (2, "height, width"), (3, "depth, height, width"))}


DOCS = {
    **{name: f"{words}, of each element.\n\nx   [...] floating\n→   the same shape and dtype" for name, words in _rows(_EACH)},
    **{name: f"{words[0].upper()}{words[1:]}, of each element.\n\nx   [...]\n→   the same shape and dtype" for name, words in _rows(_ROUNDED)},
    **{name: f"{words}, element by element.\n\nx1, x2   tensors of one dtype, or scalars\n→        the broadcast shape, the same dtype\nErrors: shapes that do not broadcast; "
             "dtypes that differ." for name, words in _rows(_PAIRS)},
    **{name: f"{words}, element by element.\n\nx1, x2   tensors of one dtype, or scalars\n→        the broadcast shape, bool\nErrors: shapes that do not broadcast; dtypes "
             "that differ." for name, words in _rows(_COMPARED)},
    **{name: f"{words[0].upper()}{words[1:]} along `axis`: a number, several, or all where it is None.\n\nx   [...]\n→   without the axes, or with extents of 1 "
             "there (keepdims); the same dtype\nErrors: an axis outside of [-rank, rank), or twice." for name, words in _rows(_REDUCED)},
    **_pooled((("max", "largest values"), ("avg", "means"))),
    **{f"nn.adaptive_avg_pool{d}d": "Means over a grid of output_size parts: position o covers floor(o * in / out) to ceil((o + 1) * in / out). "
                                    "→  [batch, channels, output_size...] (layout)" for d in (1, 2, 3)},
    **{f"nn.conv{d}d": f"The convolution of data [batch, channels, {space}] (data_layout) with weight [out, channels / groups, kernel...] (kernel_layout).\n\nstrides, dilation   "
                       "a number or one for each axis\npadding             a number, or befores and then afters\n→                   [batch, out, ...] in out_layout, of out_dtype"
                       "\nErrors: ranks, channels or groups that do not fit." for d, space in ((1, "width"), (2, "height, width"), (3, "depth, height, width"))},
    **{f"nn.conv{d}d_transpose": "The transposed convolution of data [batch, channels, ...] with weight [channels, out / groups, kernel...]: a convolution of the data stretched by "
                                 "zeros, `strides` - 1 between its elements.\nErrors: ranks, channels or groups that do not fit; output_padding not below strides."
       for d in (1, 2)},
    "eye": "The identity matrix: ones on the diagonal k (above the main one where k > 0), zeros elsewhere. →  [n, m], of dtype",
    "eye_like": "The identity matrix with the shape of x [n, m], of dtype or x's.",
    "hamming_window": "alpha - beta * cos(2 pi i / N) for i from 0, where N is window_size where it is periodic, else one less. →  [window_size], of dtype",
    "size": "The number of elements. →  a scalar of int64",
    "meshgrid": "The coordinates of a grid: result i has the values of vector i along its axis. →  a tuple of tensors, of the vectors' lengths (\"ij\"), the first two exchanged (\"xy\")",
    "index_tensor": "data[indices[0], indices[1], ...] as in NumPy: the tensors of integers are broadcast to each other. →  [broadcast..., the other axes]",
    "slice_scatter": "The tensor with src in the place of its slice [start:end:step] along the axis. →  the same shape and dtype",
    "nonzero": "Where elements are not zero. →  [rank, count] int64, one column for each",
    "bucketize": "The place of each element among sorted boundaries [n]: how many are below it, or not above it (right). →  the same shape, int64 or int32",
    "nn.prelu": "x where it is positive, else alpha * x, alpha [channels] along the axis. →  the same shape and dtype",
    "nn.softplus": "log(1 + exp(beta x)) / beta, x itself where beta x is above threshold. →  the same shape and dtype",
    "nn.selu": "1.0507 * x where it is positive, else 1.0507 * 1.6733 * (exp(x) - 1). →  the same shape and dtype",
    "nn.batch_flatten": "All axes but the first as one. →  [batch, others]",
    "nn.pixel_shuffle": "Channels to pixels: [..., C * r * r, H, W] →  [..., C, H * r, W * r], r the upscale_factor",
    "dist.annotate_sharding": "Says how a tensor lies on the devices of a mesh; nothing is computed. →  the same tensor",
    "dist.redistribute": "The tensor as it shall lie on the devices of a mesh. →  the same shape and dtype",
    "dist.call_tir_local_view": "A tensor program on each device's part. →  out_sinfo",
    "dist.redistribute_replica_to_shard": "Of a tensor that each of num_workers has whole, each one's part along the axis.",
    "abs": "The value without its sign, of each element. →  the same shape and dtype",
    "negative": "-x of each element. →  the same shape and dtype",
    "square": "x * x of each element. →  the same shape and dtype",
    "sign": "-1, 0 or 1 of each element. →  the same shape and dtype",
    "bitwise_not": "All bits of each integer the other way round. →  the same shape and dtype",
    "logical_not": "Whether each element does not hold. →  the same shape, bool",
    "isfinite": "Whether each element is neither infinite nor NaN. →  the same shape, bool",
    "isinf": "Whether each element is infinite. →  the same shape, bool",
    "isnan": "Whether each element is no number. →  the same shape, bool",
    "clip": "max(min(x, upper), lower) of each element: the bounds are numbers. →  the same shape and dtype",
    "ewise_fma": "x1 * x2 + x3, element by element, of one shape and dtype.",
    "full": "A tensor of one value: a scalar tensor or a number. →  [shape], of dtype or the value's",
    "full_like": "A tensor of one value with the shape of x, of dtype or x's.",
    "ones": "A tensor of ones. →  [shape] dtype",
    "ones_like": "Ones with the shape of x, of dtype or x's.",
    "zeros": "A tensor of zeros. →  [shape] dtype",
    "zeros_like": "Zeros with the shape of x, of dtype or x's.",
    "arange": "start, start + step, ... before end: arange(end), arange(start, end), arange(start, end, step). →  [n], int64 of integers, else float32",
    "tril": "x with zeros above its k-th diagonal, in the last two axes. →  the same shape and dtype",
    "triu": "x with zeros below its k-th diagonal, in the last two axes. →  the same shape and dtype",
    "astype": "x in another dtype. →  the same shape",
    "wrap_param": "A parameter in another dtype, which a pass puts in.",
    "reshape": "The same elements, row by row, under another shape; -1 is what is left, 0 the extent that x has there.\nErrors: another number of elements.",
    "flatten": "The same elements as one axis. →  [n]",
    "expand_dims": "x with axes of extent 1 at these positions of the result.\nErrors: an axis outside of the result's rank, or twice.",
    "squeeze": "x without these axes, whose extents are 1; without all such axes where axis is None.\nErrors: an extent that is not 1.",
    "permute_dims": "x with its axes in this order; reversed where axes is None.\nErrors: another number of axes, or one twice.",
    "broadcast_to": "x repeated to a shape by NumPy's rules.\nErrors: the shape is not a broadcast of x's.",
    "collapse_sum_like": "The sum of data over the axes that broadcasting from the target's shape has stretched. →  the target's shape",
    "collapse_sum_to": "The sum of data over the axes that broadcasting from the shape has stretched. →  [shape]",
    "concat": "Tensors one after the other along the axis; of the flat tensors where it is None.\nErrors: ranks, dtypes or other extents that differ.",
    "split": "A tuple of parts along the axis: so many of one length, or cut at these positions.",
    "repeat": "Each element `repeats` times in a row along the axis; of the flat tensor where it is None.",
    "tile": "The whole tensor repeated so many times along each axis.",
    "flip": "The elements along the axis in the other direction.",
    "stack": "Tensors of one shape along a new axis.",
    "layout_transform": "The element of x at i stands at index_map(i). →  the smallest shape that holds all; what the map sends nothing to is pad_value\nErrors: a map of another "
                        "number of indices; one that sends two elements to one place.",
    "take": "The elements of x at integer positions along the axis. →  x's shape with the shape of indices in the place of the axis\nErrors: while it runs, a position outside of x.",
    "strided_slice": "x[begin:end:strides] along these axes, as Python slices: bounds are clamped, below 0 they count from the end.",
    "dynamic_strided_slice": "x[begin:end:strides] along all axes, whose bounds are tensors [rank] int64.",
    "gather_elements": "data at `indices` along the axis, all other positions the same. →  the shape of indices\nErrors: while it runs, a position outside of data.",
    "gather_nd": "data at the positions that the rows of indices are, behind batch_dims axes that both share.\nErrors: while it runs, a position outside of data.",
    "scatter_elements": "A copy of data with updates put in at `indices` along the axis: \"update\", \"add\", \"mul\", \"mean\", \"max\" or \"min\" (reduction).",
    "scatter_nd": "A copy of data with updates put in at the positions that the rows of indices are, joined by `reduction`.",
    "matmul": "The product of matrices.\n\nx1   [..., m, k], or [k]\nx2   [..., k, n], or [k]\n→    [..., m, n], the first axes broadcast; out_dtype or the same dtype\nErrors: "
              "another k; first axes that do not broadcast; dtypes that differ.",
    "linear": "data @ weight^T + bias. data [..., k], weight [n, k], bias [n] →  [..., n]",
    "einsum": "The sum of products that subscripts write, \"ij,jk->ik\": axes of a letter that the result lacks are summed over.",
    "argmax": "The position of the largest value along the axis (of the flat tensor where it is None), the first of equal ones. →  int64",
    "argmin": "The position of the smallest value along the axis (of the flat tensor where it is None), the first of equal ones. →  int64",
    "cumsum": "The sums of the elements so far along the axis; without the element itself where exclusive.",
    "cumprod": "The products of the elements so far along the axis; without the element itself where exclusive.",
    "where": "x1 where the condition (bool) holds, else x2, element by element.",
    "masked_fill": "The value where the mask (bool) holds, else x.",
    "sort": "The elements along the axis in order; a NaN is greater than all numbers. Equal ones keep theirs.",
    "argsort": "The positions of the elements along the axis in their order. →  the same shape, of dtype",
    "topk": "The k largest (or smallest) along the axis: (values, positions), or one of both by ret_type \"values\" or \"indices\".",
    "median": "The element at (n - 1) / 2 of those along the axis in ascending order, the first NaN where there is one, and where it stands. →  (values, int64)",
    "unique": "The values that occur, as many as there are while the program runs, and by flags where each stands, which it is, how often it is there.",
    "multinomial_from_uniform": "A class by its probability: the first whose probabilities so far exceed the sample. prob [batch, classes], uniform_sample [n, 1], sample_indices "
                                "[n, 1], the rows of prob →  [n, 1] dtype",
    "nn.relu": "max(data, 0) of each element.",
    "nn.gelu": "x / 2 * (1 + erf(x / sqrt(2))) of each element.",
    "nn.gelu_tanh": "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) of each element.",
    "nn.silu": "x * sigmoid(x) of each element.",
    "nn.leakyrelu": "x where it is positive, else alpha * x.",
    "nn.softmax": "exp(x) / sum(exp(x)) along the axis; sums of half precision are float32.\n\ndata   [...] floating\n→      the same shape and dtype",
    "nn.log_softmax": "x - log(sum(exp(x))) along the axis. →  the same shape and dtype",
    "nn.pad": "data with elements around: pad_width has (before, after) of each axis. pad_mode \"constant\" adds pad_value, \"edge\" (\"replicate\") the nearest element, \"reflect\" those "
              "inside, mirrored at the ends, which are not repeated, \"circular\" the data from its other end. An empty axis has zeros around it. Errors: another pad_mode.",
    "nn.dropout": "(data, a mask of ones): the identity, as in inference.",
    "nn.cross_entropy_with_logits": "-sum(predictions * labels), divided by the batch where there is one. →  []",
    "nn.nll_loss": "-predictions[target] * weights[target] per target, 0 where it is ignore_index; \"mean\" divides by the sum of the weights used.\n\npredictions   [batch, classes, ...] "
                   "floating\ntargets       [batch, ...] integer\nweights       [classes], or None: 1\n→             []; [batch, ...] with reduction=\"none\"",
    "nn.layer_norm": "(x - mean) / sqrt(variance + epsilon) * gamma + beta over `axes`; gamma and beta have their extents. →  the same shape and dtype",
    "nn.rms_norm": "x / sqrt(mean(x^2) + epsilon) * weight over `axes`, in float32. →  the same shape and dtype",
    "nn.group_norm": "(x - mean) / sqrt(variance + epsilon) * gamma + beta, over `axes` and the channels of a group; gamma, beta [channels].",
    "nn.batch_norm": "(x - mean) / sqrt(variance + epsilon) * gamma + beta by the batch's mean and variance along the axis. →  (the result, the moving mean, the moving variance)",
    "nn.attention": "softmax(query key^T * scale + bias) value, head by head.\n\nquery   [batch, n, heads, d]\nkey     [batch, m, kv heads, d]\nvalue   [batch, m, kv heads, e]\nbias    "
                    "[batch, heads, n, m], or None\n→       [batch, n, heads, e]",
    "nn.attention_bias": "nn.attention with a bias.",
    "nn.attention_var_len": "nn.attention of sequences laid end to end: queries [1, total n, heads, d], seqstart_q where each begins.",
    "quantize": "clip(round(data / scale) + zero_point) in out_dtype, as in ONNX; scale and zero_point are scalars or [extent of the axis].",
    "dequantize": "(data - zero_point) * scale in out_dtype, as in ONNX.",
    "image.resize2d": "An image [batch, channels, height, width] (layout) at another size: method nearest_neighbor, linear or cubic, positions as ONNX's Resize has them.",
    "ccl.allreduce": "The sum (op_type) of x over all workers, at each of them.",
    "ccl.allgather": "The x of all workers, one after the other along the first axis.",
    "ccl.broadcast_from_worker0": "The x of the first worker, at each of them.",
    "ccl.scatter_from_worker0": "The worker's part of the first worker's x, which is cut along the axis.",
    "call_tir": "Calls a tensor program of the module, which writes its results to buffers behind its inputs.\n\nfunc       a GlobalVar\nargs       the inputs, a tuple\nout_sinfo  struct "
                "info of the result, or a list of them\ntir_vars   integers that the program takes besides",
    "call_tir_inplace": "call_tir whose results lie in the memory of inputs: inplace_indices has the number of the input for each, -1 for memory of its own.",
    "call_tir_with_grad": "call_tir that names the te function of its gradient.",
    "call_dps_packed": "Calls a function of the runtime by its name, which writes its results behind its inputs; out_sinfo tells them.",
    "call_pure_packed": "Calls a function of the runtime by its name that has no effects; sinfo_args tell its result.",
    "call_inplace_packed": "Calls a function of the runtime that writes its results to inputs: inplace_indices has their numbers.",
    "call_builtin_with_ctx": "Calls a function of the virtual machine with the machine itself before the arguments.",
    "make_closure": "A function with its first arguments.",
    "invoke_closure": "Calls a closure.",
    "invoke_pure_closure": "Calls a closure that has no effects.",
    "print": "Prints values: the format has {} for each.",
    "assert_op": "The program ends with the message where the condition, a bool scalar, does not hold.",
    "null_value": "No value, where one may be left out.",
    "shape_of": "The shape of a tensor.",
    "tensor_to_shape": "A tensor [rank] int64 as a shape.",
    "shape_to_tensor": "A shape as a tensor [rank] int64.",
    "to_vdevice": "A copy of the tensor at a virtual device: of the CPU's memory.",
    "hint_on_device": "Says at which device a tensor lies.",
    "builtin.alloc_tensor": "A tensor of this shape and dtype whose elements are not set.",
    "builtin.stop_lift_params": "x, from which LiftTransformParams lifts nothing on.",
    "memory.alloc_storage": "Memory of so many bytes.",
    "memory.alloc_tensor": "A tensor of this shape and dtype in a storage, so many bytes behind its begin.",
    "memory.kill_storage": "The end of a storage's life.",
    "memory.kill_tensor": "The end of a tensor's life.",
    "memory.view": "The bytes of a tensor under another shape or dtype, so many bytes behind its begin.",
    "vm.alloc_storage": "Memory for a tensor of this shape and dtype.",
    "vm.alloc_tensor": "A tensor in a storage, as the machine makes it.",
    "vm.kill_object": "The end of a value's life.",
    "vm.call_tir_dyn": "call_tir as the machine makes it, with sizes that are known while it runs.",
    "grad.no_grad": "The value, through which no gradient goes. Nothing here trains.",
    "grad.start_checkpoint": "The value, from which on results are computed again for gradients. Nothing here trains.",
    "grad.end_checkpoint": "The value, up to which results are computed again for gradients. Nothing here trains.",
    **{f"grad.{op}_backward": f"The gradient of {op}'s input by that of its result. →  the input's shape and dtype" for op in ("nll_loss", "max_pool2d", "avg_pool2d", "take")},
    "inspect.tensor_dtype_code": "DLPack's number of the kind of dtype. →  uint8",
    "inspect.tensor_dtype_bits": "Bits of an element. →  uint8",
    "inspect.tensor_dtype_lanes": "Lanes of an element. →  uint16",
    "inspect.tensor_ndim": "The number of axes, a scalar.",
    "inspect.tensor_shape_i": "The extent of an axis, a scalar.",
    "inspect.tensor_stride_i": "The stride of an axis, in elements. →  int64",
    "inspect.tensor_byte_offset": "Where the tensor begins behind its pointer, in bytes. →  uint64",
    "inspect.tensor_elem_offset": "Where the tensor begins behind its pointer, in elements. →  uint64",
}
