"""A dataflow block rewritten binding by binding."""
from sator import _core
from sator.error import TVMError
from sator.relax.analysis import all_vars, bound_vars, remove_all_unused
from sator.relax.expr_functor import PyExprMutator

R = _core.relax


class DataflowBlockRewrite:
    """Rewrites a dataflow block and the function that it is in. Both stay as they are: what is new has mutated_dfb and mutated_root_fn.

        rewrite = DataflowBlockRewrite(func.body.blocks[0], func)
        rewrite.replace_all_uses(old, new)
        rewrite.remove_unused(old)
        mod = rewrite.mutate_irmodule(mod)
    """

    def __init__(self, dfb, root_fn):
        """dfb: a dataflow block of the function root_fn. Errors: TypeError for others; TVMError where it is not in the function."""
        if not isinstance(dfb, R.BindingBlock) or not dfb.is_dataflow:
            raise TypeError(f"DataflowBlockRewrite: dfb is a {type(dfb).__name__}\n  needs: a dataflow block, such as func.body.blocks[0]")
        if not isinstance(root_fn, R.Function):
            raise TypeError(f"DataflowBlockRewrite: root_fn is a {type(root_fn).__name__}\n  needs: the relax.Function that the block is in")
        self._original, self._function, self._block = root_fn, root_fn, dfb
        self._mutate(dfb.bindings, {})
        self._function, self._block = root_fn, dfb

    def _mutate(self, bindings, replaced):
        edit = _Edit(self._block, bindings, replaced)
        function = edit.visit_expr(self._function)
        if edit.block is None:
            raise TVMError("error: DataflowBlockRewrite: the block is not in the function\n  needs: a block of root_fn")
        self._function, self._block = function, edit.block

    def replace_all_uses(self, old_var, new_var):
        """Has whatever reads one variable read another one. Errors: TVMError for variables that the function does not define."""
        for var in (old_var, new_var):
            self._need_defined("replace_all_uses", var)
        self._mutate(self._block.bindings, {old_var: new_var})

    def add_binding(self, binding):
        """Adds a binding behind those of the block that it reads. Errors: TVMError for a variable that is defined already."""
        if binding.var in bound_vars(self._function):
            raise TVMError(f"error: add_binding: the variable {binding.var.name_hint} is defined already\n  needs: a new variable")
        read = set(all_vars(binding.value))
        at = max((i for i, b in enumerate(self._block.bindings) if b.var in read), default=0) + 1
        self._mutate([*self._block.bindings[:at], binding, *self._block.bindings[at:]], {})

    def add(self, expr, name=None, is_dfvar=False):
        """Binds an expression to a new variable of the block.

        name       the variable's; None: "tmp" and a number
        is_dfvar   whether it is visible inside of the block alone; else it is one of the block's outputs
        """
        if name is None:
            taken = {v.name_hint for v in bound_vars(self._function)}
            name = next(n for n in ["tmp", *(f"tmp_{i}" for i in range(1, len(taken) + 2))] if n not in taken)
        value = _core.BlockBuilder(None).normalize(expr)
        self.add_binding(_core.make(R.VarBinding, [value, _core.graph_var(name, value.struct_info, is_dfvar)]))

    def remove_unused(self, var, allow_undef=False):
        """Removes the binding of a variable that nobody reads.

        Errors: TVMError where somebody does; where the block does not define it, unless allow_undef.
        """
        if not any(b.var.same_as(var) for b in self._block.bindings):
            if allow_undef:
                return
            raise TVMError(f"error: remove_unused: the block does not define {var.name_hint}\n  needs: a variable of the block\n"
                             "  hint:  allow_undef=True does nothing then")
        rest = [b for b in self._block.bindings if not b.var.same_as(var)]
        readers = [b.var.name_hint for b in rest if var in all_vars(b.value)]
        before = self._function, self._block
        self._mutate(rest, {})
        if var in all_vars(self._function):
            self._function, self._block = before
            raise TVMError(f"error: remove_unused: {var.name_hint} is read by {', '.join(readers) or 'what follows the block'}\n"
                             "  needs: a variable that nobody reads\n  hint:  replace_all_uses(var, other) first")

    def remove_all_unused(self):
        """Removes the bindings that nobody reads, those of the function's other blocks too."""
        function = remove_all_unused(self._function)
        kept = set(bound_vars(function))
        self._mutate([b for b in self._block.bindings if b.var in kept], {})
        self._function = remove_all_unused(self._function)

    def mutated_dfb(self):
        """The block as it is now."""
        return self._block

    def mutated_root_fn(self):
        """The function as it is now."""
        return self._function

    def mutate_irmodule(self, irmodule):
        """A module with the function as it is now in the place of the one that was given."""
        for gvar, func in irmodule.functions.items():
            if func.same_as(self._original):
                changed = irmodule.clone()
                changed.update_func(gvar, self._function)
                return changed
        return irmodule

    def _need_defined(self, method, var):
        if var not in bound_vars(self._function):
            raise TVMError(f"error: {method}: the function does not define {getattr(var, 'name_hint', var)!r}\n  needs: a variable of the function")


class _Edit(PyExprMutator):
    """Puts bindings into one block and variables in the place of others."""

    def __init__(self, target, bindings, replaced):
        super().__init__()
        self._target, self._bindings, self.block = target, bindings, None
        self._replaced.update(replaced)

    def visit_dataflow_block_(self, block):
        if not block.same_as(self._target):
            return super().visit_dataflow_block_(block)
        core = self.builder_._core
        core.begin_block(True)
        for binding in self._bindings:
            self.visit_binding(binding)
        self.block = core.end_block()
        return self.block
