#include "passes/to_vm.h"
#include "relax/outline.h"
#include "relax/rebind.h"

namespace sator::passes {

using namespace relax;

ModuleRef lower_alloc_tensor(const ModuleRef& module, const PassContext&) {
  return rewrite_bindings(module, [](const Binding& b, Bindings& out) {
    if (!is_op(bound_value(b), "builtin.alloc_tensor")) {
      out.keep(b);
      return;
    }
    const RCall* alloc = bound_value(b).as<RCall>();
    const DTypeImm* dtype = alloc->args[1].as<DTypeImm>();
    Expr size = int_imm(dtype->value.bytes(), i64);
    const auto extents = shape_values(alloc->args[0]);
    if (!extents)
      fail({.what = text("LowerAllocTensor: the shape of ", bound_var(b)->name, " is not written out"),
            .needs = "allocations whose shapes VMShapeLower has not replaced",
            .hint = "run VMShapeLower behind it"});
    for (const Expr& extent : *extents) size = size * cast_to(i64, extent);
    RVarRef storage = out.emit("storage",
                               op_call("memory.alloc_storage",
                                       {shape_expr({size}), alloc->args[2], alloc->args[3], dtype_value(u8)},
                                       object_info()));
    out.bind(bound_var(b),
             op_call("memory.alloc_tensor",
                     {storage, prim_value(int64_t{0}), alloc->args[0], alloc->args[1]},
                     bound_var(b)->sinfo));
  });
}

}  // namespace sator::passes
