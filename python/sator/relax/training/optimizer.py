"""Optimizers: each makes a function of a graph that takes one step.

    optimizer = SGD(0.1).init([w, b])
    mod["SGD"] = optimizer.get_function()
    vm = relax.VirtualMachine(relax.build(mod), sator.cpu())
    params, optimizer.state = vm["SGD"](params, gradients, optimizer.state)

The function takes three tuples, of the parameters, of their gradients and of the state, and gives the new parameters and the new state.
"""
from decimal import Decimal

from sator import _core
from sator.relax.block_builder import BlockBuilder


def _one_minus(x):
    """1 - x in decimal digits: 1 - 0.9 is the float nearest to 0.1, which in binary it is not."""
    return float(1 - Decimal(str(x)))


class Optimizer:
    """What all optimizers share. One of your own has `_update`, and says how much state it has.

    dtype        of the parameters and of the state; None before init
    param_list   the parameters: a list of relax.Var; None before init
    state        a tuple of tensors: the number of steps ([] int64), then what the optimizer keeps; None before init
    """

    _scalars = 0  # scalars that begin with 1, of the parameters' dtype
    _moments = 0  # tensors of each parameter's shape that begin with 0

    def __init__(self, name):
        self.name = name
        self.dtype = self.param_list = self.state = None

    def init(self, params):
        """Sets the parameters, and the state before the first step. The optimizer itself is the result.

        params   a relax.Var or a list of them: tensors of one floating dtype whose sizes are numbers
        Errors: ValueError for anything else, and for one that occurs twice.
        """
        from sator import nd

        params = list(params) if isinstance(params, (list, tuple)) else [params]
        self.dtype = self._common_dtype(params)
        self.param_list = params
        shapes = [_sizes(p) for p in params] * self._moments
        self.state = (_filled(nd, (), "int64", 0), *(_filled(nd, (), self.dtype, 1) for _ in range(self._scalars)),
                      *(_filled(nd, shape, self.dtype, 0) for shape in shapes))
        return self

    def _common_dtype(self, params):
        if not params:
            self._refuse("no parameters", "a relax.Var or a list of them")
        for p in params:
            if not isinstance(p, _core.relax.Var):
                self._refuse(f"{p!r} is a {type(p).__name__}", "a relax.Var or a list of them")
            info = p.struct_info
            if not isinstance(info, _core.relax.TensorStructInfo) or not str(info.dtype).startswith(("float", "bfloat")):
                self._refuse(f"the parameter {p.name_hint} is {info}", "tensors of a floating dtype")
            if info.dtype != params[0].struct_info.dtype:
                self._refuse(f"{p.name_hint} is {info.dtype}, {params[0].name_hint} is {params[0].struct_info.dtype}", "parameters of one dtype")
            if sum(p.same_as(other) for other in params) > 1:
                self._refuse(f"the parameter {p.name_hint} occurs twice", "each parameter once")
        return str(params[0].struct_info.dtype)

    def _refuse(self, what, needs):
        raise ValueError(f"{self.name}.init: {what}\n  needs: {needs}")

    def get_function(self):
        """One step as a relax.Function, (params, gradients, optim_states) -> (params, optim_states).

        Errors: RuntimeError before init; NotImplementedError of an optimizer without `_update`.
        """
        from sator import relax

        if self.state is None:
            raise RuntimeError(f"{self.name}.get_function before init\n  needs: the parameters\n  hint:  {self.name}(...).init([w, b]).get_function()")
        infos = [p.struct_info for p in self.param_list]
        scalar = relax.TensorStructInfo((), self.dtype)
        held = [relax.TensorStructInfo((), "int64"), *[scalar] * self._scalars, *infos * self._moments]
        params, grads, state = (relax.Var(name, relax.TupleStructInfo(fields))
                                for name, fields in (("params", infos), ("gradients", infos), ("optim_states", held)))
        bb = BlockBuilder()
        with bb.function(self.name, [params, grads, state]):
            with bb.dataflow():
                steps = bb.emit(state[0], "num_steps")
                kept = [bb.emit(relax.op.add(steps, relax.const(1, "int64")), "num_steps_new"), *self._scalars_after(bb, state)]
                stepped, moments = [], [[] for _ in range(self._moments)]
                for i, p in enumerate(self.param_list):
                    name, first = p.name_hint, 1 + self._scalars + i
                    value, grad = bb.emit(params[i], name), bb.emit(grads[i], name + "_grad")
                    before = [bb.emit(state[first + k * len(infos)], f"{name}_{self._moment_names[k]}") for k in range(self._moments)]
                    value, after = self._update(bb, name, value, grad, before, kept)
                    stepped.append(value)
                    for all_of_a_kind, moment in zip(moments, after):
                        all_of_a_kind.append(moment)
                results = (bb.emit_output(relax.Tuple(stepped), "params_new"),
                           bb.emit_output(relax.Tuple([*kept, *(m for of_a_kind in moments for m in of_a_kind)]), "optim_states_new"))
            bb.emit_func_output(relax.Tuple(results))
        return bb.get()[self.name]

    def _scalars_after(self, bb, state):
        """The state's scalars after the step."""
        return []

    def _update(self, bb, name, param, grad, moments, scalars):
        """The parameter after a step and its moments, bound by `bb`. `scalars` are those after the step, the number of steps first."""
        raise NotImplementedError(f"{type(self).__name__} has no _update\n  needs: _update(bb, name, param, grad, moments, scalars)")

    def _const(self, value):
        from sator import relax

        return relax.const(value, self.dtype)

    def _decayed(self, bb, name, param, grad):
        """The gradient with that of weight_decay / 2 * |param|^2."""
        from sator.relax import op

        if not self.weight_decay:
            return grad
        return bb.emit(op.add(op.multiply(self._const(self.weight_decay), param), grad), name + "_grad_new")


