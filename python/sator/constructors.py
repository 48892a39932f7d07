"""How nodes are made: TVM's order of arguments where it is not the order of our fields. `name` is a field or TVM's name of one."""

# class: arguments; `=None` and the like: what is not given.
TIR = {
    "Allocate": "buffer_var dtype extents condition body annotations={}",
    "AttrStmt": "node attr_key value body",
    "Block": "iter_vars reads writes name_hint body init=None alloc_buffers=[] match_buffers=[] annotations={}",
    "For": "loop_var min extent kind body thread_binding=None annotations={}",
    "IfThenElse": "condition then_case else_case=None",
    "Let": "var value body",
    "LetStmt": "var value body",
    "PrimFunc": "params body ret_type=None buffer_map={} attrs={}",
}
RELAX = {
    "FuncStructInfo": "params ret purity=True",
    "Function": "params body ret_struct_info=None is_pure=True attrs={}",
    "BindingBlock": "bindings is_dataflow=False",
    "Constant": "data struct_info=None",
    "MatchCast": "var value struct_info",
    "VarBinding": "var value",
}
IR = {
    "VDevice": "target='llvm' vdevice_id=0 memory_scope='global'",
}
# Names that are neither a field nor an alias of one.
_OTHER_NAMES = {"name_hint": "name", "thread_binding": "thread", "purity": "pure", "loop_var": "var", "struct_info": "sinfo"}


def signature(cls, text, names):
    """Pairs of a field and its default (or Ellipsis), in the order of the arguments, and {argument: field}."""
    import ast

    order, defaults, fields = [], {}, {}
    for word in text.split(" "):
        name, _, default = word.partition("=")
        field = names.get(name) or _OTHER_NAMES[name]
        order.append(field)
        fields[name] = field
        if default:
            defaults[field] = ast.literal_eval(default)
    return order, defaults, fields
