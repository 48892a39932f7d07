// Graphs as text: what is printed parses back, short spellings mean what the long ones do, mistakes are named with their
// place.
#include <gtest/gtest.h>

#include "ir/script/source.h"
#include "ir/visit.h"
#include "relax/builder.h"
#include "relax/parse.h"
#include "relax/print.h"
#include "relax/struct_info.h"
#include "relax/verify.h"

namespace sator::relax {
namespace {

// Every program is one that a reader of TVMScript knows; parse(print(p)) states the same.
const char* const kPrograms[] = {
    // A module of both levels, symbolic sizes, private functions.
    R"(
@I.ir_module
class Module:
    I.module_attrs({"version": 2})
    @T.prim_func(private=True)
    def scale(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n, T.int64(4)), "float32")
        Y = T.match_buffer(y, (n, T.int64(4)), "float32")
        for i, j in T.grid(n, T.int64(4)):
            with T.block("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.float32(2)
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor(("n", 8), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((n, 4), dtype="float32"))
            lv1 = R.matmul(lv, w, out_dtype="float32")
            lv2: R.Tensor((n, 8), "float32") = R.nn.softmax(lv1, axis=-1)
            gv = cls.helper(lv2)
            R.output(gv)
        return gv
    @R.function(private=True)
    def helper(x: R.Tensor(("m", 8), "float32")) -> R.Tensor(("m", 8), "float32"):
        R.func_attr({"Primitive": 1})
        y = R.nn.relu(x)
        return y
)",
    // Branches, impure calls, texts, dtypes, closures.
    R"(
@R.function(pure=False)
def main(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")) -> R.Object:
    if c:
        a = R.add(x, x)
        y = R.multiply(a, x)
    else:
        y = x
    R.print(y, format="y: {}")
    _ = R.assert_op(c, y, format="c")
    z = R.call_packed("some.function", y, R.dtype("int8"), R.str("text"), 3, sinfo_args=R.Tensor((2, 3), "float32"))
    f = R.make_closure(z, (x,))
    return f
)",
    // Numbers of each dtype as values that are known.
    R"(
@R.function
def main(x: R.Tensor(("n", 8), "float32"), p: R.Prim(value="n"), q: R.Prim("int32")):
    n = T.int64()
    rank = x.ndim
    bits = x.dtype.bits
    y = (x, R.prim_value(T.bool(True)), R.prim_value(2), R.prim_value(T.int32(2)), R.prim_value(n + 1), p)
    return (rank, bits, y)
)",
    // Functions inside, recursion, tuples.
    R"(
@R.function
def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
    @R.function
    def inner(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        b = R.exp(a)
        return b

    y = inner(x)
    t = (x, (y, x))
    u = t[1]
    v = u[0]
    return (v, y)
)",
    // match_cast, shapes as values, scalars.
    R"(
@R.function
def main(x: R.Tensor("float32", ndim=2), s: R.Shape(ndim=2), k: R.Prim("int64"), p: R.Prim(value="p")) -> R.Tuple(R.Tensor, R.Shape):
    n, m, p = T.int64(), T.int64(), T.int64()
    y = R.match_cast(x, R.Tensor((n, m), "float32"))
    z = R.reshape(y, R.shape([m * n]))
    w = R.strided_slice(z, axes=[0], begin=[0], end=[p])
    return (w, R.shape([n, m // 2, p]))
)",
    // Constants of rank 0 stand in the text; others before it.
    R"(
metadata = {"relax.expr.Constant": [R.const([[1.5, -2.0], [0.25, 3.0]], "float32"), R.const([1, 2, 3], "int64")]}
@R.function
def main(x: R.Tensor((2, 2), "float32")) -> R.Tensor((2, 2), "float32"):
    y = R.add(x, metadata["relax.expr.Constant"][0])
    z = R.multiply(y, R.const(2, "float32"))
    t = R.take(z, metadata["relax.expr.Constant"][1], axis=0)
    return z
)",
    // Destination passing, in place, external functions, devices.
    R"(
@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0), I.vdevice("cuda -arch=sm_80", 1)]})
    extern = R.ExternFunc("extern")
    @T.prim_func
    def copy(A: T.Buffer((2, 3), "int32"), B: T.Buffer((2, 3), "int32")):
        T.func_attr({"tir.noalias": True})
        for i, j in T.grid(2, 3):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
    @R.function
    def main(x: R.Tensor((2, 3), "int32", "llvm"), y: R.Tensor((2, 3), "int32", "vdevice:2")) -> R.Tensor((2, 3), "int32"):
        cls = Module
        a = R.call_tir_inplace(cls.copy, (x, y), out_sinfo=R.Tensor((2, 3), "int32"), inplace_indices=[1])
        b = R.call_dps_packed("dps", (a,), out_sinfo=[R.Tensor((2, 3), "int32"), R.Tensor((2,), "float32")])
        c = R.to_vdevice(b[0], "cuda:1")
        return c
)",
    // Attributes of every type.
    R"(
