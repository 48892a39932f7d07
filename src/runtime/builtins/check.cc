// What a function requires of its arguments before it uses them. The context is the compiler's text for the
// argument, such as "main, parameter x: R.Tensor((n, 4), dtype=\"float32\")".
#include "base/error.h"
#include "runtime/builtins/functions.h"
#include "runtime/scalars.h"

namespace sator::runtime::builtin {

namespace {

[[noreturn]] void fail_check(const Args& args, std::string needs) {
  const std::string& context = args.string(args.size() - 1);
  fail({.what = text(context.empty() ? "" : context + ": ", "got ", args[0].describe()), .needs = std::move(needs)});
}

std::string rank_text(int64_t rank) { return rank < 0 ? "any rank" : text("rank ", rank); }

}  // namespace

Value check_tensor_info(VirtualMachine&, const Args& args) {
  const Tensor* tensor = args[0].as<Tensor>();
  int64_t rank = args.integer(1);
  DType dtype = args.size() == 4 ? args.dtype(2) : DType::Void();
  bool ok = tensor != nullptr && (rank < 0 || tensor->rank() == rank) && (dtype.is_void() || tensor->dtype() == dtype);
  if (!ok) fail_check(args, text("a tensor of ", rank_text(rank), dtype.is_void() ? "" : text(" and dtype ", dtype)));
  return {};
}

Value check_shape_info(VirtualMachine&, const Args& args) {
  const Shape* shape = args[0].as<Shape>();
  int64_t rank = args.integer(1);
  if (shape == nullptr || (rank >= 0 && static_cast<int64_t>(shape->dims.size()) != rank))
    fail_check(args, text("a shape of ", rank_text(rank)));
  return {};
}

Value check_prim_value_info(VirtualMachine&, const Args& args) {
  DType dtype = args.dtype(1);
  const int64_t* integer = args[0].as_int();
  const bool ok = dtype.is_float() ? args[0].as_float() != nullptr : integer && holds(dtype, *integer);
  if (!ok) fail_check(args, text("a number of dtype ", dtype));
  return {};
}

Value check_tuple_info(VirtualMachine&, const Args& args) {
  const Tuple* tuple = args[0].as<Tuple>();
  if (tuple == nullptr || static_cast<int64_t>(tuple->fields.size()) != args.integer(1))
    fail_check(args, text("a tuple of ", args.integer(1), " fields"));
  return {};
}

Value check_func_info(VirtualMachine&, const Args& args) {
  if (args[0].as<Closure>() == nullptr) fail_check(args, "a function");
  return {};
}

}  // namespace sator::runtime::builtin
