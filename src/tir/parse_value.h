// What an expression of a script stands for while it is parsed: a part of the program, or a plain Python value.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "ir/script/ast.h"
#include "tir/nodes.h"

namespace sator::te {
class Tensor;
}

namespace sator::tir {

struct Value;

/// A list or a tuple.
struct Values {
  std::vector<Value> items;
  bool is_tuple = false;
};
/// A Python integer; `is_unsigned`: above 2^63 - 1, as its 64 bits.
struct Integer {
  int64_t value = 0;
  bool is_unsigned = false;
};
/// An index of a subscript; a slice start:stop:step has `stop`, and `step` if it was written.
struct SubscriptIndex {
  Expr start, stop, step;
};
/// buffer[...]: an element, a vector or a region, as the place where it stands asks.
struct Subscript {
  BufferRef buffer;
  std::vector<SubscriptIndex> indices;
  bool has_slice() const {
    for (const SubscriptIndex& i : indices) {
      if (i.stop) return true;
    }
    return false;
  }
};
/// A name of a language: "T.block", "R.add", "I.ir_module", or the language itself ("T").
struct LanguageName {
  std::string name;
};
/// A function of the module that is being parsed, or the module itself (empty).
struct ModuleName {
  std::string function;
};
struct DictValue {
  std::vector<std::pair<Value, Value>> items;
};
/// A lambda, still as written.
struct LambdaValue {
  const script::Expression* expression;
};
/// A method of a value: x.astype, A.vload.
struct Method {
  std::shared_ptr<Value> object;
  std::string name;
};
/// What stands in `with ...` and `for ... in ...`, or opens a scope as a statement; the statements' parser makes them.
struct ScopeOpener;
/// Keeps its value from being bound by a let: T.meta_var(x).
struct MetaVar {
  std::shared_ptr<Value> value;
};
struct NotedCall;
/// An object of the language that the text is written in (Python) and that is no part of a program: a function, a module, an
/// object with attributes. The reader asks it; what it answers is a value of the script again.
class HostObject {
 public:
  virtual ~HostObject() = default;
  /// For messages: "the function tile_of".
  virtual std::string kind() const = 0;
  virtual Value attribute(const std::string& name) const = 0;
  virtual Value element(const Value& index) const = 0;
  /// An array as a constant of a graph; null for any other object.
  virtual NodeRef tensor() const { return nullptr; }
  /// A function of indices as an index map; null for any other object.
  virtual NodeRef index_map() const { return nullptr; }
  /// The tensors that a function of the host's defines: a formula over tensors of te and other values.
  /// Errors: it is no function, or gives something else.
  virtual std::vector<te::Tensor> formula(const std::vector<std::variant<Value, te::Tensor>>& args,
                                          const std::vector<std::pair<std::string, Value>>& keywords) const = 0;
  virtual Value call(const std::vector<Value>& args,
                     const std::vector<std::pair<std::string, Value>>& keywords) const = 0;
  /// A call of the language that a function of the host's gives back to have it made in the program that calls the function,
  /// such as T.decl_buffer(...); null for any other object.
  virtual std::shared_ptr<const NotedCall> noted_call() const { return nullptr; }
};
using HostObjectRef = std::shared_ptr<const HostObject>;

struct Value {
  std::variant<std::monostate, bool, Integer, double, std::string, Expr, BufferRef, Subscript, Values, DictValue,
               LanguageName, ModuleName, LambdaValue, Method, std::shared_ptr<ScopeOpener>, MetaVar, NodeRef,
               HostObjectRef>
      is;

  Value() = default;
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Value>)
  Value(T v) : is(std::move(v)) {}

  template <class T>
  const T* as() const {
    return std::get_if<T>(&is);
  }
  bool is_none() const { return std::holds_alternative<std::monostate>(is); }
  /// A Python number, text or None, or a list or tuple of such: known while parsing.
  bool is_plain() const;
  /// What it is, for messages: "an integer", "a buffer", ...
  std::string kind() const;
};

struct NotedCall {
  std::string name;  ///< "T.decl_buffer"
  std::vector<Value> args;
  std::vector<std::pair<std::string, Value>> keywords;
};

class Surroundings {
 public:
  virtual ~Surroundings() = default;
  /// The value of a name; nothing where there is none.
  virtual std::optional<Value> value_of(const std::string& name) const = 0;
  /// The value of an expression of Python's, whose names `local` knows first (null: it does not); nothing where none is evaluated.
  using Local = FunctionRef<const Value*(const std::string& name)>;
  virtual std::optional<Value> evaluate(const std::string& /*text*/, Local /*local*/) const { return {}; }
  /// An exception of the host's, the current one, leaves the place of a program that asked for a value.
  virtual void raised(const Reason& /*place*/) const {}
};

}  // namespace sator::tir
