// The Python subset: what is read, where errors point, and that hostile texts are refused in words.
#include <gtest/gtest.h>

#include "ir/script/lexer.h"
#include "ir/script/parser.h"

namespace sator::script {
namespace {

using Kind = ExpressionKind;

Expression parsed(const std::string& text) { return std::move(parse(text + "\n").body.at(0).value); }

/// The expression as nested prefix form: (+ a (* b c)).
std::string shape(const Expression& e) {
  switch (e.kind) {
    case Kind::name: return e.text;
    case Kind::integer: return text(e.integer);
    case Kind::real: return text(e.real);
    case Kind::string: return string_literal(e.text);
    case Kind::none: return "None";
    case Kind::boolean: return e.integer ? "True" : "False";
    case Kind::absent: return "_";
    default: break;
  }
  std::string out = "(";
  switch (e.kind) {
    case Kind::tuple: out += "tuple"; break;
    case Kind::list: out += "list"; break;
    case Kind::dict: out += "dict"; break;
    case Kind::attribute: out += "." + e.text; break;
    case Kind::subscript: out += "index"; break;
    case Kind::slice: out += "slice"; break;
    case Kind::call: out += "call"; break;
    case Kind::conditional: out += "if"; break;
    case Kind::lambda: out += "lambda " + join(e.names, ","); break;
    case Kind::star: out += "star"; break;
    case Kind::compare: out += join(e.names, ","); break;
    default: out += e.text;
  }
  for (const Expression& item : e.items) out += " " + shape(item);
  for (const Keyword& k : e.keywords) out += " " + k.name + "=" + shape(k.value);
  return out + ")";
}

/// The error of a text: what is wrong, line and column.
std::string error_of(const std::string& source) {
  try {
    parse(source);
  } catch (const SourceError& e) {
    return text(e.at.line, ":", e.at.column, " ", e.reason.what);
  }
  return "accepted";
}

TEST(Script, OperatorsBindAsInPython) {
  EXPECT_EQ(shape(parsed("a + b * c - d")), "(- (+ a (* b c)) d)");
  EXPECT_EQ(shape(parsed("a // b % c / d")), "(/ (% (// a b) c) d)");
  EXPECT_EQ(shape(parsed("-a ** -b")), "(- (** a (- b)))");
  EXPECT_EQ(shape(parsed("not a < b and c or d")), "(or (and (not (< a b)) c) d)");
  EXPECT_EQ(shape(parsed("a | b ^ c & d << e")), "(| a (^ b (& c (<< d e))))");
  EXPECT_EQ(shape(parsed("0 <= a < b")), "(<=,< 0 a b)");
  EXPECT_EQ(shape(parsed("a if b else c if d else e")), "(if b a (if d c e))");
  EXPECT_EQ(shape(parsed("lambda x, y: x + y")), "(lambda x,y (+ x y))");
}

TEST(Script, PrimariesAndLiterals) {
  EXPECT_EQ(shape(parsed("A[i, 0:16, ::2](x, *y, k=1).z")),
            "(.z (call (index A (tuple i (slice 0 16 _) (slice _ _ 2))) x (star y) k=1))");
  EXPECT_EQ(shape(parsed("C[()]")), "(index C (tuple))");
  EXPECT_EQ(shape(parsed("((1,), (2), [], {'a': 1, \"b\": None})")),
            "(tuple (tuple 1) 2 (list) (dict \"a\" 1 \"b\" None))");
  EXPECT_EQ(shape(parsed("0x10, 0b11, 1_000, 1e-3, .5, 2.")), "(tuple 16 3 1000 0.001 0.5 2)");
  EXPECT_EQ(shape(parsed("'a' \"b\\n\\x41\" r'\\n'")), "\"ab\\nA\\\\n\"");
  Expression big = parsed("18446744073709551615");
  EXPECT_TRUE(big.is_unsigned);
  EXPECT_EQ(big.integer, -1);
}

TEST(Script, LinesJoinInsideBracketsAndTheWholeTextMayBeIndented) {
  Program p = parse("    x = (1 +  # one\n\n  2)\n    for i in f(\n3): pass\n");
  ASSERT_EQ(p.body.size(), 2u);
  EXPECT_EQ(shape(p.body[0].value), "(+ 1 2)");
  EXPECT_EQ(p.body[1].kind, StatementKind::for_);
  EXPECT_EQ(p.body[1].body[0].kind, StatementKind::pass);
}

TEST(Script, StatementsOfAModule) {
  Program p = parse(
      "from tvm.script import tir as T, relax\n"
      "@T.prim_func(private=True)\n"
      "def f(a: T.handle, n: T.int32 = 3) -> None:\n"
      "    \"\"\"doc\"\"\"\n"
      "    with T.block(\"b\"), T.attr(a, 'k', 1) as (x, y):\n"
      "        A[i] += 1; B: T.int32 = 2\n"
      "    if a:\n"
      "        return 1\n"
      "    elif b: pass\n"
      "    else:\n"
      "        assert c, 'm'\n"
      "    while d: a = b = c\n");
  ASSERT_EQ(p.body.size(), 2u);
  const Statement& import = p.body[0];
  EXPECT_EQ(import.params[0].name, "T");
  EXPECT_EQ(import.params[0].annotation.text, "tvm.script.tir");
  EXPECT_EQ(import.params[1].name, "relax");
  const Statement& f = p.body[1];
  EXPECT_EQ(f.text, "f");
  EXPECT_EQ(dotted_name(f.decorators[0].items[0]), "T.prim_func");
  EXPECT_EQ(f.params[1].default_value.integer, 3);
  EXPECT_TRUE(f.annotation.is(Kind::none));
  ASSERT_EQ(f.body.size(), 4u);
  EXPECT_EQ(f.body[1].items.size(), 2u);
  EXPECT_EQ(f.body[1].body[0].text, "+");
  EXPECT_EQ(f.body[1].body[1].kind, StatementKind::annotated);
  EXPECT_EQ(f.body[2].orelse[0].kind, StatementKind::if_);
  EXPECT_EQ(f.body[3].body[0].targets.size(), 2u);
}

// Who evaluates the program may ask Python for their values.
TEST(Script, ComprehensionsAreKeptAsTextToo) {
  EXPECT_EQ(shape(parsed("[i for i in y[0] if (i)]")), "([i for i in y[0] if (i)] i i (index y 0) i)");
  EXPECT_EQ(shape(parsed("{k: v for k, v in y}")), "({k: v for k, v in y} k v (tuple k v) y)");
  EXPECT_EQ(shape(parsed("f(x, i * 2 for i in y)")), "(call f x ((i * 2 for i in y) (* i 2) i y))");
  EXPECT_EQ(shape(parsed("(i for i in y)")), "((i for i in y) i i y)");
  EXPECT_EQ(shape(parsed("f([i\n  for i in y], 3)")), "(call f ([i\n  for i in y] i i y) 3)");
  EXPECT_EQ(shape(parsed("[i for i in y if (j := i)]")),
            "([i for i in y if (j := i)])");  // more of Python than is read
  EXPECT_EQ(error_of("x = [i for\n"), "1:5 this bracket is never closed");
}

TEST(Script, ErrorsSayWhere) {
  EXPECT_EQ(error_of("x = (1,\ny = 2)\n"), "2:3 expected ')' after the elements in parentheses, found '='");
  EXPECT_EQ(error_of("x = [1, 2\n"), "1:5 this bracket is never closed");
  EXPECT_EQ(error_of("def f():\n    x = 1\n  y = 2\n"), "3:3 the indentation fits no enclosing block");
  EXPECT_EQ(error_of("if x\n    y\n"), "1:5 expected ':' after the head of the block, found the end of the line");
  EXPECT_EQ(error_of("x = \"abc\n"), "1:5 this string is never closed");
  EXPECT_EQ(error_of("é = 1 ? 2\n"), "1:7 unexpected character '?'");
  EXPECT_EQ(error_of("try:\n    pass\n"), "1:1 'try' is not part of TVMScript");
  EXPECT_EQ(error_of("f(x) = 1\n"), "1:1 this cannot be assigned to");
  EXPECT_EQ(error_of("x = 99999999999999999999999\n"),
            "1:5 99999999999999999999999 is not an integer of at most 64 bits");
  EXPECT_EQ(error_of("x = 1 if 3\xc3\xa9\n"), "1:10 the number 3 runs into '\xc3\xa9'");
  EXPECT_EQ(error_of("x = f\"{a\"\n"), "1:5 a field of a formatted string that is never closed");
  EXPECT_EQ(error_of("x = f\"{a!r}\"\n"), "1:5 in the text \"a!r\": unexpected character '!'");
  EXPECT_EQ(error_of("x = b\"a\"\n"), "1:5 strings with the prefix b are not part of TVMScript");
}

TEST(Script, AnErrorShowsTheLine) {
  try {
    parse("def f():\n    x = a + ?\n", "model.py");
    FAIL();
  } catch (const SourceError& e) {
    EXPECT_EQ(std::string(e.what()),
              "error: unexpected character '?'\n"
              "  in model.py line 2, column 13\n"
              "  |    x = a + ?\n"
              "  |            ^\n"
              "  needs: a token of Python\n"
              "  hint:  remove it");
  }
}

// Each of these once meant a stack overflow in some parser.
TEST(Script, HostileNestingIsRefused) {
  auto many = [](std::string_view s, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += s;
    return out;
  };
  constexpr size_t n = 100'000;
  for (const std::string& text : {"x = " + many("(", n),
                                  "x = " + many("[", n) + many("]", n),
                                  "x = " + many("-", n) + "1",
                                  "x = " + many("not ", n) + "1",
                                  "x = a" + many("[0]", n),
                                  "x = a" + many("(", n),
                                  "x = a" + many(".b", n),
                                  "x = 1" + many(" + 1", n),
                                  "x = " + many("lambda: ", n) + "1",
                                  "x = " + many("1 if 1 else ", n) + "1",
                                  "x = 1" + many(" ** 1", n),
                                  "x = " + many("{1: ", n)})
    EXPECT_NE(error_of(text + "\n"), "accepted") << text.substr(0, 20);
  std::string blocks;
  for (size_t i = 0; i < 500; ++i) blocks += std::string(i, ' ') + "if x:\n";
  EXPECT_NE(error_of(blocks), "accepted");
  std::string branches = "if x: pass\n" + many("elif x: pass\n", n);
  EXPECT_NE(error_of(branches), "accepted");
}

// Every prefix of a program, and the program with any byte replaced, is parsed or refused; nothing else.
TEST(Script, DamagedTextsAreParsedOrRefused) {
  const std::string good =
      "@T.prim_func\ndef f(a: T.handle, A: T.Buffer((8, 8), \"float32\")) -> None:\n    for i, j in T.grid(8, 8):\n    "
      "    with T.block(\"b\"):\n"
      "            vi = T.axis.spatial(8, i * 2 + 1)\n            A[vi, 0:4:2] = T.float32(1e-3) if x else {'a': [1, "
      "None]}\n";
  for (size_t i = 0; i <= good.size(); ++i) error_of(good.substr(0, i));
  for (size_t i = 0; i < good.size(); ++i) {
    for (char c : {'\0', '(', ']', '"', '\n', ' ', '\\', '\xff', '0', '.', ':'}) {
      std::string damaged = good;
      damaged[i] = c;
      error_of(damaged);
    }
  }
  SUCCEED();
}

}  // namespace
}  // namespace sator::script
