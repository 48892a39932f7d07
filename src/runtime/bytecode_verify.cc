// What the loader refuses: everything that would let the virtual machine read outside a table.
#include <set>

#include "runtime/bytecode.h"

namespace sator::runtime {

namespace {

constexpr int32_t kMaxRegisters = 1 << 20;

class Verifier {
 public:
  explicit Verifier(const Executable& e) : e_(e) {}

  std::optional<Reason> run() {
    std::set<std::string_view> names;
    for (const FunctionInfo& f : e_.functions) {
      function_ = &f;
      if (f.name.empty()) return refuse("a function without a name", "a name for each function");
      if (!names.insert(f.name).second) return refuse("two functions of this name", "distinct names");
      std::optional<Reason> reason;
      if (f.kind == FunctionKind::kernel) reason = check_signature(f.kernel);
      if (f.kind == FunctionKind::vm) reason = check_code(f.vm);
      if (reason) return reason;
    }
    return {};
  }

 private:
  Reason refuse(std::string what, std::string needs) const {
    return {.what = std::move(what),
            .needs = std::move(needs),
            .where = text("in function ", string_literal(function_->name))};
  }

  std::optional<Reason> check_signature(const KernelSignature& s) const {
    auto num_values = static_cast<int64_t>(s.values.size());
    for (size_t i = 0; i < s.params.size(); ++i) {
      const KernelParam& p = s.params[i];
      if (p.dtype.is_void()) return refuse(text("parameter ", i, " has no dtype"), "a dtype for each parameter");
      for (const KernelDim& d : p.dims) {
        if (d.kind == KernelDim::Kind::constant && d.value < 0)
          return refuse(text("parameter ", i, " has extent ", d.value), "extents >= 0");
        if (d.kind == KernelDim::Kind::value && (d.value < 0 || d.value >= num_values))
          return refuse(text("parameter ", i, " speaks of value ", d.value, " of ", num_values),
                        "an index below the number of values");
      }
      if (p.is_tensor) continue;
      if (!p.dims.empty()) return refuse(text("scalar parameter ", i, " has extents"), "extents for tensors only");
      if (p.value < 0 || p.value >= num_values || s.values[static_cast<size_t>(p.value)].dim != -1 ||
          s.values[static_cast<size_t>(p.value)].param != static_cast<int64_t>(i))
        return refuse(text("scalar parameter ", i, " has no value of its own"),
                      "one entry of `values` that names the parameter");
    }
    for (size_t i = 0; i < s.values.size(); ++i) {
      const KernelValue& v = s.values[i];
      if (v.param < 0 || v.param >= static_cast<int64_t>(s.params.size()))
        return refuse(text("value ", i, " is read from parameter ", v.param), "an existing parameter");
      const KernelParam& p = s.params[static_cast<size_t>(v.param)];
      bool exists =
          v.dim == -1 ? !p.is_tensor : p.is_tensor && v.dim >= 0 && v.dim < static_cast<int64_t>(p.dims.size());
      if (!exists)
        return refuse(text("value ", i, " is read from extent ", v.dim, " of parameter ", v.param),
                      "an extent of a tensor, or -1 of a scalar");
    }
    return {};
  }

  std::optional<Reason> check_code(const VmCode& f) const {
    if (f.begin < 0 || f.end < f.begin || f.end > static_cast<int64_t>(e_.code.size()))
      return refuse(text("code [", f.begin, ", ", f.end, ") of ", e_.code.size(), " instructions"),
                    "a range inside the code");
    if (f.begin == f.end) return refuse("no instructions", "at least one `ret`");
    if (f.num_registers < static_cast<int64_t>(f.params.size()) || f.num_registers > kMaxRegisters)
      return refuse(text(f.num_registers, " registers for ", f.params.size(), " parameters"),
                    text("a register for each parameter, at most ", kMaxRegisters));
    for (int32_t at = f.begin; at < f.end; ++at) {
      std::optional<Reason> reason = check_instruction(f, at);
      if (!reason) continue;
      reason->where = text("in function ", string_literal(function_->name), ", instruction ", at - f.begin);
      return reason;
    }
    Opcode last = e_.code[static_cast<size_t>(f.end) - 1].op;
    if (last != Opcode::ret && last != Opcode::goto_)
      return refuse("the code runs off its end", "`ret` or `goto` at the end");
    return {};
  }

