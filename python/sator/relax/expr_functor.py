"""Walks over graphs, and rewrites of them, written in Python: a method per kind of expression.

Methods are called visit_call_, visit_var_, visit_dataflow_var_, visit_tuple_, visit_tuple_getitem_, visit_constant_, visit_shape_expr_,
visit_global_var_, visit_extern_func_, visit_op_, visit_prim_value_, visit_string_imm_, visit_data_type_imm_, visit_seq_expr_, visit_if_,
visit_function_; for bindings visit_var_binding_ and visit_match_cast_.
"""
from sator import _core
from sator.relax.block_builder import BlockBuilder

R = _core.relax
_KINDS = ((R.DataflowVar, "dataflow_var"), (R.Var, "var"), (R.Call, "call"), (R.Tuple, "tuple"), (R.TupleGetItem, "tuple_getitem"),
          (R.Constant, "constant"), (R.ShapeExpr, "shape_expr"), (R.GlobalVar, "global_var"), (R.ExternFunc, "extern_func"),
          (R.Op, "op"), (R.PrimValue, "prim_value"), (R.StringImm, "string_imm"), (R.DataTypeImm, "data_type_imm"),
          (R.SeqExpr, "seq_expr"), (R.If, "if"), (R.Function, "function"), (R.LocalFunction, "local_function"))


def _kind(expr):
    for cls, name in _KINDS:
        if isinstance(expr, cls):
            return name
    raise TypeError(f"a {type(expr).__name__} is no expression of a graph\n  needs: a relax.Function, or what it is made of")


def mutator(cls):
    """Marks a rewrite, as TVM asks for."""
    return cls


visitor = mutator


