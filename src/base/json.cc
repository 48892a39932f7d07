#include "base/json.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sator {

namespace {

constexpr size_t kMaxDepth = 128;

/// 10^n, 0 <= n <= 308, the nearest double.
double power_of_ten(int64_t n) {
  const std::string digits = text("1e", n);
  double power = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), power);
  return power;
}

/// The number as Decimals::serde says.
///   number  well-formed JSON
double serde_double(std::string_view number) {
  constexpr int64_t kMostPower = 308;
  const bool negative = number.starts_with('-');
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool in_fraction = false,
       is_full = false;  // full: what does not fit 64 bits is left out, from there to the part's end
  size_t at = negative ? 1 : 0;
  for (; at < number.size() && number[at] != 'e' && number[at] != 'E'; ++at) {
    if (number[at] == '.') {
      in_fraction = true, is_full = false;
      continue;
    }
    const auto digit = static_cast<uint64_t>(number[at] - '0');
    is_full |= digits > (UINT64_MAX - digit) / 10;
    if (!is_full) digits = digits * 10 + digit;
    if (is_full != in_fraction) exponent += is_full ? 1 : -1;
  }
  if (at < number.size()) {
    std::string_view rest = number.substr(at + 1);  // behind the e
    if (rest.starts_with('+')) rest.remove_prefix(1);
    int32_t given = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), given).ec != std::errc())
      given = rest.starts_with('-') ? -INT32_MAX : INT32_MAX;
    exponent += given;
  }
  auto value = static_cast<double>(digits);
  for (; exponent < -kMostPower && value != 0; exponent += kMostPower) value /= power_of_ten(kMostPower);
  if (exponent > kMostPower && value != 0) return HUGE_VAL;
  if (value != 0) value = exponent < 0 ? value / power_of_ten(-exponent) : value * power_of_ten(exponent);
  return negative ? -value : value;
}

/// Builds the tree from nlohmann's events; its own builder neither limits the depth nor sees duplicate names.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(std::string_view source, DuplicateNames duplicates, Decimals decimals)
      : source_(source), duplicates_(duplicates), decimals_(decimals) {}

  Json take() { return std::move(root_); }

  bool null() override { return leaf(nullptr); }
  bool boolean(bool v) override { return leaf(v); }
  bool number_integer(number_integer_t v) override { return leaf(v); }
  bool number_unsigned(number_unsigned_t v) override { return leaf(v); }
  bool number_float(number_float_t v, const string_t& digits) override {
    if (decimals_ == Decimals::serde) v = serde_double(digits);
    if (decimals_ == Decimals::nearest_but_integers && digits.find_first_of(".eE") == digits.npos)
      fail({.what = text(source_, ": the integer ", digits, " is beyond 64 bits"),
            .needs = "integers from -2^63 to 2^64 - 1, which are kept exactly"});
    if (!std::isfinite(v))
      fail({.what = text(source_, ": the number ", digits, " is beyond a double"), .needs = "finite numbers"});
    return leaf(v);
  }
  bool string(string_t& v) override { return leaf(std::move(v)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    auto [member, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(std::move(name));
    if (!is_new && duplicates_ == DuplicateNames::refused)
      fail({.what = text(source_, ": the name ", string_literal(member->first), " is given twice in one object"),
            .needs = "each name once",
            .hint = "the file is damaged or was edited by hand: write it anew"});
    slot_ = &member->second;
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override {
    std::string_view message = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    if (size_t end = message.find("] "); end != std::string_view::npos) message.remove_prefix(end + 2);
    constexpr int kNumberOverflow = 406;
    if (e.id == kNumberOverflow)
      fail({.what = text(source_, ": ", message),
            .needs = "numbers that a double holds, below 1.8e308",
            .hint = "write a smaller number, or leave it out"});
    fail({.what = text(source_, " is not valid JSON: ", message),
          .needs = "well-formed JSON in UTF-8",
          .hint = "the file may be cut off: compare its size with the original"});
  }

 private:
  /// Where the next value goes: the root, the member whose key was read, or the end of the open array.
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_object()) return *slot_ = std::move(value);
    auto& elements = open_.back()->get_ref<Json::array_t&>();
    elements.push_back(std::move(value));
    return elements.back();
  }
  bool leaf(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() == kMaxDepth)
      fail({.what = text(source_, " nests deeper than ", kMaxDepth, " levels"),
            .needs = text("at most ", kMaxDepth, " levels of objects and arrays")});
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string source_;
  DuplicateNames duplicates_;
  Decimals decimals_;
  Json root_;
  std::vector<Json*> open_;
  Json* slot_ = nullptr;
};