@R.function
def main(x: R.Tensor((1, 3, 8, 8), "float32"), w: R.Tensor((6, 3, 3, 3), "float32")) -> R.Tuple(R.Tensor((1, 6, 4, 4), "float32"), R.Tensor((1, 3, 8), "int64")):
    y = R.nn.conv2d(x, w, strides=2, padding=(1, 1), out_dtype="float32")
    z = R.argmax(x, axis=2)
    u = R.split(x, 2, axis=3)
    v = R.clip(x, 0.0, 6.0)
    return (y, z)
)",
};

TEST(Script, WhatIsPrintedParsesBack) {
  for (const char* program : kPrograms) {
    ModuleRef module = parse_module(program);
    std::string printed = to_script(*module);
    ModuleRef again = parse_module(printed);
    EXPECT_TRUE(equal(module, again)) << printed << "\nagain:\n" << to_script(*again);
    EXPECT_EQ(printed, to_script(*again));
  }
}

TEST(Script, WithoutStructInfoOfBindingsItParsesToTheSame) {
  ScriptOptions brief;
  brief.show_all_struct_info = false;
  ModuleRef module = parse_module(kPrograms[0]);
  EXPECT_TRUE(equal(module, parse_module(to_script(*module, brief)))) << to_script(*module, brief);
}

FuncRef function(const std::string& body,
                 const std::string& params = "x: R.Tensor((4, 4), \"float32\"), y: R.Tensor((4, 4), \"float32\")") {
  return cast<Function>(parse_function("@R.function(private=True)\ndef main(" + params + "):\n" + body));
}

TEST(Script, ShortSpellingsMeanTheLongOnes) {
  const std::pair<const char*, const char*> kSame[] = {
      {"    z = x + y\n    return z\n", "    z = R.add(x, y)\n    return z\n"},
      {"    z = -x / y\n    return z\n", "    a = R.negative(x)\n    z = R.divide(a, y)\n    return z\n"},
      {"    z = x ** y < y\n    return z\n", "    a = R.power(x, y)\n    z = R.less(a, y)\n    return z\n"},
      {"    return R.add(R.exp(x), y)\n", "    a = R.exp(x)\n    b = R.add(a, y)\n    return b\n"},
      {"    t = (x, y)\n    z = t[1]\n    return z\n",
       "    t = R.tuple(x, y)\n    z = R.TupleGetItem(t, 1)\n    return z\n"},
      {"    z = x.astype(\"float16\")\n    return z\n", "    z = R.astype(x, dtype=\"float16\")\n    return z\n"},
      {"    z = relax.op.exp(x)\n    return z\n", "    z = R.exp(x)\n    return z\n"},
      {"    a, b = R.split(x, 2)\n    return a\n",
       "    t = R.split(x, indices_or_sections=2, axis=0)\n    a = t[0]\n    b = t[1]\n    return a\n"},
      {"    z = R.reshape(x, (2, -1))\n    return z\n", "    z = R.reshape(x, R.shape([2, 8]))\n    return z\n"},
  };
  for (const auto& [brief, full] : kSame) {
    FuncRef a = function(brief), b = function(full);
    EXPECT_TRUE(equal(a, b)) << to_script(*a) << "\n" << to_script(*b);
  }
}

TEST(Script, OutputsOfADataflowBlockAreVisibleOutside) {
  FuncRef f = function(
      "    with R.dataflow():\n        a = R.exp(x)\n        b = R.log(a)\n        R.output(b)\n    return b\n");
  std::vector<bool> is_dataflow;
  walk(f, [&](const VarBinding& b) { is_dataflow.push_back(b.var->is_dataflow); });
  EXPECT_EQ(is_dataflow, (std::vector<bool>{true, false}));
}

TEST(Script, AnAnnotationIsKeptWhereTheValueDoesNotTellMore) {
  // The callee's result is not known; the annotation is.
  FuncRef f = function("    z: R.Tensor((4, 4), \"float32\") = R.call_pure_packed(\"f\", x)\n    return z\n");
  EXPECT_EQ(text(f->ret), "R.Tensor((4, 4), dtype=\"float32\")");
}

