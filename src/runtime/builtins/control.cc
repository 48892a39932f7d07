#include "base/error.h"
#include "runtime/builtins/functions.h"
#include "runtime/printing.h"
#include "runtime/vm.h"

namespace sator::runtime::builtin {

Value make_tuple(VirtualMachine&, const Args& args) {
  std::vector<Value> fields;
  fields.reserve(args.size());
  for (size_t i = 0; i < args.size(); ++i) fields.push_back(args[i]);
  return Tuple::of(std::move(fields));
}

namespace {

Value& field(const Args& args) {
  auto& fields = args.object<Tuple>(0, "a tuple").fields;
  int64_t index = args.integer(1);
  if (index < 0 || index >= static_cast<int64_t>(fields.size()))
    fail({.what = text("field ", index, " of a tuple of ", fields.size(), " is read"),
          .needs = "an index below the number of fields"});
  return fields[static_cast<size_t>(index)];
}

}  // namespace

Value tuple_getitem(VirtualMachine&, const Args& args) {
  // A shape takes part as a tuple of integers, as in Relax.
  if (const Shape* shape = args[0].as<Shape>()) {
    int64_t index = args.integer(1);
    if (index >= 0 && index < static_cast<int64_t>(shape->dims.size())) return shape->dims[static_cast<size_t>(index)];
  }
  return field(args);
}

Value tuple_reset_item(VirtualMachine&, const Args& args) {
  field(args) = Value();
  return {};
}

Value take_param(VirtualMachine&, const Args& args) {
  return args.object<ParamSource>(0, "a source of parameters").take(args.integer(1));
}

Value read_if_cond(VirtualMachine&, const Args& args) {
  if (const int64_t* v = args[0].as_int()) return *v != 0;
  const Tensor* tensor = args[0].as<Tensor>();
  if (tensor == nullptr || tensor->num_elements() != 1 || !(tensor->dtype().is_integer() || tensor->dtype().is_bool()))
    args.fail_expected(0, "an integer, or a tensor with one integer or bool");
  const char* bytes = tensor->data_as<const char>();
  for (int64_t i = 0; i < tensor->size_bytes(); ++i)
    if (bytes[i] != 0) return true;
  return false;
}

Value make_closure(VirtualMachine&, const Args& args) {
  Closure& function = args.closure(0);
  std::vector<Value> captured;
  for (size_t i = 1; i < args.size(); ++i) captured.push_back(args[i]);
  captured.insert(captured.end(), function.captured.begin(), function.captured.end());
  return Closure::of(function.function, std::move(captured));
}

Value invoke_closure(VirtualMachine& vm, const Args& args) { return vm.invoke(args.closure(0), args.from(1)); }

Value print(VirtualMachine&, const Args& args) {
  print_line(formatted(args.string(0), args.from(1).values()));
  return Tuple::of({});
}

Value assert_op(VirtualMachine&, const Args& args) {
  require_assertion(args[0], args.string(1), args.from(2).values());
  return Tuple::of({});
}

Value call_tir_dyn(VirtualMachine& vm, const Args& args) {
  const Dims& sizes = args.shape(args.size() - 1).dims;
  std::vector<Value> scalars(sizes.begin(), sizes.end());
  std::vector<const Value*> all;
  for (size_t i = 1; i + 1 < args.size(); ++i) all.push_back(&args[i]);
  for (const Value& scalar : scalars) all.push_back(&scalar);
  return vm.invoke(args.closure(0), Args(args.callee(), all));
}

}  // namespace sator::runtime::builtin
