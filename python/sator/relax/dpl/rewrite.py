"""What a pattern matches, replaced."""
from sator import _core
from sator.relax.expr_functor import PyExprMutator

_MOST_ROUNDS = 1000


def rewrite_call(pattern, rewriter, func):
    """The function with each call that the pattern matches replaced by rewriter(call, {pattern: expression}), until nothing changes.

    rewriter   gives an expression, or the call itself where it stays
    Errors: a rewriter whose results match again without end.
    """
    def rewritten(call, found):
        new = rewriter(call, pattern._by_pattern(found))
        if not isinstance(new, _core.RelaxExpr):
            raise TypeError(f"rewrite_call: the rewriter gave {new!r}, a {type(new).__name__}\n  needs: an expression, or the call itself where it stays")
        return new

    for _ in range(_MOST_ROUNDS):
        new = _core.rewrite_pattern(func, pattern._core, rewritten)
        if new.same_as(func) or _core.structural_equal(new, func, False):
            return func
        func = new
    raise ValueError(f"the rewriter's result was rewritten {_MOST_ROUNDS} times, and the pattern matches still\n"
                     "  needs: a result that the pattern does not match, or the call itself")


def rewrite_bindings(ctx, rewriter, func):
    """The function with bindings of dataflow blocks replaced, until the context matches no more.

    ctx        a PatternContext
    rewriter   rewriter({pattern: variable}, {variable: value}) gives {variable: its new value}
    """
    new = _Bindings(ctx, rewriter).visit_expr(func)
    return func if new.same_as(func) else _core.without_unused(new)


class _Bindings(PyExprMutator):
    def __init__(self, ctx, rewriter):
        super().__init__()
        self._ctx, self._rewriter = ctx, rewriter

    def visit_dataflow_block_(self, block):
        for _ in range(_MOST_ROUNDS):
            found = self._ctx.match_dfb(block)
            if not found:
                return block
            values = {b.var: b.value for b in block.bindings if isinstance(b, _core.relax.VarBinding)}
            self.builder_._core.begin_block(True)
            new = self._rewriter(found, values)
            rewritten = self._rewritten(block, new)
            if rewritten is None:
                return block
            block = rewritten
        raise ValueError(f"the rewriter changed a block {_MOST_ROUNDS} times, and the patterns match still\n"
                         "  needs: a result that they do not match")

    def _rewritten(self, block, new):
        core = self.builder_._core
        emitted, changed = set(), False

        def emit(index):
            """The binding, after those behind it that its new value reads."""
            nonlocal changed
            binding = block.bindings[index]
            if binding.var in emitted:
                return
            emitted.add(binding.var)
            value = new.get(binding.var)
            if value is None or _core.structural_equal(value, binding.value, False):
                core.emit_binding(binding)
                return
            changed = True
            for later in range(index + 1, len(block.bindings)):
                if _reads(value, block.bindings[later].var, {}):
                    emit(later)
            value = core.normalize(value)
            core.emit_binding(_core.make(_core.relax.VarBinding, [value, binding.var]))

        for i in range(len(block.bindings)):
            emit(i)
        out = core.end_block()
        return out if changed else None


def _reads(expr, var, seen):
    if expr.same_as(var):
        return True
    if expr in seen:
        return False
    seen[expr] = True
    return any(isinstance(c, _core.RelaxExpr) and _reads(c, var, seen) for c in _core.children(expr))
