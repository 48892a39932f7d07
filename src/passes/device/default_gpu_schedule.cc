// A schedule for functions of a GPU that have none: the data-parallel loops of each block as one, over blocks and threads.
#include <algorithm>
#include <limits>

#include "passes/device/device.h"
#include "schedule/primitives.h"
#include "target/config.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace schedule;

namespace {

constexpr int64_t kMostBlocks = 256;  ///< beyond, each thread runs several iterations

bool is_gpu(const TargetConfigRef& target) {
  const std::string device = device_of(target).name;
  return device == "cuda" || device == "metal" || device == "rocm" || device == "webgpu";
}

int64_t max_threads(const TargetConfigRef& target) {
  for (const char* key : {"max_num_threads", "max_threads_per_block"}) {
    if (auto given = int_attr(target->config, key)) return *given;
  }
  return device_of(target).name == "cuda" ? 1024 : 256;
}

/// for i, j in T.grid(n, m): S   =>   for b in blockIdx.x: for t in threadIdx.x: S
void bind_threads(Schedule& s, const BlockHandle& block, int64_t threads) {
  std::vector<Loop> loops = get_loops(s, block), parallel;
  if (std::ranges::any_of(loops, [&](const Loop& l) { return s.get(l).kind == tir::LoopKind::thread_binding; })) return;
  const std::vector<tir::IterVarRef> iters = s.get(block).iter_vars;
  for (size_t i = 0; i < loops.size() && i < iters.size(); ++i) {
    if (iters[i]->kind == tir::IterKind::spatial) parallel.push_back(loops[i]);
  }
  if (parallel.empty())
    parallel.push_back(loops.empty() ? add_unit_loop(s, Value(block)) : add_unit_loop(s, Value(loops[0])));
  Loop fused = fuse(s, parallel, false);
  int64_t count = as_int(s.get(fused).extent).value_or(std::numeric_limits<int64_t>::max());
  if (count > threads * kMostBlocks) {
    std::vector<Loop> parts = schedule::split(s, fused, Factors{{}, int_imm(kMostBlocks), int_imm(threads)});
    reorder(s, std::vector<Loop>{parts[1], parts[2], parts[0]});
    bind(s, parts[1], std::string("blockIdx.x"));
    bind(s, parts[2], std::string("threadIdx.x"));
    return;
  }
  std::vector<Loop> parts = schedule::split(s, fused, Factors{{}, int_imm(std::min(count, threads))});
  bind(s, parts[0], std::string("blockIdx.x"));
  bind(s, parts[1], std::string("threadIdx.x"));
}

/// The blocks without blocks inside, in program order.
std::vector<BlockHandle> leaf_blocks(const Schedule& s) {
  std::vector<BlockHandle> out;
  for (int i = 0; i < s.sites().count(); ++i) {
    const tir::BlockRealize* r = s.sites()[i].realize();
    if (r && s.sites()[i].parent >= 0 && s.sites().child_blocks(i).empty()) out.push_back(r->block->name);
  }
  return out;
}

}  // namespace

ModuleRef default_gpu_schedule(const ModuleRef& module, const PassContext& ctx) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const tir::PrimFunc* f = func.as<tir::PrimFunc>();
    if (!f || int_attr(f->attrs, "tir.is_scheduled").value_or(0)) continue;
    TargetConfigRef target = target_attr(f->attrs);
    if (!target && ctx.target) target = ctx.target->config();
    if (!target)
      fail({.what = text("function ", name, " has no target"),
            .needs = "the attribute target, or a target that is compiled for",
            .hint = "run BindTarget before, or pass --target"});
    tir::PrimFuncRef scheduled = ref(*f);
    if (is_gpu(target)) {
      Schedule s(scheduled);
      for (const BlockHandle& block : leaf_blocks(s)) bind_threads(s, block, max_threads(target));
      scheduled = s.func();
    }
    Attrs attrs = f->attrs;
    attrs["tir.is_scheduled"] = bool_imm(true);
    out = with_function(std::move(out), name, with(scheduled, &tir::PrimFunc::attrs, std::move(attrs)));
  }
  return out;
}

}  // namespace sator::passes
