#include "runtime/vm.h"

#include <gtest/gtest.h>

#include <bit>

#include "runtime/builtins/table.h"
#include "runtime/executable_builder.h"

namespace sator::runtime {
namespace {

// add(a: float32[n, 3], b: float32[3], out: float32[n, 3])
KernelSignature add_signature() {
  return {.params = {{.name = "a", .dtype = f32, .dims = {KernelDim::symbolic(0), KernelDim::constant(3)}},
                     {.name = "b", .dtype = f32, .dims = {KernelDim::constant(3)}},
                     {.name = "out", .dtype = f32, .dims = {KernelDim::symbolic(0), KernelDim::constant(3)}}},
          .values = {{.name = "n", .param = 0, .dim = 0}}};
}

int32_t add_kernel(void* const* buffers, const int64_t* values, SatorContext*) {
  auto* a = static_cast<float*>(buffers[0]);
  auto* b = static_cast<float*>(buffers[1]);
  auto* out = static_cast<float*>(buffers[2]);
  for (int64_t i = 0; i < values[0] * 3; ++i) out[i] = a[i] + b[i % 3];
  return 0;
}

std::vector<float> floats(const Value& value) {
  const Tensor* tensor = value.as<Tensor>();
  return {tensor->data_as<float>(), tensor->data_as<float>() + tensor->num_elements()};
}

// The function of reference/tvm.md section 4.6, as bytecode: out = x + b with a planned storage.
Ref<Executable> add_program() {
  ExecutableBuilder b;
  b.begin_function("main", {"x", "b"});
  Arg heap = b.new_register(), shape = b.new_register(), bytes = b.new_register(), storage = b.new_register(),
      alloc = b.new_register();
  Arg context = b.constant("main, parameter x");
  b.call(b.builtin("vm.builtin.alloc_shape_heap"), {Arg::imm(1)}, heap);
  b.call(b.builtin("vm.builtin.check_tensor_info"), {Arg::reg(0), Arg::imm(2), b.constant(f32), context});
  b.call(b.builtin("vm.builtin.match_shape"),
         {Arg::reg(0), heap, Arg::imm(2), Arg::imm(1), Arg::imm(0), Arg::imm(0), Arg::imm(3), context});
  b.call(b.builtin("vm.builtin.make_shape"),
         {heap, Arg::imm(2), Arg::imm(1), Arg::imm(0), Arg::imm(0), Arg::imm(3)},
         shape);
  b.call(b.builtin("vm.builtin.copy"), {b.constant(Shape::of({1 << 16}))}, bytes);
  b.call(b.builtin("vm.builtin.alloc_storage"), {bytes, Arg::imm(0), b.constant(u8), b.constant("global")}, storage);
  b.call(b.builtin("vm.builtin.alloc_tensor"), {storage, Arg::imm(0), shape, b.constant(f32)}, alloc);
  b.kill(storage);
  b.call(b.kernel("add", add_signature()), {Arg::reg(0), Arg::reg(1), alloc}, {}, "layers.7.mlp");
  b.ret(alloc);
  b.end_function();
  return b.finish();
}

KernelTable add_table() {
  KernelTable table;
  table.add("add", add_kernel);
  return table;
}

Ref<Tensor> ramp(int64_t n) {
  Ref<Tensor> t = Tensor::empty(Dims{n, 3}, f32);
  for (int64_t i = 0; i < 3 * n; ++i) t->data_as<float>()[i] = static_cast<float>(i);
  return t;
}

const Value kBias = Tensor::of<float>({10, 20, 30}, Dims{3}, f32);

TEST(VirtualMachine, RunsOneProgramAtEveryLength) {
  VirtualMachine vm(add_program(), add_table(), ThreadPool::create(1));
  for (int64_t n : {2, 1, 5, 0}) {
    Value out = vm.call("main", {ramp(n), kBias});
    EXPECT_EQ(out.as<Tensor>()->shape(), (Dims{n, 3}));
    std::vector<float> expected;
    for (int64_t i = 0; i < 3 * n; ++i) expected.push_back(static_cast<float>(i + 10 * (i % 3 + 1)));
    EXPECT_EQ(floats(out), expected);
  }
}

TEST(VirtualMachine, ReusesPlannedStorages) {
  VirtualMachine vm(add_program(), add_table(), ThreadPool::create(1));
  vm.call("main", {ramp(2), kBias});
  int64_t allocations = vm.memory().stats().system_allocations;
  for (int64_t n = 0; n < 10; ++n) vm.call("main", {ramp(n), kBias});
  EXPECT_EQ(vm.memory().stats().system_allocations, allocations);
}

TEST(VirtualMachine, DropsWhatRegistersHoldWhenACallFails) {
  KernelTable table;
  table.add("add", [](void* const*, const int64_t*, SatorContext* ctx) -> int32_t {
    ctx->workspace_push(ctx, 100);
    ctx->set_error(ctx, "the input is not finite");
    return 1;
  });
  VirtualMachine vm(add_program(), table, ThreadPool::create(1));
  for (int i = 0; i < 5; ++i) {
    try {
      vm.call("main", {ramp(2), kBias});
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.reason.what, "kernel add failed: the input is not finite");
      EXPECT_EQ(e.reason.where, "in main at instruction 8 (layers.7.mlp)");
    }
  }
  EXPECT_EQ(vm.memory().stats().system_allocations,
            2);  // the heap and the planned storage, reused by each call
  EXPECT_EQ(vm.pool().workspace_mark(), 0u);
}

std::string failure(VirtualMachine& vm, std::initializer_list<Value> args, const char* function = "main") {
  try {
    vm.call(function, args);
  } catch (const Error& e) {
    return e.reason.what + " / " + e.reason.needs;
  }
  return "no error";
}

TEST(VirtualMachine, ChecksWhatAFunctionIsGiven) {
  VirtualMachine vm(add_program(), add_table(), ThreadPool::create(1));
  EXPECT_EQ(failure(vm, {kBias, kBias}),
            "main, parameter x: got a float32[3] tensor / a tensor of rank 2 and dtype float32");
  EXPECT_EQ(failure(vm, {Tensor::empty(Dims{2, 3}, i32), kBias}),
            "main, parameter x: got an int32[2, 3] tensor / a tensor of rank 2 and dtype float32");
  EXPECT_EQ(failure(vm, {5, kBias}), "main, parameter x: got the integer 5 / a tensor of rank 2 and dtype float32");
  EXPECT_EQ(failure(vm, {Tensor::empty(Dims{2, 4}, f32), kBias}), "main, parameter x: extent 1 is 4 / 3 there");
  EXPECT_EQ(failure(vm, {ramp(2)}), "main is called with 1 arguments / 2 arguments: x, b");
  EXPECT_EQ(failure(vm, {}, "mane"), "the program has no function \"mane\" / a function of the compiled model");
}

TEST(VirtualMachine, ChecksEveryArgumentOfAKernel) {
  VirtualMachine vm(add_program(), add_table(), ThreadPool::create(1));
  const char* signature = ", as in add(a: float32[n, 3], b: float32[3], out: float32[n, 3])";
  EXPECT_EQ(failure(vm, {ramp(2), Tensor::empty(Dims{4}, f32)}),
            text("argument 1 (\"b\") of kernel add is a float32[4] tensor / a float32[3] tensor", signature));
  EXPECT_EQ(failure(vm, {ramp(2), 1}),
            text("argument 1 (\"b\") of kernel add is the integer 1 / a float32[3] tensor", signature));
  EXPECT_EQ(failure(vm, {ramp(2), kBias, Tensor::empty(Dims{2, 3}, f16)}, "add"),
            text("argument 2 (\"out\") of kernel add is a float16[2, 3] tensor / a float32[n, 3] tensor", signature));
  EXPECT_EQ(failure(vm, {ramp(2), kBias, ramp(3)}, "add"),
            text("argument 2 (\"out\") of kernel add is a float32[3, 3] tensor / a float32[n, 3] tensor, "
                 "where n = 2 from \"a\"",
                 signature));
  EXPECT_EQ(failure(vm, {ramp(2), kBias}, "add"),
            "kernel add is called with 2 arguments / 3 arguments: add(a: float32[n, 3], b: float32[3], out: "
            "float32[n, 3])");
}

TEST(VirtualMachine, PassesScalarsInTheirOwnForm) {
  ExecutableBuilder b;
  KernelSignature s;
  const DType dtypes[] = {i32, f32, boolean, u8};
  for (int32_t i = 0; i < 4; ++i) {
    s.params.push_back({.name = text("p", i), .dtype = dtypes[i], .is_tensor = false, .value = i});
    s.values.push_back({.name = text("p", i), .param = i});
  }
  b.kernel("k", s);
  KernelTable table;
  std::vector<int64_t> seen;
  table.add_host("k", [&](void* const*, const int64_t* values, SatorContext*) {
    seen.assign(values, values + 4);
    return 0;
  });
  VirtualMachine vm(b.finish(), table, ThreadPool::create(1));
  vm.call("k", {-5, 0.1, true, 255});
  EXPECT_EQ(seen, (std::vector<int64_t>{-5, std::bit_cast<int64_t>(0.1), 1, 255}));
  vm.call("k", {0, 3, 0, 0});  // an integer where a float is wanted
  EXPECT_EQ(seen[1], std::bit_cast<int64_t>(3.0));
  EXPECT_EQ(failure(vm, {0.5, 0.1, 1, 1}, "k").substr(0, 64),
            "argument 0 (\"p0\") of kernel k is the float 0.5 / an int32 scalar");
  for (std::initializer_list<Value> bad :
       {std::initializer_list<Value>{int64_t{1} << 31, 0.1, 1, 1}, {0, 0.1, 2, 1}, {0, 0.1, 1, 256}, {0, 0.1, 1, -1}})
    EXPECT_THROW(vm.call("k", bad), Error);
}

// while heap[0] != 0: heap[1] += heap[0]; heap[0] -= 1
TEST(VirtualMachine, LoopsAndBranches) {
  ExecutableBuilder b;
  b.begin_function("sum_to", {"n"});
  Arg heap = b.new_register(), value = b.new_register();
  b.call(b.builtin("vm.builtin.alloc_shape_heap"), {Arg::imm(2)}, heap);
  b.call(b.builtin("vm.builtin.match_prim_value"), {Arg::reg(0), heap, Arg::imm(1), Arg::imm(0), b.constant("n")});
  int32_t top = b.here();
  b.call(b.builtin("vm.builtin.make_prim_value"), {heap, Arg::imm(1), Arg::imm(0)}, value);
  b.call(b.builtin("vm.builtin.read_if_cond"), {value}, value);
  int32_t leave = b.if_(value);
  KernelSignature step{.params = {{.name = "heap", .dtype = i64, .dims = {KernelDim::constant(2)}}}};
  b.call(b.kernel("step", step), {heap});
  b.goto_(top);
  b.patch(leave);
  b.call(b.builtin("vm.builtin.make_prim_value"), {heap, Arg::imm(1), Arg::imm(1)}, value);
  b.ret(value);
  b.end_function();
  KernelTable table;
  table.add("step", [](void* const* buffers, const int64_t*, SatorContext*) -> int32_t {
    auto* h = static_cast<int64_t*>(buffers[0]);
    h[1] += h[0]--;
    return 0;
  });
  VirtualMachine vm(b.finish(), table, ThreadPool::create(1));
  EXPECT_EQ(*vm.call("sum_to", {100}).as_int(), 5050);
  EXPECT_EQ(*vm.call("sum_to", {0}).as_int(), 0);
}

TEST(VirtualMachine, CallsFunctionsAndClosures) {
  ExecutableBuilder b;
  b.begin_function("pair", {"a", "b"});
  Arg pair = b.new_register();
  b.call(b.builtin("vm.builtin.make_tuple"), {Arg::reg(0), Arg::reg(1)}, pair);
  b.ret(pair);
  b.end_function();
  b.begin_function("main", {"x"});
  Arg closure = b.new_register(), result = b.new_register();
  b.call(b.builtin("vm.builtin.make_closure"), {Arg::function(b.vm_function("pair")), Arg::reg(0)}, closure);
  b.call(b.builtin("vm.builtin.check_func_info"), {closure, b.constant("closure")});
  b.call(b.builtin("vm.builtin.invoke_closure"), {closure, Arg::imm(7)}, result);
  b.ret(result);
  b.end_function();
  b.begin_function("forever", {});
  Arg again = b.new_register();
  b.call(b.vm_function("forever"), {}, again);
  b.ret(again);
  b.end_function();
  b.begin_function("forever_by_closures", {});
  Arg self = b.new_register(), again_closed = b.new_register();
  b.call(b.builtin("vm.builtin.make_closure"), {Arg::function(b.vm_function("forever_by_closures"))}, self);
  b.call(b.builtin("vm.builtin.invoke_closure"), {self}, again_closed);
  b.ret(again_closed);
  b.end_function();
  VirtualMachine vm(b.finish(), {}, ThreadPool::create(1));
  Value result_value = vm.call("main", {0.25});
  const Tuple& fields = *result_value.as<Tuple>();
  EXPECT_EQ(*fields.fields[0].as_int(), 7);  // what was captured stands last, as LambdaLift's parameters do
  EXPECT_EQ(*fields.fields[1].as_float(), 0.25);
  const std::string limits = "at most 100000 calls within each other, 500 where hooks or builtins make them";
  EXPECT_EQ(failure(vm, {}, "forever"), "calls are nested more than 100000 deep / " + limits);
  EXPECT_EQ(failure(vm, {}, "forever_by_closures"), "calls are nested more than 100000 deep / " + limits);
  vm.set_call_hook([](const Args&, const Value*) { return true; });
  EXPECT_EQ(failure(vm, {}, "forever"), "calls are nested more than 500 deep / " + limits);
  vm.set_call_hook(nullptr);
  EXPECT_EQ(*vm.call("pair", {1, 2}).as<Tuple>()->fields[1].as_int(), 2);  // and goes on
}

// even(n): n = 0, or odd(n - 1), which is even(n - 2), as a closure: each call waits for the next one's result and adds 1.
TEST(VirtualMachine, RecursionIsDeep) {
  ExecutableBuilder b;
  KernelSignature step{.params = {{.name = "n", .dtype = i64, .dims = {KernelDim::constant(1)}}}};
  for (const bool even : {true, false}) {
    b.begin_function(even ? "even" : "odd", {"n"});
    Arg going = b.new_register(), closure = b.new_register(), result = b.new_register();
    b.call(b.builtin("vm.builtin.read_if_cond"), {Arg::reg(0)}, going);
    auto end = b.if_(going);
    b.call(b.kernel("less", step), {Arg::reg(0)});
    if (even) {
      b.call(b.vm_function("odd"), {Arg::reg(0)}, result);
    } else {
      b.call(b.builtin("vm.builtin.make_closure"), {Arg::function(b.vm_function("even"))}, closure);
      b.call(b.builtin("vm.builtin.invoke_closure"), {closure, Arg::reg(0)}, result);
    }
    b.call(b.kernel("more", step), {result});
    b.ret(result);
    b.patch(end);
    b.ret(Arg::reg(0));
    b.end_function();
  }
  KernelTable table;
  table.add("less", [](void* const* buffers, const int64_t*, SatorContext*) -> int32_t {
    --*static_cast<int64_t*>(buffers[0]);
    return 0;
  });
  table.add("more", [](void* const* buffers, const int64_t*, SatorContext*) -> int32_t {
    ++*static_cast<int64_t*>(buffers[0]);
    return 0;
  });
  VirtualMachine vm(b.finish(), table, ThreadPool::create(1));
  for (const int64_t depth : {0, 1, 1000, 99'998, 3}) {
    Ref<Tensor> n = Tensor::empty({1}, i64);
    *n->data_as<int64_t>() = depth;
    const Value result = vm.call("even", {n});
    EXPECT_EQ(*result.as<Tensor>()->data_as<int64_t>(), depth);
  }
}

TEST(VirtualMachine, SaysWhichFunctionIsMissing) {
  ExecutableBuilder b;
  b.kernel("matmul", {});
  KernelTable table;
  table.add("matmul1", add_kernel);
  try {
    VirtualMachine vm(b.finish(), table, ThreadPool::create(1));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.reason.what, "the program calls the kernel \"matmul\", which is not there");
    EXPECT_EQ(e.reason.hint, "nearest names: matmul1");
  }
  b.builtin("vm.builtin.make_shap");
  EXPECT_THROW(VirtualMachine(b.finish(), {}, ThreadPool::create(1)), Error);
  b.begin_function("f", {});
  Arg r = b.new_register();
  b.call(b.builtin("vm.builtin.copy"), {}, r);
  b.ret(r);
  b.end_function();
  EXPECT_THROW(VirtualMachine(b.finish(), {}, ThreadPool::create(1)), Error);
}

// Names beginning with vm.builtin are the runtime's; any other is one that the program which opens this one may register.
TEST(VirtualMachine, RunsWhatCallsNoUnregisteredFunction) {
  ExecutableBuilder b;
  b.begin_function("square", {"x"});
  Arg r = b.new_register();
  b.call(b.builtin("my.square"), {Arg::reg(0)}, r);
  b.ret(r);
  b.end_function();
  b.begin_function("same", {"x"});
  b.ret(Arg::reg(0));
  b.end_function();
  VirtualMachine vm(b.finish(), {}, ThreadPool::create(1));
  EXPECT_EQ(*vm.call("same", {Value(int64_t{3})}).as_int(), 3);
  try {
    vm.call("square", {Value(int64_t{3})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.reason.what, "the program calls the function \"my.square\", which is not registered");
    EXPECT_EQ(e.reason.hint, "in Python, @sator.register_func(\"my.square\") before the program is opened");
  }
  EXPECT_EQ(*vm.call("same", {Value(int64_t{4})}).as_int(), 4);
}

TEST(VirtualMachine, RecordsEachCallWithATensor) {
  VirtualMachine vm(add_program(), add_table(), ThreadPool::create(1));
  std::vector<CallRecord> records;
  vm.set_instrument([&](const CallRecord& r) { records.push_back(r); });
  vm.call("main", {ramp(4), kBias});
  std::vector<std::string> names;
  for (const CallRecord& r : records) names.push_back(r.function);
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "vm.builtin.check_tensor_info", "vm.builtin.match_shape", "vm.builtin.make_shape", "add"}));
  const CallRecord& add = records.back();
  EXPECT_TRUE(add.is_kernel);
  EXPECT_FALSE(records[0].is_kernel);
  EXPECT_EQ(add.caller, "main");
  EXPECT_EQ(add.annotation, "layers.7.mlp");
  ASSERT_EQ(add.values.size(), 1u);
  EXPECT_EQ(add.values[0].name, "n");
  EXPECT_EQ(add.values[0].value, 4);
  ASSERT_EQ(add.arguments.size(), 3u);
  EXPECT_EQ(add.arguments[0].shape, (Dims{4, 3}));
  EXPECT_EQ(add.arguments[1].dtype, f32);
  EXPECT_GE(add.duration_us, 0);
  vm.set_instrument(nullptr);
  vm.call("main", {ramp(4), kBias});
  EXPECT_EQ(records.size(), 4u);
}

