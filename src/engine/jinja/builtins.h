// Filters, tests and methods: what templates call without defining it.
#pragma once

#include "engine/jinja/value.h"

namespace sator::jinja {

/// The largest text, in bytes, and list that a template may make.
inline constexpr size_t kMaxText = size_t{64} << 20, kMaxItems = 1'000'000;
void require_text_size(size_t bytes);
void require_items(size_t count);

/// What a loop runs over: items, the keys of a dictionary, the characters of a text, nothing of what is undefined. A generator is
/// empty behind it. Errors: a value without elements.
List elements_of(const Value& value);
/// The same, one by one.
std::function<std::optional<Value>()> each_of(const Value& value);
/// What gives the items of a list that is made of a source when the first is asked for.
Value generator(const Value& source, std::function<List()> make);
/// Code points of texts, else items or members. Errors: as of elements_of.
int64_t length_of(const Value& value);
/// value.name: a method of Python's type, else a member of that name; undefined if there is neither.
Value attribute_of(const Value& value, const std::string& name);
/// The method or attribute of Python's type; nothing if there is none.
std::optional<Value> own_attribute(const Value& value, const std::string& name);
/// A method of texts; nothing if there is none.
std::optional<Value> text_method(const std::string& s, const std::string& name);
/// What one of them gives.
Value call_method(const std::string& s, const std::string& name, List arguments = {});
Value tuple_of(List items);
/// value[key]; undefined if there is none. Errors: a member of what is undefined or none.
Value item_of(const Value& value, const Value& key);
bool contains(const Value& whole, const Value& part);

/// `range`, `namespace`, `dict` and what else every template may call.
std::map<std::string, Value> global_functions();
/// Errors: a name that a namespace does not take.
void require_public(const std::string& name);

/// value | name(arguments). Errors: no such filter; arguments that it does not take.
Value filtered(const std::string& name, const Value& value, Arguments& arguments);
/// value is name(arguments). Errors: as of filtered.
bool tested(const std::string& name, const Value& value, Arguments& arguments);
/// Whether Jinja has a filter, a test, of that name.
bool is_filter(const std::string& name);
bool is_test(const std::string& name);

/// The arguments of one call, by position or by name, each asked for once.
class Taking {
 public:
  Taking(std::string callee, Arguments& arguments) : callee_(std::move(callee)), arguments_(arguments) {}
  /// The next argument; null where it is not given.
  const Value* take(const std::string& name);
  /// The same, null also where it is none.
  const Value* take_some(const std::string& name);
  /// One that has no position.
  const Value* take_named(const std::string& name);
  /// Those that have neither been asked for by position, nor by name.
  List rest();
  Dict rest_named();
  /// Errors: it is not given.
  const Value& need(const std::string& name);
  /// The same, also of the type that is asked for.
  int64_t need_integer(const std::string& name);
  const std::string& need_text(const std::string& name);
  int64_t integer_or(const std::string& name, int64_t otherwise);
  std::string text_or(const std::string& name, const std::string& otherwise);
  bool flag_or(const std::string& name, bool otherwise);
  /// Errors: arguments that nobody asked for.
  void end();

 private:
  int64_t integer(const Value& v, const std::string& name) const;
  const std::string& string(const Value& v, const std::string& name) const;

  std::string callee_;
  Arguments& arguments_;
  size_t next_ = 0;
  std::vector<std::string> taken_;
};

/// A function of that body, which takes no other arguments than those that it asks for, and holds a value.
Value method(std::string name, std::function<Value(Taking&)> body, const Value& held = {});

}  // namespace sator::jinja
