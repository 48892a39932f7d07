"""Losses: each makes a function of a graph that gives how far predictions are from what they should be.

    loss = CrossEntropyLoss(reduction="sum")
    func = loss(relax.TensorStructInfo((8, 10), "float32"), relax.TensorStructInfo((8,), "int64"))
"""
from sator import _core
from sator.relax.block_builder import BlockBuilder

_REDUCTIONS = ("mean", "sum", "none")


def _parameter(given, name):
    """A variable of its own, of a variable or of struct info."""
    if isinstance(given, _core.relax.Var):
        return _core.graph_var(given.name_hint, given.struct_info, False)
    if not isinstance(given, _core.StructInfo):
        raise TypeError(f"{name}: {given!r} is a {type(given).__name__}\n  needs: a relax.Var or struct info\n"
                        '  hint:  relax.TensorStructInfo((8, 10), "float32")')
    return _core.graph_var(name, given, False)


class Loss:
    """What all losses share. One of your own extends it and has `__call__`, which gives a relax.Function.

    loss_name              the name of the function
    num_backbone_outputs   how many results of a model it compares, which AppendLoss asks for
    reduction              "mean" over all elements, "sum", or "none": the elements themselves
    Errors: ValueError for another reduction.
    """

    def __init__(self, loss_name, num_backbone_outputs, reduction="mean"):
        if reduction not in _REDUCTIONS:
            raise ValueError(f"{loss_name}: reduction = {reduction!r}\n  needs: one of {', '.join(_REDUCTIONS)}")
        self._loss_name, self._num_backbone_outputs, self._reduction = loss_name, num_backbone_outputs, reduction

    @property
    def num_backbone_outputs(self):
        """How many results of a model the loss compares."""
        return self._num_backbone_outputs

    def _with_reduction(self, expr):
        from sator.relax import op

        return {"mean": op.mean, "sum": op.sum, "none": lambda x: x}[self._reduction](expr)

    def _function(self, params, compute):
        """The function that binds what `compute(bb)` gives, its last expression as the result."""
        bb = BlockBuilder()
        with bb.function(self._loss_name, params):
            with bb.dataflow():
                result = bb.emit_output(compute(bb))
            bb.emit_func_output(result)
        return bb.get()[self._loss_name]


class _OfDifferences(Loss):
    """A loss of the differences between predictions and targets, element by element."""

    def _of(self, bb, difference):
        """Each element's loss."""
        raise NotImplementedError

    def __call__(self, predictions, targets):
        """The loss as a function of the variables or struct info given. Errors: TypeError for anything else."""
        from sator.relax import op

        p, t = _parameter(predictions, "predictions"), _parameter(targets, "targets")
        return self._function([p, t], lambda bb: self._with_reduction(self._of(bb, op.subtract(p, t))))


class L1Loss(_OfDifferences):
    """|predictions - targets|.

        predictions, targets   [...] floating, of the same shape
        →                      [] of that dtype; [...] with reduction="none"
    """

    def __init__(self, reduction="mean"):
        super().__init__("l1_loss", 1, reduction)

    def _of(self, bb, difference):
        from sator.relax import op

        return op.abs(difference)


class MSELoss(_OfDifferences):
    """(predictions - targets)^2.

        predictions, targets   [...] floating, of the same shape
        →                      [] of that dtype; [...] with reduction="none"
    """

    def __init__(self, reduction="mean"):
        super().__init__("mse_loss", 1, reduction)

    def _of(self, bb, difference):
        from sator.relax import op

        difference = bb.emit(difference)
        return op.multiply(difference, difference)


class CrossEntropyLoss(Loss):
    """-weights[c] * log(softmax(predictions)[c]) of each row's class c.

        predictions   [n, classes] floating: logits
        targets       [n] integer: classes
        weights       [classes] of the dtype of predictions, or None: 1
        →             [] of that dtype; [n] with reduction="none"

    With "mean" the sum is divided by the sum of the weights used. Rows of the class `ignore_index` do not count.
    """

    def __init__(self, reduction="mean", ignore_index=-100):
        super().__init__("cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def __call__(self, predictions, targets, weights=None):
        """The loss as a function of the variables or struct info given. Errors: TypeError for anything else."""
        from sator.relax import op

        p, t, w = _classified(predictions, targets, weights)
        return self._function([v for v in (p, t, w) if v is not None],
                              lambda bb: op.nn.nll_loss(bb.emit(op.nn.log_softmax(p)), t, w, self._reduction, self.ignore_index))


class CategoricalCrossEntropyLoss(Loss):
    """CrossEntropyLoss of targets that mark each row's class by a one.

        predictions   [n, classes] floating: logits
        targets       [n, classes] integer: 1 at the class, 0 elsewhere
        weights       [classes] of the dtype of predictions, or None: 1
        →             [] of that dtype; with reduction="none" [n, classes], or [n] where a class is ignored

    Where no class is ignored (`ignore_index` below 0), "mean" divides by n * classes, as TVM does, and by the sum of the weights used where one is.
    """

    def __init__(self, reduction="mean", ignore_index=-100):
        super().__init__("categorical_cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def __call__(self, predictions, targets, weights=None):
        """The loss as a function of the variables or struct info given. Errors: TypeError for anything else, or targets that are no integers."""
        from sator.relax import op

        p, t, w = _classified(predictions, targets, weights)
        dtype = getattr(t.struct_info, "dtype", None)
        if "int" not in str(dtype):
            raise TypeError(f"categorical_cross_entropy_loss: targets of dtype {dtype}\n  needs: integers, 1 at each row's class and 0 elsewhere")

        def compute(bb):
            logits = bb.emit(op.nn.log_softmax(p))
            if self.ignore_index >= 0:
                classes = bb.emit(op.reshape(op.argmax(t, axis=1), shape=(t.struct_info.shape[0],)))
                return op.nn.nll_loss(logits, classes, w, self._reduction, self.ignore_index)
            loss = bb.emit(-logits * t.astype(p.struct_info.dtype))
            return self._with_reduction(loss if w is None else bb.emit(loss * w))

        return self._function([v for v in (p, t, w) if v is not None], compute)


def _classified(predictions, targets, weights):
    return (_parameter(predictions, "predictions"), _parameter(targets, "targets"),
            None if weights is None else _parameter(weights, "weights"))
