"""The text of documents, with what paths name underlined."""
import math

from sator.runtime.object_path import ObjectPath, _quoted
from sator.script.printer import doc as D
from sator.script.printer.doc import OperationKind as Op

# How tightly Python binds: "The Python Language Reference", 6.17, from the loosest on.
_LAMBDA, _IF, _OR, _AND, _NOT, _COMPARISON, _BIT_OR, _BIT_XOR, _BIT_AND, _SHIFT, _SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(15)
_OPERATORS = {
    Op.USub: ("-", _UNARY), Op.Invert: ("~", _UNARY), Op.Not: ("not ", _NOT),
    Op.Add: ("+", _SUM), Op.Sub: ("-", _SUM), Op.Mult: ("*", _PRODUCT), Op.Div: ("/", _PRODUCT), Op.FloorDiv: ("//", _PRODUCT), Op.Mod: ("%", _PRODUCT),
    Op.Pow: ("**", _POWER), Op.LShift: ("<<", _SHIFT), Op.RShift: (">>", _SHIFT), Op.BitAnd: ("&", _BIT_AND), Op.BitOr: ("|", _BIT_OR), Op.BitXor: ("^", _BIT_XOR),
    Op.Lt: ("<", _COMPARISON), Op.LtE: ("<=", _COMPARISON), Op.Eq: ("==", _COMPARISON), Op.NotEq: ("!=", _COMPARISON), Op.Gt: (">", _COMPARISON),
    Op.GtE: (">=", _COMPARISON), Op.And: ("and", _AND), Op.Or: ("or", _OR), Op.IfThenElse: ("if", _IF),
}
_MIN_SKIPPED_LINES = 2  # one line takes no more room than the words that it is skipped


def to_python_script(doc, indent_spaces=4, print_line_numbers=False, num_context_lines=None, path_to_underline=None):
    """The text of a document, without blanks at its end.

      doc                 a Doc
      indent_spaces       blanks per level
      print_line_numbers  whether each line begins with its number, from 1
      num_context_lines   how many lines are kept on each side of those underlined; None: all. Of others a line says how many they are
      path_to_underline   ObjectPaths: of each, the documents are underlined whose source_paths have the longest prefix of it

    Comments are not underlined. Brackets stand wherever Python would read another program without them: `(a < b) < c`, `(a if b else c) if d else e`.
    Errors: TypeError for arguments of other kinds; ValueError for a comment of several lines behind a statement of one, and for operands that an operator does not take.
    """
    paths = [] if path_to_underline is None else [path_to_underline] if isinstance(path_to_underline, ObjectPath) else path_to_underline
    for name, value, good, needs in (("doc", doc, isinstance(doc, D.Doc), "a Doc of sator.script.printer.doc"),
                                     ("indent_spaces", indent_spaces, _is_count(indent_spaces), "an integer from 0"),
                                     ("num_context_lines", num_context_lines, num_context_lines is None or _is_count(num_context_lines), "an integer from 0, or None"),
                                     ("path_to_underline", paths, isinstance(paths, (list, tuple)) and all(isinstance(p, ObjectPath) for p in paths),
                                      "a list of ObjectPath")):
        if not good:
            raise TypeError(f"to_python_script: {name} = {value!r} is a {type(value).__name__}\n  needs: {needs}")
    printer = _Printer(indent_spaces)
    printer.put(doc)
    text = "".join(printer.parts)
    return "\n".join(_with_marks(text, printer.marked(paths, len(text)), print_line_numbers, num_context_lines)).rstrip()


def _is_count(value):
    return isinstance(value, int) and value >= 0