/// "a string", "an object", "512": what an error calls a value.
std::string described(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: {
      const auto& s = value.get_ref<const std::string&>();
      return s.size() <= 60 ? string_literal(s) : "a long string";
    }
    default: return value.dump();
  }
}

}  // namespace

Json parse_json(std::string_view json, std::string_view source, DuplicateNames duplicates, Decimals decimals) {
  TreeBuilder builder(source, duplicates, decimals);
  Json::sax_parse(json.begin(), json.end(), &builder);
  return builder.take();
}

bool JsonAt::is_object() const { return value_->is_object(); }
bool JsonAt::is_array() const { return value_->is_array(); }
bool JsonAt::is_string() const { return value_->is_string(); }
bool JsonAt::is_boolean() const { return value_->is_boolean(); }
bool JsonAt::is_integer() const { return value_->is_number_integer(); }

std::string JsonAt::where() const { return path_.empty() ? source_ : text(source_, ": ", path_); }

void JsonAt::fail(std::string_view problem, std::string_view needs, std::string_view hint) const {
  sator::fail({.what = text(where(), " ", problem), .needs = std::string(needs), .hint = std::string(hint)});
}

void JsonAt::wrong_type(std::string_view needs) const { fail(text("is ", described(*value_)), needs); }

const Json* JsonAt::look_up(std::string_view name) const {
  if (!value_->is_object()) wrong_type("an object");
  const auto& members = value_->get_ref<const Json::object_t&>();
  auto member = members.find(std::string(name));
  if (member == members.end()) return nullptr;
  if (reads_) reads_->add(member->second);
  return &member->second;
}

std::optional<JsonAt> JsonAt::find(std::string_view name) const {
  const Json* member = look_up(name);
  if (!member || member->is_null()) return {};
  return JsonAt(*member, *this, path_.empty() ? std::string(name) : text(path_, ".", name));
}

bool JsonAt::has(std::string_view name) const { return look_up(name) != nullptr; }

JsonAt JsonAt::at(std::string_view name) const {
  if (auto member = find(name)) return *member;
  std::vector<std::string> names;
  for (const auto& [other, value] : value_->items()) names.push_back(other);
  std::vector<std::string> near = nearest_names(name, names);
  fail(text("has no ", string_literal(name)),
       text("a member ", string_literal(name)),
       near.empty() ? "" : text("it has ", join(near, ", ")));
}

void JsonAt::each(const std::function<void(const JsonAt&)>& visit) const {
  if (!value_->is_array()) wrong_type("an array");
  for (size_t i = 0; i < value_->size(); ++i) visit(JsonAt((*value_)[i], *this, text(path_, "[", i, "]")));
}

void JsonAt::each_member(const std::function<void(const std::string&, const JsonAt&)>& visit) const {
  if (!value_->is_object()) wrong_type("an object");
  for (const auto& [name, member] : value_->items())
    visit(name, JsonAt(member, *this, path_.empty() ? name : text(path_, ".", name)));
}

bool JsonAt::boolean() const {
  if (!value_->is_boolean()) wrong_type("true or false");
  return value_->get<bool>();
}

int64_t JsonAt::integer(int64_t min, int64_t max) const {
  auto range = [&] {
    if (max == INT64_MAX) return min == INT64_MIN ? std::string("an integer") : text("an integer from ", min);
    return text("an integer from ", min, " to ", max);
  };
  if (!value_->is_number_integer()) wrong_type(range());
  bool beyond = value_->is_number_unsigned() && value_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (beyond || value_->get<int64_t>() < min || value_->get<int64_t>() > max) wrong_type(range());
  return value_->get<int64_t>();
}

double JsonAt::number() const {
  if (!value_->is_number()) wrong_type("a number");
  return value_->get<double>();
}

const std::string& JsonAt::string() const {
  if (!value_->is_string()) wrong_type("a string");
  return value_->get_ref<const std::string&>();
}

bool JsonAt::boolean_or(std::string_view name, bool otherwise) const {
  auto member = find(name);
  return member ? member->boolean() : otherwise;
}

int64_t JsonAt::integer_or(std::string_view name, int64_t otherwise, int64_t min, int64_t max) const {
  auto member = find(name);
  return member ? member->integer(min, max) : otherwise;
}

double JsonAt::number_or(std::string_view name, double otherwise) const {
  auto member = find(name);
  return member ? member->number() : otherwise;
}

std::string JsonAt::string_or(std::string_view name, std::string_view otherwise) const {
  auto member = find(name);
  return member ? member->string() : std::string(otherwise);
}

}  // namespace sator
