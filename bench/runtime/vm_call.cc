// What the virtual machine itself costs: a decode step of a model is about a hundred kernel calls, each with a shape, a
// planned tensor and a drop around it.
//   usage: runtime_vm_call_bench [--json]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "runtime/executable_builder.h"
#include "runtime/kv_cache.h"

using namespace sator;
using namespace sator::runtime;
using Clock = std::chrono::steady_clock;

namespace {

int32_t no_work(void* const*, const int64_t*, SatorContext*) { return 0; }

// x, w: [n, 64] and [64, 64] -> [n, 64]
KernelSignature signature() {
  return {.params = {{.name = "x", .dtype = f32, .dims = {KernelDim::symbolic(0), KernelDim::constant(64)}},
                     {.name = "w", .dtype = f32, .dims = {KernelDim::constant(64), KernelDim::constant(64)}},
                     {.name = "out", .dtype = f32, .dims = {KernelDim::symbolic(0), KernelDim::constant(64)}}},
          .values = {{.name = "n", .param = 0, .dim = 0}}};
}

// One hundred kernels in a row: calls alone, or with the shape, tensor and drop of each.
void emit(ExecutableBuilder& b, const char* name, bool with_memory) {
  b.begin_function(name, {"x", "w"});
  Arg heap = b.new_register(), shape = b.new_register(), storage = b.new_register(), out = b.new_register();
  b.call(b.builtin("vm.builtin.alloc_shape_heap"), {Arg::imm(1)}, heap);
  b.call(b.builtin("vm.builtin.match_shape"),
         {Arg::reg(0), heap, Arg::imm(2), Arg::imm(1), Arg::imm(0), Arg::imm(0), Arg::imm(64), b.constant("x")});
  b.call(b.builtin("vm.builtin.copy"), {b.constant(Shape::of({4096}))}, shape);
  b.call(b.builtin("vm.builtin.alloc_storage"), {shape, Arg::imm(0), b.constant(u8), b.constant("global")}, storage);
  for (int i = 0; i < 100; ++i) {
    if (with_memory || i == 0) {
      b.call(b.builtin("vm.builtin.make_shape"),
             {heap, Arg::imm(2), Arg::imm(1), Arg::imm(0), Arg::imm(0), Arg::imm(64)},
             shape);
      b.call(b.builtin("vm.builtin.alloc_tensor"), {storage, Arg::imm(0), shape, b.constant(f32)}, out);
    }
    b.call(b.kernel("k", signature()), {Arg::reg(0), Arg::reg(1), out});
    if (with_memory) b.kill(out);
  }
  b.ret(heap);
  b.end_function();
}

double median_us_per_kernel(VirtualMachine& vm, const char* function, const std::vector<Value>& args) {
  std::vector<double> us;
  for (int run = 0; run < 500; ++run) {
    auto start = Clock::now();
    vm.call(function, args);
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / 100);
  }
  std::sort(us.begin(), us.end());
  return us[us.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  ExecutableBuilder b;
  emit(b, "calls", false);
  emit(b, "calls_with_memory", true);
  KernelTable table;
  table.add("k", no_work);
  VirtualMachine vm(b.finish(), table, ThreadPool::create(1));
  std::vector<Value> args{Tensor::empty(Dims{1, 64}, f32), Tensor::empty(Dims{64, 64}, f32)};
  for (const char* function : {"calls", "calls_with_memory"}) {
    double us = median_us_per_kernel(vm, function, args);
    if (json)
      std::printf("{\"bench\": \"vm_call\", \"case\": \"%s\", \"us_per_kernel\": %.3f}\n", function, us);
    else
      std::printf("%-20s %.3f us per kernel\n", function, us);
  }
}
