#include "engine/json_schema/completion.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sator::json_schema {

namespace {

using Frame = Automaton::Frame;

/// Characters as they stand in a string.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (byte < 0x20)
      ((out += "\\u00") += kDigits[byte >> 4]) += kDigits[byte & 15];
    else
      out += c;
  }
  return out;
}

class Completer {
 public:
  explicit Completer(const Automaton& a) : a_(a), shapes_(a.shapes()) {}

  std::optional<std::string> all(int32_t top) {
    std::string out;
    for (int32_t at = top; at != Automaton::kEnd && !failed_;) {
      const Frame& f = a_.frame(at);
      finish(f, out);
      at = f.parent;
      if (std::exchange(closed_object_, false)) at = a_.frame(at).parent;
    }
    return failed_ ? std::nullopt : std::optional(out);
  }

 private:
  const Shape& shape(int32_t i) const { return shapes_.shapes[static_cast<size_t>(i)]; }
  const Dfa& dfa(int32_t i) const { return shapes_.dfas[static_cast<size_t>(i)]; }
  std::string shortest(int32_t dfa_index, int32_t state) const {
    return shortest_from(dfa(dfa_index), shapes_.distances[static_cast<size_t>(dfa_index)], state);
  }

  void finish(const Frame& f, std::string& out) {
    switch (f.kind) {
      case Frame::Kind::value: return value(f.of, out);
      case Frame::Kind::colon: out += ':'; return value(f.of, out);
      case Frame::Kind::word: out += shape(f.of).word.substr(static_cast<size_t>(f.state)); return;
      case Frame::Kind::number: out += shortest(f.of, f.state); return;
      case Frame::Kind::string: return string(shape(f.of), f.state, f.count, f.reader, out);
      case Frame::Kind::array: return array(shape(f.of), f.count, !f.is_first, out);
      case Frame::Kind::object:
        return object(shape(f.of), a_.seen_of(f), !f.is_first && !f.wants_name, out, f.wants_name);
      case Frame::Kind::name: return name(f, out);
    }
  }

  /// The end of an escape, and the character that it is.
  template <class Fits>
  unsigned char end_escape(StringReader reader, const Fits& fits, std::string& out) {
    const auto possible = reader.possible();
    const auto at = std::ranges::find_if(possible, fits);
    if (at == possible.end()) {
      failed_ = true;
      return 0;
    }
    // "\u00XX" or two characters, of which the stage says how many are there.
    const size_t there = reader.stage == StringReader::Stage::u001 ? 5 : static_cast<size_t>(reader.stage);
    out += escaped(std::string(1, static_cast<char>(*at))).substr(there);
    return *at;
  }

  void string(const Shape& s, int32_t state, int64_t count, StringReader reader, std::string& out) {
    const Dfa& d = dfa(s.dfa);
    if (reader.stage != StringReader::Stage::plain) {
      const unsigned char c = end_escape(reader, [&](unsigned char e) { return d.step(state, e) != Dfa::kDead; }, out);
      state = d.step(state, c);
      ++count;
    }
    const std::string rest = shortest(s.dfa, state);
    out += escaped(rest);
    for (char c : rest)
      state = d.step(state, static_cast<unsigned char>(c)), count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    for (; count < s.least; ++count) out += 'a';  // only texts without a pattern count so
    out += '"';
  }

  void array(const Shape& s, int64_t count, bool comma, std::string& out) {
    for (; count < s.least && !failed_; ++count, comma = true) {
      if (comma) out += ',';
      value(count < std::ssize(s.prefix) ? s.prefix[static_cast<size_t>(count)] : s.rest, out);
    }
    out += ']';
  }

  void object(const Shape& s, const Automaton::Seen& seen, bool comma, std::string& out, bool wants_name = false) {
    int64_t count = seen.count;
    auto member = [&](const std::string& name, ValueId v) {
      if (comma) out += ',';
      out += '"' + escaped(name) + "\":";
      value(v, out);
      comma = true, ++count, wants_name = false;
    };
    auto is_left = [&](size_t i) { return !seen.names[i] && s.names[i].value != kNoValue; };
    for (size_t i = 0; i < s.names.size(); ++i)
      if (s.names[i].required && is_left(i)) member(s.names[i].name, s.names[i].value);
    for (size_t i = 0; i < s.names.size() && (count < s.least || wants_name); ++i)
      if (!s.names[i].required && is_left(i)) member(s.names[i].name, s.names[i].value);
    // Names that the schema does not name: short ones first.
    for (int i = 0; (count < s.least || wants_name) && !failed_; ++i) {
      const std::string name = i < 26 ? std::string(1, static_cast<char>('a' + i)) : "a" + std::to_string(i);
      const int32_t state = state_of(s, name);
      if (i > 5000) failed_ = true;
      if (!dfa(s.dfa).accepting(state) || std::ranges::binary_search(seen.others, name) ||
          std::ranges::binary_search(s.names, name, {}, &Shape::Name::name))
        continue;
      member(name, s.other_values[static_cast<size_t>(state)]);
    }
    out += '}';
  }
  int32_t state_of(const Shape& s, const std::string& name) const {
    int32_t state = dfa(s.dfa).start;
    for (char c : name) state = dfa(s.dfa).step(state, static_cast<unsigned char>(c));
    return state;
  }

