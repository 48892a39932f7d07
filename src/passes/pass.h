// A pass is one row: a rewrite of a module that no schedule asks for.
#pragma once

#include <functional>

#include "ir/module.h"
#include "passes/condition.h"
#include "target/target.h"

namespace sator::passes {

/// What a pass may know beside the module, and where it may speak.
struct PassContext {
  /// Upper bounds of symbolic sizes by name, in elements: {"seq_len", 512}.
  std::map<std::string, int64_t> bounds;
  /// What is compiled for; nothing where no pass asks.
  std::optional<Target> target = {};
  /// Options of passes, by name: {"tir.HoistExpression.hoisted_conditionals", 15}; the arguments of a pass stand under its
  /// own name: {"NarrowDataType.target_bits", 32}.
  Attrs config = {};
  /// Tensor programs that AttachAdditionalPrimFuncs adds to the module; null: none.
  ModuleRef additional = nullptr;
  /// Tensor functions as schedules of the user's left them, by name: no pass takes them apart.
  std::map<std::string, Func> scheduled = {};
  /// Told why something did or did not happen ("FuseOps: add is not fused into NT_matmul: ..."); empty: nobody listens.
  std::function<void(const std::string& pass, const std::string& message)> explain;
  void say(const std::string& pass, const std::string& message) const {
    if (explain) explain(pass, message);
  }
};

struct Pass {
  std::string name;  ///< as users know it: "FuseOps"
  std::string does;
  std::function<ModuleRef(const ModuleRef&, const PassContext&)> run;
  std::vector<const Condition*> needs = {};   ///< of the graphs it reads: run_pass refuses others
  std::vector<const Condition*> leaves = {};  ///< of the graphs it leaves: run_pass checks
  std::vector<std::string> parameters = {};   ///< its arguments, in order
};

/// Passes of TVM and MLC-LLM that are refused when they are run: Error with the reason and what there is instead (refused.cc).
std::vector<Pass> refused_passes();
/// Every pass that `sator opt --passes` knows, in pipeline order, and those that are refused.
const std::vector<Pass>& passes();
/// Errors: no such pass; lists the nearest names.
const Pass& pass_named(const std::string& name);
/// The pass that leaves graphs of which the condition holds, or null.
const Pass* pass_leaving(const Condition& condition);

}  // namespace sator::passes
