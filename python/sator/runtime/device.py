"""Devices. Programs run on the CPU of this machine."""
from sator.error import TVMError


class Device:
    """A device by its kind and number."""

    def __init__(self, kind, index=0):
        self.type, self.index = kind, index

    @property
    def exist(self):
        """Whether it is there: cpu(0) is."""
        return self.type == "cpu" and self.index == 0

    device_id = property(lambda self: self.index, doc="Its number.")
    device_type = property(lambda self: 1, doc="DLPack's number of the kind.")

    def sync(self):
        """Nothing to wait for: calls return when their work is done."""

    def __eq__(self, other):
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return f"{self.type}({self.index})"


def cpu(dev_id=0):
    """This machine's CPU. Errors: TypeError for a number that is no integer."""
    if not isinstance(dev_id, int):
        raise TypeError(f"cpu: dev_id = {dev_id!r} is a {type(dev_id).__name__}\n  needs: an integer")
    return Device("cpu", dev_id)


def cuda(dev_id=0):
    """Errors: programs for GPUs are not compiled."""
    return _refuse("cuda", dev_id)


def _refuse(kind, index):
    raise TVMError(f"error: {kind}({index}): no device that programs are compiled for\n  needs: sator.cpu()\n"
                   "  hint:  build for \"llvm\"; `sator run --chip` says what a program costs on a described chip")


def device(dev_type, dev_id=0):
    """The device of a kind: "cpu", "cpu:0", or DLPack's number of the kind."""
    kind, _, number = str(dev_type).partition(":")
    dev_id = int(number) if number.isdigit() else dev_id
    if kind in ("cpu", "llvm", "1"):
        return cpu(dev_id)
    return _refuse(kind, dev_id)


def _refused(kind):
    def refused(dev_id=0):
        return _refuse(kind, dev_id)

    refused.__name__ = refused.__qualname__ = kind
    refused.__doc__ = cuda.__doc__
    return refused


KINDS = ("cpu", "cuda", "gpu", "rocm", "opencl", "metal", "vpi", "vulkan", "ext_dev", "hexagon", "webgpu")
gpu, rocm, opencl, metal, vpi, vulkan, ext_dev, hexagon, webgpu = map(_refused, KINDS[2:])
