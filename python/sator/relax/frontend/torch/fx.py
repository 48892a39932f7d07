"""torch.fx graphs to graphs of the compiler."""
from sator import _core, relax
from sator.error import TVMError
from sator.relax.frontend.common import attach_params
from sator.relax.frontend.torch.functions import FUNCTIONS, METHODS
from sator.relax.frontend.torch.modules import MODULES
from sator.relax.frontend.torch.table import Unknown, find, nearest
from sator.relax.frontend.torch.values import array_of, dtype_of, name_of
from sator.relax.frontend.torch.views import Views, is_node


def from_fx(model, input_info=None, *, keep_params_as_input=False, unwrap_unit_return_tuple=False, no_bind_return_tuple=False,
            input_shapes=None, call_function_map=None, call_module_map=None, custom_convert_map=None):
    """The module, with one function `main`, of a traced model.

    model              torch.fx.symbolic_trace(...), or anything with `graph.nodes` and `named_modules()` of that form
    input_info         [((1, 784), "float32"), ...]: shape and dtype of each input; an extent may be a tir.Var
    input_shapes       the same as shapes alone, of float32
    keep_params_as_input      weights become parameters behind the inputs (attribute num_input; relax.frontend.detach_params has their values)
    call_function_map, call_module_map    converters of one's own, before those of the package: {torch.add: f} with f(bb, node_map, node)
                       gives the value of a node, {torch.nn.Linear: f} with f(bb, node_map, node, module)
    custom_convert_map        the same in TVM's form: {"relu": f} by the name of a function with f(node, importer), {torch.nn.ReLU: f} with f(node);
                       the importer has env, block_builder, params, named_modules and retrieve_args(node)
    Functions that change their argument (add_, inplace=True) stand for it from there on.
    Errors: an input without info; a function, method or module that has no converter, by its name; a tensor that is changed in place while another
    name for its elements, a view, is used later.
    """
    if not hasattr(model, "graph"):
        raise TypeError(f"from_fx: {model!r} is a {type(model).__name__}\n  needs: a traced model\n  hint:  torch.fx.symbolic_trace(model)")
    info = list(input_info) if input_info is not None else [(shape, "float32") for shape in input_shapes or ()]
    return _Traced(model, info, keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple, dict(call_function_map or {}),
                   dict(call_module_map or {}), dict(custom_convert_map or {})).run()


class Reader:
    """Makes a function of a graph's nodes. What kinds of graphs have of their own: inputs(), converter(node), called(node)."""

    def __init__(self, graph, named, keeps_params, unwraps, no_bind, custom):
        self.graph, self.named, self.custom = graph, named, custom
        self.keeps_params, self.unwraps, self.no_bind = keeps_params, unwraps, no_bind
        self.bb = relax.BlockBuilder()
        self.values = {}
        self.params = {}
        self.node = None  # that is being converted
        self.views = Views(graph.nodes, self.called)

    # The importer, as converters of TVM's form know it.
    env = property(lambda self: self.values)
    block_builder = property(lambda self: self.bb)
    named_modules = property(lambda self: self.named)

    def retrieve_args(self, node):
        """The values of a node's arguments."""
        return self.value(node.args)

    def run(self):
        """The module."""
        inputs = self.inputs()
        attrs = {"num_input": len(inputs)} if self.keeps_params else None
        params = inputs + [var for var, _ in self.params.values()]
        with self.bb.function("main", params, attrs):
            with self.bb.dataflow():
                for node in self.graph.nodes:
                    if node.op == "output":
                        result = self.result(node)
                    elif node.op != "placeholder":
                        self.values[node] = self.convert(node)
                        changed = self.views.changed_by(node, self.named)
                        if changed is not None:
                            self.change(changed, node)
            self.bb.emit_func_output(result)
        mod = self.bb.get()
        return attach_params(mod, "main", [value for _, value in self.params.values()]) if self.keeps_params else mod

    def change(self, changed, node):
        """A call has changed the tensor of another node, which keeps its dtype."""
        was, now = self.values.get(changed), self.values[node]
        if isinstance(was, _core.RelaxExpr) and isinstance(now, _core.RelaxExpr) and was.struct_info.dtype != now.struct_info.dtype:
            self.values[node] = now = self.emit(relax.op.astype(now, was.struct_info.dtype))
        self.values[changed] = now

    def value(self, arg):
        """An argument of a node: values in the places of nodes."""
        if isinstance(arg, (list, tuple)):
            return list(map(self.value, arg)) if isinstance(arg, list) else tuple(map(self.value, arg))
        if isinstance(arg, dict):
            return {k: self.value(v) for k, v in arg.items()}
        if isinstance(arg, slice):
            return slice(self.value(arg.start), self.value(arg.stop), self.value(arg.step))
        found = self.values.get(arg, arg) if is_node(arg) else arg
        if isinstance(found, Unknown):
            raise TVMError(f"error: node {arg.name} is used: {found.words}\n  needs: the other results alone\n  hint:  give a converter of one's own")
        return found

    def emit(self, expr):
        """Binds an expression of a graph; any other value stays as it is."""
        return self.bb.emit(expr) if isinstance(expr, _core.RelaxExpr) and not isinstance(expr, _core.relax.Var) else expr

    def count_of_results(self, what):
        """How many results the call that is being converted has, as the program says. Errors: it does not."""
        results = (getattr(self.node, "meta", None) or {}).get("val")
        if not isinstance(results, (list, tuple)):
            raise TVMError(f"error: {what} of a dimension that is no number, into parts whose number nobody says\n  needs: an extent that is a number\n"
                           "  hint:  give the sizes of the parts")
        return len(results)

    def called(self, node):
        """The name of what a node calls."""
        return name_of(node.target) if node.op == "call_function" else node.target

    def custom_converter(self, node):
        """The user's own converter of what a node calls, in TVM's form, or None."""
        return self.custom.get(self.called(node))

    def convert(self, node):
        """The value of a call. Errors: it has no converter; it writes to a tensor that is given as out."""
        self.node = node
        args, kwargs = self.value(node.args), self.value(node.kwargs)
        if kwargs.pop("out", None) is not None:
            raise TVMError(f"error: node {node.name}: {self.called(node)} writes to a tensor that is given as out\n  needs: no out\n"
                           "  hint:  use the result")
        own = self.custom_converter(node)
        if own:
            return own(node, self) if node.op == "call_function" else own(node)
        return self.emit(_called(self.converter(node), node, self, *args, **kwargs))

    def result(self, node):
        """What the function gives."""
        result = self.value(node.args[0])
        if isinstance(result, (list, tuple)):
            if self.unwraps and len(result) == 1:
                result = result[0]
            else:
                result = relax.Tuple(list(result))
                if self.no_bind:
                    return result
        return self.bb.emit_output(result)


