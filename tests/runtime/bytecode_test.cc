#include "runtime/bytecode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/file.h"
#include "runtime/executable_builder.h"
#include "runtime/vm.h"

namespace sator::runtime {
namespace {

KernelSignature matmul_signature() {
  return {.params = {{.name = "a", .dtype = f32, .dims = {KernelDim::symbolic(0), KernelDim::constant(4)}},
                     {.name = "out", .dtype = f32, .dims = {KernelDim::symbolic(0), KernelDim::any()}},
                     {.name = "scale", .dtype = f32, .is_tensor = false, .value = 1}},
          .values = {{.name = "n", .param = 0, .dim = 0}, {.name = "scale", .param = 2}}};
}

// One of everything: three kinds of functions, seven kinds of constants, four instructions, four kinds of
// arguments.
Ref<Executable> sample() {
  ExecutableBuilder b;
  int32_t main = b.begin_function("main", {"x", "flag"});
  Arg out = b.new_register(), item = b.new_register();
  b.call(b.builtin("vm.builtin.copy"), {b.constant(Tensor::of<float>({1, 2, 3, 4, 5, 6, 7, 8}, Dims{2, 4}, f32))}, out);
  int32_t skip = b.if_(Arg::reg(1));
  b.call(b.kernel("matmul", matmul_signature()), {Arg::reg(0), out, b.constant(0.5)}, {}, "layers.0.mlp");
  int32_t end = b.goto_();
  b.patch(skip);
  b.call(b.builtin("vm.builtin.make_tuple"),
         {out,
          Arg::imm(-7),
          b.constant("text"),
          b.constant(i8),
          b.constant(Shape::of({1, 0, 3})),
          b.constant(Value()),
          b.constant(int64_t{1} << 60),
          Arg::function(main)},
         item);
  b.ret(item);
  b.patch(end);
  b.call(b.vm_function("helper"), {out}, out);
  b.ret(out);
  b.end_function();
  b.begin_function("helper", {"y"});
  b.ret(Arg::reg(0));
  b.end_function();
  return b.finish();
}

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); }

TEST(Bytecode, PrintsAsTheReferenceDescribes) {
  EXPECT_EQ(sample()->as_text(), R"(kernel matmul(a: float32[n, 4], out: float32[n, ?], scale: float32)
c[0]: a float32[2, 4] tensor
c[1]: the float 0.5
c[2]: the string "layers.0.mlp"
c[3]: the string "text"
c[4]: the dtype int8
c[5]: the shape [1, 0, 3]
c[6]: nothing
c[7]: the integer 1152921504606846976

@main(x, flag):
  call  vm.builtin.copy  in: c[0]  dst: %2
  if  %1  else: 3
  call  matmul  in: %0, %2, c[1]  dst: %void  # layers.0.mlp
  goto  3
  call  vm.builtin.make_tuple  in: %2, i-7, c[3], c[4], c[5], c[6], c[7], f[main]  dst: %3
  ret  %3
  call  helper  in: %2  dst: %2
  ret  %2

@helper(y):
  ret  %0
)");
}

