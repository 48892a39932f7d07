// A GPU's memory is touched by its threads: a loop that is bound to none would run on the host.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "passes/device/device.h"
#include "target/config.h"
#include "tir/print.h"

namespace sator::passes {

std::vector<NodeRef> touched_by_host(const tir::PrimFunc& func) {
  const TargetConfigRef target = target_attr(func.attrs);
  if (!target)
    fail({.what = "the program has no attribute target",
          .needs = "the target that it is for",
          .hint = "func.with_attr(\"target\", sator.target.Target(\"cuda\")), or the pass BindTarget"});
  const std::string device = device_of(target).name;
  static constexpr std::string_view kGpus[] = {"cuda", "opencl", "metal", "vulkan", "rocm", "webgpu"};
  if (std::ranges::find(kGpus, device) == std::end(kGpus) || int_attr(func.attrs, "calling_conv").value_or(0) != 0)
    return {};
  std::vector<NodeRef> found;
  std::set<const Buffer*> seen;
  auto touch = [&](const NodeRef& access, const BufferRef& buffer) {
    const bool is_given =
        std::ranges::any_of(func.buffer_map, [&](const auto& b) { return b.second->data == buffer->data; });
    if (is_given && seen.insert(buffer.get()).second) found.push_back(access);
    return true;
  };
  walk(
      func.body,
      [](const tir::For& n) { return n.kind != tir::LoopKind::thread_binding; },
      [](const tir::AttrStmt& n) { return n.key != "thread_extent"; },
      [&](const BufferLoad& n) { return touch(ref(n), n.buffer); },
      [&](const tir::BufferStore& n) { return touch(ref(n), n.buffer); });
  return found;
}

ModuleRef verify_memory(const ModuleRef& module, const PassContext&) {
  for (const auto& [name, func] : module->functions) {
    const auto* f = func.as<tir::PrimFunc>();
    if (!f) continue;
    Reason reason{.needs = "on a GPU, loads and stores in loops that threads run",
                  .hint = "bind a loop to blockIdx.x or threadIdx.x, or apply dlight's ApplyDefaultSchedule"};
    std::vector<std::string> names;
    for (const NodeRef& access : touched_by_host(*f)) {
      const auto* store = access.as<tir::BufferStore>();
      names.push_back(store ? store->buffer->name : access.as<BufferLoad>()->buffer->name);
      reason.at.push_back({access, "on the host"});
    }
    if (names.empty()) continue;
    reason.what = text("function ", name, " touches ", join(names, ", "), " outside of threads");
    fail(tir::with_program(std::move(reason), *f));
  }
  return module;
}

}  // namespace sator::passes
