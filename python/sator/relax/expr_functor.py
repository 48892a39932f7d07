"""Walks over graphs, and rewrites of them, written in Python: a method per kind of expression.

Methods are called visit_call_, visit_var_, visit_dataflow_var_, visit_tuple_, visit_tuple_getitem_, visit_constant_, visit_shape_expr_,
visit_global_var_, visit_extern_func_, visit_op_, visit_prim_value_, visit_string_imm_, visit_data_type_imm_, visit_seq_expr_, visit_if_,
visit_function_; for bindings visit_var_binding_ and visit_match_cast_, for their blocks visit_binding_block_ and visit_dataflow_block_, for
variables where they are bound visit_var_def_ and visit_dataflow_var_def_. A shape inside of struct info is an expression like others.
"""
from sator import _core
from sator.extend import extends
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


def visitor(cls):
    """Marks a class of visitors, as TVM asks for. Classes that inherit from it may name it, or as in TVM its `_cls`."""
    cls._cls = cls
    return cls


mutator = visitor


class Id:
    """What tells a variable from others of its name: `Var.vid`."""

    def __init__(self, var):
        self._var, self.name_hint = var, var.name_hint

    def __eq__(self, other):
        return isinstance(other, Id) and self._var.same_as(other._var)

    def __hash__(self):
        return hash(self._var)

    def __repr__(self):
        return f"Id({self.name_hint})"


extends(R.Var)(type("_Identified", (), {"vid": property(Id, doc="What tells it from other variables of its name."), "__module__": __name__}))


