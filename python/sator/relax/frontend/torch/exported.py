"""Programs of torch.export to graphs of the compiler."""
import functools

from sator import arith, relax, tir
from sator.error import TVMError
from sator.relax.frontend.torch import aten
from sator.relax.frontend.torch.fx import Reader
from sator.relax.frontend.torch.table import is_expr, nearest
from sator.relax.frontend.torch.values import array_of, dtype_of, name_of


def from_exported_program(exported_program, *, keep_params_as_input=False, unwrap_unit_return_tuple=False, no_bind_return_tuple=False,
                          custom_convert_map=None, run_ep_decomposition=False):
    """The module, with one function `main`, of a program of torch.export.

    exported_program    torch.export.export(model.eval(), args), or anything with `graph`, `graph_signature`, `state_dict` and `constants` of that form
    keep_params_as_input    parameters and buffers become parameters behind the inputs (attribute num_input; relax.frontend.detach_params has their values)
    custom_convert_map  {"relu.default": f} or {"relu": f}: converters of one's own by the name of an operator, f(node, importer) as from_fx has them
    run_ep_decomposition    reads exported_program.run_decompositions(): operators of layers as those of the core of ATen
    Inputs have the names of the model's arguments, and symbolic sizes those that torch.export gives them (s77).
    Errors: an operator without converter, by its name; an input that is no tensor; a program that changes its buffers or inputs.
    """
    if not hasattr(exported_program, "graph_signature"):
        raise TypeError(f"from_exported_program: {exported_program!r} is a {type(exported_program).__name__}\n  needs: a program of torch.export\n"
                        "  hint:  torch.export.export(model.eval(), args)")
    if run_ep_decomposition:
        exported_program = exported_program.run_decompositions()
    return _Program(exported_program, keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple, dict(custom_convert_map or {}), run_ep_decomposition).run()


def _symbols(extent):
    """The names of torch's symbols in an extent."""
    return sorted(str(s) for s in extent.node.expr.free_symbols)


def _are_equal(extents, others):
    analyzer = arith.Analyzer()
    return len(extents) == len(others) and all(analyzer.can_prove(a == b) for a, b in zip(extents, others))


# What stands in the texts of torch's extents beside the operators of Python.
_OF_SYMPY = {"Mod": lambda a, b: a % b, "PythonMod": lambda a, b: a % b, "FloorDiv": lambda a, b: a // b, "CleanDiv": lambda a, b: a // b,
             "Max": lambda *values: functools.reduce(tir.max, values), "Min": lambda *values: functools.reduce(tir.min, values)}


def _value_of(extent, sizes):
    """Errors: NameError for a function or a symbol that is not known."""
    return eval(str(extent), {"__builtins__": {}, **_OF_SYMPY}, sizes)  # the text of an expression of sympy's, over these names


