"""What is compiled for."""

__path__ = []  # TVM's modules below are found by sator.paths


def _plain(value):
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "config"):
        return _plain(value.config)
    return value.value if hasattr(value, "value") else value


class TargetKind:
    """A kind of targets."""

    def __init__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"TargetKind: {name!r} is a {type(name).__name__}\n  needs: a text, such as \"llvm\"")
        self.name = name

    def __eq__(self, other):
        return self.name == getattr(other, "name", other)

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return self.name


class Target:
    """A target by its text: "llvm", "llvm -mcpu=cascadelake", "nvidia/nvidia-a100", a described chip.

    As a context, `with Target("llvm"):`, it is the target of passes that ask for one.
    """

    _stack = []

    def __init__(self, target, host=None):
        if not isinstance(target, (str, dict, Target)) and not hasattr(target, "config"):
            raise TypeError(f"Target: {target!r} is a {type(target).__name__}\n  needs: a text as \"llvm\", a dictionary, or a target")
        if isinstance(target, str) and not target.strip():
            raise ValueError("an empty text names no target\n  needs: a kind, as \"llvm\" or \"cuda\", with its attributes")
        self._given = target._given if isinstance(target, Target) else target
        if isinstance(target, dict):
            import json

            target = json.dumps(_plain(target))
        if hasattr(target, "config") and not isinstance(target, Target):  # as functions carry it
            import json

            self._given = _plain(target.config)
            target = json.dumps(self._given)
        self.text = target.text if isinstance(target, Target) else str(target)
        host = target._host if host is None and isinstance(target, Target) else host
        self._host = host if host is None or isinstance(host, Target) else Target(host)
        self._told = None

    def _node(self):
        """The target as functions carry it: what was given, and the host."""
        from sator import _core

        first = self.text.split(" ")[0]
        given = self._given if isinstance(self._given, dict) else self.text
        if not isinstance(given, dict) and "/" not in first and first != self.kind.name:
            return _core.target_node(self.text)  # a described chip, or levels of instruction sets
        names = {"given": given, "host": self._host}
        text = "T.target(given, host=host)" if self._host is not None else "T.target(given)"
        return _core.evaluate(text, lambda name: (names[name],) if name in names else None)

    def _config(self):
        if self._told is None:
            from sator import _core

            self._told = _core.target_config(self.text)
        return self._told

    @property
    def kind(self):
        """The kind; its `name` is "llvm", "cuda", ..."""
        return TargetKind(self._config()[0])

    @property
    def keys(self):
        """By what rules ask for it: ["cuda", "gpu"]."""
        return list(self._config()[1])

    @property
    def attrs(self):
        """Its attributes: {"arch": "sm_80", "max_threads_per_block": 1024, ...}."""
        config = self._config()[2]
        config = getattr(config, "config", config) or {}
        return {k: v for k, v in dict(config).items() if k not in ("kind", "keys", "tag", "host")}

    @property
    def arch(self):
        """The architecture, "sm_80"; an empty text where it has none."""
        return self.attrs.get("arch", "")

    @property
    def host(self):
        """The target of the code around kernels, or None."""
        return self._host

    @property
    def max_num_threads(self):
        """Threads of one block at most; 1 on CPUs."""
        return int(self.attrs.get("max_num_threads", self.attrs.get("max_threads_per_block", 1)))

    def _number(self, name, default=None):
        value = self.attrs.get(name, default)
        return None if value is None else int(value)

    @property
    def max_threads_per_block(self):
        """Threads of one block at most, or None where the target does not say."""
        return self._number("max_threads_per_block")

    @property
    def max_shared_memory_per_block(self):
        """Bytes of shared memory of one block, or None."""
        return self._number("max_shared_memory_per_block")

    @property
    def thread_warp_size(self):
        """Threads that step together; 1 where the target does not say."""
        return self._number("thread_warp_size", 1)

    @property
    def max_block_size_x(self):
        """Threads along x at most."""
        return self._number("max_block_size_x", self.max_num_threads)

    @property
    def max_block_size_y(self):
        """Threads along y at most."""
        return self._number("max_block_size_y", self.max_num_threads)

    @property
    def l2_cache_size_bytes(self):
        """Bytes of the second level of caches; 0 where the target does not say."""
        return self._number("l2_cache_size_bytes", 0)

    @property
    def device_name(self):
        """The attribute `device`; an empty text where it has none."""
        return str(self.attrs.get("device", ""))

    @property
    def model(self):
        """The attribute `model`; "unknown" where it has none."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def mcpu(self):
        """The processor that it names; an empty text where it names none."""
        return str(self.attrs.get("mcpu", ""))

    @property
    def mattr(self):
        """Features of the processor that it adds and takes away: ["+avx2"]."""
        given = self.attrs.get("mattr", [])
        return given.split(",") if isinstance(given, str) else list(given)

    @property
    def libs(self):
        """Libraries of kernels that it names."""
        given = self.attrs.get("libs", [])
        return given.split(",") if isinstance(given, str) else list(given)

    @property
    def max_function_args(self):
        """Arguments of one kernel at most; 0 where the target does not say."""
        return self._number("max_function_args", 0)

    def get_target_device_type(self):
        """DLPack's number of the device that programs for it run on: 1 of CPUs, 2 of CUDA."""
        from sator import _core

        return dict(_core.target_kinds())[self.kind.name]

    @staticmethod
    def list_kinds():
        """The kinds that targets may be of."""
        from sator import _core

        return [name for name, _ in _core.target_kinds()]

    @staticmethod
    def from_device(device):
        """The target of a device of this machine, "cpu". Errors: a device for which nothing is compiled."""
        from sator.runtime.device import Device, device as named

        if not isinstance(device, Device):
            named(device)
        return Target("llvm")

    def get_kind_attr(self, attr_name):
        """An attribute of its kind: there are none, as passes ask for keys and attributes."""
        return None

    def with_host(self, host=None):
        """The target with another target for the code around kernels, "llvm" without one."""
        return Target(self, host or "llvm")

    def export(self):
        """The target as a dictionary: kind, keys, tag and attributes, and the host where it has one."""
        host = {} if self._host is None else {"host": self._host.export()}
        return {"kind": self.kind.name, "keys": self.keys, "tag": "", **_plain(self.attrs), **host}

    @staticmethod
    def target_or_current(target):
        """The target, or the innermost one for None. Errors: ValueError where there is neither."""
        return Target.current(allow_none=False) if target is None else Target(target)

    @staticmethod
    def canon_target(target):
        """Whatever names a target as a Target; None stays None."""
        return None if target is None else Target(target)

    @staticmethod
    def canon_target_and_host(target, target_host=None):
        """(target, host) as Targets, the host in the target too."""
        if target is None:
            return None, Target.canon_target(target_host)
        whole = Target(target, target_host)
        return whole, whole.host

    @staticmethod
    def current(allow_none=True):
        """The innermost target, or None. Errors: there is none, and none is allowed."""
        if Target._stack:
            return Target._stack[-1]
        if allow_none:
            return None
        raise ValueError("there is no target here\n  needs: `with sator.Target(...):` around the call")

    def __enter__(self):
        Target._stack.append(self)
        return self

    def __exit__(self, *_error):
        Target._stack.pop()

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"Target({self.text!r})"

    def __eq__(self, other):
        if hasattr(other, "config") and not isinstance(other, Target):
            other = Target(other)
        return isinstance(other, Target) and (self.text == other.text or self._parts() == other._parts())

    def __hash__(self):
        return hash(self.kind)

    def _parts(self):
        config = dict(self._config()[2] or {}) if not hasattr(self._config()[2], "config") else dict(self._config()[2].config)
        return self._config()[0], self._config()[1], {k: str(_plain(v)) for k, v in config.items() if v is not None}