class _Printer:
    """The text that grows, and where in it each document stands."""

    def __init__(self, indent_spaces):
        self.parts, self.length, self.indent, self.indent_spaces = [], 0, 0, indent_spaces
        self.spans = []  # (begin, end, path) of documents
        self.unmarked = []  # (begin, end) of comments and of blanks before a line, which stay without marks

    def write(self, text):
        self.parts.append(text)
        self.length += len(text)

    def line(self):
        begin = self.length + 1
        self.write("\n" + " " * self.indent)
        self.unmarked.append((begin, self.length))

    def put(self, doc):
        """Writes a document, by the method of its class."""
        begin = self.length
        method = getattr(self, f"put_{type(doc).__name__}", None)
        if method is None:
            raise TypeError(f"a {type(doc).__name__} is written by no rule\n  needs: a class of sator.script.printer.doc that is no base of others")
        method(doc)
        self.spans.extend((begin, self.length, path) for path in doc.source_paths)

    def marked(self, paths, length):
        """Which letters are underlined."""
        marks = [False] * length
        for wanted in paths:
            found = [(len(path), begin, end) for begin, end, path in self.spans if path.is_prefix_of(wanted)]
            longest = max((n for n, _, _ in found), default=0)
            for n, begin, end in found:
                if n == longest:
                    marks[begin:end] = [True] * (end - begin)
        for begin, end in self.unmarked:
            marks[begin:end] = [False] * (end - begin)
        return marks

    # Parts of documents.

    def joined(self, docs):
        for i, doc in enumerate(docs):
            self.write(", " if i else "")
            self.put(doc)

    def child(self, doc, loosest):
        """An operand, in brackets where it binds looser than it may."""
        within = _binds(doc) < loosest
        self.write("(" if within else "")
        self.put(doc)
        self.write(")" if within else "")

    def targets(self, doc):
        """What is assigned to: a tuple of several names stands without its brackets."""
        if isinstance(doc, D.TupleDoc) and doc.elements:
            self.joined(doc.elements)
            self.write("," if len(doc.elements) == 1 else "")
        else:
            self.put(doc)

    def block(self, docs, docstring=None):
        self.indent += self.indent_spaces
        if docstring is not None:
            self.line()
            self.docstring(docstring)
        for doc in docs:
            self.line()
            self.put(doc)
        if not docs:
            self.line()
            self.write("pass")
        self.indent -= self.indent_spaces

    def decorators(self, docs):
        for doc in docs:
            self.write("@")
            self.put(doc)
            self.line()

    def docstring(self, text):
        begin = self.length
        self.write('"""')
        for line in text.splitlines():
            if line:
                self.line()
            else:  # no blanks alone
                self.write("\n")
            self.write(line.replace('"""', '\\"\\"\\"'))
        self.line()
        self.write('"""')
        self.unmarked.append((begin, self.length))

    def comment_behind(self, doc):
        if doc.comment is None:
            return
        if len((doc.comment + "x").splitlines()) > 1:
            raise ValueError(f"the comment {doc.comment!r} of a {type(doc).__name__} cannot have newlines\n  needs: one line behind a statement of one line\n"
                             "  hint:  a CommentDoc above it")
        begin = self.length
        self.write("  # " + doc.comment)
        self.unmarked.append((begin, self.length))

    def comment_above(self, doc, ends=True):
        begin = self.length
        lines = (doc.comment or "").splitlines()
        for i, line in enumerate(lines):
            if i:
                self.line()
            self.write("# " + line)
        if lines and ends:
            self.line()
        self.unmarked.append((begin, self.length))

    # Expressions.

    def put_LiteralDoc(self, doc):  # noqa: N802
        if isinstance(doc.value, str):
            self.write(_quoted(doc.value))
        elif isinstance(doc.value, float):
            text = format(doc.value, ".17g")
            self.write(text if math.isfinite(doc.value) else _quoted(text))
        else:
            self.write(repr(doc.value))

    def put_IdDoc(self, doc):  # noqa: N802
        self.write(doc.name)

    def put_AttrAccessDoc(self, doc):  # noqa: N802
        number = isinstance(doc.value, D.LiteralDoc) and isinstance(doc.value.value, (int, float))  # whose point would be read as part of it
        self.child(doc.value, _ATOM + number)
        self.write("." + doc.name)

    def put_IndexDoc(self, doc):  # noqa: N802
        self.child(doc.value, _ATOM)
        self.write("[" if doc.indices else "[()")
        self.joined(doc.indices)
        self.write("]")

    def put_CallDoc(self, doc):  # noqa: N802
        self.child(doc.callee, _ATOM)
        self.write("(")
        self.joined(doc.args)
        for i, (name, value) in enumerate(zip(doc.kwargs_keys, doc.kwargs_values)):
            self.write(f"{', ' if i or doc.args else ''}{name}=")
            self.put(value)
        self.write(")")

    def put_OperationDoc(self, doc):  # noqa: N802
        token, binds = _operator(doc.kind)
        needed = 1 if doc.kind < Op._UnaryEnd else 3 if doc.kind is Op.IfThenElse else 2
        if len(doc.operands) != needed:
            raise ValueError(f"an OperationDoc of {doc.kind.name} with {len(doc.operands)} operands\n  needs: {needed} of them")
        if needed == 1:
            self.write(token)
            self.child(doc.operands[0], binds)
        elif needed == 3:
            condition, then, other = doc.operands
            self.child(then, binds + 1)
            self.write(" if ")
            self.child(condition, binds + 1)
            self.write(" else ")
            self.child(other, binds + 1)
        else:
            left, right = doc.operands
            # `a < b < c` is no comparison of a comparison, and `-a ** b` is -(a ** b).
            self.child(left, binds + (binds in (_COMPARISON, _POWER)))
            self.write(f" {token} ")
            self.child(right, _UNARY if binds == _POWER else binds + 1)

    def put_LambdaDoc(self, doc):  # noqa: N802
        self.write("lambda ")
        self.joined(doc.args)
        self.write(": ")
        self.put(doc.body)

    def put_TupleDoc(self, doc):  # noqa: N802
        self.write("(")
        self.joined(doc.elements)
        self.write(",)" if len(doc.elements) == 1 else ")")

    def put_ListDoc(self, doc):  # noqa: N802
        self.write("[")
        self.joined(doc.elements)
        self.write("]")

    def put_DictDoc(self, doc):  # noqa: N802
        self.write("{")
        for i, (key, value) in enumerate(zip(doc.keys, doc.values)):
            self.write(", " if i else "")
            self.put(key)
            self.write(": ")
            self.put(value)
        self.write("}")

    def put_SliceDoc(self, doc):  # noqa: N802
        for mark, part in (("", doc.start), (":", doc.stop), ("" if doc.step is None else ":", doc.step)):
            self.write(mark)
            if part is not None:
                self.put(part)

    # Statements.

    def put_StmtBlockDoc(self, doc):  # noqa: N802
        for i, stmt in enumerate(doc.stmts):
            if i:
                self.line()
            self.put(stmt)

    def put_AssignDoc(self, doc):  # noqa: N802
        self.targets(doc.lhs)
        if doc.annotation is not None:
            self.write(": ")
            self.put(doc.annotation)
        if doc.rhs is not None:
            self.write(" = ")
            if isinstance(doc.rhs, D.TupleDoc) and len(doc.rhs.elements) > 1:
                self.joined(doc.rhs.elements)
            else:
                self.put(doc.rhs)
        self.comment_behind(doc)

    def put_ExprStmtDoc(self, doc):  # noqa: N802
        self.put(doc.expr)
        self.comment_behind(doc)

    def put_AssertDoc(self, doc):  # noqa: N802
        self.write("assert ")
        self.put(doc.test)
        if doc.msg is not None:
            self.write(", ")
            self.put(doc.msg)
        self.comment_behind(doc)

    def put_ReturnDoc(self, doc):  # noqa: N802
        self.write("return ")
        self.put(doc.value)
        self.comment_behind(doc)

    def put_IfDoc(self, doc):  # noqa: N802
        self.comment_above(doc)
        self.write("if ")
        self.put(doc.predicate)
        self.write(":")
        self.block(doc.then_branch)
        if doc.else_branch:
            self.line()
            self.write("else:")
            self.block(doc.else_branch)

    def put_WhileDoc(self, doc):  # noqa: N802
        self.comment_above(doc)
        self.write("while ")
        self.put(doc.predicate)
        self.write(":")
        self.block(doc.body)

    def put_ForDoc(self, doc):  # noqa: N802
        self.comment_above(doc)
        self.write("for ")
        self.targets(doc.lhs)
        self.write(" in ")
        self.put(doc.rhs)
        self.write(":")
        self.block(doc.body)

    def put_ScopeDoc(self, doc):  # noqa: N802
        self.comment_above(doc)
        self.write("with ")
        self.put(doc.rhs)
        if doc.lhs is not None:
            self.write(" as ")
            self.put(doc.lhs)
        self.write(":")
        self.block(doc.body)

    def put_FunctionDoc(self, doc):  # noqa: N802
        self.decorators(doc.decorators)
        self.write("def ")
        self.put(doc.name)
        self.write("(")
        for arg in doc.args:
            if arg.comment is not None:
                raise ValueError(f"a parameter of a FunctionDoc with the comment {arg.comment!r}\n  needs: comments of functions and of statements")
        self.joined(doc.args)
        self.write(")")
        if doc.return_type is not None:
            self.write(" -> ")
            self.put(doc.return_type)
        self.write(":")
        self.block(doc.body, doc.comment)
        self.unmarked.append((self.length, self.length + 1))
        self.write("\n")  # a blank line below

    def put_ClassDoc(self, doc):  # noqa: N802
        self.decorators(doc.decorators)
        self.write("class ")
        self.put(doc.name)
        self.write(":")
        self.block(doc.body, doc.comment)

    def put_CommentDoc(self, doc):  # noqa: N802
        self.comment_above(doc, ends=False)

    def put_DocStringDoc(self, doc):  # noqa: N802
        if doc.comment:
            self.docstring(doc.comment)