TEST(Script, TheResultOfAFunctionIsWhatItsBodyTells) {
  Func f = parse_function(
      "@R.function\ndef f(x: R.Tensor((\"n\", 2), \"float32\")) -> R.Tensor:\n    return R.sum(x, axis=1)\n");
  EXPECT_EQ(text(f.as<Function>()->ret), "R.Tensor((n,), dtype=\"float32\")");
}

struct Mistake {
  const char* body;
  int line;          ///< of the whole function, whose decorator is line 1
  const char* word;  ///< of the message
};

TEST(Script, MistakesAreNamedWithTheirPlace) {
  const Mistake kMistakes[] = {
      {"    z = R.add(x, q)\n    return z\n", 3, "q is not defined"},
      {"    z = R.ad(x, y)\n    return z\n", 3, "did you mean R.add"},
      {"    z = R.add(x)\n    return z\n", 3, "argument x2 is missing"},
      {"    z = R.add(x, y, axis=1)\n    return z\n", 3, "axis"},
      {"    z = R.matmul(x, R.reshape(y, (2, 8)))\n    return z\n", 3, "matmul"},
      {"    R.add(x, y)\n    return x\n", 3, "is not bound"},
      {"    a = b = x\n    return a\n", 3, "several targets"},
      {"    z: R.Shape = x\n    return z\n", 3, "annotated"},
      {"    z = x\n", 2, "returns nothing"},
      {"    return x\n    return y\n", 4, "after return"},
      {"    with R.dataflow():\n        a = R.exp(x)\n        R.output(a)\n        b = a\n    return a\n",
       6,
       "after R.output"},
      {"    with R.dataflow():\n        a = R.exp(x)\n        R.output(x)\n    return a\n", 5, "does not bind"},
      {"    with R.dataflow():\n        a = R.exp(x)\n        b = a\n        R.output(b)\n    return a\n",
       7,
       "a is not defined"},
      {"    for i in range(3):\n        z = x\n    return x\n", 3, "not part of a graph"},
      {"    if x:\n        z = x\n    else:\n        w = x\n    return x\n", 3, "last"},
      {"    R.output(x)\n    return x\n", 3, "outside"},
      {"    z = R.call_packed(\"f\", x, sinfo_args=R.Tensor)\n    return z\n", 3, "impure"},
      {"    z = R.call_tir(\"f\", (x,), out_sinfo=R.Tensor((4,), \"float32\"))\n    return z\n", 3, "call_dps_packed"},
      {"    z = R.const([[1, 2], [3]], \"float32\")\n    return z\n", 3, "different lengths"},
      {"    z = R.const(300, \"uint8\")\n    return z\n", 3, "a number from 0 to 255"},
      {"    z = R.const([1, -129], \"int8\")\n    return z\n", 3, "-129 as an element of int8"},
  };
  for (const Mistake& m : kMistakes) {
    try {
      FuncRef f = function(m.body);
      ADD_FAILURE() << "accepted:\n" << m.body << to_script(*f);
    } catch (const script::SourceError& e) {
      EXPECT_EQ(e.at.line, m.line) << m.body << e.what();
      EXPECT_NE(std::string(e.what()).find(m.word), std::string::npos) << m.body << e.what();
    }
  }
}

TEST(Script, SignaturesAreChecked) {
  const char* const kWrong[] = {
      "x",                                            // no annotation
      "x: R.Tensor((\"m + 1\",), \"float32\")",       // m never stands alone
      "x: R.Tensor((2, 3), \"float32\", ndim=3)",     // two ranks
      "x: R.Tensor(dtype=\"float32\", ndim=-2)",      //
      "x: R.Tensor(dtype=\"floot32\")",               //
      "x: R.Tensor((2, 3), \"float32\", \"a:b:c\")",  // no device
      "x: R.Prim()",                                  // neither dtype nor value
      "x: 3",                                         //
  };
  for (const char* params : kWrong) EXPECT_THROW(function("    return x\n", params), script::SourceError) << params;
}

TEST(Script, ModulesAreChecked) {
  const char* const kWrong[] = {
      "x = 3",
      "class M:\n    pass\n",
      "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Object):\n        return M.g(x)\n",
      "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Object):\n        return x\n    @R.function\n    def "
      "f(x: R.Object):\n        return x\n",
      "@I.ir_module\nclass M:\n    def f(x: R.Object):\n        return x\n",
      "@I.ir_module\nclass M:\n    I.module_global_infos({\"vdevice\": [1]})\n",
      "@I.ir_module\nclass M:\n    I.module_global_infos({\"vdevice\": [I.vdevice(\"llvm\")]})\n    @R.function\n    "
      "def f(x: R.Tensor((2,), \"int32\", \"cuda:0\")):\n        return x\n",
  };
  for (const char* program : kWrong) EXPECT_THROW(parse_module(program), script::SourceError) << program;
}

