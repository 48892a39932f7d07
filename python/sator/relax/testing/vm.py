"""What tests of the virtual machine call."""


def check_saved_func(vm, func_name, *inputs):
    """What a function gives on these arguments, kept as a call and made through it."""
    saved_name = f"{func_name}_saved"
    vm.save_function(func_name, saved_name, *inputs)
    return vm[saved_name]()
