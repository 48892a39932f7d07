"""Programs as text, in colour on a terminal."""
import re
import sys

from sator import _core
from sator.extend import extends
from sator.marks import laid_out, marked_text

_TOKENS = re.compile(r"(?P<comment>#[^\n]*)|(?P<string>\"(?:[^\"\\\n]|\\.)*\")|(?P<decorator>@[\w.]+)"
                     r"|\b(?P<keyword>def|class|for|in|with|if|else|elif|while|return|pass|as|from|import|lambda|True|False|None)\b"
                     r"|(?<![\w.])(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_COLOURS = {"comment": "2;3", "string": "31", "decorator": "35", "keyword": "1;32", "number": "34"}


def coloured(text):
    """The text with the colours of a terminal."""
    return _TOKENS.sub(lambda m: f"\033[{_COLOURS[m.lastgroup]}m{m.group()}\033[0m", text)


@extends(_core.Object)
class Object:
    def script(self, *, name=None, show_meta=True, ir_prefix="I", tir_prefix="T", relax_prefix="R", module_alias="cls", buffer_dtype="float32",
               int_dtype="int32", float_dtype="void", verbose_expr=False, indent_spaces=4, print_line_numbers=False, num_context_lines=-1,
               syntax_sugar=True, show_object_address=False, show_all_struct_info=True, path_to_underline=None, path_to_annotate=None,
               obj_to_underline=None, obj_to_annotate=None):
        """The program as TVMScript.

        name                  of the class of a module
        show_meta             whether tensors are written out before the program; without them it does not parse back
        ir_prefix, tir_prefix, relax_prefix, module_alias   what I, T, R and cls are called
        verbose_expr          whether the variables of an index expression are declared before it; those of parts of graphs always are
        indent_spaces         blanks per level
        print_line_numbers    whether each line begins with its number
        num_context_lines     how many lines are kept on each side of those underlined; -1: all
        syntax_sugar          T.grid, T.axis.remap, T.Buffer parameters, the block around a function that is not written
        show_all_struct_info  whether variables of graphs have their struct info where their value tells it
        obj_to_underline, path_to_underline   parts of the program, and ObjectPaths to parts: a statement with a body is underlined at its head
        obj_to_annotate, path_to_annotate     {part: comment} and {ObjectPath: comment}
        A path to what has no text of its own, such as a number, means the least part around it that has.
        Errors: ValueError for a part that the text does not have; for another dtype that is not written, and for addresses.
        """
        for option, value, standard in (("buffer_dtype", buffer_dtype, "float32"), ("int_dtype", int_dtype, "int32"),
                                        ("float_dtype", float_dtype, "void"), ("show_object_address", show_object_address, False)):
            if value != standard:
                raise ValueError(f"script: {option} = {value!r}\n  needs: {option}={standard!r}, the only form that is written")
        options = {"show_meta": bool(show_meta), "ir_prefix": ir_prefix, "tir_prefix": tir_prefix, "relax_prefix": relax_prefix,
                   "module_alias": module_alias, "syntax_sugar": bool(syntax_sugar), "show_all_struct_info": bool(show_all_struct_info)}
        options |= {} if name is None else {"name": name}
        options |= {"verbose_expr": True} if verbose_expr else {}
        for option, value in options.items():
            if not isinstance(value, (str, bool)):
                raise TypeError(f"script: {option} = {value!r} is a {type(value).__name__}\n  needs: a text")
        underlined = [(p, "") for p in [*_listed("obj_to_underline", obj_to_underline), *_listed("path_to_underline", path_to_underline)]]
        annotated = [*dict(obj_to_annotate or {}).items(), *dict(path_to_annotate or {}).items()]
        if options == _STANDARD and not underlined and not annotated:
            text, marks = self._script(True), []
        else:
            text, marks = marked_text(self, options, underlined, annotated)
        return laid_out(text, marks, indent_spaces, print_line_numbers, num_context_lines)

    def show(self, style=None, black_format=None, **options):
        """Prints the program, in colour on a terminal. Options are those of `script`."""
        text = self.script(**options)
        print(coloured(text) if sys.stdout.isatty() else text)

    def astext(self, *_args, **_options):
        """The program as text."""
        return self._script(True)


_STANDARD = {"show_meta": True, "ir_prefix": "I", "tir_prefix": "T", "relax_prefix": "R", "module_alias": "cls", "syntax_sugar": True,
             "show_all_struct_info": True}


def _listed(option, given):
    if given is None or isinstance(given, (list, tuple)):
        return given or ()
    return [given]
