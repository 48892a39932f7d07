"""Schedules: a module, rewritten step by step by primitives that keep its meaning, and the trace of these steps."""
import inspect
import json
from typing import NamedTuple

from sator import _core
from sator.error import ScheduleError  # noqa: F401
from sator.extend import extends
from sator.tir.schedule import step_docs
from sator.tir.schedule.state import ScheduleState, StmtSRef, walk_statements

BlockRV, LoopRV, ExprRV = _core.BlockRV, _core.LoopRV, _core.PrimExpr


class InstructionKind(NamedTuple):
    """Which primitive a step calls, by TVM's name: "GetBlock"."""

    name: str


class Instruction(str):
    """One step, a text. kind; inputs: the handles that it takes; attrs: its other arguments; outputs: what it gave."""

    def __new__(cls, step, position):
        self = super().__new__(cls, step.text())
        self._step, self._position = step, position
        return self

    @property
    def kind(self):
        """Its primitive."""
        return InstructionKind(json.loads(_core._Trace([self._step]).json())[0][0][0])

    def _arguments(self, handles):
        """The arguments that are handles, or the others; a decision is neither."""
        return [v for v, (name, takes_handle) in zip(self._step.inputs, self._step.parameters()) if takes_handle == handles and name != "decision"]

    @property
    def inputs(self):
        """The handles that it takes."""
        return [v for a in self._arguments(True) for v in (a if isinstance(a, list) else [a])]

    @property
    def attrs(self):
        """Its other arguments."""
        return self._arguments(False)

    @property
    def outputs(self):
        """The handles that it gave."""
        out = self._step.output
        return out if isinstance(out, list) else [] if out is None else [out]


def _decision_place(step):
    """The position of a step's decision among its arguments, or None."""
    return next((i for i, (name, _) in enumerate(step.parameters()) if name == "decision"), None)


