#include "runtime/bytecode.h"

namespace sator::runtime {

int32_t Executable::find(std::string_view name) const {
  for (size_t i = 0; i < functions.size(); ++i)
    if (functions[i].name == name) return static_cast<int32_t>(i);
  return -1;
}

namespace {

std::string register_text(int32_t index) { return index == kVoidRegister ? "%void" : text('%', index); }

std::string arg_text(const Executable& e, const Arg& arg) {
  switch (arg.kind) {
    case ArgKind::register_: return text('%', arg.value);
    case ArgKind::immediate: return text('i', arg.value);
    case ArgKind::constant: return text("c[", arg.value, ']');
    case ArgKind::function: return text("f[", e.functions[static_cast<size_t>(arg.value)].name, ']');
  }
  internal_error("arg_text: unknown kind");
}

std::string instruction_text(const Executable& e, const Instruction& i) {
  switch (i.op) {
    case Opcode::ret: return text("ret  ", register_text(i.reg));
    case Opcode::goto_: return text("goto  ", i.offset);
    case Opcode::if_: return text("if  ", register_text(i.reg), "  else: ", i.offset);
    case Opcode::call: {
      std::vector<std::string> args;
      for (uint32_t a = 0; a < i.num_args; ++a) args.push_back(arg_text(e, e.args[i.first_arg + a]));
      std::string note;
      if (i.annotation >= 0) note = text("  # ", *e.constants[static_cast<size_t>(i.annotation)].as_string());
      return text("call  ",
                  e.functions[static_cast<size_t>(i.function)].name,
                  "  in: ",
                  join(args, ", "),
                  "  dst: ",
                  register_text(i.reg),
                  note);
    }
  }
  internal_error("instruction_text: unknown opcode");
}

}  // namespace

std::string describe_signature(const FunctionInfo& kernel) {
  std::vector<std::string> params;
  for (const KernelParam& p : kernel.kernel.params) {
    std::string param = text(p.name, ": ", p.dtype);
    if (p.is_tensor) {
      std::vector<std::string> dims;
      for (const KernelDim& d : p.dims) {
        if (d.kind == KernelDim::Kind::constant) dims.push_back(text(d.value));
        if (d.kind == KernelDim::Kind::value) dims.push_back(kernel.kernel.values[static_cast<size_t>(d.value)].name);
        if (d.kind == KernelDim::Kind::any) dims.push_back("?");
      }
      param += text('[', join(dims, ", "), ']');
    }
    params.push_back(std::move(param));
  }
  return text(kernel.name, '(', join(params, ", "), ')');
}

std::string Executable::as_text() const {
  std::string out;
  for (const FunctionInfo& f : functions)
    if (f.kind == FunctionKind::kernel) out += text("kernel ", describe_signature(f), '\n');
  for (size_t i = 0; i < constants.size(); ++i) out += text("c[", i, "]: ", constants[i].describe(), '\n');
  for (const FunctionInfo& f : functions) {
    if (f.kind != FunctionKind::vm) continue;
    if (!out.empty()) out += '\n';
    out += text('@', f.name, '(', join(f.vm.params, ", "), "):\n");
    for (int32_t i = f.vm.begin; i < f.vm.end; ++i)
      out += text("  ", instruction_text(*this, code[static_cast<size_t>(i)]), '\n');
  }
  return out;
}

}  // namespace sator::runtime
