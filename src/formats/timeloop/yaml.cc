#include "formats/timeloop/yaml.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace sator::formats::timeloop {

namespace {

constexpr size_t kLargestText = size_t{16} << 20;
constexpr size_t kMostEntries = 10000;  // of one list or map; aliases can repeat a long one many times

std::string place(std::string_view file, int line, int column) {
  return line < 0 ? std::string(file) : text(file, " line ", line + 1, ", column ", column + 1);
}

std::string spelled(std::string key) {
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

/// A text in a message: not longer than a line.
std::string shown(const std::string& s) {
  return s.size() <= 60 ? string_literal(s) : text(string_literal(s.substr(0, 57)), "...");
}

void refuse_template(std::string_view content, std::string_view file) {
  for (std::string_view mark : {"{{", "{%"}) {
    size_t at = content.find(mark);
    if (at == std::string_view::npos) continue;
    int line = static_cast<int>(std::count(content.begin(), content.begin() + at, '\n'));
    size_t start = content.substr(0, at).rfind('\n');
    int column = static_cast<int>(start == std::string_view::npos ? at : at - start - 1);
    // `{{` is also YAML, of a map in a map's key, which no specification has.
    fail({.what = text("the file is a template: it has ", string_literal(mark)),
          .needs = "YAML with all values written out",
          .hint = "run Timeloop's front end and give the parsed-processed-input.yaml that it leaves",
          .where = place(file, line, column)});
  }
}

}  // namespace

void Value::fail_here(std::string what, std::string needs, std::string hint) const {
  YAML::Mark mark = node_.Mark();
  fail({.what = std::move(what),
        .needs = std::move(needs),
        .hint = std::move(hint),
        .where = place(file_, mark.line, mark.column)});
}

void Value::refuse_long() const {
  if (node_.size() > kMostEntries)
    fail_here(
        text(path_, " has ", node_.size(), " entries"), text("at most ", kMostEntries), "give the specification alone");
}

std::vector<std::pair<std::string, Value>> Value::entries() const {
  if (!is_map()) fail_here(text(path_, " is no map"), "`key: value` lines", text("write ", path_, " as a map"));
  refuse_long();
  std::vector<std::pair<std::string, Value>> all;
  std::set<std::string> seen;
  for (auto entry : node_) {
    Value key(entry.first, file_, path_);
    if (!entry.first.IsScalar()) key.fail_here("a key is no text", "a plain key", "write the key as one word");
    std::string name = spelled(entry.first.Scalar());
    if (name == "<<" || name == "<<<")
      key.fail_here(text("the key ", string_literal(name), " merges another map"),
                    "all values written out",
                    "copy the keys of the other map");
    if (!seen.insert(name).second)
      key.fail_here(text("the key ", shown(name), " stands twice"), "each key once", "remove one of the two");
    all.emplace_back(name, Value(entry.second, file_, path_.empty() ? name : text(path_, ".", name)));
  }
  return all;
}

std::optional<Value> Value::find(std::string_view key) const {
  if (!is_map())
    fail_here(text(path_.empty() ? "the file" : path_, " is no map"),
              text("a map with the key ", key),
              text("write `", key, ": ...` below it"));
  std::optional<Value> found;
  for (auto entry : node_) {
    if (!entry.first.IsScalar() || spelled(entry.first.Scalar()) != key) continue;
    if (found)
      Value(entry.first, file_, path_)
          .fail_here(text("the key ", key, " stands twice"), "each key once", "remove one of the two");
    found.emplace(entry.second, file_, path_.empty() ? std::string(key) : text(path_, ".", key));
  }
  return found;
}

Value Value::at(std::string_view key, std::string_view meaning) const {
  if (std::optional<Value> found = find(key)) return *found;
  fail_here(text(path_.empty() ? "the file" : path_, " has no key ", key), text(meaning), text("add `", key, ": ...`"));
}

std::optional<Value> Value::any_of(std::initializer_list<std::string_view> keys) const {
  for (std::string_view key : keys)
    if (std::optional<Value> found = find(key); found && !found->is_null()) return found;
  return {};
}

void Value::fail_key(std::string_view key, std::string what, std::string needs, std::string hint) const {
  for (auto entry : node_)
    if (entry.first.IsScalar() && spelled(entry.first.Scalar()) == key)
      Value(entry.first, file_, path_).fail_here(std::move(what), std::move(needs), std::move(hint));
  fail_here(std::move(what), std::move(needs), std::move(hint));
}

std::vector<Value> Value::items() const {
  if (!is_list()) fail_here(text(path_, " is no list"), "a list", text("write ", path_, " as `- ...` lines"));
  refuse_long();
  std::vector<Value> all;
  for (auto item : node_) all.emplace_back(item, file_, text(path_, "[", all.size(), "]"));
  return all;
}

std::string Value::string() const {
  if (!is_scalar()) fail_here(text(path_, " is no text"), "one value", text("write `", path_, ": value`"));
  return node_.Scalar();
}

std::optional<int64_t> whole_number(std::string_view s) {
  int64_t value = 0;
  auto [end, problem] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (problem != std::errc{} || end != s.data() + s.size() || s.empty() || s[0] == '-') return {};
  return value;
}

int64_t Value::integer(int64_t lowest) const {
  std::string s = string();
  std::optional<int64_t> value = whole_number(s);
  if (!value) {
    bool digits = !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
    fail_here(text(path_, " is ", shown(s), digits ? ", which needs more than 63 bits" : ", which is no whole number"),
              text("a whole number >= ", lowest),
              digits ? "give a number below 2^63" : "write the value itself; expressions are not evaluated");
  }
  if (*value < lowest)
    fail_here(text(path_, " is ", *value), text("a whole number >= ", lowest), text("give at least ", lowest));
  return *value;
}

double Value::real(double lowest) const {
  std::string s = string();
  double value = 0;
  auto [end, problem] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (problem != std::errc{} || end != s.data() + s.size() || !std::isfinite(value))
    fail_here(text(path_, " is ", shown(s), ", which is no finite number"),
              text("a number >= ", lowest),
              "write the value itself; expressions are not evaluated");
  if (value < lowest)
    fail_here(text(path_, " is ", value), text("a number >= ", lowest), text("give at least ", lowest));
  return value;
}

bool Value::boolean() const {
  std::string s = string();
  bool value = false;
  if (!YAML::convert<bool>::decode(node_, value))
    fail_here(text(path_, " is ", shown(s)), "true or false", "write true or false");
  return value;
}

std::vector<std::string> Value::names() const {
  std::vector<std::string> all;
  if (is_null()) return all;
  if (is_list()) {
    for (const Value& item : items()) all.push_back(item.string());
    return all;
  }
  std::string s = string(), word;
  for (char c : s + " ") {
    if (c != ' ' && c != ',' && c != '\t' && c != '\n' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      all.push_back(std::move(word));
      word.clear();
    }
  }
  return all;
}

namespace {

/// Notes where the documents of a stream begin.
class DocumentMarks final : public YAML::EventHandler {
 public:
  std::vector<YAML::Mark> marks;

