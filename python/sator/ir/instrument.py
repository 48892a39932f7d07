"""What a PassContext tells of each pass: instruments by TVM's names."""
import time


class PassInstrument:
    """An instrument that does nothing: a base for one's own.

    Its methods are called where they are: enter_pass_ctx(), exit_pass_ctx(), should_run(mod, info) -> bool, run_before_pass(mod, info),
    run_after_pass(mod, info).
    """

    @property
    def name(self):
        """The name of its class."""
        return type(self).__name__

    def enter_pass_ctx(self):
        """Called where its context begins."""

    def exit_pass_ctx(self):
        """Called where its context ends."""

    def should_run(self, mod, info):
        """Whether a pass shall run."""
        return True

    def run_before_pass(self, mod, info):
        """Called before a pass."""

    def run_after_pass(self, mod, info):
        """Called after a pass."""


def pass_instrument(pi_cls=None):
    """Makes an instrument of a class with some of the methods of PassInstrument; a decorator."""

    def make(cls):
        if not isinstance(cls, type):
            raise TypeError(f"pass_instrument decorates a class, not a {type(cls).__name__}")
        return type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__, "__module__": cls.__module__})

    return make if pi_cls is None else make(pi_cls)


class PassTimingInstrument(PassInstrument):
    """The time of each pass; `render()` gives it as text, one pass a line, those inside of another indented."""

    _last = None

    def __init__(self):
        PassTimingInstrument._last = self
        self._rows, self._open = [], []

    def enter_pass_ctx(self):
        """Forgets the times of an earlier context."""
        PassTimingInstrument._last = self
        self._rows, self._open = [], []

    def run_before_pass(self, mod, info):
        """Starts the clock of a pass."""
        self._rows.append([len(self._open), info.name, None])
        self._open.append((len(self._rows) - 1, time.perf_counter()))

    def run_after_pass(self, mod, info):
        """Stops the clock of the pass that started last."""
        row, start = self._open.pop()
        self._rows[row][2] = time.perf_counter() - start

    def render(self=None):
        """The times so far. `PassTimingInstrument.render()` is that of the last one."""
        rows = (self or PassTimingInstrument._last or PassTimingInstrument())._rows
        return "".join(f"{'  ' * depth}{name}: {seconds * 1e6:.0f}us\n" for depth, name, seconds in rows if seconds is not None)


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass."""

    def run_before_pass(self, mod, info):
        """Prints the pass and the module that it is given."""
        print(f"Before running pass: {info}\n{mod.script()}")


class PrintAfterAll(PassInstrument):
    """Prints the module after each pass."""

    def run_after_pass(self, mod, info):
        """Prints the pass and the module that it gave."""
        print(f"After running pass: {info}\n{mod.script()}")


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after passes of these names."""

    def __init__(self, print_before_pass_names=(), print_after_pass_names=()):
        self._before, self._after = set(print_before_pass_names), set(print_after_pass_names)

    def run_before_pass(self, mod, info):
        """Prints the module that a named pass is given."""
        if info.name in self._before:
            print(f"Before running pass: {info}\n{mod.script()}")

    def run_after_pass(self, mod, info):
        """Prints the module that a named pass gave."""
        if info.name in self._after:
            print(f"After running pass: {info}\n{mod.script()}")