class Trace:
    """The steps of a schedule. Its text is Python; it replays on a schedule of the same program.

    insts       instructions of another trace; or a trace of the compiler's
    decisions   {instruction: what it chose}, where that is not what it chose there
    """

    def __init__(self, insts, decisions=None):
        if isinstance(insts, (list, tuple)) and all(isinstance(i, Instruction) for i in insts):
            made = _core._Trace([])
            self._trace = made
            for inst in insts:
                self.append(inst, (decisions or {}).get(inst))
            return
        if not isinstance(insts, _core._Trace):
            raise TypeError(f"Trace: {insts!r} is a {type(insts).__name__}\n  needs: the trace of a schedule\n  hint:  sch.trace")
        self._trace = insts

    @property
    def insts(self):
        """One text per step, an Instruction."""
        return [Instruction(step, i) for i, step in enumerate(self._trace.steps())]

    @property
    def decisions(self):
        """{instruction: what it chose} of the steps that choose."""
        return {inst: self.get_decision(inst) for inst in self.insts if _decision_place(inst._step) is not None}

    def _step_of(self, method, inst):
        if not isinstance(inst, Instruction):
            raise TypeError(f"{method}: {inst!r} is a {type(inst).__name__}\n  needs: one of the trace's insts")
        steps = self._trace.steps()
        if inst._position >= len(steps) or steps[inst._position].name != inst._step.name:
            raise ValueError(f"{method}: {inst} is no step of the trace\n  needs: one of the trace's insts")
        return steps, inst._position

    def get_decision(self, inst):
        """What a step chose; None for one that chooses nothing."""
        steps, at = self._step_of("get_decision", inst)
        place = _decision_place(steps[at])
        return None if place is None else steps[at].inputs[place]

    def with_decision(self, inst, decision, remove_postproc=False):
        """The trace with another choice of a step. Errors: ValueError for a step that chooses nothing."""
        steps, at = self._step_of("with_decision", inst)
        steps[at] = _with_decision(steps[at], decision)
        made = Trace(_core._Trace(steps))
        return made._without_postproc() if remove_postproc else made

    def append(self, inst, decision=None):
        """Puts a step behind the others."""
        if not isinstance(inst, Instruction):
            raise TypeError(f"append: {inst!r} is a {type(inst).__name__}\n  needs: an instruction of a trace")
        step = inst._step if decision is None else _with_decision(inst._step, decision)
        self._trace = _core._Trace([*self._trace.steps(), step])

    def pop(self):
        """Takes the last step out, and gives it; None where there is none."""
        insts = self.insts
        if not insts:
            return None
        self._trace = _core._Trace([i._step for i in insts[:-1]])
        return insts[-1]

    def _without_postproc(self):
        steps = self._trace.steps()
        ends = [i for i, step in enumerate(steps) if step.name == "enter_postproc"]
        return Trace(_core._Trace(steps[:ends[0]])) if ends else self

    def as_python(self, remove_postproc=False):
        """The steps as lines of Python; with remove_postproc without those from enter_postproc on."""
        return [line for line in (self._without_postproc() if remove_postproc else self)._trace.text().splitlines() if line]

    def as_json(self, remove_postproc=False):
        """As TVM writes traces: [[[kind, inputs, attributes, results], ...], [[index of a step, its decision], ...]]; index maps are
        texts, "lambda i, j: (j, i)"."""
        return json.loads((self._without_postproc() if remove_postproc else self)._trace.json())

    @staticmethod
    def apply_json_to_schedule(json_obj, sch):
        """Takes the steps of a trace that as_json wrote, here or in TVM. Errors: another form; those of the steps."""
        sch._apply_json(json.dumps(json_obj))

    def simplified(self, remove_postproc=False):
        """Without steps whose results nobody uses and that change nothing; with remove_postproc also without those from
        enter_postproc on."""
        return Trace(self._trace.simplified(remove_postproc))

    def apply_to_schedule(self, sch, remove_postproc=False, decision_provider=None):
        """Takes the same steps, with the same decisions, on another schedule. Errors: those of the steps.

        decision_provider   (instruction, its handles, its other arguments, its decision) -> the decision to take instead; asked of every step, with
                            None for one that chooses nothing
        """
        trace = self._without_postproc() if remove_postproc else self
        if decision_provider is None:
            trace._trace.apply_to(sch)
        else:
            trace._decided(sch, decision_provider)

    def _decided(self, sch, decision_provider):
        """Takes the steps; those that choose do as the function says."""
        given = {}

        def mapped(value):
            if isinstance(value, list):
                return [mapped(v) for v in value]
            if isinstance(value, (BlockRV, LoopRV)):
                return given[value]
            return tir.stmt_functor.substitute(value, variables) if variables and isinstance(value, _core.PrimExpr) else value

        from sator import tir

        variables = {}
        for inst in self.insts:
            step, place = inst._step, _decision_place(inst._step)
            arguments = {name: mapped(v) for v, (name, _) in zip(step.inputs, step.parameters())}
            handles = [arguments[name] for name, takes_handle in step.parameters()[:len(step.inputs)] if takes_handle]
            others = [v for (name, takes_handle), v in zip(step.parameters(), arguments.values()) if not takes_handle and name != "decision"]
            decision = decision_provider(inst, [v for h in handles for v in (h if isinstance(h, list) else [h])], others,
                                         None if place is None else step.inputs[place])
            if place is not None:
                arguments["decision"] = decision
            made = getattr(sch, step.name)(**arguments)
            for old, new in zip(inst.outputs, made if isinstance(made, list) else [made]):
                if isinstance(old, (BlockRV, LoopRV)):
                    given[old] = new
                elif isinstance(old, _core.tir.Var):
                    variables[old] = new

    def show(self, style=None, black_format=False):
        """Prints the steps."""
        print(self)

    def __str__(self):
        """A function of Python's that takes the steps on a schedule."""
        return "\n  ".join(["# from tvm import tir\ndef apply_trace(sch: tir.Schedule) -> None:", *(self.as_python() or ["pass"])])

    __repr__ = __str__


def _with_decision(step, decision):
    place = _decision_place(step)
    if place is None:
        raise ValueError(f"with_decision: {step.text()} chooses nothing\n  needs: a step such as sample_categorical, sample_perfect_tile, sample_compute_location")
    return step.with_input(place, decision)


_init, _transform_layout, _transform_block_layout = (getattr(_core.Schedule, n) for n in ("__init__", "transform_layout", "transform_block_layout"))


def _buffer_of(block, which):
    """The buffer of a block that is told by its name, by itself, or as ("write", 0)."""
    regions = [*block.reads, *block.writes]
    if isinstance(which, (list, tuple)) and len(which) == 2 and which[0] in ("read", "write"):
        regions = block.reads if which[0] == "read" else block.writes
        return regions[which[1]].buffer if isinstance(which[1], int) and 0 <= which[1] < len(regions) else None
    return next((r.buffer for r in regions if r.buffer.name == which or isinstance(which, _core.Object) and r.buffer.same_as(which)), None)


