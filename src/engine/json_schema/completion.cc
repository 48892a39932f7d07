#include "engine/json_schema/completion.h"

#include <algorithm>

namespace sator::json_schema {

namespace {

using Frame = Automaton::Frame;

/// A character as it stands in a string.
std::string escaped(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef", kShort = "\b\f\n\r\t", kLetters = "bfnrt";
  const char c = static_cast<char>(byte);
  if (byte == '"' || byte == '\\') return {'\\', c};
  if (byte >= 0x20) return {c};
  if (const size_t at = kShort.find(c); at != kShort.npos) return {'\\', kLetters[at]};
  return {'\\', 'u', '0', '0', kDigits[byte >> 4], kDigits[byte & 15]};
}
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) out += escaped(static_cast<unsigned char>(c));
  return out;
}
/// The end of an escape which has begun, and which becomes this character.
std::string end_of_escape(StringReader::Stage stage, unsigned char character) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (stage == StringReader::Stage::escape) return escaped(character).substr(1);
  const std::string digits = {'0', '0', kDigits[character >> 4], kDigits[character & 15]};
  return digits.substr(stage == StringReader::Stage::u001 ? 3 : static_cast<size_t>(stage) - 2);
}

/// Goes on from one of the places. A text that is too long is given up.
class Completer {
 public:
  Completer(const Automaton& a, int64_t most, LongTokens* tokens)
      : a_(a), shapes_(a.shapes()), most_(most), tokens_(tokens) {}

  std::optional<std::string> all(int32_t top) {
    for (int32_t at = top; at != Automaton::kEnd && goes_on();) {
      const Frame& f = a_.frame(at);
      finish(f);
      // A name's end completes its object, too: the frame below does not have the name among those that were given.
      at = f.kind == Frame::Kind::name ? a_.frame(f.parent).parent : f.parent;
    }
    return goes_on() ? std::optional(out_) : std::nullopt;
  }

 private:
  const Shape& shape(int32_t i) const { return shapes_.shapes[static_cast<size_t>(i)]; }
  const Dfa& dfa(int32_t i) const { return shapes_.dfas[static_cast<size_t>(i)]; }
  std::string shortest(int32_t dfa_index, int32_t state) const {
    return shortest_from(dfa(dfa_index), shapes_.distances[static_cast<size_t>(dfa_index)], state);
  }
  bool goes_on() const { return !failed_ && std::ssize(out_) <= most_; }
  /// Whether so many bytes still have room.
  bool has_room(int64_t bytes) { return !(failed_ |= bytes > most_ - std::ssize(out_)); }

  void finish(const Frame& f) {
    switch (f.kind) {
      case Frame::Kind::value: return value(f.of);
      case Frame::Kind::colon: out_ += ':'; return value(f.of);
      case Frame::Kind::word: out_ += shape(f.of).word.substr(static_cast<size_t>(f.state)); return;
      case Frame::Kind::number: out_ += shortest(f.of, f.state); return;
      case Frame::Kind::string: return string(shape(f.of), f.state, f.count, f.reader);
      case Frame::Kind::array: return array(shape(f.of), f.count, !f.is_first);
      case Frame::Kind::object: return object(shape(f.of), a_.seen_of(f), !f.is_first && !f.wants_name, f.wants_name);
      case Frame::Kind::name: return name(f);
    }
  }

  void string(const Shape& s, int32_t state, int64_t count, StringReader reader) {
    const Dfa& d = dfa(s.dfa);
    if (reader.stage != StringReader::Stage::plain) {
      const std::vector<int64_t>& distance = shapes_.distances[static_cast<size_t>(s.dfa)];
      std::optional<std::pair<int64_t, unsigned char>> best;
      for (unsigned char c : reader.possible())
        if (const int64_t rest = distance[static_cast<size_t>(d.step(state, c))]; rest >= 0) {
          const std::pair way(std::ssize(end_of_escape(reader.stage, c)) + rest, c);
          best = best ? std::min(*best, way) : way;
        }
      if (!best) return give_up();
      out_ += end_of_escape(reader.stage, best->second);
      state = d.step(state, best->second);
      ++count;
    }
    auto write = [&](std::string_view piece) {
      out_ += escaped(piece);
      for (char c : piece) {
        state = d.step(state, static_cast<unsigned char>(c));
        count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      }
    };
    if (tokens_)
      for (std::string_view piece; !(piece = tokens_->on_shortest_way(shapes_, s.dfa, state)).empty();) write(piece);
    write(shortest(s.dfa, state));
    if (!has_room(s.least - count)) return;  // only texts without a pattern count so
    while (count < s.least) {
      const std::string_view word = tokens_ ? tokens_->word(s.least - count) : "";
      write(word.empty() ? "a" : word);
    }
    out_ += '"';
  }

