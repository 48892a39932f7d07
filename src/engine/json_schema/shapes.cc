#include "engine/json_schema/shapes.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "engine/json_schema/cases.h"
#include "engine/json_schema/pattern.h"
#include "engine/json_schema/shortest.h"

namespace sator::json_schema {

namespace {

constexpr size_t kMostValues = 20'000;
constexpr int64_t kMostFiniteNames = kMostOtherNames;
constexpr int64_t kMostCharacters = 2000;  // that an automaton counts

int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

class ShapeBuilder {
 public:
  explicit ShapeBuilder(Schema schema)
      : schema_(std::move(schema)),
        splitter_(schema_.nodes, [this](Literal a, Literal b) { return are_disjoint(a, b); }) {
    schema_.nodes.push_back({.where = "false", .types = 0});  // the node that CaseSplitter takes for "never"
  }

  Shapes all() {
    out_.root = value_of({{schema_.root, false}});
    for (size_t v = 0; v < demands_.size(); ++v) split(static_cast<ValueId>(v));
    find_existing();
    if (!exists_[static_cast<size_t>(out_.root)])
      fail({.what = text(places_without_value(), " allows no value"),
            .needs = "a schema of which some document is valid",
            .hint = "look for required properties that contain themselves, or demands that contradict each other"});
    for (std::vector<int32_t>& shapes : out_.of_value)
      std::erase_if(shapes, [&](int32_t s) { return !is_possible(out_.shapes[static_cast<size_t>(s)]); });
    for (Shape& s : out_.shapes) leave_out_impossible(s);
    for (const Dfa& d : out_.dfas) out_.distances.push_back(distances(d));
    for (Shape& s : out_.shapes)
      if (s.kind == Shape::Kind::object) name_finite(s);
    find_shortest(out_);
    out_.name_counts.resize(out_.dfas.size());
    for (const Shape& s : out_.shapes)
      if (s.kind == Shape::Kind::object)
        out_.name_counts[static_cast<size_t>(s.dfa)] = text_counts(out_.dfas[static_cast<size_t>(s.dfa)]);
    return std::move(out_);
  }

 private:
  ValueId value_of(std::vector<Literal> demands) {
    std::ranges::sort(demands);
    demands.erase(std::unique(demands.begin(), demands.end()), demands.end());
    const auto [at, fresh] = numbers_.try_emplace(demands, static_cast<ValueId>(demands_.size()));
    if (fresh) {
      if (demands_.size() >= kMostValues)
        fail({.what = text(where_, ": there the schema has more than ", kMostValues, " kinds of values"),
              .needs = "fewer subschemas that hold for one value at once",
              .hint = "leave out alternatives, or take the schema apart"});
      demands_.push_back(std::move(demands));
      out_.of_value.emplace_back();
      state_.push_back(State::open);
    }
    return at->second;
  }

  // ---- cases to shapes
  enum class State { open, being_split, done };

  void split(ValueId v) {
    const auto at = static_cast<size_t>(v);
    if (state_[at] != State::open) return;
    state_[at] = State::being_split;
    std::vector<int32_t> shapes;
    const std::string before = std::exchange(where_, splitter_.place_of(demands_[at]));
    try {
      const std::vector<Literal> demands = demands_[at];
      for (const Case& c : splitter_.cases_of(demands)) add_shapes(c, shapes);
    } catch (...) {
      state_[at] = State::open;
      where_ = before;
      throw;
    }
    where_ = before;
    out_.of_value[at] = std::move(shapes);
    state_[at] = State::done;
  }

  void add_shapes(const Case& c, std::vector<int32_t>& into) {
    auto add = [&](Shape s) {
      into.push_back(static_cast<int32_t>(out_.shapes.size()));
      out_.shapes.push_back(std::move(s));
    };
    if (c.types & kNull) add({.word = "null"});
    if (c.types & kFalse) add({.word = "false"});
    if (c.types & kTrue) add({.word = "true"});
    if (c.types & (kInteger | kFraction)) {
      NumberRules rules = c.numbers;
      rules.integers = (c.types & kInteger) != 0, rules.fractions = (c.types & kFraction) != 0;
      if (const int32_t dfa = dfa_of_numbers(rules); !out_.dfas[static_cast<size_t>(dfa)].is_empty())
        add({.kind = Shape::Kind::number, .dfa = dfa});
    }
    if (c.types & kString)
      if (const auto s = string_shape(c)) add(*s);
    if (c.types & kArray)
      if (const auto s = array_shape(c)) add(*s);
    if (c.types & kObject)
      if (const auto s = object_shape(c)) add(*s);
  }

