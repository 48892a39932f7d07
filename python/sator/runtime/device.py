"""Devices. Programs run on the CPU of this machine."""
from sator.error import TVMError


class Device:
    """A device by its kind and number."""

    def __init__(self, kind, index=0):
        self.type, self.index = kind, index

    @property
    def exist(self):
        return self.type == "cpu" and self.index == 0

    device_id = property(lambda self: self.index)
    device_type = property(lambda self: 1, doc="DLPack's number of the kind.")

    def sync(self):
        """Nothing to wait for: calls return when their work is done."""

    def __eq__(self, other):
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return f"{self.type}({self.index})"


def cpu(index=0):
    """This machine's CPU. Errors: TypeError for an index that is no integer."""
    if not isinstance(index, int):
        raise TypeError(f"cpu: index = {index!r} is a {type(index).__name__}\n  needs: an integer")
    return Device("cpu", index)


def cuda(index=0):
    """Errors: programs for GPUs are not compiled."""
    return _refuse("cuda", index)


def _refuse(kind, index):
    raise TVMError(f"error: {kind}({index}): no device that programs are compiled for\n  needs: sator.cpu()\n"
                   "  hint:  build for \"llvm\"; `sator run --chip` says what a program costs on a described chip")


def device(kind, index=0):
    """The device of a kind: "cpu", "cpu:0"."""
    kind, _, number = str(kind).partition(":")
    index = int(number) if number.isdigit() else index
    if kind in ("cpu", "llvm"):
        return cpu(index)
    return _refuse(kind, index)


def _refused(kind):
    def refused(index=0):
        return _refuse(kind, index)

    refused.__name__ = refused.__qualname__ = kind
    refused.__doc__ = cuda.__doc__
    return refused


KINDS = ("cpu", "cuda", "gpu", "rocm", "opencl", "metal", "vpi", "vulkan", "ext_dev", "hexagon", "webgpu")
gpu, rocm, opencl, metal, vpi, vulkan, ext_dev, hexagon, webgpu = map(_refused, KINDS[2:])
