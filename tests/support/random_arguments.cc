#include "support/random_arguments.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <random>

#include "arith/analyzer.h"
#include "base/float16.h"
#include "base/float8.h"
#include "codegen/signature.h"
#include "runtime/thread_pool.h"

namespace sator::test {

namespace {

constexpr size_t kGuardBytes = 256;
constexpr uint8_t kGuardByte = 0xA5;

sigjmp_buf g_fault;
void on_fault(int) { siglongjmp(g_fault, 1); }

/// What a fault of memory in `run` is turned into.
bool faults(const std::function<void()>& run) {
  struct sigaction ours = {}, old_segv, old_bus;
  ours.sa_handler = on_fault;
  ours.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &ours, &old_segv);
  sigaction(SIGBUS, &ours, &old_bus);
  const bool faulted = sigsetjmp(g_fault, 1) != 0;
  if (!faulted) run();
  sigaction(SIGSEGV, &old_segv, nullptr);
  sigaction(SIGBUS, &old_bus, nullptr);
  return faulted;
}

}  // namespace

GuardedMemory::GuardedMemory(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t inside = (bytes + kGuardBytes + page - 1) / page * page;
  mapped_ = inside + page;
  void* at = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  pages_ = static_cast<uint8_t*>(at);
  mprotect(pages_ + inside, page, PROT_NONE);
  data_ = pages_ + inside - bytes;
  guard_ = inside - bytes;
  std::memset(pages_, kGuardByte, guard_);
}
GuardedMemory::~GuardedMemory() { munmap(pages_, mapped_); }

bool GuardedMemory::is_intact() const {
  for (size_t i = 0; i < guard_; ++i)
    if (pages_[i] != kGuardByte) return false;
  return true;
}

void RandomArguments::Array::set(int64_t i, double v) {
  auto put = [&](auto x) { std::memcpy(memory->data() + static_cast<size_t>(i) * sizeof x, &x, sizeof x); };
  if (dtype == f32)
    put(static_cast<float>(v));
  else if (dtype == f64)
    put(v);
  else if (dtype.is_float8())
    put(f32_to_f8(static_cast<float>(v), dtype.code));
  else if (dtype.is_bfloat())
    put(f32_to_bf16(static_cast<float>(v)));
  else if (dtype.is_float())
    put(f32_to_f16(static_cast<float>(v)));
  else if (dtype.bytes() == 1)
    put(static_cast<int8_t>(dtype.is_bool() ? v > 0 : v));
  else if (dtype.bytes() == 2)
    put(static_cast<int16_t>(v));
  else if (dtype.bytes() == 4)
    put(static_cast<int32_t>(v));
  else
    put(static_cast<int64_t>(v));
}

double RandomArguments::Array::get(int64_t i) const {
  auto as = [&]<class T>(T) {
    T v;
    std::memcpy(&v, memory->data() + static_cast<size_t>(i) * sizeof v, sizeof v);
    return v;
  };
  if (dtype == f32) return as(float());
  if (dtype == f64) return as(double());
  if (dtype.is_float8()) return f8_to_f32(as(uint8_t()), dtype.code);
  if (dtype.is_bfloat()) return bf16_to_f32(as(uint16_t()));
  if (dtype.is_float()) return f16_to_f32(as(uint16_t()));
  if (dtype.bytes() == 1) return dtype.is_int() ? as(int8_t()) : as(uint8_t());
  if (dtype.bytes() == 2) return dtype.is_int() ? as(int16_t()) : as(uint16_t());
  if (dtype.bytes() == 4) return dtype.is_int() ? as(int32_t()) : static_cast<double>(as(uint32_t()));
  return static_cast<double>(as(int64_t()));
}

bool RandomArguments::Array::equal_bits(const Array& other, int64_t i) const {
  const auto bytes = static_cast<size_t>(dtype.bytes());
  const size_t at = static_cast<size_t>(i) * bytes;
  return std::memcmp(memory->data() + at, other.memory->data() + at, bytes) == 0;
}

