"""Rewrites of models before they are exported."""
from sator.relax.frontend.nn import core


class Mutator:
    """Rewrites a model part by part: the visit_ method of a part's kind gives what stands in its place.

        class Quantize(nn.Mutator):
            def visit_module(self, name, node):
                return QuantizedLinear(node) if isinstance(node, nn.Linear) else self.visit(name, node)

        model = Quantize().visit("", model)

    A name is the dotted path of the part. What a method does not look into is kept as it is.
    """

    def visit_module(self, name, node):
        """What stands in the place of a Module: itself, with its parts rewritten."""
        return self.visit(name, node)

    def visit_modulelist(self, name, node):
        """What stands in the place of a ModuleList."""
        return self.visit(name, node)

    def visit_effect(self, name, node):
        """What stands in the place of an Effect."""
        return self.visit(name, node)

    def visit_param(self, name, node):
        """What stands in the place of a Parameter."""
        return self.visit(name, node)

    def visit(self, name, node):
        """The part, with what it is made of rewritten in place."""
        is_list = isinstance(node, core.ModuleList)
        items = list(enumerate(node) if is_list else node.items() if isinstance(node, core.ModuleDict) else vars(node).items())
        for key, value in items:
            for kind, method in ((core.ModuleList, self.visit_modulelist), (core.Module, self.visit_module), (core.Effect, self.visit_effect),
                                 (core.Parameter, self.visit_param)):
                if isinstance(value, kind):
                    done = method(f"{name}.{key}" if name else str(key), value)
                    if isinstance(node, (core.ModuleList, core.ModuleDict)):
                        node[key] = done
                    else:
                        setattr(node, key, done)
                    break
        return node
