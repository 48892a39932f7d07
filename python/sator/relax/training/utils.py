"""A loss behind a model."""
from sator import _core, transform
from sator.error import TVMError
from sator.relax.expr_functor import PyExprMutator


def AppendLoss(func_name, loss_function, num_backbone_outputs=1, new_func_name=None):  # noqa: N802
    """A pass that adds the function of a model and its loss: what the loss takes besides, it takes after the model's parameters.

    func_name              the model: one dataflow block, and a variable or a tuple of variables as the result
    loss_function          a relax.Function of one dataflow block that gives a scalar, as losses without reduction "none" do
    num_backbone_outputs   how many of the model's results, the first ones, the loss takes first. The others follow the loss in the new result
    new_func_name          the new function's name; `func_name` with "_loss" else

    Errors: TVMError where the functions are of another form, or a parameter of the loss is another tensor than the model's result.
    """
    name = new_func_name or f"{func_name}_loss"

    def run(mod, ctx):
        if not isinstance(mod[func_name], _core.relax.Function):
            raise _error(func_name, "it is no function of a graph", "a relax.Function")
        joined = _joined(func_name, _core.fresh_graph(mod[func_name]), _core.fresh_graph(loss_function), num_backbone_outputs)
        return _core.module({**mod.functions, name: joined.with_attr("global_symbol", name)}, mod.attrs, mod.global_infos)

    return transform.module_pass(run, name="AppendLoss")


def _error(name, what, needs):
    return TVMError(f"error: AppendLoss: {name}: {what}\n  needs: {needs}")


def _one_block(name, func):
    blocks = func.body.blocks
    if len(blocks) != 1 or not blocks[0].is_dataflow:
        raise _error(name, f"it has {len(blocks)} blocks of bindings{'' if len(blocks) != 1 else ', which are no dataflow'}", "one dataflow block")
    return blocks[0]


def _with_sizes_of(results, loss):
    """The loss with its symbolic sizes bound to those of the results that it takes."""
    sizes = {}
    for var, param in zip(results, loss.params):
        dims = [getattr(v.struct_info, "shape", None) or () for v in (param, var)]
        sizes.update({size: other for size, other in zip(*dims) if isinstance(size, _core.tir.Var)})
    return loss.bind_symbolic_vars(sizes) if sizes else loss


class _Renamed(PyExprMutator):
    """Variables replaced where they are bound, too."""

    def visit_var_def(self, var):
        return self.visit_var_(var)


def _joined(name, model, loss, count):
    from sator import relax

    block, result = _one_block(name, model), model.body.body
    results = list(result.fields) if isinstance(result, relax.Tuple) else [result]
    if not all(isinstance(r, relax.Var) for r in results):
        raise _error(name, "a result is no variable", "a variable or a tuple of variables as the result")
    for what, given in ((f"{name} has {len(results)} results", results), (f"the loss has {len(loss.params)} parameters", loss.params)):
        if len(given) < count:
            raise _error("num_backbone_outputs", what, f"at least {count}")
    loss = _with_sizes_of(results[:count], loss)
    loss_block, scalar = _one_block("the loss", loss), loss.body.body
    if not isinstance(scalar, relax.Var) or getattr(scalar.struct_info, "ndim", None) != 0:
        raise _error("the loss", f"its result is {scalar.struct_info}", "a variable that is a scalar\n  hint:  a loss with reduction \"mean\" or \"sum\"")

    rewrite = _Renamed()
    for i, (var, param) in enumerate(zip(results[:count], loss.params)):
        if not _core.structural_equal(var.struct_info, param.struct_info, False):
            raise _error(name, f"result {i} is {var.struct_info}, the loss takes {param.struct_info}", "the same tensor in both")
        if rewrite.visit_var_(var).same_as(var) and not any(var.same_as(other) for other in [*results[count:], *model.params]):  # it leaves the function no more
            rewrite.set_var_remap(var, _core.graph_var(var.name_hint, var.struct_info, True))
        rewrite.set_var_remap(param, rewrite.visit_var_(var))
    given = [scalar, *results[count:]]
    body = relax.SeqExpr([relax.DataflowBlock([*block.bindings, *loss_block.bindings])], given[0] if len(given) == 1 else relax.Tuple(given))
    return rewrite.visit_expr(relax.Function([*model.params, *loss.params[count:]], body, None, model.is_pure, model.attrs))