  void array(const Shape& s, int64_t count, bool comma) {
    for (; count < s.least && goes_on(); ++count, comma = true) {
      if (comma) out_ += ',';
      value(count < std::ssize(s.prefix) ? s.prefix[static_cast<size_t>(count)] : s.rest);
    }
    out_ += ']';
  }

  void object(const Shape& s, const Automaton::Seen& seen, bool comma, bool wants_name = false) {
    constexpr int64_t kLeastMember = 5;
    auto add = [&](const std::string& name, ValueId v) {
      if (comma) out_ += ',';
      out_ += '"' + escaped(name) + "\":";
      if (goes_on()) value(v);
      comma = true, wants_name = false;
    };
    int64_t count = seen.count;
    for (size_t i = 0; i < s.names.size() && goes_on(); ++i)
      if (s.names[i].required && !seen.names[i]) add(s.names[i].name, s.names[i].value), ++count;
    const int64_t owed = std::max<int64_t>(s.least - count, wants_name);
    if (owed > 0 && has_room(owed * kLeastMember)) {
      const std::vector<Member> members = shortest_members(shapes_, s, seen, owed);
      if (std::ssize(members) < owed) return give_up();
      for (const Member& m : members)
        if (goes_on()) add(m.name, m.value);
    }
    out_ += '}';
  }

  /// The rest of a name, its value, and the rest of the object.
  void name(const Frame& f) {
    const Shape& s = shape(f.of);
    const Automaton::Seen& seen = a_.seen_of(a_.frame(f.parent));
    const std::string text = a_.text_of(f);
    std::optional<Member> best;
    int64_t least = INT64_MAX;
    std::string rest;
    auto look = [&](const std::string& begun, const std::string& escape) {
      const auto member = member_that_begins(s, seen, begun);
      if (!member) return;
      const std::string to_end = escape + escaped(std::string_view(member->name).substr(begun.size()));
      const int64_t bytes = std::ssize(to_end) + member->bytes - std::ssize(escaped(std::string_view(member->name)));
      if (bytes < least) least = bytes, best = member, rest = to_end;
    };
    if (f.reader.stage == StringReader::Stage::plain)
      look(text, "");
    else
      for (unsigned char c : f.reader.possible()) look(text + static_cast<char>(c), end_of_escape(f.reader.stage, c));
    if (!best) return give_up();
    Automaton::Seen after = seen;
    ++after.count;
    const auto own = std::ranges::lower_bound(s.names, best->name, {}, &Shape::Name::name);
    if (own != s.names.end() && own->name == best->name)
      after.names[static_cast<size_t>(own - s.names.begin())] = true;
    else
      after.others.insert(std::ranges::lower_bound(after.others, best->name), best->name);
    out_ += rest + "\":";
    value(best->value);
    if (goes_on()) object(s, after, true);
  }
  /// One of those that add the fewest bytes. A required member is owed anyway.
  std::optional<Member> member_that_begins(const Shape& s, const Automaton::Seen& seen,
                                           const std::string& begun) const {
    for (size_t i = 0; i < s.names.size(); ++i)
      if (s.names[i].required && !seen.names[i] && s.names[i].name.starts_with(begun))
        return Member{.name = s.names[i].name, .value = s.names[i].value};
    if (!a_.has_room(s, seen, false)) return {};
    const std::vector<Member> members = shortest_members(shapes_, s, seen, 1, begun);
    return members.empty() ? std::nullopt : std::optional(members[0]);
  }

  /// The shortest document of a value.
  void value(ValueId v) {
    constexpr int kMostNesting = 2000;
    if (!has_room(shapes_.least_bytes[static_cast<size_t>(v)])) return;
    if (++nesting_ > kMostNesting) return give_up();
    const Shape& s = shape(shapes_.shortest[static_cast<size_t>(v)]);
    switch (s.kind) {
      case Shape::Kind::word: out_ += s.word; break;
      case Shape::Kind::number: out_ += shortest(s.dfa, dfa(s.dfa).start); break;
      case Shape::Kind::string:
        out_ += '"';
        string(s, dfa(s.dfa).start, 0, {});
        break;
      case Shape::Kind::array:
        out_ += '[';
        array(s, 0, false);
        break;
      case Shape::Kind::object: {
        Automaton::Seen none;
        none.names.resize(s.names.size());
        out_ += '{';
        object(s, none, false);
        break;
      }
    }
    --nesting_;
  }
  void give_up() { failed_ = true; }

  const Automaton& a_;
  const Shapes& shapes_;
  int64_t most_;
  LongTokens* tokens_;
  std::string out_;
  bool failed_ = false;
  int nesting_ = 0;
};

}  // namespace

std::optional<std::string> completion_of(const Automaton& place, int64_t most, LongTokens* tokens) {
  std::optional<std::string> best;
  for (int32_t top : place.tops())
    if (auto one = Completer(place, best ? std::ssize(*best) - 1 : most, tokens).all(top)) best = std::move(one);
  return best;
}

}  // namespace sator::json_schema