class _Traced(Reader):
    """A graph that torch.fx traced, with the modules that it calls."""

    def __init__(self, model, info, keeps_params, unwraps, no_bind, functions, modules, custom):
        super().__init__(model.graph, dict(model.named_modules()), keeps_params, unwraps, no_bind, custom)
        self.model, self.info, self.functions, self.modules = model, info, functions, modules

    def inputs(self):
        """The inputs, by input_info. Errors: one has none."""
        holders = [n for n in self.graph.nodes if n.op == "placeholder"]
        if len(holders) > len(self.info):
            raise TVMError(f"error: {len(holders)} inputs, and input_info for {len(self.info)}: {holders[len(self.info)].name} has none\n"
                           "  needs: (shape, dtype) of each input, in their order")
        for i, (holder, (shape, dtype)) in enumerate(zip(holders, self.info)):
            self.values[holder] = relax.Var(f"inp_{i}", relax.TensorStructInfo(tuple(shape), dtype_of(dtype)))
        if self.keeps_params:
            for name, param in self.model.named_parameters():
                array = array_of(param)
                self.params[name] = (relax.Var(name.replace(".", "_"), relax.TensorStructInfo(array.shape, str(array.dtype))), array)
            self._by_identity = {id(param): self.params[name][0] for name, param in self.model.named_parameters()}
        return [self.values[h] for h in holders]

    def param(self, tensor):
        """A weight as a value: a constant, or the parameter that stands for it."""
        if tensor is None:
            return None
        if self.keeps_params and id(tensor) in self._by_identity:
            return self._by_identity[id(tensor)]
        array = array_of(tensor)
        return relax.const(array, str(array.dtype))

    def convert(self, node):
        """The value of a node: a weight, or what a module, a function or a method gives."""
        if node.op == "get_attr":
            target = self.model
            for part in node.target.split("."):
                target = getattr(target, part)
            return self.param(target)
        if node.op == "call_module":
            return self._module(node)
        if node.op not in ("call_function", "call_method"):
            raise TVMError(f"error: node {node.name}: no node is of the kind {node.op}\n  needs: a graph of torch.fx")
        own = self.functions.get(node.target) if node.op == "call_function" and not self.custom_converter(node) else None
        return own(self.bb, self.values, node) if own else super().convert(node)

    def converter(self, node):
        """The converter of a function or a method."""
        return self._known(FUNCTIONS, "function", node) if node.op == "call_function" else self._known(METHODS, "method", node)

    def _module(self, node):
        module = self.named[node.target]
        if type(module) in self.custom:
            return self.custom[type(module)](node)
        own = self.modules.get(type(module))
        if own:
            return own(self.bb, self.values, node, module)
        convert = self._known(MODULES, "module", node)
        return self.emit(convert(self, module, *self.value(node.args), **self.value(node.kwargs)))

    def _known(self, table, what, node):
        name = type(self.named[node.target]).__name__ if what == "module" else self.called(node)
        found = table.get(name) if what == "module" else find(name, table)
        if found:
            return found
        argument = "call_module_map" if what == "module" else "call_function_map"
        raise TVMError(f"error: node {node.name}: the {what} {name} has no converter\n  needs: one that has{nearest(name, table)}\n"
                       f"  hint:  give one of your own in {argument}")


def _called(convert, node, *args, **kwargs):
    try:
        return convert(*args, **kwargs)
    except (TVMError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise _in_node(node, error) from error
    except TypeError as error:
        if error.__traceback__.tb_next is not None:  # raised inside of the converter
            raise _in_node(node, error) from error
        words = str(error).partition("() ")[2]
        raise TVMError(f"error: node {node.name}: {name_of(node.target)} {words}\n  needs: the arguments that its converter knows\n"
                       "  hint:  give a converter of one's own in call_function_map") from None


def _in_node(node, error):
    """The error of a converter with the node that it was called for."""
    words = str(error).removeprefix("error: ")
    return error if words.startswith("node ") else TVMError(f"error: node {node.name}: {words}")