def _of_device(kind, options, *own):
    options = options.split() if isinstance(options, str) else list(options or ())
    return Target(" ".join([kind, *own, *options]))


def cuda(model="unknown", arch=None, options=None):
    """A GPU of NVIDIA's: Target("cuda -arch=sm_80 -model=..."). options: more of the text, or a list of such."""
    return _of_device("cuda", options, *([f"-arch={arch}"] if arch else []), f"-model={model}")


def rocm(model="unknown", options=None):
    """A GPU of AMD's; arguments as of cuda."""
    return _of_device("rocm", options, f"-model={model}")


def _opencl(device, *own):
    def of_device(model="unknown", options=None):
        return _of_device("opencl", options, f"-device={device}", f"-model={model}", *own)

    of_device.__name__ = of_device.__qualname__ = device
    of_device.__doc__ = f"A GPU under OpenCL with the attribute device={device}; arguments as of cuda."
    return of_device


mali, bifrost, adreno = map(_opencl, ("mali", "bifrost", "adreno"))
intel_graphics = _opencl("intel_graphics", "-thread_warp_size=16")


def arm_cpu(model="unknown", options=None):
    """A CPU of ARM's; arguments as of cuda. What is known of boards by their names is not added: options say mtriple and mcpu."""
    return _of_device("llvm", options, "-keys=arm_cpu,cpu", "-device=arm_cpu", f"-model={model}")


def __getattr__(name):
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
