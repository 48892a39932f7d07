#include "runtime/executable_builder.h"

namespace sator::runtime {

ExecutableBuilder::ExecutableBuilder() : executable_(new Executable()) {}

int32_t ExecutableBuilder::add(FunctionKind kind, std::string_view name) {
  auto [it, is_new] = functions_.emplace(std::string(name), static_cast<int32_t>(executable_->functions.size()));
  if (is_new) executable_->functions.push_back({.kind = kind, .name = std::string(name)});
  if (executable_->functions[static_cast<size_t>(it->second)].kind != kind)
    internal_error(text("ExecutableBuilder: ", string_literal(name), " is used as two kinds of function"));
  return it->second;
}

int32_t ExecutableBuilder::builtin(std::string_view name) { return add(FunctionKind::builtin, name); }

int32_t ExecutableBuilder::kernel(std::string_view name, KernelSignature signature) {
  bool is_new = !functions_.contains(std::string(name));
  int32_t index = add(FunctionKind::kernel, name);
  KernelSignature& known = executable_->functions[static_cast<size_t>(index)].kernel;
  if (is_new)
    known = std::move(signature);
  else if (known != signature)
    internal_error(text("ExecutableBuilder: kernel ", string_literal(name), " has two signatures"));
  return index;
}

int32_t ExecutableBuilder::vm_function(std::string_view name) { return add(FunctionKind::vm, name); }

namespace {

// The key under which equal constants meet.
std::string constant_key(const Value& value) {
  if (value.is_null()) return "null";
  if (const int64_t* v = value.as_int()) return text("int ", *v);
  if (const double* v = value.as_float()) {
    int64_t bits;
    static_assert(sizeof bits == sizeof *v);
    __builtin_memcpy(&bits, v, sizeof bits);  // by bits: 0.0 and -0.0 are two constants, NaN is one
    return text("float ", bits);
  }
  if (const DType* v = value.as_dtype()) return text("dtype ", *v);
  if (const std::string* v = value.as_string()) return text("string ", *v);
  if (const Shape* v = value.as<Shape>()) return text("shape ", v->dims);
  if (const Tensor* v = value.as<Tensor>()) return text("tensor ", reinterpret_cast<uintptr_t>(v));
  internal_error(text("ExecutableBuilder: ", value.describe(), " cannot be a constant"));
}

}  // namespace

Arg ExecutableBuilder::constant(const Value& value) {
  auto [it, is_new] = constants_.emplace(constant_key(value), static_cast<int64_t>(executable_->constants.size()));
  if (is_new) executable_->constants.push_back(value);
  return Arg::constant(it->second);
}

int32_t ExecutableBuilder::begin_function(std::string_view name, std::vector<std::string> params) {
  if (current_ >= 0) internal_error("ExecutableBuilder: a function is begun inside another");
  current_ = vm_function(name);
  VmCode& f = executable_->functions[static_cast<size_t>(current_)].vm;
  if (f.end != 0) internal_error(text("ExecutableBuilder: function ", string_literal(name), " is defined twice"));
  f.num_registers = static_cast<int32_t>(params.size());
  f.params = std::move(params);
  f.begin = here();
  return current_;
}

Arg ExecutableBuilder::new_register() {
  if (current_ < 0) internal_error("ExecutableBuilder: a register outside of a function");
  return Arg::reg(executable_->functions[static_cast<size_t>(current_)].vm.num_registers++);
}

Instruction& ExecutableBuilder::emit(Opcode op) {
  if (current_ < 0) internal_error("ExecutableBuilder: an instruction outside of a function");
  return executable_->code.emplace_back(Instruction{.op = op});
}

int32_t ExecutableBuilder::require_register(Arg arg) const {
  if (arg.kind != ArgKind::register_) internal_error("ExecutableBuilder: a register is needed here");
  return static_cast<int32_t>(arg.value);
}

void ExecutableBuilder::call(int32_t function, const std::vector<Arg>& args, std::optional<Arg> result,
                             std::string_view annotation) {
  int32_t note = annotation.empty() ? -1 : static_cast<int32_t>(constant(std::string(annotation)).value);
  Instruction& i = emit(Opcode::call);
  i.reg = result ? require_register(*result) : kVoidRegister;
  i.function = function;
  i.first_arg = static_cast<uint32_t>(executable_->args.size());
  i.num_args = static_cast<uint32_t>(args.size());
  i.annotation = note;
  executable_->args.insert(executable_->args.end(), args.begin(), args.end());
}

void ExecutableBuilder::kill(Arg reg) { call(builtin("vm.builtin.null_value"), {}, reg); }

void ExecutableBuilder::ret(Arg reg) { emit(Opcode::ret).reg = require_register(reg); }

int32_t ExecutableBuilder::goto_(std::optional<int32_t> target) {
  int32_t at = here();
  emit(Opcode::goto_).offset = target.value_or(at) - at;
  return at;
}

int32_t ExecutableBuilder::if_(Arg condition) {
  int32_t at = here();
  emit(Opcode::if_).reg = require_register(condition);
  return at;
}

void ExecutableBuilder::patch(int32_t jump) { executable_->code.at(static_cast<size_t>(jump)).offset = here() - jump; }

void ExecutableBuilder::end_function() {
  if (current_ < 0) internal_error("ExecutableBuilder: no function to end");
  executable_->functions[static_cast<size_t>(current_)].vm.end = here();
  current_ = -1;
}

Ref<Executable> ExecutableBuilder::finish() {
  if (current_ >= 0) internal_error("ExecutableBuilder: the last function was not ended");
  if (std::optional<Reason> reason = why_invalid(*executable_))
    internal_error(text("ExecutableBuilder: ", Error(std::move(*reason)).what()));
  Ref<Executable> done = std::move(executable_);
  *this = ExecutableBuilder();
  return done;
}

}  // namespace sator::runtime