RandomArguments::RandomArguments(const tir::PrimFunc& func, uint64_t seed, Values values,
                                 const std::map<std::string, int64_t>& sizes, int64_t max_elements) {
  std::mt19937_64 random(seed);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (const auto& [param, buffer] : func.buffer_map) {
    for (const Expr& extent : buffer->shape) {
      for (const VarRef& v : vars_in(extent)) {
        auto given = sizes.find(v->name);
        sizes_.emplace(v, int_imm(given != sizes.end() ? given->second : below(5) + 3, v->dtype));
      }
    }
  }
  for (const VarRef& param : func.params)
    if (!func.buffer_of(param)) sizes_.emplace(param, int_imm(below(5) + 3, param->dtype));
  arith::Analyzer a;
  for (const VarRef& param : func.params) {
    BufferRef buffer = func.buffer_of(param);
    if (!buffer) continue;
    Array array{.name = buffer->name, .dtype = buffer->dtype};
    for (const Expr& extent : buffer->shape) {
      auto n = as_int(a.simplify(substitute(extent, sizes_)));
      if (!n || *n < 0 || *n > max_elements) return;
      array.shape.push_back(*n);
      array.count *= *n;
      if (array.count > max_elements) return;
    }
    array.memory = std::make_unique<GuardedMemory>(static_cast<size_t>(array.count * array.dtype.bytes()));
    const bool fractions = values == Values::fractions && array.dtype.is_float();
    for (int64_t i = 0; i < array.count; ++i)
      array.set(i,
                fractions ? 0.5 + static_cast<double>(below(1 << 20)) / (1 << 20)
                          : static_cast<double>(below(9) - (array.dtype.is_uint() ? 0 : 4)));
    arrays_.push_back(std::move(array));
  }
  usable_ = true;
  size_t next = 0;
  for (const VarRef& param : func.params) {
    if (func.buffer_of(param)) {
      const Array& m = arrays_[next++];
      args_.emplace_back(tir::ArrayView{m.memory->data(), m.dtype, m.shape, {}, true});
    } else {
      args_.emplace_back(*as_int(sizes_.at(param)));
    }
  }
}

void RandomArguments::interpret(const tir::PrimFuncRef& func, int64_t max_iterations, bool detect_races) {
  // A function may take the same elements by their bits.
  std::vector<tir::Argument> args = args_;
  for (size_t i = 0; i < args.size() && i < func->params.size(); ++i) {
    auto* array = std::get_if<tir::ArrayView>(&args[i]);
    const BufferRef buffer = array ? func->buffer_of(func->params[i]) : nullptr;
    if (buffer && buffer->dtype == DType::UInt(array->dtype.bits)) array->dtype = buffer->dtype;
  }
  tir::Interpreter(func).run(
      args, {.detect_uninitialised = true, .detect_races = detect_races, .max_iterations = max_iterations});
}

std::string RandomArguments::call(SatorKernel kernel, const tir::PrimFunc& func) {
  std::vector<void*> buffers;
  for (const Array& a : arrays_) buffers.push_back(a.memory->data());
  // The kernel's values are the sizes of its own variables.
  std::vector<int64_t> values;
  for (const VarRef& v : codegen::kernel_arguments(func).values) values.push_back(*as_int(sizes_.at(v)));
  Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(1);
  int32_t status = 0;
  if (faults([&] { status = kernel(buffers.data(), values.data(), pool->context()); }))
    return "it touches memory behind the end of a buffer";
  if (status != 0) return text("it ends with status ", status);
  for (const Array& a : arrays_)
    if (!a.memory->is_intact()) return text("it writes in front of argument ", a.name);
  return "";
}

std::string RandomArguments::difference(const RandomArguments& other, const Allowed& allowed) const {
  for (size_t k = 0; k < arrays_.size(); ++k) {
    const Array &x = arrays_[k], &y = other.arrays_[k];
    const double relative = x.dtype.is_float() ? allowed(x.name, x.dtype) : 0;
    // Below its normal numbers float16 has steps of 2^-24.
    const double steps = x.dtype.is_ieee_float() && x.dtype.bits == 16 ? 0x1p-21 : 0;
    for (int64_t i = 0; i < x.count; ++i) {
      if (x.equal_bits(y, i)) continue;
      double p = x.get(i), q = y.get(i);
      if (std::isnan(p) && std::isnan(q)) continue;
      if (x.dtype.is_float() && std::abs(p - q) <= relative * std::max(std::abs(p), std::abs(q)) + steps) continue;
      return text("argument ", static_cast<int64_t>(k), " (", x.name, "), element ", i, ": ", p, " became ", q);
    }
  }
  return "";
}

}  // namespace sator::test
