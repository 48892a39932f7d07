"""What tests of the virtual machine call: functions that are registered as test.vm.NAME when this module is loaded."""
from sator import nd
from sator.runtime import register_func


def check_saved_func(vm, func_name, *inputs):
    """What a function gives on these arguments; kept as a call and made through it, it gives the same. Errors: AssertionError."""
    import numpy as np

    saved_name = f"{func_name}_saved"
    vm.save_function(func_name, saved_name, *inputs)
    wanted, given = vm[func_name](*inputs), vm[saved_name]()
    np.testing.assert_allclose(*(value.numpy() if hasattr(value, "numpy") else value for value in (given, wanted)), rtol=1e-7, atol=1e-7)
    return wanted


def move(src):
    """Its argument."""
    return src


def add(a, b):
    """The sum of two tensors."""
    return nd.array(a.numpy() + b.numpy())


def mul(a, b):
    """The product of two tensors, element by element."""
    return nd.array(a.numpy() * b.numpy())


def equal_zero(a):
    """Whether all elements are 0, as a tensor of one."""
    return nd.array((a.numpy() == 0).all())


def subtract_one(a):
    """A tensor less 1."""
    return nd.array(a.numpy() - 1)


def identity_packed(a, b):
    """Copies the first tensor into the second."""
    b[:] = a.numpy()


def tile_packed(a, b):
    """Puts the first tensor [m, n] into the second [m, 2 n], twice."""
    m, n = a.shape
    b[:] = a.numpy()[:, None].repeat(2, 1).reshape(m, 2 * n)


def add_scalar(a, b):
    """The sum of two numbers."""
    return a + b


def get_device_id(device):
    """The number of a device."""
    return device.device_id


def check_if_defined(obj):
    """Whether a value is not None."""
    return obj is not None


for _name, _function in (("move", move), ("add", add), ("mul", mul), ("equal_zero", equal_zero), ("subtract_one", subtract_one), ("identity", identity_packed),
                         ("tile", tile_packed), ("add_scalar", add_scalar), ("get_device_id", get_device_id), ("check_if_defined", check_if_defined)):
    register_func(f"test.vm.{_name}", _function, override=True)
