"""Values of torch's as ours."""


def array_of(tensor):
    """A tensor's elements as a NumPy array; what is no tensor goes through numpy.asarray."""
    import numpy

    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":
            import ml_dtypes

            return tensor.float().numpy().astype(ml_dtypes.bfloat16)
        return tensor.numpy()
    return numpy.asarray(tensor)


_DTYPES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16"}


_NAMES = {"bool", "bfloat16", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)), *(f"float{bits}" for bits in (16, 32, 64)),
          "float8_e4m3fn", "float8_e5m2"}
_OF_TYPES = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "LongTensor": "int64",
             "IntTensor": "int32", "ShortTensor": "int16", "CharTensor": "int8", "ByteTensor": "uint8", "BoolTensor": "bool"}


def is_dtype(value):
    """Whether a value is a dtype of torch's, or the name of one."""
    return value is not None and dtype_of(value) in _NAMES


def dtype_of(dtype):
    """The name of a dtype: torch.float16 is "float16"."""
    name = str(dtype).removeprefix("torch.")
    return _DTYPES.get(name) or _OF_TYPES.get(name, name)


def name_of(function):
    """By what name a function is known: "add" for operator.add and torch.add."""
    return getattr(function, "__name__", str(function)).rsplit(".", 1)[-1]
