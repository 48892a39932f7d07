"""The tree of a graph as text: which nodes it has, and their fields."""
from sator import _core
from sator.ir.types import Type

R = _core.relax


def dump_ast(exp, indent_str="    ", include_struct_info_annotations=True, include_type_annotations=False, include_call_attrs=True):
    """The tree of an expression, a binding, or a block of bindings, a node as `Kind(field=value, ...)`.

      indent_str                        what a level is indented by
      include_struct_info_annotations   whether expressions show their struct_info
      include_type_annotations          whether they show as checked_type_ what struct_info says without shapes
      include_call_attrs                whether calls show their attributes

    Errors: TypeError for what is no part of a graph.
    """
    return ASTPrinter(indent_str, include_struct_info_annotations, include_type_annotations, include_call_attrs).visit_expr(exp)


class ASTPrinter:
    """What dump_ast prints with, by the same options."""

    def __init__(self, indent_str="    ", include_struct_info_annotations=True, include_type_annotations=False, include_call_attrs=True):
        if not isinstance(indent_str, str):
            raise TypeError(f"ASTPrinter: indent_str = {indent_str!r} is a {type(indent_str).__name__}\n  needs: a text")
        self.indent_str, self.include_call_attrs = indent_str, include_call_attrs
        self.include_struct_info_annotations, self.include_type_annotations = include_struct_info_annotations, include_type_annotations

    def visit_expr(self, expr):
        """The text of an expression, a binding or a block of bindings. Errors: TypeError for anything else."""
        for kind, fields in _FIELDS:
            if isinstance(expr, kind):
                name = "Function" if kind is R.LocalFunction else type(expr).__name__
                if kind is R.BindingBlock and expr.is_dataflow:
                    name = "DataflowBlock"
                return self._node(name, {**fields(self, expr), **self._annotations(expr)})
        raise TypeError(f"dump_ast: {expr!r} is a {type(expr).__name__}\n  needs: an expression of a graph, a binding, or a block of bindings")

    def visit_prim_expr_(self, prim_expr):
        """The text of a size, as a program writes it."""
        return self._node("PrimExpr", {"value": f"`{_size(prim_expr)}`"})

    def visit_struct_info_(self, info):
        """The text of struct_info. Errors: TypeError for anything else."""
        if hasattr(info, "_node"):  # R.Tensor(...)
            info = info._node()
        if isinstance(info, R.ShapeStructInfo):
            fields = {"ndim": info.ndim}
            if info.values is not None:
                fields["values"] = self._list(map(self.visit_prim_expr_, info.values))
        elif isinstance(info, R.ObjectStructInfo):
            fields = {}
        elif isinstance(info, R.PrimStructInfo):
            fields = {"dtype": info.dtype}
        elif isinstance(info, R.TensorStructInfo):
            fields = {"dtype": info.dtype, **({"ndim": info.ndim} if info.shape is None else {"shape": self.visit_expr(info.shape)})}
        elif isinstance(info, R.TupleStructInfo):
            fields = {"fields": self._list(map(self.visit_struct_info_, info.fields))}
        elif isinstance(info, R.FuncStructInfo):
            fields = {} if info.params is None else {"params": self._list(map(self.visit_struct_info_, info.params))}
            fields.update(ret=self.visit_struct_info_(info.ret), purity=info.pure)
        else:
            raise TypeError(f"visit_struct_info_: {info!r} is a {type(info).__name__}\n  needs: struct_info")
        return self._node(type(info).__name__, fields)

    def visit_type_(self, type_node):
        """The text of a type. Errors: TypeError for anything else."""
        if not isinstance(type_node, Type):
            raise TypeError(f"visit_type_: {type_node!r} is a {type(type_node).__name__}\n  needs: a type, as expr.checked_type gives it")
        fields = {name: getattr(type_node, name) for name in type_node._fields if getattr(type_node, name) != ""}
        return self._node(type(type_node).__name__, {
            name: self._list(map(self.visit_type_, v)) if isinstance(v, tuple) else self.visit_type_(v) if isinstance(v, Type) else v for name, v in fields.items()})

    def _annotations(self, expr):
        """The struct_info of an expression, as asked for; functions by a name and operators have none."""
        info = None if isinstance(expr, (R.ExternFunc, R.Op, R.VarBinding, R.MatchCast, R.BindingBlock)) else expr.struct_info
        if info is None:
            return {}
        return {**({"struct_info": self.visit_struct_info_(info)} if self.include_struct_info_annotations else {}),
                **({"checked_type_": self.visit_type_(expr.checked_type)} if self.include_type_annotations else {})}

    def _exprs(self, exprs):
        return self._list(map(self.visit_expr, exprs))

    def _call(self, call):
        fields = {"op": self.visit_expr(call.op), "args": self._exprs(call.args)}
        if call.sinfo_args:
            fields["sinfo_args"] = self._list(map(self.visit_struct_info_, call.sinfo_args))
        if call.attrs and self.include_call_attrs:
            fields["attrs"] = self._list([f'"{k}": {_attr(v)}' for k, v in call.attrs.items()], "{}")
        return fields

    def _function(self, func):
        fields = {"params": self._exprs(func.params), "body": self.visit_expr(func.body), "ret_struct_info": self.visit_struct_info_(func.ret_struct_info),
                  "is_pure": func.is_pure}
        if func.attrs:
            fields["attrs"] = self._list([f'"{k}": {_attr(v)}' for k, v in func.attrs.items()], "{}")
        return fields

    def _node(self, name, fields):
        return name + self._list([f"{k}={v}" for k, v in fields.items()], "()")

    def _list(self, items, brackets="[]"):
        """One item on the line of its brackets, more on lines of their own."""
        items = list(items)
        if len(items) < 2 and not any("\n" in item for item in items):
            return "".join(items).join(brackets)
        lines = ",\n".join(items).split("\n")
        return "\n".join([brackets[0], *(self.indent_str + line if line else line for line in lines), brackets[1]])