  /// The rest of a name, its value, and the rest of the object: the frame below does not have the name among those that were given.
  void name(const Frame& f, std::string& out) {
    const Shape& s = shape(f.of);
    const Automaton::Seen& seen = a_.seen_of(a_.frame(f.parent));
    std::string text = a_.text_of(f);
    int32_t state = f.state;
    if (f.reader.stage != StringReader::Stage::plain) {
      failed_ = true;  // an escape in a name: rare enough to go on without a promise
      return;
    }
    const Shape::Name* best = nullptr;
    for (auto own = std::ranges::lower_bound(s.names, text, {}, &Shape::Name::name);
         own != s.names.end() && own->name.starts_with(text);
         ++own) {
      const auto i = static_cast<size_t>(own - s.names.begin());
      if (seen.names[i] || own->value == kNoValue || !a_.has_room(s, seen, own->required)) continue;
      if (!best || own->required > best->required) best = &*own;
    }
    Automaton::Seen after = seen;
    ValueId v = kNoValue;
    if (best) {
      out += escaped(best->name.substr(text.size()));
      after.names[static_cast<size_t>(best - s.names.data())] = true;
      v = best->value;
    } else {
      for (int tries = 0;; ++tries) {
        const std::string rest = shortest(s.dfa, state);
        std::string whole = text + rest;
        const int32_t end = state_of(s, whole);
        if (tries > 100 || !dfa(s.dfa).accepting(end)) {
          failed_ = true;
          return;
        }
        if (!std::ranges::binary_search(seen.others, whole) &&
            !std::ranges::binary_search(s.names, whole, {}, &Shape::Name::name)) {
          out += escaped(rest);
          after.others.push_back(whole);
          std::ranges::sort(after.others);
          v = s.other_values[static_cast<size_t>(end)];
          break;
        }
        text = whole + static_cast<char>('a' + tries % 26);  // longer
        out += escaped(rest + text.back());
        state = state_of(s, text);
        if (shapes_.distances[static_cast<size_t>(s.dfa)][static_cast<size_t>(state)] < 0) failed_ = true;
        if (failed_) return;
      }
    }
    ++after.count;
    out += "\":";
    value(v, out);
    object(s, after, true, out);
    closed_object_ = true;
  }

  /// The shortest document of a value.
  void value(ValueId v, std::string& out) {
    constexpr int kMostNesting = 2000;
    if (v == kNoValue || ++nesting_ > kMostNesting) {
      failed_ = true;
      return;
    }
    const int32_t* best = nullptr;
    int64_t bytes = INT64_MAX;
    for (const int32_t& i : shapes_.of_value[static_cast<size_t>(v)])
      if (const int64_t b = shapes_.least_bytes_of(shape(i)); b < bytes) bytes = b, best = &i;
    if (!best) {
      failed_ = true;
    } else {
      const Shape& s = shape(*best);
      switch (s.kind) {
        case Shape::Kind::word: out += s.word; break;
        case Shape::Kind::number: out += shortest(s.dfa, dfa(s.dfa).start); break;
        case Shape::Kind::string:
          out += '"';
          string(s, dfa(s.dfa).start, 0, {}, out);
          break;
        case Shape::Kind::array:
          out += '[';
          array(s, 0, false, out);
          break;
        case Shape::Kind::object: {
          out += '{';
          object(s, {.names = std::vector<bool>(s.names.size())}, false, out);
          break;
        }
      }
    }
    --nesting_;
  }

  const Automaton& a_;
  const Shapes& shapes_;
  bool failed_ = false, closed_object_ = false;
  int nesting_ = 0;
};

}  // namespace

std::optional<std::string> completion_of(const Automaton& place) {
  std::optional<std::string> best;
  for (int32_t top : place.tops()) {
    const std::optional<std::string> one = Completer(place).all(top);
    if (one && (!best || one->size() < best->size())) best = one;
  }
  return best;
}

}  // namespace sator::json_schema