def _var_of(method, var):
    """The variable that is given itself or by its vid."""
    given = var._var if isinstance(var, Id) else var
    if not isinstance(given, R.Var):
        raise TypeError(f"{method}: {var!r} is a {type(var).__name__}\n  needs: a relax.Var, or its vid")
    return given


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

    def _visit_info(self, info):
        """The shapes in struct info; a function's are its own."""
        if isinstance(info, R.TensorStructInfo):
            if info.shape is not None:
                self.visit_expr(info.shape)
        elif isinstance(info, R.TupleStructInfo):
            for field in info.fields:
                self._visit_info(field)

    # Blocks, bindings.

    def visit_binding_block_(self, block):
        """Looks at bindings in order."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block):
        """Looks at the bindings of a dataflow block in order."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_binding_(self, binding):
        """Looks at var = value."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding):
        """Looks at var = match_cast(value)."""
        self.visit_expr(binding.value)
        self._visit_info(binding.struct_info)
        self.visit_var_def(binding.var)

    def visit_var_def_(self, var):
        """A variable where it is bound."""
        pass

    def visit_dataflow_var_def_(self, var):
        """A variable of a dataflow block where it is bound: visit_var_def_ looks at it."""
        self.visit_var_def_(var)

    # Expressions.

    def visit_call_(self, call):
        """Looks at a call."""
        self.visit_expr(call.op)
        for info in call.sinfo_args:
            self._visit_info(info)
        for a in call.args:
            self.visit_expr(a)
        self._visit_info(call.struct_info)

    def visit_tuple_(self, t):
        """Looks at a tuple."""
        for f in t.fields:
            self.visit_expr(f)
        self._visit_info(t.struct_info)

    def visit_tuple_getitem_(self, t):
        """Looks at an item of a tuple."""
        self.visit_expr(t.tuple_value)
        self._visit_info(t.struct_info)

    def visit_seq_expr_(self, seq):
        """Looks at blocks of bindings and their result."""
        for block in seq.blocks:
            self.visit_binding_block(block)
        self.visit_expr(seq.body)
        self._visit_info(seq.struct_info)

    def visit_if_(self, e):
        """Looks at an If."""
        for part in (e.cond, e.true_branch, e.false_branch):
            self.visit_expr(part)
        self._visit_info(e.struct_info)

    def visit_function_(self, f):
        """Looks at a function."""
        for p in f.params:
            self.visit_var_def(p)
        self.visit_expr(f.body)

    def visit_local_function_(self, f):
        """Looks at a function inside of another one."""
        self.visit_expr(f.function)

    def _variable(self, var):
        """A variable where it is read."""
        self._visit_info(var.struct_info)

    visit_var_ = visit_dataflow_var_ = _variable

    def _leaf(self, expr):
        """An expression without parts."""
        pass

    visit_constant_ = visit_shape_expr_ = visit_global_var_ = visit_extern_func_ = visit_op_ = _leaf
    visit_prim_value_ = visit_string_imm_ = visit_data_type_imm_ = _leaf


class PyExprMutator(ExprFunctor):
    """Rewrites a graph: each method gives what stands in the place of its expression.

    builder_    emits bindings before the one that is being rewritten, and holds the module
    """

    def __init__(self, mod=None):
        self.builder_ = BlockBuilder(mod)
        self._replaced = {}

    def visit_expr(self, expr):
        """What stands in the place of an expression, by the method of its kind; with struct info. Errors: TypeError for a method that gives nothing."""
        new = super().visit_expr(expr)
        if new is None:
            raise TypeError(f"visit_{_kind(expr)}_ of {type(self).__name__} gives nothing\n  needs: the expression that takes this one's place\n"
                            "  hint:  return super().visit_..._(expr) where it stays")
        return self._normal(new)

    def visit_expr_post_order(self, expr):
        """The expression with its parts rewritten."""
        return getattr(PyExprMutator, f"visit_{_kind(expr)}_")(self, expr)

    def visit_with_new_scope(self, expr):
        """What stands in the place of a branch: its symbolic sizes are known there alone."""
        core = self.builder_._core
        core.begin_scope([])
        try:
            return self._visit(expr)
        finally:
            core.end_scope()

    def lookup_binding(self, var):
        """What a variable is bound to, or None."""
        return self.builder_.lookup_binding(var)

    def set_var_remap(self, vid, var):
        """From here on an expression stands for a variable, which is given itself or by its vid. Errors: TypeError for what is no variable."""
        self._replaced[_var_of("set_var_remap", vid)] = var

    def get_var_remap(self, vid):
        """What stands for a variable, which is given itself or by its vid. Errors: KeyError, nothing does."""
        var = _var_of("get_var_remap", vid)
        if var not in self._replaced:
            raise KeyError(f"get_var_remap: nothing stands for {var.name_hint}\n  needs: set_var_remap before")
        return self._replaced[var]

    def with_struct_info(self, var, struct_info):
        """The variable where it has this struct info, else a new one of its name. Errors: TypeError for what is none."""
        _var_of("with_struct_info", var)
        info = getattr(struct_info, "_node", lambda: struct_info)()
        if not isinstance(info, _core.StructInfo):
            raise TypeError(f"with_struct_info: {struct_info!r} is a {type(struct_info).__name__}\n  needs: struct info, such as R.Tensor((4,), \"float32\")")
        if var.struct_info is not None and _core.structural_equal(var.struct_info, info, False):
            return var
        return _core.graph_var(var.name_hint, info, isinstance(var, R.DataflowVar))

    def _normal(self, expr):
        return self.builder_._core.normalize(expr) if isinstance(expr, _core.RelaxExpr) and not isinstance(expr, _CALLEES) else expr

    def _visit(self, expr):
        """As visit_expr, with struct info also where that is the user's own."""
        return self._normal(self.visit_expr(expr))

    def _visit_info(self, info):
        """Struct info with its shapes rewritten; a function's are its own."""
        if isinstance(info, R.TensorStructInfo):
            shape = None if info.shape is None else self._visit(info.shape)
            return info if shape is None or shape.same_as(info.shape) else _with_shape(info, shape)
        if isinstance(info, R.TupleStructInfo):
            fields = [self._visit_info(field) for field in info.fields]
            return info if _same(fields, info.fields) else _core.make(R.TupleStructInfo, [fields])
        return info

    def _keeps_info(self, expr):
        info = expr.struct_info
        return info is None or self._visit_info(info).same_as(info)

    # Functions, blocks, bindings.

    def visit_function_(self, f):
        """What stands in the place of a function."""
        core = self.builder_._core
        params = []
        for p in f.params:
            params.append(self.visit_var_def(p))
            if not params[-1].same_as(p):
                self._replaced[p] = params[-1]
        core.begin_scope(params)
        body = self._visit(f.body)
        if body.same_as(f.body) and _same(params, f.params):
            core.end_scope()
            return f
        blocks, result = (body.blocks, body.body) if isinstance(body, R.SeqExpr) else ([], body)
        return core.end_function(params, blocks, result, f.attrs, f.is_pure)

    def _rewritten_block(self, block):
        core = self.builder_._core
        core.begin_block(block.is_dataflow)
        for binding in block.bindings:
            self.visit_binding(binding)
        out = core.end_block()
        return block if _same(out.bindings, block.bindings) else out

    def visit_binding_block_(self, block):
        """The block with its bindings rewritten."""
        return self._rewritten_block(block)

    def visit_dataflow_block_(self, block):
        """The dataflow block with its bindings rewritten."""
        return self._rewritten_block(block)

    def visit_var_binding_(self, binding):
        """What stands in the place of var = value."""
        core = self.builder_._core
        value = self._visit(binding.value)
        var = self.visit_var_def(binding.var)
        if value.same_as(binding.value) and var.same_as(binding.var):
            core.emit_binding(binding)
            return
        if value.struct_info is not None:
            var = self.with_struct_info(var, value.struct_info)
        self._bind(binding.var, var)
        core.emit_binding(_core.make(R.VarBinding, [value, var]))

    def visit_match_cast_(self, binding):
        """What stands in the place of var = match_cast(value)."""
        core = self.builder_._core
        value = self._visit(binding.value)
        info = self._visit_info(binding.struct_info)
        var = self.visit_var_def(binding.var)
        if value.same_as(binding.value) and var.same_as(binding.var) and info.same_as(binding.struct_info):
            core.emit_binding(binding)
            return
        if isinstance(value, R.Call):
            value = core.emit(value, "")
        var = self.with_struct_info(var, info)
        self._bind(binding.var, var)
        core.emit_binding(_core.make(R.MatchCast, [value, info, var]))

    def _bind(self, old, new):
        if not new.same_as(old):
            self._replaced[old] = new

    def visit_var_def_(self, var):
        """The variable that shall be bound in its place."""
        info = None if var.struct_info is None else self._visit_info(var.struct_info)
        return var if info is None or info.same_as(var.struct_info) else _core.graph_var(var.name_hint, info, isinstance(var, R.DataflowVar))

    def visit_dataflow_var_def_(self, var):
        """The variable of a dataflow block that shall be bound in its place: what visit_var_def_ gives, as one."""
        new = self.visit_var_def_(var)
        return new if isinstance(new, R.DataflowVar) else _core.graph_var(new.name_hint, new.struct_info, True)

    # Expressions.

    def _variable(self, var):
        """What stands in the place of a variable: what set_var_remap said, or itself."""
        return self._replaced.get(var, var)

    visit_var_ = visit_dataflow_var_ = _variable

    def visit_call_(self, call):
        """What stands in the place of a call."""
        op = self._visit(call.op)
        infos = [self._visit_info(info) for info in call.sinfo_args]
        args = [self._visit(a) for a in call.args]
        if op.same_as(call.op) and _same(infos, call.sinfo_args) and _same(args, call.args) and self._keeps_info(call):
            return call
        return _core.graph_call(op, args, call.attrs, infos)

    def visit_tuple_(self, t):
        """What stands in the place of a tuple."""
        fields = [self._visit(f) for f in t.fields]
        return t if _same(fields, t.fields) else _core.tuple(fields)

    def visit_tuple_getitem_(self, t):
        """What stands in the place of an item of a tuple."""
        value = self._visit(t.tuple_value)
        return t if value.same_as(t.tuple_value) else _core.tuple_get(value, t.index)

    def visit_seq_expr_(self, seq):
        """What stands in the place of blocks of bindings and their result."""
        core = self.builder_._core
        blocks = [self.visit_binding_block(b) for b in seq.blocks]
        core.begin_block(False)
        body = self._visit(seq.body)
        last = core.end_block()
        is_same = _same(blocks, seq.blocks) and not last.bindings and body.same_as(seq.body)
        if is_same and (blocks or self._keeps_info(seq)):
            return seq
        return _core.make(R.SeqExpr, [[b for b in [*blocks, last] if b.bindings], body, None])

    def visit_if_(self, e):
        """What stands in the place of an If."""
        cond = self._visit(e.cond)
        branches = [self.visit_with_new_scope(e.true_branch), self.visit_with_new_scope(e.false_branch)]
        if cond.same_as(e.cond) and _same(branches, [e.true_branch, e.false_branch]) and self._keeps_info(e):
            return e
        return _core.make(R.If, [cond, *branches, None])

    def visit_local_function_(self, f):
        """What stands in the place of a function inside of another one."""
        function = self.visit_expr(f.function)
        return f if function.same_as(f.function) else _core.make(R.LocalFunction, [function, None])

    def _leaf(self, expr):
        """An expression without parts."""
        return expr

    visit_constant_ = visit_shape_expr_ = visit_global_var_ = visit_extern_func_ = visit_op_ = _leaf
    visit_prim_value_ = visit_string_imm_ = visit_data_type_imm_ = _leaf


_CALLEES = (R.Op, R.GlobalVar, R.ExternFunc)


def _with_shape(info, shape):
    return _core.make(R.TensorStructInfo, [shape if f == "shape" else getattr(info, f) for f in R.TensorStructInfo._fields])


def _same(a, b):
    return len(a) == len(b) and all(x.same_as(y) for x, y in zip(a, b))