TEST(Bytecode, ReadsBackWhatItWrote) {
  Ref<Executable> before = sample();
  std::string bytes = before->save();
  Ref<Executable> after = Executable::load(bytes_of(bytes));
  EXPECT_EQ(after->as_text(), before->as_text());
  EXPECT_EQ(after->code, before->code);
  EXPECT_EQ(after->args, before->args);
  ASSERT_EQ(after->functions.size(), before->functions.size());
  for (size_t i = 0; i < after->functions.size(); ++i) {
    EXPECT_EQ(after->functions[i].vm, before->functions[i].vm);
    EXPECT_EQ(after->functions[i].kernel, before->functions[i].kernel);
  }
  const Tensor& tensor = *after->constants[0].as<Tensor>();
  EXPECT_EQ(std::vector<float>(tensor.data_as<float>(), tensor.data_as<float>() + 8),
            (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(after->save(), bytes);
}

TEST(Bytecode, RefusesEveryTruncationAndEveryDamagedByte) {
  std::string bytes = sample()->save();
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_THROW(Executable::load(bytes_of(bytes.substr(0, n))), Error) << n;
  for (size_t n = 0; n < bytes.size(); ++n) {
    std::string damaged = bytes;
    damaged[n] ^= 0x40;
    EXPECT_THROW(Executable::load(bytes_of(damaged)), Error) << n;
  }
  EXPECT_THROW(Executable::load(bytes_of(bytes + "x")), Error);
}

constexpr size_t kHeader = 20;  // magic, version, hash

std::string with_true_hash(std::string bytes) {
  uint64_t hash = hash_bytes(std::string_view(bytes).substr(kHeader));
  std::memcpy(bytes.data() + 12, &hash, sizeof hash);
  return bytes;
}

bool jumps_back(const Executable& e) {
  for (const Instruction& i : e.code)
    if ((i.op == Opcode::goto_ || i.op == Opcode::if_) && i.offset < 0) return true;
  return false;
}

// Bytes that pass the hash still must not crash: they are refused, or run to a value or an Error.
TEST(Bytecode, SurvivesHostileBytes) {
  ExecutableBuilder b;
  b.begin_function("main", {"x"});
  Arg heap = b.new_register(), shape = b.new_register(), storage = b.new_register(), tensor = b.new_register();
  b.call(b.builtin("vm.builtin.alloc_shape_heap"), {Arg::imm(2)}, heap);
  b.call(b.builtin("vm.builtin.match_shape"),
         {Arg::reg(0), heap, Arg::imm(2), Arg::imm(1), Arg::imm(0), Arg::imm(0), Arg::imm(3), b.constant("x")});
  b.call(b.builtin("vm.builtin.make_shape"),
         {heap, Arg::imm(2), Arg::imm(1), Arg::imm(0), Arg::imm(0), Arg::imm(3)},
         shape);
  b.call(b.builtin("vm.builtin.alloc_storage"), {shape, Arg::imm(0), b.constant(f32), b.constant("global")}, storage);
  b.call(b.builtin("vm.builtin.alloc_tensor"), {storage, Arg::imm(0), shape, b.constant(f32)}, tensor);
  b.call(b.builtin("vm.builtin.make_tuple"), {tensor, Arg::function(0)}, storage);
  b.call(b.builtin("vm.builtin.tuple_getitem"), {storage, Arg::imm(0)}, tensor);
  b.call(b.builtin("vm.builtin.make_prim_value"), {heap, Arg::imm(1), Arg::imm(0)}, shape);
  int32_t skip = b.if_(shape);
  b.patch(skip);
  b.call(b.builtin("vm.builtin.reshape"), {tensor, b.constant(Shape::of({6}))}, tensor);
  b.ret(tensor);
  b.end_function();
  std::string bytes = b.finish()->save();

  std::mt19937_64 random(20240715);
  auto pool = ThreadPool::create(1);
  int refused = 0, stopped = 0, ran = 0;
  for (int round = 0; round < 8'000; ++round) {
    std::string damaged = bytes;
    for (uint64_t changes = 1 + random() % 3; changes-- > 0;) {
      size_t at = kHeader + random() % (damaged.size() - kHeader);
      switch (random() % 4) {
        case 0: damaged[at] = static_cast<char>(random()); break;
        case 1: damaged[at] = static_cast<char>(random() % 8); break;  // likely another valid tag or index
        case 2: damaged.erase(at, 1 + random() % 8); break;
        case 3: damaged.insert(at, 1 + random() % 8, static_cast<char>(random() % 4)); break;
      }
    }
    Ref<Executable> e;
    try {
      e = Executable::load(bytes_of(with_true_hash(damaged)));
    } catch (const Error&) {
      ++refused;
      continue;
    }
    e->as_text();
    if (jumps_back(*e)) continue;  // may run forever, as any program may
    try {
      VirtualMachine vm(e, {}, pool);
      vm.call(e->functions[0].name, {Tensor::empty(Dims{2, 3}, f32)});
      ++ran;
    } catch (const Error&) {
      ++stopped;
    }
  }
  // Each outcome occurred, so the mutations reach past the loader.
  EXPECT_GT(refused, 100);
  EXPECT_GT(stopped, 100);
  EXPECT_GT(ran, 100);
}

std::string why(const std::function<void(Executable&)>& damage) {
  Ref<Executable> e = sample();
  damage(*e);
  auto reason = why_invalid(*e);
  return reason ? reason->what : "valid";
}

TEST(WhyInvalid, FindsWhatWouldReachOutsideATable) {
  EXPECT_EQ(why([](Executable&) {}), "valid");
  EXPECT_EQ(why([](Executable& e) { e.code[0].function = 99; }), "a call of function 99 of 5");
  EXPECT_EQ(why([](Executable& e) { e.code[0].reg = 4; }), "register 4 of 4");
  EXPECT_EQ(why([](Executable& e) { e.args[0].value = 8; }), "constant 8 of 8");
  EXPECT_EQ(why([](Executable& e) { e.args[1] = Arg::reg(4); }), "register 4 of 4");
  EXPECT_EQ(why([](Executable& e) { e.args[2] = Arg::function(-1); }), "function -1 of 5");
  EXPECT_EQ(why([](Executable& e) { e.code[0].num_args = 1000; }), "arguments [0, 1000) of 13");
  EXPECT_EQ(why([](Executable& e) { e.code[1].offset = 7; }), "a jump by 7");
  EXPECT_EQ(why([](Executable& e) { e.code[1].offset = -2; }), "a jump by -2");
  EXPECT_EQ(why([](Executable& e) { e.code[3].offset = 0; }), "a jump to itself");
  EXPECT_EQ(why([](Executable& e) { e.code[2].annotation = 0; }), "annotation 0");
  EXPECT_EQ(why([](Executable& e) { e.code[2].num_args = 2; }), "a call of \"matmul\" with 2 arguments");
  EXPECT_EQ(why([](Executable& e) { e.functions[0].vm.end = 7; }), "the code runs off its end");
  EXPECT_EQ(why([](Executable& e) { e.functions[0].vm.end = 100; }), "code [0, 100) of 9 instructions");
  EXPECT_EQ(why([](Executable& e) { e.functions[0].vm.num_registers = 1; }), "1 registers for 2 parameters");
  EXPECT_EQ(why([](Executable& e) { e.functions[2].kernel.params[0].dims[0].value = 2; }),
            "parameter 0 speaks of value 2 of 2");
  EXPECT_EQ(why([](Executable& e) { e.functions[2].kernel.values[0].dim = 2; }),
            "value 0 is read from extent 2 of parameter 0");
  EXPECT_EQ(why([](Executable& e) { e.functions[2].kernel.params[2].value = 0; }),
            "scalar parameter 2 has no value of its own");
  EXPECT_EQ(why([](Executable& e) { e.functions[1].name = "main"; }), "two functions of this name");
}

TEST(ExecutableBuilder, ReportsMisuse) {
  ExecutableBuilder b;
  EXPECT_THROW(b.ret(Arg::reg(0)), InternalError);
  b.begin_function("f", {});
  EXPECT_THROW(b.begin_function("g", {}), InternalError);
  EXPECT_THROW(b.kernel("f", {}), InternalError);
  EXPECT_THROW(b.ret(Arg::imm(0)), InternalError);
  b.kernel("k", {});
  EXPECT_THROW(b.kernel("k", matmul_signature()), InternalError);
  EXPECT_EQ(b.constant(0.0), b.constant(0.0));
  EXPECT_NE(b.constant(0.0), b.constant(-0.0));
  EXPECT_NE(b.constant(0), b.constant(0.0));
  b.goto_();
  b.end_function();
  EXPECT_THROW(b.finish(), InternalError);  // the jump was never patched
}

}  // namespace
}  // namespace sator::runtime
