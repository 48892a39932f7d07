// The values of templates: Python's, as far as templates see them.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sator::jinja {

class Value;
using List = std::vector<Value>;
/// Members in the order in which they were given.
using Dict = std::vector<std::pair<Value, Value>>;

/// What a name or a member that is not there gives: empty as text, false, without elements; anything else fails by `name`.
struct Undefined {
  std::string name;
};
struct None {};

/// What Python has for several values: lists, tuples (also those that `groupby` names the parts of), ranges, views of a dictionary.
enum class SequenceKind { list, tuple, group, range, keys, values, items };
struct Sequence {
  List items;
  SequenceKind kind = SequenceKind::list;
  std::array<int64_t, 3> bounds{};  ///< of a range: start, stop, step
};
/// What gives its items once, as Python's generators do. Errors come when the items are asked for.
struct Iterator {
  std::function<std::optional<Value>()> next;
  int depth = 1;  ///< see Value::depth
};

struct Arguments {
  List positional;
  std::vector<std::pair<std::string, Value>> named;
};
using Callable = std::function<Value(Arguments&)>;
struct Function {
  std::string name;
  Callable call;
  int depth = 1;  ///< see Value::depth
};
/// What has attributes alone: `loop`, namespaces (which statements change), macros.
struct Object {
  std::string type;  ///< "Namespace"
  Dict members;
  std::map<std::string, std::function<Value()>> computed;  ///< attributes that are made when they are read
  Callable call;                                           ///< null: it is not called
  std::function<std::string(int depth)> repr;
  int depth = 1;  ///< see Value::depth
};

class Value {
 public:
  Value() : data_(None{}) {}
  Value(Undefined u) : data_(std::move(u)) {}
  Value(bool b) : data_(b) {}
  Value(int64_t i) : data_(i) {}
  Value(double d) : data_(d) {}
  Value(std::string s) : data_(std::move(s)) {}
  Value(const char* s) : data_(std::string(s)) {}
  /// Errors: more than 500 values in each other.
  Value(List items) : Value(Sequence{std::move(items)}) {}
  Value(Sequence s);
  Value(Dict members);
  Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
  Value(Iterator i) : data_(std::make_shared<Iterator>(std::move(i))) {}
  Value(Function f) : data_(std::make_shared<const Function>(std::move(f))) {}
  static Value of(const nlohmann::ordered_json& tree);

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  /// Python's bool is a number too.
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_integral() const { return is_bool() || is_int(); }

  const std::string* string() const { return std::get_if<std::string>(&data_); }
  const Sequence* sequence() const {
    auto at = std::get_if<std::shared_ptr<const Sequence>>(&data_);
    return at ? at->get() : nullptr;
  }
  /// The items of any sequence.
  const List* items() const { return sequence() ? &sequence()->items : nullptr; }
  bool is(SequenceKind kind) const { return sequence() && sequence()->kind == kind; }
  bool is_list() const { return is(SequenceKind::list); }
  bool is_tuple() const { return is(SequenceKind::tuple) || is(SequenceKind::group); }
  Iterator* iterator() const {
    auto at = std::get_if<std::shared_ptr<Iterator>>(&data_);
    return at ? at->get() : nullptr;
  }
  const Dict* dict() const {
    auto at = std::get_if<std::shared_ptr<const Dict>>(&data_);
    return at ? at->get() : nullptr;
  }
  Object* object() const {
    auto at = std::get_if<std::shared_ptr<Object>>(&data_);
    return at ? at->get() : nullptr;
  }
  const Function* function() const {
    auto at = std::get_if<std::shared_ptr<const Function>>(&data_);
    return at ? at->get() : nullptr;
  }
  /// What a call of it does; null: it is not called.
  const Callable* callable() const {
    if (function()) return &function()->call;
    return object() && object()->call ? &object()->call : nullptr;
  }
  const Undefined* undefined() const { return std::get_if<Undefined>(&data_); }
  int64_t integer() const { return is_bool() ? std::get<bool>(data_) : std::get<int64_t>(data_); }
  double number() const { return is_float() ? std::get<double>(data_) : static_cast<double>(integer()); }

  /// How many values hold each other, itself included; of texts and numbers 0.
  int depth() const;
  bool is_true() const;
  /// "str", "int", "list", ..., as Python calls them.
  std::string type() const;
  /// Whether it is the very same object ("is" in Python); of values without identity, equal ones of one type.
  bool is_same(const Value& other) const;

 private:
  int depth_ = 0;
  std::variant<Undefined, None, bool, int64_t, double, std::string, std::shared_ptr<const Sequence>,
               std::shared_ptr<const Dict>, std::shared_ptr<Iterator>, std::shared_ptr<Object>,
               std::shared_ptr<const Function>>
      data_;
};

bool operator==(const Value& a, const Value& b);
/// a < b and a <= b of numbers, texts, lists and tuples. Errors: others, or two types.
bool less(const Value& a, const Value& b);
bool less_or_equal(const Value& a, const Value& b);
/// The member of that key; null if there is none.
const Value* find(const Dict& dict, const Value& key);
/// dict[key] = value. Errors: a key that changes, as lists and dictionaries do.
void put(Dict& dict, const Value& key, const Value& value);
void require_hashable(const Value& key);

/// The depth of what holds that value. Errors: more than 500.
int depth_around(const Value& value);

/// str(value) and repr(value) in Python. Errors: what Python prints as an address in memory; more than 500 levels.
std::string to_text(const Value& value);
std::string to_repr(const Value& value, int depth = 0);

/// json.dumps's arguments.
struct JsonStyle {
  std::optional<std::string> indent;  ///< of one level; without it all is one line
  std::string between_items = ", ", behind_key = ": ";
  bool ensure_ascii = false, sort_keys = false;
};
/// Errors: no JSON value.
std::string to_json(const Value& value, const JsonStyle& style);
/// repr(float): the shortest digits that read back, with an exponent from 1e16 on and below 1e-4.
std::string float_text(double v);

}  // namespace sator::jinja
