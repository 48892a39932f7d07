// What a pass requires of the graphs that it reads, and what holds of those that it leaves: conditions, checked by
// run_pass before and after (run.h). The stages of tensor programs are those of lower/lower.h.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "ir/module.h"

namespace sator::passes {

/// One condition on all graphs of a module. The pass that establishes it is the one whose row has it in `leaves`.
struct Condition {
  std::string_view holds;  ///< as a rule: "graphs without dataflow blocks"
  std::optional<Reason> (*broken)(
      const Module& module);  ///< the first place where it does not hold; nothing if it does
};

extern const Condition kNoDataflow;        ///< no dataflow blocks
extern const Condition kNoPackedDataflow;  ///< no dataflow block that calls the runtime as pure: R.call_pure_packed
extern const Condition kNoPurity;          ///< no function whose calls must be pure: impure, or with relax.force_pure
extern const Condition kNoCallTir;         ///< results of tensor functions are allocated: no R.call_tir and its kin
extern const Condition kNoAlloc;           ///< tensors lie in storages: no R.builtin.alloc_tensor

}  // namespace sator::passes