def _block_of(schedule, block):
    """The statement of a block; to look one up by its name is no step of the schedule."""
    schedule = schedule._alike() if isinstance(block, str) else schedule
    return schedule.get(schedule.get_block(block) if isinstance(block, str) else block)


def _with_rank(index_map, rank):
    """A function as the map that it computes, and the positions of axis separators in its result; `rank()` of one with `*indices`."""
    if not callable(index_map) or isinstance(index_map, _core.Object):
        return index_map, []
    is_open = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(index_map).parameters.values())
    return _core.tir.IndexMap.from_func_with_separators(index_map, rank() if is_open else None)


@extends(_core.Schedule)
class Schedule:
    """A program that steps rewrite, one by one, and whose meaning they keep; `trace` has the steps.

    mod    an IRModule, or a PrimFunc, which is then called "main"
    seed   what sampling steps choose follows from it

    Loops and blocks are named by what get_loops and get_block give. Errors: ScheduleError of a step that is not legal: the program is as before.
    """

    __module__ = "sator.tir.schedule.schedule"

    def __init__(self, mod, *, seed=None, debug_mask="none", error_render_level="detail", enable_check=True):
        _init(self, mod, seed=seed)

    def get_sref(self, rand_var_or_stmt):
        """The place of a block or a loop, told by its handle or by its statement. Errors: the schedule's program has no such statement."""
        if isinstance(rand_var_or_stmt, (BlockRV, LoopRV)):
            self.get(rand_var_or_stmt)
            return StmtSRef(self, rand_var_or_stmt)
        found = []
        for func in self.mod.functions.values():
            walk_statements(func, lambda node: found.append(node) if node.same_as(rand_var_or_stmt) else None)
        if not found:
            raise ScheduleError("the statement is not in the schedule's program\n  needs: a block or a loop of sch.mod")
        return StmtSRef(self, stmt=rand_var_or_stmt)

    def can_decompose_padding(self, block, loop):
        """Whether decompose_padding(block, loop) is legal; the schedule stays as it is."""
        try:
            self._alike().decompose_padding(block, loop)
        except ScheduleError:
            return False
        return True

    def remove_rv(self, rand_var):
        """Says that a handle is not used any more. Errors: ScheduleError for one that names nothing here."""
        self.get(rand_var)

    def transform_layout(self, block, buffer, index_map, pad_value=None, *, assume_injective_transform=False):
        """Stores a buffer's elements at other indices.

        block       a block that reads or writes the buffer, or its name
        buffer      its name, ("read", 0), ("write", 0), or the tir.Buffer
        index_map   index -> new index: `lambda i, j: (j, i // 4, i % 4)`, `lambda *i: i[::-1]`, a tir.IndexMap. Where it gives
                    IndexMap.AXIS_SEPARATOR, set_axis_separator follows
        pad_value   what elements that come from none are: a value, or a function of the new indices; None leaves them open
        Errors: ScheduleError for a map that takes two elements to one place, or another number of indices.
        """
        def rank():
            found = _buffer_of(_block_of(self, block), buffer)
            return None if found is None else len(found.shape)

        index_map, separators = _with_rank(index_map, rank)
        _transform_layout(self, block, buffer, index_map, pad_value, assume_injective_transform=assume_injective_transform)
        if separators:
            self.set_axis_separator(block, buffer, separators)

    def transform_block_layout(self, block, index_map):
        """Runs a block's instances in loops of another shape.

        block       the block, or its name
        index_map   iterators -> the new loops: `lambda i, j: (i * 16 + j,)`, `lambda *i: i[::-1]`, a tir.IndexMap
        Errors: ScheduleError for a map that is not one to one.
        """
        _transform_block_layout(self, block, _with_rank(index_map, lambda: len(_block_of(self, block).iter_vars))[0])

    @property
    def state(self):
        """The program as it is now: `state.mod`, `state.get_sref(stmt)`."""
        return ScheduleState(self)

    @property
    def trace(self):
        """The steps so far."""
        return Trace(self._trace)

    def show(self, *args, **options):
        """Prints the module, as its show does with these arguments, and the steps."""
        self.mod.show(*args, **options)
        self.trace.show()


step_docs.describe(_core.Schedule)
