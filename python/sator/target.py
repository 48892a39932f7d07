"""What is compiled for."""


class Target:
    """A target by its text: "llvm", "llvm -mcpu=cascadelake", "nvidia/nvidia-a100", a described chip.

    As a context, `with Target("llvm"):`, it is the target of passes that ask for one.
    """

    _stack = []

    def __init__(self, target, host=None):
        self.text = target.text if isinstance(target, Target) else str(target)

    @staticmethod
    def current(allow_none=True):
        """The innermost target, or None. Errors: there is none, and none is allowed."""
        if Target._stack:
            return Target._stack[-1]
        if allow_none:
            return None
        raise ValueError("there is no target here\n  needs: `with sator.Target(...):` around the call")

    def __enter__(self):
        Target._stack.append(self)
        return self

    def __exit__(self, *_error):
        Target._stack.pop()

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"Target({self.text!r})"

    def __eq__(self, other):
        return isinstance(other, Target) and self.text == other.text

    def __hash__(self):
        return hash(self.text)