def _operator(kind):
    """The token of an operator, and how tightly it binds."""
    if kind not in _OPERATORS:
        raise ValueError(f"an OperationDoc of {kind.name}, which is no operator\n  needs: one of {', '.join(k.name for k in _OPERATORS)}")
    return _OPERATORS[kind]


def _binds(doc):
    """How tightly an expression binds."""
    if isinstance(doc, D.OperationDoc):
        return _operator(doc.kind)[1]
    if isinstance(doc, D.LambdaDoc):
        return _LAMBDA
    if isinstance(doc, D.SliceDoc):
        raise ValueError("a SliceDoc is an operand\n  needs: slices stand in the indices of an IndexDoc alone")
    negative = isinstance(doc, D.LiteralDoc) and isinstance(doc.value, (int, float)) and doc.value < 0
    return _UNARY if negative else _ATOM


def _with_marks(text, marks, print_line_numbers, num_context_lines):
    """The lines of the result: numbered, those with marks above their carets, the lines far from marks left out."""
    lines = text.rstrip().split("\n")
    carets, at = [], 0
    for line in lines:
        under = marks[at:at + len(line)]
        at += len(line) + 1
        carets.append("".join("^" if m else " " for m in under).rstrip())
    width = len(str(len(lines))) + 1 if print_line_numbers else 0
    for first, end, is_shown in _runs(carets, num_context_lines):
        if not is_shown:
            yield f"(... {end - first} lines skipped ...)"
            continue
        for i in range(first, end):
            number = f"{i + 1} ".rjust(width) if print_line_numbers else ""
            yield number + lines[i]
            if carets[i]:
                yield " " * width + carets[i]


def _runs(carets, num_context_lines):
    """[first, end, whether it is shown] of lines."""
    marked = [i for i, c in enumerate(carets) if c]
    if num_context_lines is None or not marked:
        return [(0, len(carets), True)]
    shown = [False] * len(carets)
    for i in marked:
        for j in range(max(0, i - num_context_lines), min(len(carets), i + num_context_lines + 1)):
            shown[j] = True
    runs = []
    for i, is_shown in enumerate(shown):
        if runs and runs[-1][2] == is_shown:
            runs[-1][1] = i + 1
        else:
            runs.append([i, i + 1, is_shown])
    return [(first, end, is_shown or end - first < _MIN_SKIPPED_LINES) for first, end, is_shown in runs]