TEST(Verify, CallTirGivesATensorPerBuffer) {
  auto program = [](const char* args) {
    return std::string("@I.ir_module\nclass M:\n") +
           "    @T.prim_func(private=True)\n    def add(a: T.Buffer((4,), \"float32\"), b: T.Buffer((4,), "
           "\"float32\"), "
           "c: T.Buffer((4,), \"float32\")):\n        for i in range(4):\n            with T.block(\"add\"):\n"
           "                vi = T.axis.spatial(4, i)\n                c[vi] = a[vi] + b[vi]\n"
           "    @R.function\n    def main(x: R.Tensor((4,), \"float32\")):\n        cls = M\n"
           "        y = R.call_tir(cls.add, " +
           args + ", out_sinfo=R.Tensor((4,), \"float32\"))\n        return y\n";
  };
  EXPECT_TRUE(verify(*parse_module(program("(x, x)"), "", {.verify = false})).empty());
  std::vector<Reason> wrong = verify(*parse_module(program("(x,)"), "", {.verify = false}));
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].what, "call_tir gives add 2 tensors, results included, and it takes 3");
}

// Bytes of one shape and dtype read as another's: wrong numbers without a word, were it not refused.
TEST(Verify, CallTirGivesWhatTheBuffersSay) {
  auto mistakes = [](const char* x, const char* out) {
    return verify(*parse_module(
        std::string("@I.ir_module\nclass M:\n") +
            "    @T.prim_func(private=True)\n    def copy(a: T.Buffer((4, 2), \"float32\"), b: T.Buffer((4, 2), "
            "\"float32\")):\n        for i, j in T.grid(4, 2):\n            with T.block(\"copy\"):\n"
            "                vi, vj = T.axis.remap(\"SS\", [i, j])\n                b[vi, vj] = a[vi, vj]\n"
            "    @R.function\n    def main(x: " +
            x + "):\n        cls = M\n        y = R.call_tir(cls.copy, (x,), out_sinfo=" + out +
            ")\n        return y\n",
        "",
        {.verify = false}));
  };
  const char* fits = R"(R.Tensor((4, 2), "float32"))";
  EXPECT_TRUE(mistakes(fits, fits).empty());
  EXPECT_TRUE(mistakes(R"(R.Tensor(("n", 2), "float32"))", fits).empty());  // n may be 4
  for (const char* other :
       {R"(R.Tensor((4, 2), "float16"))", R"(R.Tensor((2, 4), "float32"))", R"(R.Tensor((8,), "float32"))"}) {
    ASSERT_EQ(mistakes(other, fits).size(), 1u) << other;
    EXPECT_NE(mistakes(other, fits)[0].what.find("as the buffer a"), std::string::npos) << other;
    EXPECT_NE(mistakes(fits, other)[0].what.find("as the buffer b"), std::string::npos) << other;
  }
}

// The parser takes an annotation as what a call gives, so the contradiction is made by hand.
TEST(Verify, StructInfoHoldsForTheValue) {
  const DType kFloat = DType::Float(32);
  auto mistakes = [&](const StructInfo& declared) {
    BlockBuilder b;
    const RVarRef x = make_rvar("x", tensor_info({int_imm(3, DType::Int(64)), int_imm(4, DType::Int(64))}, kFloat)),
                  y = make_rvar("y", declared);
    b.begin_scope({x});
    b.begin_block(false);
    b.emit_binding(bind_value(y, b.normalize(call(op_ref("exp"), {x}))));
    const BindingBlockRef block = b.end_block();
    return verify(*b.end_function({x}, {block}, y));
  };
  const auto info = [](std::vector<Expr> extents, DType dtype) { return tensor_info(std::move(extents), dtype); };
  for (const StructInfo& right :
       {info({int_imm(3, DType::Int(64)), int_imm(4, DType::Int(64))}, kFloat), object_info()})
    EXPECT_TRUE(mistakes(right).empty()) << text(right);
  for (const StructInfo& wrong : {info({int_imm(3, DType::Int(64)), int_imm(5, DType::Int(64))}, kFloat),
                                  info({int_imm(3, DType::Int(64)), int_imm(4, DType::Int(64))}, DType::Float(16)),
                                  info({int_imm(12, DType::Int(64))}, kFloat)}) {
    const std::vector<Reason> found = mistakes(wrong);
    ASSERT_FALSE(found.empty()) << text(wrong);
    EXPECT_NE(found[0].what.find("the variable y is declared"), std::string::npos) << found[0].what;
  }
}

}  // namespace
}  // namespace sator::relax
