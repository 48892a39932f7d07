"""Shapes as arguments."""


class ShapeTuple(tuple):
    """A shape as an argument of a function: ShapeTuple([2, 3])."""

    @property
    def _shape_tuple(self):
        return list(self)
