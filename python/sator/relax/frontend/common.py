"""What frontends share."""


def detach_params(mod):
    """Takes the parameters' values out of a module: (the module without the attribute `params`, {function: [arrays]})."""
    params = {}
    for name, values in _kept.pop(mod.handle(), {}).items():
        params[name] = values
    return mod, params


_kept = {}


def attach_params(mod, function, values):
    """Keeps the values of a function's parameters beside the module, for detach_params."""
    _kept.setdefault(mod.handle(), {})[function] = list(values)
    return mod
