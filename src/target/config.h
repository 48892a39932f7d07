// Targets as attributes of functions (TargetConfig): read from text, with and without their host.
#pragma once

#include <optional>
#include <string>

#include "ir/module.h"

namespace sator {

using TargetConfigRef = Ref<const TargetConfig>;

/// "cuda -arch=sm_80 -keys=cuda,gpu" as {"kind": "cuda", "arch": "sm_80", "keys": "cuda,gpu"}; a tag of a maker's device,
/// "nvidia/geforce-rtx-3070", as {"kind": "cuda", "tag": ...}.
TargetConfigRef target_from_text(const std::string& text);

/// The target that runs what launches kernels: the configuration's "host", if it names one.
TargetConfigRef host_of(const TargetConfigRef& target);
TargetConfigRef with_host(const TargetConfigRef& target, const TargetConfigRef& host);
TargetConfigRef without_host(const TargetConfigRef& target);

/// The attribute "target" of a function, given as a configuration or as its text; null if there is none.
TargetConfigRef target_attr(const Attrs& attrs);

/// Whether code for the target may use vectors whose number of lanes the machine decides: an AArch64 with "+sve" among its
/// features ("mattr"). Null: no.
bool has_scalable_vectors(const TargetConfigRef& target);

/// What runs code of a target's kind (target/kinds.h); an unknown one is a device of its own name.
struct TargetDevice {
  std::string name;        ///< "cpu", "cuda", ...: code of one device calls other code of it directly
  int64_t number = 0;      ///< of the kind of device, as DLPack counts them
  bool is_called = false;  ///< its functions are called and return a status; those of other devices are launched
};
TargetDevice device_of(const TargetConfigRef& target);

}  // namespace sator
