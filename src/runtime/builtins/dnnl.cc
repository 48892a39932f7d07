// A function of the user's partition that oneDNN computes, beside the kernel that computes the same.
#include "runtime/dnnl.h"

#include "base/error.h"
#include "runtime/builtins/functions.h"
#include "runtime/vm.h"

namespace sator::runtime::builtin {

Value dnnl(VirtualMachine& vm, const Args& args) {
  const Closure& own = args.closure(0);
  const Args tensors = args.from(2);
  if (vm.is_profiled()) {
    vm.invoke(own, tensors);
    vm.name_record(vm.executable().functions[static_cast<size_t>(own.function)].name + " (oneDNN)");
  }
  std::vector<Tensor*> operands;
  for (size_t i = 0; i + 1 < tensors.size(); ++i) operands.push_back(&tensors.tensor(i));
  run_dnnl(args.string(1), operands, tensors.tensor(tensors.size() - 1), vm.pool().num_workers());
  return {};
}

}  // namespace sator::runtime::builtin
