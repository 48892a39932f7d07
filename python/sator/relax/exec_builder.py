"""Programs of the virtual machine, written instruction by instruction."""
from enum import IntEnum

from sator import _core
from sator.runtime.shape import ShapeTuple


class VMFuncKind(IntEnum):
    """What ExecBuilder.declare_function declares; the values are TVM's."""

    PACKED_FUNC = 0
    VM_FUNC = 1


class Operand:
    """What an instruction takes: a register, a constant or a function."""

    def __init__(self, kind, *value):
        self._as = (kind, *value)

    def __eq__(self, other):
        return isinstance(other, Operand) and self._as[0] == other._as[0] and _same(self._as[1:], other._as[1:])

    def __hash__(self):
        return hash(self._as[0])

    def __repr__(self):
        return f"{self._as[0]}({', '.join(map(repr, self._as[1:]))})"


def _same(a, b):
    import numpy

    return all(numpy.array_equal(x.numpy(), y.numpy()) and x.dtype == y.dtype if isinstance(x, _core.NDArray) and isinstance(y, _core.NDArray)
               else type(x) is type(y) and x == y for x, y in zip(a, b))


class _Code:
    """What ExecBuilder.get gives: VirtualMachine runs it."""

    def __init__(self, code):
        self._program = code
        self.mod = self

    def as_text(self):
        """The bytecode as text."""
        return self._program.as_text()


class _Function:
    def __init__(self, name, params):
        self.name, self.params, self.instructions, self.registers = name, params, [], len(params)


class ExecBuilder:
    """Writes functions of the virtual machine.

        ib = relax.ExecBuilder()
        with ib.function("f", num_inputs=2):
            ib.emit_call("test.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))
        vm = relax.VirtualMachine(ib.get(), sator.cpu())
    """

    def __init__(self):
        self._functions, self._open = [], None

    def function(self, func_name, num_inputs=0, param_names=None):
        """`with ib.function("f", 2):` the instructions inside are those of the function; its inputs are registers 0, 1, ...

        Errors: ValueError for a function inside of another, for a name that there is already, and for another number of names than inputs.
        """
        if not isinstance(func_name, str) or not isinstance(num_inputs, int) or not 0 <= num_inputs < 2**16:
            raise TypeError(f"function({func_name!r}, {num_inputs!r})\n  needs: a text and a number of inputs below 65536")
        names = list(param_names or (f"param{i}" for i in range(num_inputs)))
        if self._open is not None or any(f.name == func_name for f in self._functions) or len(names) != num_inputs:
            raise ValueError(f"the function {func_name} cannot begin here\n  needs: no function open, a name of its own, a name for each input")
        return _Open(self, _Function(func_name, names))

    def r(self, idx):
        """A register."""
        return Operand("r", int(idx))

    def imm(self, value):
        """An integer."""
        return Operand("c", int(value))

    def void_arg(self):
        """No value: as the `dst` of a call, and None among its arguments."""
        return Operand("c", None)

    def vm_state(self):
        """The machine, which TVM's builtins take first; here each one has it, and a call goes without."""
        return Operand("vm")

    def declare_function(self, func_name, kind=VMFuncKind.PACKED_FUNC):
        """Says that a function is called before it is written, which may be done without. Errors: TypeError for what is no name."""
        if not isinstance(func_name, str):
            raise TypeError(f"declare_function: {func_name!r} is a {type(func_name).__name__}\n  needs: a text")
        VMFuncKind(kind)

    def c(self, idx):
        """What convert_constant gave."""
        return idx

    def f(self, name):
        """A function by its name."""
        return Operand("f", name)

    def convert_constant(self, const):
        """A constant: a number, a text, a tensor, a shape."""
        if isinstance(const, tuple) and all(isinstance(extent, int) for extent in const):
            const = ShapeTuple(const)
        return const if isinstance(const, Operand) else Operand("c", const)

    def emit_call(self, name, args=None, dst=None):
        """Calls a function of this builder, a builtin or a function of register_func; the result goes to the register `dst`."""
        given = [self.convert_constant(a) for a in args or ()]
        self._emit("call", name, [a for a in given if a != self.vm_state()], None if dst == self.void_arg() else dst)

    def emit_ret(self, result):
        """Returns a register's value."""
        self._emit("ret", result)

    def emit_goto(self, pc_offset):
        """Goes on `pc_offset` instructions from here."""
        self._emit("goto", pc_offset)

    def emit_if(self, cond, false_offset):
        """Goes on with the next instruction if the register `cond` is not 0, else `false_offset` instructions from here."""
        self._emit("if", cond, false_offset)

    def _emit(self, *instruction):
        if self._open is None:
            raise ValueError(f"{instruction[0]} outside of a function\n  needs: `with ib.function(name, num_inputs):` around it")
        for value in (*instruction, *(instruction[2] if instruction[0] == "call" else ())):
            if isinstance(value, Operand) and value._as[0] == "r":
                self._open.registers = max(self._open.registers, value._as[1] + 1)
        self._open.instructions.append(instruction)

    def get(self):
        """The program. Errors: of instructions that do not fit, such as a jump out of its function."""
        own = {f.name for f in self._functions}

        def operand(o):
            return (*o._as, o._as[1] in own) if o._as[0] == "f" else o._as

        def written(at, kind, *rest):
            if kind == "call":
                name, args, dst = rest
                return kind, name, name in own, [operand(a) for a in args], -1 if dst is None else dst._as[1]
            if kind == "ret":
                return kind, rest[0]._as[1]
            return (kind, *(r._as[1] for r in rest[:-1]), at + rest[-1])

        for f in self._functions:
            for at, instruction in enumerate(f.instructions):
                if instruction[0] in ("goto", "if") and not 0 <= at + instruction[-1] < len(f.instructions):
                    raise ValueError(f"a jump by {instruction[-1]} from instruction {at} of {f.name}\n  needs: an instruction of the function")
        return _Code(_core.code([(f.name, f.params, f.registers, [written(at, *i) for at, i in enumerate(f.instructions)])
                                 for f in self._functions]))


class _Open:
    def __init__(self, builder, function):
        self._builder, self._function = builder, function

    def __enter__(self):
        self._builder._open = self._function
        return self._builder

    def __exit__(self, error, *_):
        self._builder._open = None
        if error is None:
            self._builder._functions.append(self._function)
