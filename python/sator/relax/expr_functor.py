"""Walks over graphs, and rewrites of them, written in Python: a method per kind of expression.

Methods are called visit_call_, visit_var_, visit_dataflow_var_, visit_tuple_, visit_tuple_getitem_, visit_constant_, visit_shape_expr_,
visit_global_var_, visit_extern_func_, visit_op_, visit_prim_value_, visit_string_imm_, visit_data_type_imm_, visit_seq_expr_, visit_if_,
visit_function_; for bindings visit_var_binding_ and visit_match_cast_, for their blocks visit_binding_block_ and visit_dataflow_block_, for
variables where they are bound visit_var_def_ and visit_dataflow_var_def_.
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


def _block_kind(block):
    return "dataflow_block" if block.is_dataflow else "binding_block"


def _def_kind(var):
    return "dataflow_var_def" if isinstance(var, R.DataflowVar) else "var_def"


class ExprFunctor:
    """A function over expressions: visit_expr calls the method of the kind. Errors: NotImplementedError for a kind without a method."""

    def visit_expr(self, expr):
        """What the method of the expression's kind gives."""
        return self._method(_kind(expr))(expr)

    def visit_binding(self, binding):
        """What the method of the binding's kind gives."""
        return self._method("match_cast" if isinstance(binding, R.MatchCast) else "var_binding")(binding)

    def visit_binding_block(self, block):
        """What the method of the block's kind gives."""
        return self._method(_block_kind(block))(block)

    def visit_var_def(self, var):
        """What the method of the variable's kind gives, where it is bound."""
        return self._method(_def_kind(var))(var)

    def _method(self, kind):
        method = getattr(self, f"visit_{kind}_", None)
        if method is None:
            raise NotImplementedError(f"{type(self).__name__} has no method visit_{kind}_\n  needs: a method for each kind that occurs")
        return method


class PyExprVisitor(ExprFunctor):
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
        """Looks at a block of bindings, by the method of its kind."""
        getattr(self, f"visit_{_block_kind(block)}_")(block)

    def visit_binding_block_(self, block):
        """Looks at bindings in order."""
        for binding in block.bindings:
            self.visit_binding(binding)

    visit_dataflow_block_ = visit_binding_block_

    def visit_var_binding_(self, binding):
        """Looks at var = value."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding):
        """Looks at var = match_cast(value)."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_var_def(self, var):
        """A variable where it is bound, by the method of its kind."""
        getattr(self, f"visit_{_def_kind(var)}_")(var)

    def visit_var_def_(self, var):
        """A variable where it is bound."""
        pass

    visit_dataflow_var_def_ = visit_var_def_

    def visit_span(self, span):
        """A place in a source: graphs have none."""
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


