"""What tests of graphs call."""
from sator.relax.testing import transform, vm  # noqa: F401
