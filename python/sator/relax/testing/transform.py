"""Passes that tests of graphs call."""


def ApplyEmptyCppMutator():  # noqa: N802
    """A pass that replaces nothing: what it leaves is the program in normal form."""
    from sator.relax import transform

    return transform.Normalize()