  int32_t keep(const std::string& key, const std::function<Dfa()>& make) {
    if (const auto known = dfa_numbers_.find(key); known != dfa_numbers_.end()) return known->second;
    out_.dfas.push_back(make());
    return dfa_numbers_[key] = static_cast<int32_t>(out_.dfas.size()) - 1;
  }
  int32_t dfa_of_numbers(const NumberRules& rules) {
    std::string key = text("number ", rules.integers, rules.fractions);
    for (const NumberRules::Bound& b : rules.bounds) key += text(" ", static_cast<int>(b.compare), b.value.written());
    for (const Decimal& d : rules.multiple_of) key += text(" *", d.written());
    for (const Decimal& d : rules.not_multiple_of) key += text(" !", d.written());
    return keep(key, [&] { return number_dfa(rules, where_); });
  }
  const Dfa& dfa_of_pattern(const std::string& pattern) {
    return out_.dfas[static_cast<size_t>(keep("pattern " + pattern, [&] { return pattern_dfa(pattern, where_); }))];
  }

  std::optional<Shape> string_shape(const Case& c) {
    if (c.max_length >= 0 && c.max_length < c.min_length) return {};
    Shape s{.kind = Shape::Kind::string};
    if (c.patterns.empty() && c.texts.empty()) {
      s.dfa = keep("text", [] { return utf8_texts(); });
      s.least = c.min_length, s.most = c.max_length;
      return s;
    }
    std::string key = text("string ", c.min_length, " ", c.max_length);
    for (const auto& [p, negative] : c.patterns) key += text(negative ? " !" : " ", string_literal(p));
    for (const auto& [t, negative] : c.texts) key += text(negative ? " not " : " is ", string_literal(t));
    s.dfa = keep(key, [&] { return string_dfa(c); });
    if (out_.dfas[static_cast<size_t>(s.dfa)].is_empty()) return {};
    return s;
  }
  Dfa string_dfa(const Case& c) {
    const std::string what = where_ + ": the texts";
    Dfa d;
    if (const auto is = std::ranges::find(c.texts, false, &std::pair<std::string, bool>::second); is != c.texts.end()) {
      const int64_t length = characters(is->first);
      if (length >= c.min_length && (c.max_length < 0 || length <= c.max_length)) d = only(is->first);
    } else {
      if (std::max(c.min_length, c.max_length) > kMostCharacters)
        fail({.what = text(where_, ": a length of ", std::max(c.min_length, c.max_length), " beside a pattern"),
              .needs = text("lengths up to ", kMostCharacters, " beside a pattern, or of names"),
              .hint = "leave out the length, or say it in the pattern: ^.{1,100}$"});
      d = utf8_texts(c.min_length, c.max_length);
    }
    for (const auto& [t, negative] : c.texts) d = intersection(d, negative ? complement(only(t), what) : only(t), what);
    for (const auto& [p, negative] : c.patterns) {
      const Dfa one = dfa_of_pattern(p);
      d = intersection(d, negative ? complement(one, what) : one, what);
    }
    return d;
  }

  std::optional<Shape> array_shape(const Case& c) {
    if (c.max_items >= 0 && c.max_items < c.min_items) return {};
    Shape s{.kind = Shape::Kind::array, .least = c.min_items, .most = c.max_items};
    size_t prefix = 0;
    for (const auto& [i, literal] : c.items_at) prefix = std::max(prefix, i + 1);
    for (const auto& [from, literal] : c.items_from) prefix = std::max(prefix, from);
    auto demands_at = [&](size_t i) {
      std::vector<Literal> all;
      for (const auto& [at, literal] : c.items_at)
        if (at == i) all.push_back(literal);
      for (const auto& [from, literal] : c.items_from)
        if (i >= from) all.push_back(literal);
      return value_of(std::move(all));
    };
    for (size_t i = 0; i < prefix; ++i) s.prefix.push_back(demands_at(i));
    s.rest = demands_at(prefix);
    return s;
  }

