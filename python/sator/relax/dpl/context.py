"""Several patterns at once, with who uses whom, matched against the bindings of a dataflow block."""
from sator import _core


class PatternContext:
    """A scope in which patterns demand to use each other.

        with PatternContext() as ctx:
            conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())
            relu = is_op("relax.nn.relu")(conv)
            conv >> relu                                     # and nothing else uses it
            ctx.match_dfb(func.body.blocks[0])               # {pattern: variable}, or None

    Each pattern takes a variable of its own: two patterns of one call are written as one that stands in the other.

    incremental   begins with what the context around demands
    """

    _stack = []

    def __init__(self, incremental=False):
        around = PatternContext.current() if incremental else None
        self._edges = {p: {q: list(c) for q, c in uses.items()} for p, uses in around._edges.items()} if around else {}
        self._same_shapes = list(around._same_shapes) if around else []

    def __enter__(self):
        PatternContext._stack.append(self)
        return self

    def __exit__(self, *_error):
        PatternContext._stack.pop()

    @staticmethod
    def current():
        """The innermost context, or None."""
        return PatternContext._stack[-1] if PatternContext._stack else None

    def _add_edge(self, before, after, only, index):
        demands = self._edges.setdefault(before, {}).setdefault(after, [])
        if (only, index) not in demands:
            demands.append((only, index))

    def _add_same_shape(self, patterns):
        self._same_shapes.append(list(patterns))

    def match_dfb(self, dfb):
        """The first variables of the block that satisfy all of it: {pattern: variable}; None where there are none."""
        return _Search(self, dfb).run()


class _Uses(dict):
    """Who uses each variable of a block, parameters among them, in the order of the text."""

    def __init__(self, block):
        super().__init__()
        self.values = {}
        self.calls = {}
        for binding in block.bindings:
            if isinstance(binding, _core.relax.VarBinding):
                self.values[binding.var] = binding.value
            used = list(_variables(binding.value))
            self.calls[binding.var] = binding.value.args if isinstance(binding.value, _core.relax.Call) else used
            for v in used:
                users = self.setdefault(v, [])
                if binding.var not in users:
                    users.append(binding.var)
            self.setdefault(binding.var, [])


def _variables(expr):
    if isinstance(expr, _core.relax.Var):
        yield expr
    else:
        for part in _parts(expr):
            yield from _variables(part)


def _parts(expr):
    R = _core.relax
    if isinstance(expr, R.Call):
        return expr.args
    if isinstance(expr, R.Tuple):
        return expr.fields
    return [expr.tuple_value] if isinstance(expr, R.TupleGetItem) else []


class _Search:
    """Patterns to variables, with a step back where a later demand fails."""

    def __init__(self, context, block):
        self._edges, self._same_shapes = context._edges, context._same_shapes
        self._uses = _Uses(block)
        used = {q for uses in self._edges.values() for q in uses}
        self._roots = [p for p in self._edges if p not in used]

    def run(self):
        if not self._roots:
            return None
        return next(self._all_roots(0, {}), None)

    def _all_roots(self, index, found):
        if index == len(self._roots):
            yield found
            return
        root = self._roots[index]
        if root in found:
            yield from self._all_roots(index + 1, found)
            return
        for var in list(self._uses):
            for more in self._from(root, var, found):
                if self._shapes_agree(more):
                    yield from self._all_roots(index + 1, more)

    def _from(self, pattern, var, found):
        """The ways to match a pattern at a variable, and all that uses it."""
        if found.get(pattern, var) != var or (pattern not in found and var in found.values()):
            return
        if not pattern.match(var, self._uses.values):
            return
        yield from self._users(list(self._edges.get(pattern, {}).items()), var, {**found, pattern: var})

    def _users(self, edges, var, found):
        if not edges:
            yield found
            return
        (after, demands), *rest = edges
        for user in self._uses[var]:
            if all(self._holds(var, user, only, index) for only, index in demands):
                for more in self._from(after, user, found):
                    yield from self._users(rest, var, more)

    def _holds(self, var, user, only, index):
        if only and len(self._uses[var]) != 1:
            return False
        args = self._uses.calls[user]
        return index == -1 or (index < len(args) and args[index] == var)

    def _shapes_agree(self, found):
        for patterns in self._same_shapes:
            shapes = [getattr(found[p].struct_info, "shape", None) for p in patterns if p in found]
            if any(s is None for s in shapes):
                return False
            if any(not _core.structural_equal(shapes[0], s, False) for s in shapes[1:]):
                return False
        return True