def _attr(value):
    return f'"{value}"' if isinstance(value, str) else str(value)


def _size(value):
    return f"T.int64({value})" if isinstance(value, int) else str(value)


# What is printed of each kind; the first that fits counts.
_FIELDS = (
    (R.DataflowVar, lambda p, e: {"name_hint": _attr(e.name_hint)}),
    (R.Var, lambda p, e: {"name_hint": _attr(e.name_hint)}),
    (R.GlobalVar, lambda p, e: {"name_hint": _attr(e.name_hint)}),
    (R.ExternFunc, lambda p, e: {"global_symbol": _attr(e.global_symbol)}),
    (R.Op, lambda p, e: {"name": _attr(e.name)}),
    (R.Constant, lambda p, e: {"data": e.data}),
    (R.Tuple, lambda p, e: {"fields": p._exprs(e.fields)}),
    (R.TupleGetItem, lambda p, e: {"tuple_value": p.visit_expr(e.tuple_value), "index": e.index}),
    (R.ShapeExpr, lambda p, e: {"values": p._list(map(p.visit_prim_expr_, e.values))}),
    (R.PrimValue, lambda p, e: {"value": p.visit_prim_expr_(e.value)}),
    (R.StringImm, lambda p, e: {"value": _attr(e.value)}),
    (R.DataTypeImm, lambda p, e: {"value": e.value}),
    (R.Call, ASTPrinter._call),
    (R.If, lambda p, e: {"cond": p.visit_expr(e.cond), "true_branch": p.visit_expr(e.true_branch), "false_branch": p.visit_expr(e.false_branch)}),
    (R.SeqExpr, lambda p, e: {"blocks": p._exprs(e.blocks), "body": p.visit_expr(e.body)}),
    (R.Function, ASTPrinter._function),
    (R.LocalFunction, lambda p, e: p._function(e.function)),
    (R.VarBinding, lambda p, e: {"var": p.visit_expr(e.var), "value": p.visit_expr(e.value)}),
    (R.MatchCast, lambda p, e: {"var": p.visit_expr(e.var), "value": p.visit_expr(e.value), "struct_info": p.visit_struct_info_(e.struct_info)}),
    (R.BindingBlock, lambda p, e: {"bindings": p._exprs(e.bindings)}),
)
