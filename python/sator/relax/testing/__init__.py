"""What tests of graphs call."""
from sator.relax.testing import vm  # noqa: F401
