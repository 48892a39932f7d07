#include "target/chip_graph.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/text.h"
#include "target/chip_file.h"

namespace sator {

namespace {

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

class GraphReader {
 public:
  GraphReader(KeyReader& in, ChipPattern& p) : in_(in), p_(p) {}

  void run() {
    const std::vector<std::string> lines = in_.strings("graph");
    if (lines.empty()) in_.fail_at("graph", "it has no line", kNeeds, "add \"y = matmul(x, w)\"");
    for (number_ = 0; number_ < lines.size(); ++number_) read_line(lines[number_]);
    read_results();
    const auto ops = std::ranges::count_if(p_.graph, [](const ChipPattern::Node& n) { return !n.any_of.empty(); });
    if (static_cast<size_t>(ops) > kMostOpsOfGraph)
      in_.fail_at("graph", text("it has ", ops, " ops"), text("at most ", kMostOpsOfGraph), "state two patterns");
  }

 private:
  static constexpr const char* kNeeds = "lines like \"y = relu(matmul(x, w) + b)\"; \"gate, up = split(z)\"";
  static constexpr int kDeepest = 64;

  /// What the rest of the file calls a value.
  struct Name {
    size_t node = 0;
    size_t line = 0;
    bool from_outside = false, is_read = false;
  };

  [[noreturn]] void refuse(const std::string& what, const std::string& hint = "") const {
    in_.fail_in("graph", number_, text(string_literal(line_), ": ", what), kNeeds, hint);
  }

  void read_line(const std::string& line) {
    line_ = line;
    at_ = 0;
    depth_ = 0;
    std::vector<std::string> names;
    do names.push_back(word("name"));
    while (take(','));
    if (!take('=')) refuse(text("there is no = ", behind()));
    const size_t value = sum();
    if (at_ < line_.size()) refuse(text("the line goes on ", behind()));
    if (p_.graph[value].any_of.empty()) refuse("nothing is computed", "name the result of an op");
    if (names.size() == 1) return define(names[0], value);
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] != "_") define(names[i], add({.any_of = {}, .args = {value}, .item = i, .where = {}}));
  }

  void define(const std::string& name, size_t node) {
    if (name == "_" || name.find('.') != std::string::npos)
      refuse(text(string_literal(name), " is no name for a value"), "use letters, digits and _");
    const auto [at, fresh] = names_.try_emplace(name, Name{.node = node, .line = number_});
    if (fresh) return;
    if (at->second.from_outside)
      refuse(text(name, " is read by a line before it"), "put the line that names a value before those that read it");
    refuse(text(name, " is the name of another value"), "give each value a name of its own");
  }

  void read_results() {
    const std::vector<std::string> named = in_.strings("results");
    if (named.empty()) {
      for (auto& [name, n] : names_)
        if (!n.from_outside && !n.is_read && n.line + 1 == number_) p_.results.push_back(n.node), n.is_read = true;
      if (p_.results.empty()) in_.fail_at("graph", "the last line names no result", kNeeds, "give it a name");
    }
    for (size_t i = 0; i < named.size(); ++i) {
      const auto at = names_.find(named[i]);
      if (at == names_.end() || at->second.from_outside)
        in_.fail_in("results", i, text("no line names ", string_literal(named[i])), "names of lines of graph");
      if (std::ranges::find(p_.results, at->second.node) != p_.results.end())
        in_.fail_in("results", i, text(named[i], " stands there twice"), "each result once");
      p_.results.push_back(at->second.node);
      at->second.is_read = true;
    }
    for (const auto& [name, n] : names_)
      if (!n.is_read)
        in_.fail_in("graph",
                    n.line,
                    text("no line reads ", name),
                    "each name is read by a line below, is the last line's, or stands in results",
                    unread_hint(name));
    if (p_.results.size() > 1)
      for (size_t r : p_.results)
        if (p_.graph[r].optional)
          in_.fail_at(
              "results", "one of several results may be absent", "results of ops without ?", "state two patterns");
  }

  /// A misspelt name is one from outside.
  std::string unread_hint(const std::string& name) const {
    std::vector<std::string> outside;
    for (const auto& [other, n] : names_)
      if (n.from_outside) outside.push_back(other);
    const std::vector<std::string> near = nearest_names(name, outside);
    return near.empty() ? text("add results = [\"", name, "\", ...]")
                        : text("is ", near[0], " meant to be ", name, "?");
  }

  size_t add(ChipPattern::Node node) {
    node.where = in_.place_in("graph", number_);
    p_.graph.push_back(std::move(node));
    return p_.graph.size() - 1;
  }

  size_t infix(char sign, const char* op, size_t (GraphReader::*part)()) {
    size_t left = (this->*part)();
    while (take(sign)) {
      const size_t right = (this->*part)();
      left = add({.any_of = {op}, .args = {left, right}, .item = {}, .where = {}});
    }
    return left;
  }
  size_t sum() { return infix('+', "add", &GraphReader::product); }
  size_t product() { return infix('*', "multiply", &GraphReader::value); }

  size_t value() {
    if (++depth_ > kDeepest) refuse("too many parentheses within each other", "name parts of it in lines of their own");
    const size_t out = one_value();
    --depth_;
    return out;
  }

  size_t one_value() {
    if (take('(')) {
      const size_t inside = sum();
      if (!take(')')) refuse(text("a ) is missing ", behind()));
      return inside;
    }
    const std::string first = word("op or name");
    ChipPattern::Node op{.any_of = {first}, .args = {}, .item = {}, .where = {}};
    while (take('|')) op.any_of.push_back(word("op"));
    op.optional = take('?');
    if (take('(')) {
      do op.args.push_back(sum());
      while (take(','));
      if (!take(')')) refuse(text("a , or ) is missing ", behind()));
      return add(std::move(op));
    }
    if (op.any_of.size() > 1 || op.optional) refuse(text("a ( is missing ", behind()), "write op|other?(x)");
    if (first == "_") return add({.any_of = {}, .args = {}, .item = {}, .where = {}});
    if (const auto known = names_.find(first); known != names_.end()) {
      known->second.is_read = true;
      return known->second.node;
    }
    const size_t outside = add({.any_of = {}, .args = {}, .item = {}, .where = {}});
    names_.emplace(first, Name{.node = outside, .line = number_, .from_outside = true, .is_read = true});
    return outside;
  }

  void skip_spaces() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    skip_spaces();
    return true;
  }
  std::string word(const char* what) {
    skip_spaces();
    const size_t from = at_;
    while (at_ < line_.size() && in_name(line_[at_])) ++at_;
    if (at_ == from) refuse(text("there is no ", what, " ", behind()));
    if (std::isdigit(static_cast<unsigned char>(line_[from])))
      refuse(text(string_literal(line_.substr(from, at_ - from)), " is no ", what), "give a factor or summand a name");
    std::string out = line_.substr(from, at_ - from);
    skip_spaces();
    return out;
  }
  std::string behind() const {
    return at_ == 0 ? "at its start" : text("behind ", string_literal(line_.substr(0, at_)));
  }

  KeyReader& in_;
  ChipPattern& p_;
  std::map<std::string, Name> names_;
  size_t number_ = 0, at_ = 0;
  std::string line_;
  int depth_ = 0;
};

}  // namespace

void read_graph(KeyReader& in, ChipPattern& p) { GraphReader(in, p).run(); }

}  // namespace sator
