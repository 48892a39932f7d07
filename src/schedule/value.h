#pragma once

#include <variant>

#include "arith/index_map.h"
#include "schedule/handles.h"

namespace sator::schedule {

/// An argument or result of a primitive as scripts, traces and Python pass it.
struct Value;
using List = std::vector<Value>;
struct Value : std::variant<std::monostate, bool, int64_t, double, std::string, Loop, BlockHandle, Expr, List,
                            Ref<const arith::IndexMap>, NodeRef> {
  using Base = std::variant<std::monostate, bool, int64_t, double, std::string, Loop, BlockHandle, Expr, List,
                            Ref<const arith::IndexMap>, NodeRef>;
  using Base::Base;
  Value(int v) : Base(int64_t{v}) {}
  Value(const char* v) : Base(std::string(v)) {}
  bool is_none() const { return index() == 0; }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(static_cast<const Base*>(this));
  }
};

/// The value as a user would write it: `32`, `"shared"`, `[None, 4]`, loops and blocks by name.
void append_text(std::string& out, const Value& value);

/// Which buffer of a block: its position among the reads or writes, or its name.
struct BufferSelector {
  std::optional<bool> is_write;  ///< nothing: the primitive's own side
  std::variant<int64_t, std::string, BufferRef> which;
};

}  // namespace sator::schedule
