"""Tensors in this machine's memory."""
from sator import _core
from sator.extend import extends

NDArray = _core.NDArray


@extends(NDArray)
class _NDArray:
    def numpy(self):
        """The elements as a NumPy array of their own."""
        return self._numpy().copy()

    asnumpy = numpy

    @property
    def device(self):
        """Where it lies: sator.cpu()."""
        from sator.runtime.device import cpu

        return cpu(0)

    def copyfrom(self, source_array):
        """Takes the elements of an array of the same shape. Errors: another shape."""
        import numpy

        given = numpy.asarray(source_array)
        if given.shape != self.shape:
            raise ValueError(f"elements of shape {given.shape} for a tensor of shape {self.shape}\n  needs: an array of the tensor's shape")
        self._numpy()[...] = given
        return self

    def copyto(self, target, mem_scope=None):
        """Writes the elements to another tensor, or makes a copy for a device."""
        if not isinstance(target, NDArray):
            return array(self._numpy(), target)
        return target.copyfrom(self._numpy())

    def _create_view(self, shape, dtype=None, relative_byte_offset=0):
        """A tensor in this one's memory, which it keeps, under another shape and dtype.

        dtype                  this one's where it is None
        relative_byte_offset   bytes between the first elements of the two
        Errors: a view that does not lie inside of this tensor, or not on a multiple of its element's size.
        """
        return self._view(_integers("_create_view", shape), str(dtype or self.dtype), int(relative_byte_offset))

    def same_as(self, other):
        """Whether both are tensors in the same memory."""
        return isinstance(other, NDArray) and (self.data_ptr, self.shape, self.dtype) == (other.data_ptr, other.shape, other.dtype)

    def to_dlpack(self):
        """The tensor as a capsule of DLPack, for the `from_dlpack` of another library; nothing is copied, bfloat16 and float8 keep their dtype."""
        return self.__dlpack__()

    def __array__(self, dtype=None, copy=None):
        view = self._numpy()
        return view.astype(dtype) if dtype is not None and view.dtype != dtype else (view.copy() if copy else view)

    def __len__(self):
        return self.shape[0]

    def __reduce__(self):
        return array, (self.numpy(),)

    def __getitem__(self, index):
        return self._numpy()[index]

    def __setitem__(self, index, value):
        self._numpy()[index] = value

    def __repr__(self):
        return f"{self._numpy()!r}\n{self.dtype} on cpu(0)"


def array(arr, device=None, mem_scope=None):
    """A tensor with the elements of an array, or of a list as numpy.array takes it: reals are float64, integers int64.

    The array may have any strides, and be NumPy's or one that speaks DLPack; the tensor is dense.

    Errors: a device other than the CPU; a dtype that no tensor has.
    """
    import numpy

    _need_cpu(device)
    if isinstance(arr, NDArray):
        return _core.copy_of(arr)
    if hasattr(arr, "contiguous"):  # torch's, of which NumPy does not know every dtype
        return copied(arr.contiguous())
    if hasattr(arr, "__dlpack__") and not hasattr(arr, "__array__"):
        arr = numpy.from_dlpack(arr)
    return copied(numpy.ascontiguousarray(arr).reshape(numpy.shape(arr)))


def copied(array):
    """A tensor with the elements of a NumPy array. Errors: TypeError for a dtype that no tensor has, by its name."""
    try:
        return _core.copy_of(array)
    except TypeError as error:
        if "numpy.ndarray" not in str(error) and "or of another dtype" not in str(error):  # it says more about this dtype
            raise
        raise TypeError(f"an array of dtype {array.dtype!s}, which no tensor has\n  needs: bool, integers of 8 to 64 bits, float16, float32, float64, "
                        "or bfloat16 and float8 of ml_dtypes, in this machine's order of bytes\n  hint:  array.astype(\"float32\")") from None


def empty(shape, dtype="float32", device=None, mem_scope=None):
    """A tensor whose elements are not set.

    shape   extents, or one alone
    Errors: TypeError for extents that are no integers; ValueError for an unknown dtype; a device other than the CPU.
    """
    _need_cpu(device)
    return _core.empty(_integers("empty", shape), str(dtype))


def _integers(call, shape):
    """Extents, or one alone, as a list of integers."""
    extents = list(shape) if getattr(shape, "__iter__", None) is not None and not isinstance(shape, str) else [shape]
    for extent in extents:
        if not hasattr(extent, "__index__") and not hasattr(extent, "value"):
            raise TypeError(f"{call}: an extent is {extent!r}, a {type(extent).__name__}\n  needs: integers, such as (2, 3)")
    return [int(d) for d in extents]


def from_dlpack(dltensor):
    """A tensor in the memory of an array that speaks DLPack (NumPy's, torch's): nothing is copied.

    Errors: ValueError for an array that is not dense and row-major; sator.nd.array makes a dense copy of one.
    """
    return _core.share(dltensor)


def numpyasarray(np_data):
    """A tensor in a NumPy array's memory: nothing is copied. Errors: ValueError for an array that is not dense and row-major."""
    return _core.share(np_data)


def __getattr__(name):
    import importlib

    from sator import paths

    devices = importlib.import_module("sator.runtime.device")
    if name == "device" or name in devices.KINDS:  # TVM's module of tensors has them too
        return getattr(devices, name)
    raise paths.missing("sator.nd", name, globals())


def _need_cpu(device):
    if device is not None and getattr(device, "type", "cpu") != "cpu":
        raise ValueError(f"there is no {device} here\n  needs: sator.cpu()")