  // ---- objects
  std::optional<Shape> object_shape(const Case& c) {
    if (c.max_properties >= 0 && c.max_properties < std::max(c.min_properties, std::ssize(c.required))) return {};
    Shape s{.kind = Shape::Kind::object, .least = c.min_properties, .most = c.max_properties};
    const std::optional<Dfa> allowed = allowed_names(c);
    std::set<std::string> names(c.required.begin(), c.required.end());
    for (const auto& [name, literals] : c.members) names.insert(name);
    for (NodeId id : c.object_rules)
      for (const auto& [name, node] : this->node(id).properties) names.insert(name);
    for (const std::string& name : names) {
      const bool is_allowed = !allowed || allowed->contains(name);
      const bool required = c.required.contains(name);
      if (!is_allowed && required) return {};
      std::vector<Literal> demands = member_demands(c, name);
      if (!is_allowed) demands.push_back(never());
      s.names.push_back({name, value_of(std::move(demands)), required});
    }
    if (s.least - std::ssize(s.names) > kMostOtherNames)
      fail({.what = text(where_, ": minProperties asks for ", s.least, " members"),
            .needs = text("at most ", kMostOtherNames, " besides those that the schema names"),
            .hint = "ask for fewer, or for an array of that many items"});
    add_other_names(c, allowed, s);
    return s;
  }
  const SchemaNode& node(NodeId id) const { return schema_.nodes[static_cast<size_t>(id)]; }
  Literal never() const { return {static_cast<NodeId>(schema_.nodes.size()) - 1, false}; }

  std::vector<Literal> member_demands(const Case& c, const std::string& name) {
    std::vector<Literal> all;
    if (const auto own = c.members.find(name); own != c.members.end()) all = own->second;
    for (NodeId id : c.object_rules) {
      const SchemaNode& n = node(id);
      bool is_named = false;
      for (const auto& [property, schema] : n.properties)
        if (property == name) all.push_back({schema, false}), is_named = true;
      for (const auto& [pattern, schema] : n.pattern_properties)
        if (dfa_of_pattern(pattern).contains(name)) all.push_back({schema, false}), is_named = true;
      if (!is_named && n.additional_properties) all.push_back({*n.additional_properties, false});
    }
    return all;
  }

  /// The names that propertyNames allow: texts of a union of shapes. Nothing where it says nothing.
  std::optional<Dfa> allowed_names(const Case& c) {
    if (c.names.empty()) return {};
    Dfa all;
    all.start = all.add_state(false);
    CaseSplitter splitter(schema_.nodes, [](Literal, Literal) { return false; });
    for (const Case& name : splitter.cases_of(c.names))
      if (name.types & kString)
        all = product(all, string_dfa(name), [](bool x, bool y) { return x || y; }, where_ + ": propertyNames");
    return all;
  }