class PyExprMutator(ExprFunctor):
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
        self._replaced[_variable("set_var_remap", var)] = replacement

    def get_var_remap(self, var):
        """What stands for a variable from here on. Errors: KeyError where it stands for itself; TypeError for what is no variable."""
        if _variable("get_var_remap", var) not in self._replaced:
            raise KeyError(f"get_var_remap: {var.name_hint} stands for itself\n  needs: set_var_remap, or a new variable by visit_var_def")
        return self._replaced[var]

    def with_struct_info(self, var, struct_info):
        """The variable where its struct info is this one, else a new one of its name. Errors: TypeError for what is no variable."""
        if _variable("with_struct_info", var).struct_info is not None and _core.structural_equal(var.struct_info, struct_info, False):
            return var
        return _core.graph_var(var.name_hint, struct_info, isinstance(var, R.DataflowVar))

    def visit_with_new_scope(self, expr, params=()):
        """What stands in the place of a body: what is emitted meanwhile is bound in it. `params`: variables of the scope."""
        core = self.builder_._core
        core.begin_scope(list(params))
        core.begin_block(False)
        body = self.visit_expr(expr)
        before = core.end_block()
        if before.bindings:
            blocks, body = ([*body.blocks], body.body) if isinstance(body, R.SeqExpr) else ([], body)
            body = _core.make(R.SeqExpr, [[before, *blocks], body, None])
        core.end_scope()
        return body

    # Functions, blocks, bindings.

    def visit_function_(self, f):
        """What stands in the place of a function."""
        core = self.builder_._core
        params = [self.visit_var_def(p) for p in f.params]
        self._replaced.update((old, new) for old, new in zip(f.params, params) if not new.same_as(old))
        body = self.visit_with_new_scope(f.body, params)
        if _same(params, f.params) and body.same_as(f.body):
            return f
        blocks, result = (body.blocks, body.body) if isinstance(body, R.SeqExpr) else ([], body)
        core.begin_scope(params)
        core.begin_block(False)
        result = core.normalize(result)
        last = core.end_block()
        blocks = [b for b in (*blocks, last) if b.bindings]
        return core.end_function(params, blocks, result, f.attrs, f.is_pure)

    def visit_binding_block(self, block):
        """The block with its bindings rewritten, by the method of its kind."""
        return getattr(self, f"visit_{_block_kind(block)}_")(block)

    def visit_binding_block_(self, block):
        """The block with its bindings rewritten."""
        core = self.builder_._core
        core.begin_block(block.is_dataflow)
        for binding in block.bindings:
            self.visit_binding(binding)
        done = core.end_block()
        return block if _same(done.bindings, block.bindings) else done

    visit_dataflow_block_ = visit_binding_block_

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
        if value.same_as(binding.value) and var.same_as(binding.var):
            core.emit_binding(binding)
            return
        if value.struct_info is not None:
            var = self.with_struct_info(var, value.struct_info)
        if not var.same_as(binding.var):
            self._replaced[binding.var] = var
        core.emit_binding(_core.make(R.VarBinding, [value, var]))

    def visit_match_cast_(self, binding):
        """What stands in the place of var = match_cast(value)."""
        value = self.builder_._core.normalize(self.visit_expr(binding.value))
        var = self.visit_var_def(binding.var)
        if value.same_as(binding.value) and var.same_as(binding.var):
            self.builder_._core.emit_binding(binding)
            return
        if not var.same_as(binding.var):
            self._replaced[binding.var] = var
        self.builder_._core.emit_binding(_core.make(R.MatchCast, [value, binding.struct_info, var]))

    def visit_var_def(self, var):
        """The variable that shall be bound in its place, by the method of its kind."""
        return getattr(self, f"visit_{_def_kind(var)}_")(var)

    def visit_var_def_(self, var):
        """The variable that shall be bound in its place."""
        return var

    visit_dataflow_var_def_ = visit_var_def_

    def visit_span(self, span):
        """A place in a source: graphs have none."""
        return span

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
        core = self.builder_._core
        blocks = [self.visit_binding_block(b) for b in seq.blocks]
        core.begin_block(False)
        body = self.visit_expr(seq.body)
        last = core.end_block()
        if not last.bindings and body.same_as(seq.body) and _same(blocks, seq.blocks):
            return seq
        return _core.make(R.SeqExpr, [[b for b in (*blocks, last) if b.bindings], body, None])

    def visit_if_(self, e):
        """What stands in the place of an If."""
        parts = [self.visit_expr(e.cond), self.visit_with_new_scope(e.true_branch), self.visit_with_new_scope(e.false_branch)]
        return e if _same(parts, [e.cond, e.true_branch, e.false_branch]) else _core.make(R.If, [*parts, None])

    def visit_local_function_(self, f):
        """What stands in the place of a function inside of another one."""
        function = self.visit_expr(f.function)
        return f if function.same_as(f.function) else _core.make(R.LocalFunction, [function, None])

    def _leaf(self, expr):
        """An expression without parts."""
        return expr

    visit_constant_ = visit_shape_expr_ = visit_global_var_ = visit_extern_func_ = visit_op_ = _leaf
    visit_prim_value_ = visit_string_imm_ = visit_data_type_imm_ = _leaf


def _same(a, b):
    return len(a) == len(b) and all(x.same_as(y) for x, y in zip(a, b))


def _variable(call, var):
    if not isinstance(var, R.Var):
        raise TypeError(f"{call}: {var!r} is a {type(var).__name__}\n  needs: a relax.Var")
    return var
