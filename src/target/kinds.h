// Kinds of targets, as TVM names them: rows of facts. What is built for a kind is said by driver/backend.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sator {

/// A memory that programs name as the scope of a buffer.
struct MemoryScope {
  std::string_view name, does;
};

/// One kind: its name in TVM, its device as DLPack counts them, what programs may say of it.
struct TargetKind {
  std::string_view name, does;
  std::string_view device;    ///< "cpu", "cuda", ...: code of one device calls other code of it directly
  int64_t device_number = 0;  ///< of the kind of device, as DLPack counts them
  bool is_called = false;     ///< its functions are called and return a status; those of other devices are launched
  std::string_view keys;      ///< by which rules of TVM ask what it is: "cuda gpu"
  std::vector<MemoryScope> scopes;
  /// What a target of the kind may say, beside kCommonAttributes; empty: anything.
  std::string_view attributes = {};
};

/// What targets of every kind may say.
inline constexpr std::string_view kCommonAttributes =
    "kind keys tag device model libs host from_device target_device_type";

std::span<const TargetKind> target_kinds();
/// Null where there is none of that name.
const TargetKind* find_target_kind(std::string_view name);

}  // namespace sator
