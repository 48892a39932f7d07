"""Graphs built line by line."""
from sator import _core
from sator.error import UseError
from sator.relax.te_calls import te_call


def _params(params):
    return [params] if isinstance(params, _core.relax.Var) else list(params)


class _Scope:
    """A scope of a builder's, by `with`."""

    def __init__(self, enter, leave):
        self._enter, self._leave = enter, leave

    def __enter__(self):
        self._enter()

    def __exit__(self, kind, error, traceback):
        self._leave(kind is None)


class BlockBuilder:
    """Builds functions of a module.

        bb = relax.BlockBuilder()
        with bb.function("main", [x, w]):
            with bb.dataflow():
                y = bb.emit(relax.op.matmul(x, w))
                out = bb.emit_output(relax.op.nn.relu(y))
            bb.emit_func_output(out)
        mod = bb.finalize()
    """

    _stack = []

    def __init__(self, mod=None):
        self._core = _core.BlockBuilder(mod)
        self._function = None
        self._outer = []
        self._scopes = 0  # of begin_scope

    @staticmethod
    def current():
        """The builder whose function is being built, or None."""
        return BlockBuilder._stack[-1] if BlockBuilder._stack else None

    # Functions and blocks.

    def function(self, name, params=None, attrs=None, pure=True, private=False):
        """The scope of a function. Its parameters may be given to emit_func_output instead.

        attrs   {name: value}
        Errors: TypeError for other attributes; at the scope's end ValueError where emit_func_output was not called.
        """
        if not isinstance(attrs, (dict, type(None))):
            raise TypeError(f"function {name}: attrs = {attrs!r} is a {type(attrs).__name__}\n  needs: a dictionary")

        given = None if params is None else _params(params)

        def enter():
            # A function inside of another one is built by a builder of its own, on the module so far.
            self._outer.append((self._function, self._core))
            if self._function is not None:
                self._core = _core.BlockBuilder(self._core.module())
            self._function = {"name": name, "params": given, "attrs": dict(attrs or {}), "pure": pure,
                              "private": private, "blocks": [], "done": False}
            self._core.begin_scope(given or [])
            self._core.begin_block(False)
            BlockBuilder._stack.append(self)

        def leave(is_good):
            BlockBuilder._stack.pop()
            function, inner = self._function, self._core
            self._function, self._core = self._outer.pop()
            if is_good and not function["done"]:
                raise UseError(f"the function {name} has no result\n  needs: bb.emit_func_output(result) at its end")
            if inner is not self._core:
                for added, func in inner.module().functions.items():
                    self._core.update_function(added, func)

        return _Scope(enter, leave)

    def dataflow(self):
        """The scope of a dataflow block: what is emitted there has no effects."""

        def enter():
            self._keep_block()
            self._core.begin_block(True)

        def leave(is_good):
            if is_good:
                self._keep_block()
                self._core.begin_block(False)

        return _Scope(enter, leave)

    def testing_scope(self, def_vars):
        """A scope for expressions outside of a function; the sizes `def_vars` are known in it."""

        def enter():
            self.begin_scope([_core.graph_var("shape", _core.make(_core.relax.ShapeStructInfo, [list(def_vars), len(def_vars)]), False)])
            self._begin_dataflow_block()

        def leave(_is_good):
            self._end_block()
            self.end_scope()

        return _Scope(enter, leave)

    def begin_scope(self, params=None):
        """Begins a scope of symbolic sizes: those of the parameters' struct info are known in it. Of use where no function is built."""
        self._core.begin_scope(list(params or ()))
        self._scopes += 1

    def end_scope(self):
        """Ends the scope that begin_scope began. Errors: UseError without one."""
        if not self._scopes:
            raise UseError("end_scope without a scope\n  needs: begin_scope before")
        self._scopes -= 1
        self._core.end_scope()

    def current_block_is_dataflow(self):
        """Whether what is emitted now goes into a dataflow block."""
        return self._core.in_dataflow()

    def _begin_dataflow_block(self):
        self._core.begin_block(True)

    def _begin_binding_block(self):
        self._core.begin_block(False)

    def _end_block(self):
        return self._core.end_block()

    def _keep_block(self):
        block = self._core.end_block()
        if block.bindings:
            self._function["blocks"].append(block)

    # TVM's names for the parts of scopes, which a mutator's own visit_binding_block_ opens and closes.

    def _begin_binding_block(self):
        self._core.begin_block(False)

    def _begin_dataflow_block(self):
        self._core.begin_block(True)

    def _end_block(self):
        return self._core.end_block()

    def emit_func_output(self, output, params=None):
        """What the function returns. Ends it. Errors: parameters that were given before, or not at all."""
        f = self._function
        if f is None:
            raise UseError("emit_func_output outside of a function\n  needs: `with bb.function(...):` around it")
        if params is not None:
            if f["params"] is not None:
                raise UseError("the parameters were given with the function already")
            f["params"] = _params(params)
        elif f["params"] is None:
            raise UseError(f"the function {f['name']} has no list of parameters\n  needs: bb.function(name, params) or "
                           "bb.emit_func_output(output, params); [] for a function that takes nothing")
        output = self._core.normalize(output)
        self._keep_block()
        attrs = f["attrs"] if f["private"] else {"global_symbol": f["name"], **f["attrs"]}
        func = self._core.end_function(f["params"], f["blocks"], output, attrs, f["pure"])
        self._core.update_function(f["name"], func)
        f["done"] = True
        return self._global_var(f["name"])

    # Bindings.

    def emit(self, expr, name_hint=""):
        """Binds an expression to a new variable."""
        return self._core.emit(expr, name_hint)

    def emit_output(self, output, name_hint=""):
        """Binds an expression to a variable that is visible after the dataflow block."""
        return self._core.emit_output(output, name_hint)

    def match_cast(self, value, struct_info, name_hint=""):
        """Binds a value whose shape is checked at run time; sizes that occur first there are bound."""
        return self._core.emit_match_cast(value, struct_info, name_hint)

    def emit_normalized(self, binding):
        """A binding as it is."""
        self._core.emit_binding(binding)

    def emit_te(self, func, *args, name_hint="", **kwargs):
        """Calls a tensor program that `func`, a function over te's tensors, defines; binds the result to a variable of the name `name_hint`.
        Arguments as of call_te."""
        return self.emit(self.call_te(func, *args, **kwargs), name_hint)

    def call_te(self, func, *args, primfunc_name_hint=None, primfunc_attrs=None, **kwargs):
        """The call of a tensor program that `func`, a function over te's tensors, defines: not bound yet.

        primfunc_name_hint   the program's name; else that of `func`
        primfunc_attrs       attributes of the program
        """
        name = primfunc_name_hint or getattr(func, "__name__", "te_func").split(".")[-1]
        call = te_call(self._core, "te_func" if name == "<lambda>" else name, func, args, kwargs)
        if primfunc_attrs:
            callee = call.args[0].name_hint
            program = self.get()[callee]
            for key, value in primfunc_attrs.items():
                program = program.with_attr(key, value)
            self._core.update_function(callee, program)
        return call

    def call_te_with_grad(self, func, *args, te_grad_name, te_grad_kwargs=None, **kwargs):
        """As call_te, with the name of the function that gives the gradient (relax.training.register_te_gradient) and its arguments."""
        from sator.relax import op

        call = self.call_te(func, *args, **kwargs)
        sizes = call.args[2] if len(call.args) > 2 else None
        return op.call_tir_with_grad(call.args[0], call.args[1], list(call.sinfo_args) if len(call.sinfo_args) > 1 else call.sinfo_args[0],
                                     te_grad_name=te_grad_name, te_grad_kwargs=te_grad_kwargs or {}, tir_vars=sizes)

    def normalize(self, expr):
        """The expression with struct info; arguments that are calls are bound to variables."""
        return self._core.normalize(expr)

    def lookup_binding(self, var):
        """What a variable was bound to here, or None."""
        return self._core.bound_value(var)

    # The module.

    def add_func(self, func, func_name):
        """Adds a function under the name, or the next free one; an equal one that is there is shared."""
        return self._core.add_function(func, func_name)

    def update_func(self, gv, updated_func):
        """Puts a function in the place of the one of that name, or adds it. `gv`: a GlobalVar or a name."""
        self._core.update_function(gv if isinstance(gv, str) else gv.name_hint, updated_func)

    def get(self):
        """The module so far."""
        return self._core.module()

    finalize = get

    def get_unique_name(self, name_prefix):
        """A name that nothing has yet, which begins so."""
        return self._core.fresh_name(name_prefix)

    def _global_var(self, name):
        return self.get().get_global_var(name)


def lent(core):
    """A BlockBuilder around a builder of the compiler's, for a function that is called with it."""
    builder = BlockBuilder.__new__(BlockBuilder)
    builder._core, builder._function, builder._outer = core, None, []
    return builder