TEST(VirtualMachine, ABuiltinsTimeExcludesTheKernelsItCalls) {
  ExecutableBuilder b;
  KernelSignature s{.params = {{.name = "x", .dtype = f32, .dims = {KernelDim::any()}},
                               {.name = "n", .dtype = i64, .is_tensor = false, .value = 0}},
                    .values = {{.name = "n", .param = 1}}};
  int32_t slow = b.kernel("slow", s);
  b.begin_function("main", {"x"});
  Arg nothing = b.new_register();
  b.call(
      b.builtin("vm.builtin.call_tir_dyn"), {Arg::function(slow), Arg::reg(0), b.constant(Shape::of({50}))}, nothing);
  b.ret(nothing);
  b.end_function();
  KernelTable table;
  table.add("slow", [](void* const*, const int64_t* values, SatorContext*) -> int32_t {
    std::this_thread::sleep_for(std::chrono::milliseconds(values[0]));
    return 0;
  });
  VirtualMachine vm(b.finish(), table, ThreadPool::create(1));
  double kernel_us = 0, builtin_us = 0;
  vm.set_instrument([&](const CallRecord& r) { (r.is_kernel ? kernel_us : builtin_us) += r.duration_us; });
  vm.call("main", {Tensor::empty(Dims{1}, f32)});
  EXPECT_GE(kernel_us, 50'000);
  EXPECT_LT(builtin_us, 50'000);
}

// Builtins one by one, through a program of a single call.
class Builtins : public testing::Test {
 protected:
  Value run(std::string_view name, std::vector<Value> args) {
    ExecutableBuilder b;
    std::vector<Arg> pool;
    b.begin_function("f", {});
    while (pool.size() < args.size()) {
      Arg reg = b.new_register();
      b.call(b.builtin("test.argument"), {Arg::imm(static_cast<int64_t>(pool.size()))}, reg);
      pool.push_back(reg);
    }
    Arg result = b.new_register();
    b.call(b.builtin(text("vm.builtin.", name)), pool, result);
    b.ret(result);
    b.end_function();
    given() = std::move(args);
    static constexpr Builtin kArgument{
        "test.argument",
        1,
        1,
        [](VirtualMachine&, const Args& a) { return given()[static_cast<size_t>(a.integer(0))]; },
        "hands out a test's argument"};
    VirtualMachine vm(b.finish(), {}, ThreadPool::create(1), std::span(&kArgument, 1));
    return vm.call("f", {});
  }
  static std::vector<Value>& given() {
    static std::vector<Value> values;
    return values;
  }
  static Ref<Tensor> heap(std::vector<int64_t> slots) {
    auto n = static_cast<int64_t>(slots.size());
    return Tensor::of<int64_t>(slots, Dims{n}, i64);
  }
};

TEST_F(Builtins, MatchShapeFollowsItsCodes) {
  Ref<Tensor> h = heap({0, 9, 0});
  run("match_shape", {Shape::of({5, 7, 8, 9}), h, 4, 1, 0, 0, 7, 2, 0, 3, 1, "x"});
  EXPECT_EQ(h->data_as<int64_t>()[0], 5);
  EXPECT_THROW(run("match_shape", {Shape::of({5}), h, 1, 0, 6, "x"}), Error);      // not the immediate
  EXPECT_THROW(run("match_shape", {Shape::of({5}), h, 1, 3, 1, "x"}), Error);      // not slot 1
  EXPECT_THROW(run("match_shape", {Shape::of({5}), h, 1, 1, 3, "x"}), Error);      // no slot 3
  EXPECT_THROW(run("match_shape", {Shape::of({5}), h, 1, 4, 0, "x"}), Error);      // no such code
  EXPECT_THROW(run("match_shape", {Shape::of({5, 6}), h, 1, 1, 0, "x"}), Error);   // another rank
  EXPECT_THROW(run("match_shape", {Shape::of({5, 6}), h, 2, 1, 0, "x"}), Error);   // too few pairs
  EXPECT_THROW(run("match_shape", {Shape::of({5}), kBias, 1, 1, 0, "x"}), Error);  // no heap
}

TEST_F(Builtins, ShapesAndNumbersComeFromTheHeap) {
  Ref<Tensor> h = heap({11, 22});
  EXPECT_EQ(run("make_shape", {h, 3, 1, 1, 0, 4, 1, 0}).as<Shape>()->dims, (Dims{22, 4, 11}));
  EXPECT_EQ(run("make_shape", {h, 0}).as<Shape>()->dims, Dims{});
  EXPECT_EQ(*run("make_prim_value", {h, 1, 1}).as_int(), 22);
  EXPECT_EQ(*run("make_prim_value", {h, 0, 5}).as_int(), 5);
  EXPECT_THROW(run("make_prim_value", {h, 1, 2}), Error);
  EXPECT_THROW(run("make_prim_value", {h, 2, 0}), Error);
  EXPECT_EQ(run("tensor_to_shape", {h}).as<Shape>()->dims, (Dims{11, 22}));
  EXPECT_THROW(run("tensor_to_shape", {kBias}), Error);
  Value tensor = run("shape_to_tensor", {Shape::of({3, 4})});
  EXPECT_EQ(tensor.as<Tensor>()->data_as<int64_t>()[1], 4);
  EXPECT_EQ(run("shape_of", {kBias}).as<Shape>()->dims, Dims{3});
}

TEST_F(Builtins, ChecksAcceptAndRefuse) {
  auto accepts = [&](const char* name, std::vector<Value> args) {
    try {
      run(name, std::move(args));
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(accepts("check_tensor_info", {kBias, 1, f32, "x"}));
  EXPECT_TRUE(accepts("check_tensor_info", {kBias, -1, "x"}));
  EXPECT_TRUE(accepts("check_tensor_info", {kBias, 1, DType::Void(), "x"}));
  EXPECT_FALSE(accepts("check_tensor_info", {kBias, 1, f16, "x"}));
  EXPECT_FALSE(accepts("check_tensor_info", {Shape::of({3}), 1, "x"}));
  EXPECT_TRUE(accepts("check_shape_info", {Shape::of({3}), 1, "x"}));
  EXPECT_TRUE(accepts("check_shape_info", {Shape::of({3}), -1, "x"}));
  EXPECT_FALSE(accepts("check_shape_info", {Shape::of({3}), 2, "x"}));
  EXPECT_TRUE(accepts("check_prim_value_info", {3, i64, "x"}));
  EXPECT_FALSE(accepts("check_prim_value_info", {3.5, i64, "x"}));
  EXPECT_TRUE(accepts("check_prim_value_info", {3.5, f64, "x"}));
  EXPECT_TRUE(accepts("check_prim_value_info", {1, boolean, "x"}));
  EXPECT_FALSE(accepts("check_prim_value_info", {2, boolean, "x"}));
  EXPECT_TRUE(accepts("check_prim_value_info", {-128, DType::Int(8), "x"}));
  EXPECT_FALSE(accepts("check_prim_value_info", {128, DType::Int(8), "x"}));
  EXPECT_FALSE(accepts("check_prim_value_info", {-1, DType::UInt(32), "x"}));
  EXPECT_TRUE(accepts("check_tuple_info", {Tuple::of({1, 2}), 2, "x"}));
  EXPECT_FALSE(accepts("check_tuple_info", {Tuple::of({1, 2}), 3, "x"}));
  EXPECT_FALSE(accepts("check_func_info", {kBias, "x"}));
}

TEST_F(Builtins, MemoryStaysInBounds) {
  EXPECT_EQ(run("alloc_storage", {Shape::of({3, 5}), 0, f32, "global"}).as<Storage>()->size_bytes(), 60);
  EXPECT_THROW(run("alloc_storage", {Shape::of({3}), 1, f32, "global"}), Error);
  EXPECT_THROW(run("alloc_storage", {Shape::of({3}), 0, f32, "shared"}), Error);
  EXPECT_THROW(run("alloc_storage", {Shape::of({-3}), 0, f32, "global"}), Error);
  Value storage = Storage::allocate(64);
  EXPECT_EQ(run("alloc_tensor", {storage, 16, Shape::of({2, 6}), f32}).as<Tensor>()->byte_offset(), 16);
  EXPECT_THROW(run("alloc_tensor", {storage, 20, Shape::of({2, 6}), f32}), Error);
  EXPECT_EQ(run("reshape", {kBias, Shape::of({1, 3})}).as<Tensor>()->data(), kBias.as<Tensor>()->data());
  EXPECT_TRUE(run("kill_object", {kBias}).is_null());
  EXPECT_TRUE(run("null_value", {}).is_null());
  EXPECT_EQ(run("to_device", {kBias, 1, 0}).as_object(), kBias.as_object());
  EXPECT_THROW(run("to_device", {kBias, 2, 0}), Error);
}

TEST_F(Builtins, ConditionsAndTuples) {
  EXPECT_EQ(*run("read_if_cond", {5}).as_int(), 1);
  EXPECT_EQ(*run("read_if_cond", {Tensor::of<uint8_t>({0}, Dims{}, boolean)}).as_int(), 0);
  EXPECT_EQ(*run("read_if_cond", {Tensor::of<int64_t>({int64_t{1} << 40}, Dims{1}, i64)}).as_int(), 1);
  EXPECT_THROW(run("read_if_cond", {kBias}), Error);
  EXPECT_EQ(*run("tuple_getitem", {Tuple::of({1, 2}), 1}).as_int(), 2);
  EXPECT_EQ(*run("tuple_getitem", {Shape::of({7, 8}), 1}).as_int(), 8);
  EXPECT_THROW(run("tuple_getitem", {Tuple::of({1, 2}), 2}), Error);
  EXPECT_THROW(run("tuple_getitem", {Tuple::of({1, 2}), -1}), Error);
  Value tuple = Tuple::of({1, 2});
  run("tuple_reset_item", {tuple, 0});
  EXPECT_TRUE(tuple.as<Tuple>()->fields[0].is_null());
  EXPECT_EQ(*run("take_param", {ParamSource::of([](int64_t i) -> Value { return 10 * i; }), 3}).as_int(), 30);
  EXPECT_THROW(run("take_param", {tuple, 0}), Error);
}

TEST(BuiltinTable, HasDistinctNamesAndDescriptions) {
  std::vector<std::string_view> names;
  for (const Builtin& row : builtins()) {
    names.push_back(row.name);
    EXPECT_TRUE(row.name.starts_with("vm.builtin.")) << row.name;
    EXPECT_FALSE(row.does.empty()) << row.name;
    EXPECT_TRUE(row.max_args == -1 || row.max_args >= row.min_args) << row.name;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace sator::runtime
