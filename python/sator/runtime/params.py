"""Parameters by name as bytes and files, in the format of TVM's `save_param_dict`.

All numbers are little-endian. A list of tensors: a mark, 8 bytes that are not used, the names (count, then length and bytes of each), and
the tensors (count, then each). A tensor: a mark, 8 bytes that are not used, device kind and number (int32), rank (int32), the dtype as
DLPack has it (code and bits of one byte, lanes of two), extents (int64), size in bytes (int64), the elements.
"""
import contextlib
import struct
from pathlib import Path

from sator import _core, nd
from sator.whole_file import write_whole

_LIST_MARK = 0xF7E58D4F05049CB7
_TENSOR_MARK = 0xDD5E40F096B4A13F
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6, "e4m3_float8": 10, "e5m2_float8": 12}
_NAMES = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}
_FLOAT8 = {7: "float8_e5m2", 10: "float8_e4m3fn", 12: "float8_e5m2"}  # 7 is of TVM v0.17, whose code of float8_e4m3fn is now bool's


def save_param_dict(params):
    """Tensors by name as bytes that `load_param_dict`, ours and TVM's, reads.

    params   {name: tensor}; NumPy's arrays too
    Errors: TypeError for a value that is no array.
    """
    tensors = {_name(k): v if isinstance(v, nd.NDArray) else nd.array(v) for k, v in dict(params).items()}
    out = [struct.pack("<QQQ", _LIST_MARK, 0, len(tensors))]
    for name in tensors:
        text = name.encode()
        out.append(struct.pack("<Q", len(text)) + text)
    out.append(struct.pack("<Q", len(tensors)))
    out += map(_bytes_of, tensors.values())
    return bytearray(b"".join(out))


def save_param_dict_to_file(params, path):
    """Writes what `save_param_dict` gives to a file, as a whole or not at all."""
    data = save_param_dict(params)
    with _words_for(path, "a path where a file can be written"):
        write_whole(path, lambda whole: Path(whole).write_bytes(data))


def load_param_dict(param_bytes):
    """Tensors by name from the bytes of `save_param_dict`, ours or TVM's. Errors: ValueError for bytes of another format, or that end early."""
    if not isinstance(param_bytes, (bytes, bytearray, memoryview)):
        raise TypeError(f"load_param_dict: param_bytes is a {type(param_bytes).__name__}\n  needs: the bytes that save_param_dict gave")
    data = _Reader(param_bytes)
    data.mark(_LIST_MARK, "a file of parameters")
    names = [data.take(data.number("<Q")).decode() for _ in range(data.number("<Q"))]
    if data.number("<Q") != len(names):
        data.wrong("has another number of tensors than of names")
    return {name: _tensor_of(data) for name in names}


def load_param_dict_from_file(path):
    """Tensors by name from a file that `save_param_dict_to_file`, ours or TVM's, wrote. Errors: as of load_param_dict; no such file."""
    with _words_for(path, "a file of parameters that can be read"):
        data = Path(path).read_bytes()
    return load_param_dict(data)


@contextlib.contextmanager
def _words_for(path, needs):
    try:
        yield
    except OSError as error:
        raise type(error)(f"{str(path)!r}: {error.strerror}\n  needs: {needs}") from None


def _name(key):
    if not isinstance(key, str):
        raise TypeError(f"save_param_dict: the name {key!r} is a {type(key).__name__}\n  needs: a text")
    return key


def _bytes_of(tensor):
    dtype = tensor.dtype
    kind = dtype if dtype in _CODES else dtype.rstrip("0123456789")
    bits = 8 if dtype in _CODES else int(dtype[len(kind):])
    raw = bytes(_raw(tensor))
    return struct.pack(f"<QQiiiBBH{tensor.ndim}qq", _TENSOR_MARK, 0, 1, 0, tensor.ndim, _CODES[kind], bits, 1, *tensor.shape, len(raw)) + raw


def _raw(tensor):
    """The elements as bytes in the tensor's own memory."""
    return tensor._numpy().reshape(-1).view("uint8")


def _tensor_of(data):
    data.mark(_TENSOR_MARK, "a tensor")
    _, _, rank, code, bits, lanes = data.numbers("<iiiBBH")
    shape = data.numbers(f"<{rank}q") if 0 <= rank <= 64 else data.wrong(f"has a tensor of rank {rank}")
    size = data.number("<q")
    name = "bool" if bits == 1 or code == 6 else _FLOAT8.get(code, f"{_NAMES.get(code, '?')}{bits}")
    try:
        if lanes != 1 or any(d < 0 for d in shape):
            raise ValueError
        tensor = _core.empty(list(shape), name)
    except (TypeError, ValueError, OverflowError):
        data.wrong(f"has a tensor of shape {shape}, dtype code {code}, {bits} bits and {lanes} lanes")
    raw = _raw(tensor)
    if size != raw.size:
        data.wrong(f"has {size} bytes for a tensor of {raw.size}")
    raw[:] = memoryview(data.take(size))
    return tensor


class _Reader:
    def __init__(self, data):
        self._data, self._at = memoryview(data).cast("B"), 0

    def take(self, count):
        if count > len(self._data) - self._at:
            self.wrong(f"ends after {len(self._data)} bytes")
        self._at += count
        return bytes(self._data[self._at - count:self._at])

    def numbers(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def number(self, form):
        return self.numbers(form)[0]

    def mark(self, expected, what):
        if self.numbers("<QQ")[0] != expected:
            self.wrong(f"has no mark of {what} there")

    def wrong(self, what):
        raise ValueError(f"load_param_dict: byte {self._at}: the data {what}\n  needs: the bytes that save_param_dict gave, as a whole")