 private:
  void OnDocumentStart(const YAML::Mark& mark) override { marks.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// The one document of a text. yaml-cpp 0.7 reads a text that begins with a comma as documents without end, none of which
/// takes a character: so YAML::LoadAll never returns, and documents are counted here.
YAML::Node only_document(const std::string& content, std::string_view file) {
  std::istringstream stream(content);
  YAML::Parser parser(stream);
  DocumentMarks documents;
  while (documents.marks.size() < 2 && parser.HandleNextDocument(documents)) {
  }
  if (documents.marks.size() < 2) return YAML::Load(content);
  const YAML::Mark &first = documents.marks[0], &second = documents.marks[1];
  if (first.pos == second.pos)
    fail({.what = "the file is no YAML: it begins with what begins no value",
          .needs = "YAML",
          .hint = "check indentation, colons and brackets there",
          .where = place(file, first.line, first.column)});
  fail({.what = "the file holds more than one document",
        .needs = "one document",
        .hint = "remove the lines `---`",
        .where = place(file, second.line, second.column)});
}

}  // namespace

Value document(std::string_view content, std::string_view file, std::initializer_list<std::string_view> roots) {
  if (content.size() > kLargestText)
    fail({.what = text("the text has ", grouped(static_cast<int64_t>(content.size())), " bytes"),
          .needs = text("at most ", grouped(static_cast<int64_t>(kLargestText)), " bytes"),
          .hint = "give the specification alone",
          .where = std::string(file)});
  refuse_template(content, file);
  YAML::Node node;
  try {
    node = only_document(std::string(content), file);
  } catch (const YAML::Exception& e) {
    fail({.what = text("the file is no YAML: ", e.msg),
          .needs = "YAML",
          .hint = "check indentation, colons and brackets there",
          .where = place(file, e.mark.line, e.mark.column)});
  }
  Value whole(node, file, "");
  if (whole.is_null() || !node.IsDefined())
    fail({.what = "the file is empty",
          .needs = "a YAML document",
          .hint = "give the text of the file",
          .where = text(file, " line 1, column 1")});
  if (whole.is_map())
    for (std::string_view root : roots)
      if (std::optional<Value> below = whole.find(root)) return *below;
  return whole;
}

}  // namespace sator::formats::timeloop