  std::optional<Reason> check_instruction(const VmCode& f, int32_t at) const {
    const Instruction& i = e_.code[static_cast<size_t>(at)];
    auto is_register = [&](int64_t r) { return r >= 0 && r < f.num_registers; };
    switch (i.op) {
      case Opcode::ret:
        if (i.reg != kVoidRegister && !is_register(i.reg)) return bad_register(i.reg, f);
        return {};
      case Opcode::goto_: return check_target(f, at, i.offset);
      case Opcode::if_:
        if (!is_register(i.reg)) return bad_register(i.reg, f);
        if (at + 1 == f.end) return refuse("`if` is the last instruction", "an instruction to go on with");
        return check_target(f, at, i.offset);
      case Opcode::call: return check_call(f, i);
    }
    return refuse(text("opcode ", static_cast<int>(i.op)), "call, ret, goto or if");
  }

  std::optional<Reason> check_target(const VmCode& f, int32_t at, int32_t offset) const {
    if (offset == 0) return refuse("a jump to itself", "a jump to another instruction");
    int64_t target = int64_t{at} + offset;
    if (target >= f.begin && target < f.end) return {};
    return refuse(text("a jump by ", offset), "a target inside the function");
  }

  std::optional<Reason> check_call(const VmCode& f, const Instruction& i) const {
    auto num_functions = static_cast<int64_t>(e_.functions.size());
    auto num_constants = static_cast<int64_t>(e_.constants.size());
    if (i.function < 0 || i.function >= num_functions)
      return refuse(text("a call of function ", i.function, " of ", num_functions), "an existing function");
    if (i.reg != kVoidRegister && (i.reg < 0 || i.reg >= f.num_registers)) return bad_register(i.reg, f);
    if (i.first_arg > e_.args.size() || i.num_args > e_.args.size() - i.first_arg)
      return refuse(text("arguments [", i.first_arg, ", ", uint64_t{i.first_arg} + i.num_args, ") of ", e_.args.size()),
                    "a range inside the arguments");
    if (i.annotation != -1 && (i.annotation < 0 || i.annotation >= num_constants ||
                               !e_.constants[static_cast<size_t>(i.annotation)].as_string()))
      return refuse(text("annotation ", i.annotation), "a string constant");
    for (uint32_t a = 0; a < i.num_args; ++a) {
      const Arg& arg = e_.args[i.first_arg + a];
      if (arg.kind == ArgKind::register_ && (arg.value < 0 || arg.value >= f.num_registers))
        return bad_register(arg.value, f);
      if (arg.kind == ArgKind::constant && (arg.value < 0 || arg.value >= num_constants))
        return refuse(text("constant ", arg.value, " of ", num_constants), "an existing constant");
      if (arg.kind == ArgKind::function && (arg.value < 0 || arg.value >= num_functions))
        return refuse(text("function ", arg.value, " of ", num_functions), "an existing function");
    }
    return check_arity(i);
  }

  std::optional<Reason> check_arity(const Instruction& i) const {
    const FunctionInfo& callee = e_.functions[static_cast<size_t>(i.function)];
    size_t expected = i.num_args;  // builtins: looked up when a virtual machine is made
    if (callee.kind == FunctionKind::vm) expected = callee.vm.params.size();
    if (callee.kind == FunctionKind::kernel) expected = callee.kernel.params.size();
    if (expected == i.num_args) return {};
    return refuse(text("a call of ", string_literal(callee.name), " with ", i.num_args, " arguments"),
                  text(expected, " arguments, as it has parameters"));
  }

  Reason bad_register(int64_t index, const VmCode& f) const {
    return refuse(text("register ", index, " of ", f.num_registers), "a register of the function");
  }

  const Executable& e_;
  const FunctionInfo* function_ = nullptr;
};

}  // namespace

std::optional<Reason> why_invalid(const Executable& executable) { return Verifier(executable).run(); }

}  // namespace sator::runtime
