"""Python's syntax as documents (`doc`), and their text (`doc_printer`)."""
from sator.script.printer import doc, doc_printer  # noqa: F401