  /// The automaton of names that the schema does not name; what a name must be follows from the patterns that it has.
  void add_other_names(const Case& c, const std::optional<Dfa>& allowed, Shape& s) {
    std::set<std::string> patterns;
    for (NodeId id : c.object_rules)
      for (const auto& [pattern, schema] : node(id).pattern_properties) patterns.insert(pattern);
    std::vector<Dfa> parts = {utf8_texts()};
    for (const std::string& p : patterns) parts.push_back(dfa_of_pattern(p));
    const std::vector<std::string> in_order(patterns.begin(), patterns.end());
    if (allowed) parts.push_back(*allowed);
    Dfa d;
    std::map<std::vector<int32_t>, int32_t> number;
    std::vector<std::vector<int32_t>> order;
    std::vector<ValueId> values = {kNoValue};
    auto numbered = [&](const std::vector<int32_t>& states) {
      auto [at, fresh] = number.try_emplace(states, 0);
      if (!fresh) return at->second;
      if (d.size() > kMostStates)
        fail({.what = text(where_, ": patternProperties make an automaton of more than ", kMostStates, " states"),
              .needs = "shorter patterns, or fewer of them at once",
              .hint = "say less by patterns of names: smaller counts, begins (^x_) instead of parts"});
      order.push_back(states);
      const bool ends = parts[0].accepting(states[0]) && (!allowed || allowed->accepting(states.back()));
      values.push_back(ends ? other_value(c, in_order, parts, states) : kNoValue);
      return at->second = d.add_state(ends);
    };
    std::vector<int32_t> start;
    for (const Dfa& p : parts) start.push_back(p.start);
    d.start = numbered(start);
    for (size_t i = 0; i < order.size(); ++i)
      for (size_t byte = 0; byte < 256; ++byte) {
        std::vector<int32_t> to = order[i];
        for (size_t k = 0; k < parts.size(); ++k) to[k] = parts[k].step(to[k], static_cast<unsigned char>(byte));
        if (to[0] == Dfa::kDead) continue;
        const int32_t state = numbered(to);
        d.next[i + 1][byte] = state;
      }
    out_.dfas.push_back(std::move(d));
    s.dfa = static_cast<int32_t>(out_.dfas.size()) - 1;
    s.other_values = std::move(values);
  }
  ValueId other_value(const Case& c, const std::vector<std::string>& patterns, const std::vector<Dfa>& parts,
                      const std::vector<int32_t>& states) {
    std::set<std::string> matched;
    for (size_t k = 0; k < patterns.size(); ++k)
      if (parts[k + 1].accepting(states[k + 1])) matched.insert(patterns[k]);
    std::vector<Literal> all;
    for (NodeId id : c.object_rules) {
      bool is_matched = false;
      for (const auto& [pattern, schema] : node(id).pattern_properties)
        if (matched.contains(pattern)) all.push_back({schema, false}), is_matched = true;
      if (!is_matched && node(id).additional_properties) all.push_back({*node(id).additional_properties, false});
    }
    return value_of(std::move(all));
  }

  // ---- which values exist
  /// Whether no value satisfies both, as far as a look three levels deep tells.
  bool are_disjoint(Literal a, Literal b) { return is_surely_empty(value_of({a, b}), 3); }
  bool is_surely_empty(ValueId v, int depth) {
    if (depth == 0 || looks_ >= kMostLooks || state_[static_cast<size_t>(v)] == State::being_split) return false;
    ++looks_;
    bool empty = true;
    try {
      split(v);
      const std::vector<int32_t> shapes = out_.of_value[static_cast<size_t>(v)];
      for (int32_t s : shapes) empty = empty && is_surely_empty_shape(s, depth);
    } catch (const Error&) {
      empty = false;
    }
    --looks_;
    return empty;
  }
  bool is_surely_empty_shape(int32_t index, int depth) {
    const Shape s = out_.shapes[static_cast<size_t>(index)];
    if (s.kind == Shape::Kind::array) {
      for (int64_t i = 0; i < s.least && i <= std::ssize(s.prefix); ++i)
        if (is_surely_empty(item(s, i), depth - 1)) return true;
      return false;
    }
    if (s.kind != Shape::Kind::object) return false;
    return std::ranges::any_of(s.names,
                               [&](const Shape::Name& n) { return n.required && is_surely_empty(n.value, depth - 1); });
  }
  static ValueId item(const Shape& s, int64_t i) {
    return i < std::ssize(s.prefix) ? s.prefix[static_cast<size_t>(i)] : s.rest;
  }

  /// Where the schema, followed from its root to what all of its ways need, asks for a value that does not exist.
  std::string places_without_value() const {
    ValueId v = out_.root;
    for (std::set<ValueId> seen; seen.insert(v).second;) {
      std::set<ValueId> needed;
      for (int32_t s : out_.of_value[static_cast<size_t>(v)])
        needed.insert(lacking(out_.shapes[static_cast<size_t>(s)]));
      if (needed.size() == 1 && *needed.begin() != kNoValue) v = *needed.begin();
    }
    std::set<std::string> places;
    for (const Literal& l : demands_[static_cast<size_t>(v)])
      if (l.node != never().node) places.insert(node(l.node).where);
    return join(std::vector<std::string>(places.begin(), places.end()), " and ");
  }
  /// A value that does not exist and without which the shape is impossible; kNoValue: it is for another reason.
  ValueId lacking(const Shape& s) const {
    if (s.kind == Shape::Kind::array)
      for (int64_t i = 0; i < s.least && i <= std::ssize(s.prefix); ++i)
        if (!exists(item(s, i))) return item(s, i);
    for (const Shape::Name& n : s.names)
      if (n.required && !exists(n.value)) return n.value;
    return kNoValue;
  }