def _sizes(var):
    shape = var.struct_info.shape
    if shape is None or not all(isinstance(d, _core.tir.IntImm) for d in shape):
        raise ValueError(f"the parameter {var.name_hint} is {var.struct_info}\n  needs: a tensor whose sizes are numbers, for its state")
    return tuple(int(d.value) for d in shape)


def _filled(nd, shape, dtype, value):
    made = nd.empty(shape, dtype)
    made[...] = value
    return made


class SGD(Optimizer):
    """Gradient descent: p - lr * (g + weight_decay * p).

    lr             how far a step goes
    weight_decay   how much of the parameter its gradient gets

    The state is (num_steps,).
    """

    def __init__(self, lr, weight_decay=0):
        super().__init__("SGD")
        self.lr, self.weight_decay = float(lr), float(weight_decay)

    def _update(self, bb, name, param, grad, moments, scalars):
        from sator.relax import op

        grad = self._decayed(bb, name, param, grad)
        return bb.emit(op.subtract(param, op.multiply(self._const(self.lr), grad)), name + "_new"), []


class MomentumSGD(Optimizer):
    """Gradient descent with a velocity: g' = g + weight_decay * p; v' = momentum * v + (1 - dampening) * g'; p - lr * v'.

    lr             how far a step goes
    momentum       how much of the velocity is kept
    dampening      how much of the gradient the velocity does not take
    weight_decay   how much of the parameter its gradient gets
    nesterov       whether g' + momentum * v' takes the place of v' in the step

    The state is (num_steps, v of each parameter).
    Source: Sutskever, Martens, Dahl, Hinton, "On the importance of initialization and momentum in deep learning", 2013.
    """

    _moments = 1
    _moment_names = ("v",)

    def __init__(self, lr, momentum, dampening=0, weight_decay=0, nesterov=False):
        super().__init__("MomentumSGD")
        self.lr, self.momentum, self.dampening, self.weight_decay = float(lr), float(momentum), float(dampening), float(weight_decay)
        self.nesterov = nesterov

    def _update(self, bb, name, param, grad, moments, scalars):
        from sator.relax import op

        grad = self._decayed(bb, name, param, grad)
        momentum = self._const(self.momentum)
        taken = op.multiply(self._const(_one_minus(self.dampening)), grad) if self.dampening else grad
        velocity = bb.emit(op.add(op.multiply(momentum, moments[0]), taken), name + "_v_new")
        step = bb.emit(op.add(grad, op.multiply(momentum, velocity)), name + "_g_nest") if self.nesterov else velocity
        return bb.emit(op.subtract(param, op.multiply(self._const(self.lr), step)), name + "_new"), [velocity]


class Adam(Optimizer):
    """Steps by the running means of the gradient and of its square, with b1, b2 = betas, g' = g + weight_decay * p, after t steps:

        m' = b1 * m + (1 - b1) * g'
        v' = b2 * v + (1 - b2) * g' * g'
        p - lr * (m' / (1 - b1^t)) / (sqrt(v' / (1 - b2^t)) + eps)

    The state is (num_steps, b1^t, b2^t, m of each parameter, v of each parameter).
    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1.
    """

    _scalars = 2
    _moments = 2
    _moment_names = ("m", "v")

    def __init__(self, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
        super().__init__("Adam")
        self.lr, self.eps, self.weight_decay = float(lr), float(eps), float(weight_decay)
        self.beta1, self.beta2 = (float(b) for b in betas)

    def _scalars_after(self, bb, state):
        from sator.relax import op

        return [bb.emit(op.multiply(state[1 + i], self._const(beta)), f"beta{1 + i}_prod") for i, beta in enumerate((self.beta1, self.beta2))]

    def _update(self, bb, name, param, grad, moments, scalars):
        from sator.relax import op

        grad = self._decayed(bb, name, param, grad)
        means = []
        for letter, beta, mean, taken in (("m", self.beta1, moments[0], grad), ("v", self.beta2, moments[1], op.multiply(grad, grad))):
            kept = op.multiply(self._const(beta), mean)
            means.append(bb.emit(op.add(kept, op.multiply(self._const(_one_minus(beta)), taken)), f"{name}_{letter}_new"))
        m, v = (bb.emit(op.divide(mean, op.subtract(self._const(1), scalars[1 + i])), f"{name}_{'mv'[i]}_hat") for i, mean in enumerate(means))
        step = op.divide(m, op.add(op.sqrt(v), self._const(self.eps)))
        return bb.emit(op.subtract(param, op.multiply(self._const(self.lr), step)), name + "_new"), means
