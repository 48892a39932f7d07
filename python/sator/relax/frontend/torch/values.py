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


def dtype_of(dtype):
    """The name of a dtype: torch.float16 is "float16"."""
    name = str(dtype).removeprefix("torch.")
    return _DTYPES.get(name, name)


def name_of(function):
    """By what name a function is known: "add" for operator.add and torch.add."""
    return getattr(function, "__name__", str(function)).rsplit(".", 1)[-1]