class PyExprVisitor:
    """Looks at every expression of a graph, without changing it."""

    def visit_expr(self, expr):
        """Looks at an expression, by the method of its kind."""
        return getattr(self, f"visit_{_kind(expr)}_")(expr)

    def visit_binding(self, binding):
        """Looks at a binding, by the method of its kind."""
        if isinstance(binding, R.MatchCast):
            self.visit_match_cast_(binding)
        else:
            self.visit_var_binding_(binding)

    def visit_binding_block(self, block):
        """Looks at bindings in order."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_binding_(self, binding):
        """Looks at var = value."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding):
        """Looks at var = match_cast(value)."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_var_def(self, var):
        """A variable where it is bound."""
        pass

    def visit_call_(self, call):
        """Looks at a call."""
        self.visit_expr(call.op)
        for a in call.args:
            self.visit_expr(a)

    def visit_tuple_(self, t):
        """Looks at a tuple."""
        for f in t.fields:
            self.visit_expr(f)

    def visit_tuple_getitem_(self, t):
        """Looks at an item of a tuple."""
        self.visit_expr(t.tuple_value)

    def visit_seq_expr_(self, seq):
        """Looks at blocks of bindings and their result."""
        for block in seq.blocks:
            self.visit_binding_block(block)
        self.visit_expr(seq.body)

    def visit_if_(self, e):
        """Looks at an If."""
        for part in (e.cond, e.true_branch, e.false_branch):
            self.visit_expr(part)

    def visit_function_(self, f):
        """Looks at a function."""
        for p in f.params:
            self.visit_var_def(p)
        self.visit_expr(f.body)

    def visit_local_function_(self, f):
        """Looks at a function inside of another one."""
        self.visit_expr(f.function)

    def visit_dataflow_var_(self, var):
        """Looks at a variable of a dataflow block."""
        self.visit_var_(var)

    def _leaf(self, expr):
        """An expression without parts."""
        pass

    visit_var_ = visit_constant_ = visit_shape_expr_ = visit_global_var_ = visit_extern_func_ = visit_op_ = _leaf
    visit_prim_value_ = visit_string_imm_ = visit_data_type_imm_ = _leaf


class PyExprMutator:
    """Rewrites a graph: each method gives what stands in the place of its expression.

    builder_    emits bindings before the one that is being rewritten, and holds the module
    """

    def __init__(self, mod=None):
        self.builder_ = BlockBuilder(mod)
        self._replaced = {}

    def visit_expr(self, expr):
        """What stands in the place of an expression, by the method of its kind."""
        return getattr(self, f"visit_{_kind(expr)}_")(expr)

    def visit_expr_post_order(self, expr):
        """The expression with its parts rewritten."""
        return getattr(PyExprMutator, f"visit_{_kind(expr)}_")(self, expr)

    def lookup_binding(self, var):
        """What a variable is bound to, or None."""
        return self.builder_.lookup_binding(var)

    def set_var_remap(self, var, replacement):
        """From here on an expression stands for a variable. Errors: TypeError for what is no variable."""
        if not isinstance(var, R.Var):
            raise TypeError(f"set_var_remap: {var!r} is a {type(var).__name__}\n  needs: a relax.Var")
        self._replaced[var] = replacement

    # Functions, blocks, bindings.

    def visit_function_(self, f):
        """What stands in the place of a function."""
        core = self.builder_._core
        params = [self.visit_var_def(p) for p in f.params]
        core.begin_scope(params)
        body = f.body
        blocks = [b for b in (self.visit_binding_block(block) for block in body.blocks) if b.bindings]
        core.begin_block(False)
        result = core.normalize(self.visit_expr(body.body))
        last = core.end_block()
        if last.bindings:
            blocks.append(last)
        return core.end_function(params, blocks, result, f.attrs, f.is_pure)

    def visit_binding_block(self, block):
        """The block with its bindings rewritten."""
        core = self.builder_._core
        core.begin_block(block.is_dataflow)
        for binding in block.bindings:
            self.visit_binding(binding)
        return core.end_block()

    visit_binding_block_ = visit_dataflow_block_ = visit_binding_block

    def visit_binding(self, binding):
        """Rewrites a binding, by the method of its kind, and emits it."""
        if isinstance(binding, R.MatchCast):
            self.visit_match_cast_(binding)
        else:
            self.visit_var_binding_(binding)

    def visit_var_binding_(self, binding):
        """What stands in the place of var = value."""
        core = self.builder_._core
        value = core.normalize(self.visit_expr(binding.value))
        var = self.visit_var_def(binding.var)
        old, new = binding.var.struct_info, value.struct_info
        if value.same_as(binding.value) and var.same_as(binding.var):
            core.emit_binding(binding)
            return
        if new is not None and not _core.structural_equal(old, new, False) and var.same_as(binding.var):
            var = _core.graph_var(var.name_hint, new, var.is_dataflow)
            self._replaced[binding.var] = var
        core.emit_binding(_core.make(R.VarBinding, [value, var]))

    def visit_match_cast_(self, binding):
        """What stands in the place of var = match_cast(value)."""
        value = self.builder_._core.normalize(self.visit_expr(binding.value))
        var = self.visit_var_def(binding.var)
        if value.same_as(binding.value) and var.same_as(binding.var):
            self.builder_._core.emit_binding(binding)
        else:
            self.builder_._core.emit_binding(_core.make(R.MatchCast, [value, binding.struct_info, var]))

    def visit_var_def(self, var):
        """The variable that shall be bound in its place."""
        return var

    # Expressions.

    def visit_var_(self, var):
        """What stands in the place of a variable: what set_var_remap said, or itself."""
        return self._replaced.get(var, var)

    def visit_dataflow_var_(self, var):
        """What stands in the place of a variable of a dataflow block."""
        return self.visit_var_(var)

    def visit_call_(self, call):
        """What stands in the place of a call."""
        op, args = self.visit_expr(call.op), [self.visit_expr(a) for a in call.args]
        if op.same_as(call.op) and _same(args, call.args):
            return call
        return _core.graph_call(op, args, call.attrs, call.sinfo_args)

    def visit_tuple_(self, t):
        """What stands in the place of a tuple."""
        fields = [self.visit_expr(f) for f in t.fields]
        return t if _same(fields, t.fields) else _core.tuple(fields)

    def visit_tuple_getitem_(self, t):
        """What stands in the place of an item of a tuple."""
        value = self.visit_expr(t.tuple_value)
        return t if value.same_as(t.tuple_value) else _core.tuple_get(value, t.index)

    def visit_seq_expr_(self, seq):
        """What stands in the place of blocks of bindings and their result."""
        blocks = [self.visit_binding_block(b) for b in seq.blocks]
        return _core.make(R.SeqExpr, [blocks, self.visit_expr(seq.body), None])

    def visit_if_(self, e):
        """What stands in the place of an If."""
        parts = [self.visit_expr(p) for p in (e.cond, e.true_branch, e.false_branch)]
        return _core.make(R.If, [*parts, None])

    def visit_local_function_(self, f):
        """What stands in the place of a function inside of another one."""
        return _core.make(R.LocalFunction, [self.visit_expr(f.function), None])

    def _leaf(self, expr):
        """An expression without parts."""
        return expr

    visit_constant_ = visit_shape_expr_ = visit_global_var_ = visit_extern_func_ = visit_op_ = _leaf
    visit_prim_value_ = visit_string_imm_ = visit_data_type_imm_ = _leaf


def _same(a, b):
    return len(a) == len(b) and all(x.same_as(y) for x, y in zip(a, b))
