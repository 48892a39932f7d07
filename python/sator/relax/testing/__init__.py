"""What tests of graphs call."""
from sator.relax.testing import ast_printer, transform, vm  # noqa: F401
from sator.relax.testing.ast_printer import dump_ast  # noqa: F401
