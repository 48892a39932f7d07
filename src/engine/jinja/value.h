// The values of templates: Python's, as far as templates see them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
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
struct Sequence {
  List items;
  bool is_tuple = false;
};
/// What has attributes alone: `loop`, namespaces (which statements change), macros.
struct Object {
  std::string type;  ///< "namespace"
  std::map<std::string, Value> members;
};

struct Arguments {
  List positional;
  std::vector<std::pair<std::string, Value>> named;
};
struct Function {
  std::string name;
  std::function<Value(Arguments&)> call;
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
  Value(List items) : data_(std::make_shared<const Sequence>(Sequence{std::move(items)})) {}
  Value(Sequence s) : data_(std::make_shared<const Sequence>(std::move(s))) {}
  Value(Dict members) : data_(std::make_shared<const Dict>(std::move(members))) {}
  Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
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
  const List* list() const {
    auto at = std::get_if<std::shared_ptr<const Sequence>>(&data_);
    return at ? &(*at)->items : nullptr;
  }
  bool is_tuple() const {
    auto at = std::get_if<std::shared_ptr<const Sequence>>(&data_);
    return at && (*at)->is_tuple;
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
  const Undefined* undefined() const { return std::get_if<Undefined>(&data_); }
  int64_t integer() const { return is_bool() ? std::get<bool>(data_) : std::get<int64_t>(data_); }
  double number() const { return is_float() ? std::get<double>(data_) : static_cast<double>(integer()); }

  bool is_true() const;
  /// "str", "int", "list", ..., as Python calls them.
  std::string type() const;
  /// Whether it is the very same object ("is" in Python); of values without identity, equal ones of one type.
  bool is_same(const Value& other) const;

 private:
  std::variant<Undefined, None, bool, int64_t, double, std::string, std::shared_ptr<const Sequence>,
               std::shared_ptr<const Dict>, std::shared_ptr<Object>, std::shared_ptr<const Function>>
      data_;
};

bool operator==(const Value& a, const Value& b);
/// Numbers, strings and lists. Errors: others, or two types.
bool less(const Value& a, const Value& b);
/// The member of that key; null if there is none.
const Value* find(const Dict& dict, const Value& key);

/// str(value) and repr(value) in Python.
std::string to_text(const Value& value);
std::string to_repr(const Value& value);
/// json.dumps(value, ensure_ascii=False, indent=indent): without indent ", " and ": " separate. Errors: no JSON value.
std::string to_json(const Value& value, int indent = -1, bool sort_keys = false);

/// Strings are sequences of code points.
std::u32string code_points(std::string_view s);
std::string utf8(std::u32string_view s);

}  // namespace sator::jinja