class _Program(Reader):
    """A graph whose inputs, weights among them, its signature describes."""

    def __init__(self, program, keeps_params, unwraps, no_bind, custom, is_core):
        super().__init__(program.graph, {}, keeps_params, unwraps, no_bind, custom)
        self.program, self.is_core = program, is_core
        self.specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
        self.sizes, self.wholes = {}, {}

    def called(self, node):
        """An operator without its overload: "add" of aten.add.Tensor."""
        parts = str(node.target).split(".")
        return parts[1] if parts[0] == "aten" and len(parts) > 1 else name_of(node.target)

    def convert(self, node):
        """The value of a call, of the shapes that the program says where they are not known: min(64, s) elements of a slice are s."""
        value = super().convert(node)
        said = (getattr(node, "meta", None) or {}).get("val")
        if isinstance(value, tuple) and isinstance(said, (list, tuple)):
            return tuple(self._as_said(v, s) for v, s in zip(value, said))
        return self._as_said(value, said)

    def _as_said(self, value, said):
        if not is_expr(value) or not isinstance(value.struct_info, relax.TensorStructInfo) or not hasattr(said, "shape"):
            return value
        try:
            wanted = [self._size(d) for d in said.shape]
        except NameError:  # a size that no input has
            return value
        known = value.struct_info.shape.values if value.struct_info.shape is not None else None
        if all(isinstance(d, int) for d in said.shape) or known is not None and _are_equal(known, wanted):
            return value
        return self.bb.match_cast(value, relax.TensorStructInfo(wanted, value.struct_info.dtype))

    def converter(self, node):
        """The converter of an operator."""
        found = aten.converter_of(self.called(node))
        if found is None:
            raise TVMError(f"error: node {node.name}: the operator {node.target} has no converter\n"
                           f"  needs: an operator that has one{nearest(self.called(node), aten.names())}\n"
                           f"  hint:  give one of your own in custom_convert_map{'' if self.is_core else ', or read the core of ATen: run_ep_decomposition=True'}")
        return found

    def custom_converter(self, node):
        """The user's own converter, by the name of the operator with or without its overload."""
        return self.custom.get(str(node.target).removeprefix("aten.")) or self.custom.get(self.called(node))

    def inputs(self):
        """The inputs of the user, in their order; weights are values from now on."""
        self._bind_sizes()
        out = []
        for node in self.graph.nodes:
            if node.op != "placeholder":
                continue
            kind = self.specs[node.name].kind.name
            if kind == "USER_INPUT":
                self.values[node] = self._input(node)
                if isinstance(self.values[node], relax.Var):
                    out.append(self.values[node])
            elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
                self._weight(node, self.specs[node.name].target, kind)
            else:
                raise TVMError(f"error: the input {node.name} is of the kind {kind}\n  needs: tensors\n  hint:  export a model whose arguments are tensors")
        return out

    def _input(self, node):
        argument, tensor = self.specs[node.name].arg, node.meta.get("val")
        if hasattr(argument, "value"):  # a number or None that the program was made for
            return argument.value
        if not hasattr(tensor, "shape"):
            raise TVMError(f"error: the input {node.name} is a {type(tensor).__name__}\n  needs: a tensor\n  hint:  export a model whose arguments are tensors")
        return relax.Var(node.name, relax.TensorStructInfo([self._size(d) for d in tensor.shape], dtype_of(tensor.dtype)))

    def _bind_sizes(self):
        """What each symbol of torch's is: a size that some dimension has alone, else what follows from the first one that has a multiple of it.

        Errors: a symbol that no dimension says in this way.
        """
        tensors = [n.meta["val"] for n in self.graph.nodes if n.op == "placeholder" and hasattr(getattr(n, "meta", {}).get("val"), "shape")]
        extents = [e for t in tensors for e in t.shape if not isinstance(e, int)]
        for extent in sorted(extents, key=lambda e: str(e) not in _symbols(e)):
            unbound = [name for name in _symbols(extent) if name not in self.sizes]
            if str(extent) in unbound:
                self.sizes[str(extent)] = tir.SizeVar(str(extent), "int64")
            elif unbound:
                self._bind_part(extent, unbound)

    def _bind_part(self, extent, unbound):
        """The symbol of a dimension of a * symbol + b elements, which gets a size of its own."""
        name = unbound[0]
        at = [_value_of(extent, {name: n}) if len(_symbols(extent)) == 1 else None for n in (0, 1, 2)]
        if None in at or at[2] - at[1] != at[1] - at[0] or at[1] <= at[0]:
            raise TVMError(f"error: a dimension of {extent} elements, where no other has {' or '.join(unbound)}\n  needs: a dimension that has the size alone, "
                           "or a multiple of it and a constant\n  hint:  export with this size fixed")
        whole = tir.SizeVar(f"{name}_whole", "int64")
        self.sizes[name] = (whole - at[0]) // (at[1] - at[0])
        self.wholes[str(extent)] = whole

    def _size(self, extent):
        """An extent: a number, or what torch writes with its symbols."""
        if isinstance(extent, int):
            return extent
        text = str(extent)
        return self.wholes[text] if text in self.wholes else _value_of(extent, self.sizes)

    def _weight(self, node, target, kind):
        stored = self.program.state_dict if target in self.program.state_dict else self.program.constants
        array = array_of(stored[target])
        if self.keeps_params and kind != "CONSTANT_TENSOR":
            self.params[target] = (relax.Var(node.name, relax.TensorStructInfo(array.shape, str(array.dtype))), array)
            self.values[node] = self.params[target][0]
        elif node.users:
            self.values[node] = relax.const(array, str(array.dtype))

    def change(self, changed, node):
        """Errors: what a call changes outlives the program."""
        if changed.op == "placeholder":
            raise TVMError(f"error: node {node.name}: {node.target} changes {self.specs[changed.name].target or changed.name}, which outlives the program\n"
                           "  needs: a program that changes neither its inputs nor its buffers\n  hint:  export a model that gives the new value as a result")
        super().change(changed, node)

    def result(self, node):
        """What the user gets. Errors: the program changes something too."""
        specs = self.program.graph_signature.output_specs
        for spec in specs:
            if spec.kind.name != "USER_OUTPUT":
                raise TVMError(f"error: the program changes {spec.target} ({spec.kind.name})\n  needs: a program that gives its results alone\n"
                               "  hint:  export model.eval()")
        return super().result(node)