  bool exists(ValueId v) const { return v != kNoValue && exists_[static_cast<size_t>(v)]; }

  /// Whether a value of the shape can be made of values that are known to exist.
  bool is_possible(const Shape& s) const {
    if (s.kind == Shape::Kind::array) {
      for (int64_t i = 0; i < s.least && i <= std::ssize(s.prefix); ++i)
        if (!exists(item(s, i))) return false;
      return true;
    }
    if (s.kind != Shape::Kind::object) return true;
    int64_t possible = 0;
    for (const Shape::Name& n : s.names) {
      if (n.required && !exists(n.value)) return false;
      possible += exists(n.value);
    }
    if (possible >= s.least) return true;
    const Dfa others = usable_names(s);
    return is_infinite(others) || possible + count_names(s, others) >= s.least;
  }
  Dfa usable_names(const Shape& s) const {
    Dfa d = out_.dfas[static_cast<size_t>(s.dfa)];
    for (size_t i = 0; i < d.accepts.size(); ++i) d.accepts[i] = exists(s.other_values[i]);
    return pruned(d);
  }
  static int64_t count_names(const Shape& s, const Dfa& others) {
    const auto names = texts_of(others, kMostFiniteNames);
    if (!names) return kMostFiniteNames;
    return std::ranges::count_if(*names, [&](const std::string& name) {
      return std::ranges::find(s.names, name, &Shape::Name::name) == s.names.end();
    });
  }

  void find_existing() {
    exists_.assign(demands_.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t v = 0; v < exists_.size(); ++v) {
        if (exists_[v]) continue;
        exists_[v] = std::ranges::any_of(out_.of_value[v],
                                         [&](int32_t s) { return is_possible(out_.shapes[static_cast<size_t>(s)]); });
        changed |= exists_[v];
      }
    }
  }

  void leave_out_impossible(Shape& s) {
    if (s.kind == Shape::Kind::array) {
      for (int64_t i = 0; i <= std::ssize(s.prefix); ++i)
        if (!exists(item(s, i)) && (s.most < 0 || i < s.most)) {
          s.most = i;
          break;
        }
      return;
    }
    if (s.kind != Shape::Kind::object) return;
    for (Shape::Name& n : s.names)
      if (!exists(n.value)) n.value = kNoValue;
    Dfa& d = out_.dfas[static_cast<size_t>(s.dfa)];
    for (size_t i = 0; i < d.accepts.size(); ++i) {
      if (!exists(s.other_values[i])) s.other_values[i] = kNoValue;
      d.accepts[i] = s.other_values[i] != kNoValue;
    }
  }

  /// Other names that are few become names of the shape: those that were given may be told from those that are left.
  void name_finite(Shape& s) {
    Dfa& d = out_.dfas[static_cast<size_t>(s.dfa)];
    if (d.is_empty() || is_infinite(d)) return;
    if (pruned(d).is_empty()) return;
    const auto names = texts_of(pruned(d), kMostFiniteNames);
    if (!names) return;  // so many that one is always left
    for (const std::string& name : *names) {
      if (std::ranges::find(s.names, name, &Shape::Name::name) != s.names.end()) continue;
      int32_t state = d.start;
      for (char c : name) state = d.step(state, static_cast<unsigned char>(c));
      s.names.push_back({name, s.other_values[static_cast<size_t>(state)], false});
    }
    std::ranges::sort(s.names, {}, &Shape::Name::name);
    std::ranges::fill(d.accepts, 0);
  }

  static constexpr int kMostLooks = 4;  // of are_disjoint within cases that are_disjoint looks at
  Schema schema_;
  CaseSplitter splitter_;
  Shapes out_;
  std::map<std::vector<Literal>, ValueId> numbers_;
  std::vector<std::vector<Literal>> demands_;
  std::vector<State> state_;
  std::map<std::string, int32_t> dfa_numbers_;
  std::vector<bool> exists_;
  std::string where_;  // the value that is split
  int looks_ = 0;
};

}  // namespace

Shapes Shapes::of(Schema schema) { return ShapeBuilder(std::move(schema)).all(); }

}  // namespace sator::json_schema
