#include "engine/json_schema/automaton.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace sator::json_schema {

namespace {

using Kind = Automaton::Frame::Kind;

constexpr uint8_t kMostSpace = 2 + 32;
constexpr unsigned char kEscaped[] = {'"', '\\', '\b', '\f', '\n', '\r', '\t', 0,  1,  2,  3,  4,  5,
                                      6,   7,    8,    9,    10,   11,   12,   13, 14, 15, 16, 17, 18,
                                      19,  20,   21,   22,   23,   24,   25,   26, 27, 28, 29, 30, 31};

bool begins_character(unsigned char byte) { return (byte & 0xc0) != 0x80; }

int hex_value(unsigned char c) {
  return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

}  // namespace

StringReader::Read StringReader::take(unsigned char byte, unsigned char& out) {
  switch (stage) {
    case Stage::plain:
      if (byte == '"') return Read::closed;
      if (byte == '\\') {
        stage = Stage::escape;
        return Read::nothing;
      }
      out = byte;
      return byte < 0x20 ? Read::refused : Read::character_byte;
    case Stage::escape:
      if (byte == 'u') {
        stage = Stage::u;
        return Read::nothing;
      }
      stage = Stage::plain;
      switch (byte) {
        case '"':
        case '\\': out = byte; return Read::character_byte;
        case 'b': out = '\b'; return Read::character_byte;
        case 'f': out = '\f'; return Read::character_byte;
        case 'n': out = '\n'; return Read::character_byte;
        case 'r': out = '\r'; return Read::character_byte;
        case 't': out = '\t'; return Read::character_byte;
        default: return Read::refused;
      }
    case Stage::u: stage = Stage::u0; return byte == '0' ? Read::nothing : Read::refused;
    case Stage::u0: stage = Stage::u00; return byte == '0' ? Read::nothing : Read::refused;
    case Stage::u00:
      stage = byte == '0' ? Stage::u000 : Stage::u001;
      return byte == '0' || byte == '1' ? Read::nothing : Read::refused;
    case Stage::u000:
    case Stage::u001: {
      const int digit = hex_value(byte);
      if (digit < 0) return Read::refused;
      out = static_cast<unsigned char>(digit + (stage == Stage::u001 ? 16 : 0));
      stage = Stage::plain;
      return Read::character_byte;
    }
  }
  return Read::refused;
}

std::span<const unsigned char> StringReader::possible() const {
  const std::span<const unsigned char> all(kEscaped), control = all.subspan(7);
  switch (stage) {
    case Stage::plain: return {};
    case Stage::escape: return all;
    case Stage::u000: return control.first(16);
    case Stage::u001: return control.subspan(16);
    default: return control;
  }
}

Automaton::Automaton(std::shared_ptr<const Shapes> shapes) : shapes_(std::move(shapes)) {
  for (const std::vector<int64_t>& counts : shapes_->name_counts)
    all_free_.push_back(std::ranges::all_of(counts, [](int64_t n) { return n == 0 || n == kInfinite; }));
  restart();
}

void Automaton::restart() {
  frames_.clear(), texts_.clear(), seens_.clear();
  tops_ = {add({.of = shapes_->root})};
}

void Automaton::release(const Mark& m) {
  frames_.resize(m.frames);
  texts_.resize(m.texts);
  seens_.resize(m.seens);
}

int32_t Automaton::add(Frame f) {
  frames_.push_back(f);
  return static_cast<int32_t>(frames_.size()) - 1;
}

bool Automaton::take(std::string_view bytes) {
  const Mark before = mark();
  std::vector<int32_t> tops = tops_, next;
  for (char c : bytes) {
    next.clear();
    for (int32_t top : tops)
      if (top != kEnd) step(top, static_cast<unsigned char>(c), next);
    // Two ways that are one from here on.
    for (size_t i = 0; i < next.size(); ++i)
      for (size_t j = next.size() - 1; j > i; --j) {
        const bool same =
            next[i] == next[j] || (next[i] != kEnd && next[j] != kEnd && frame(next[i]) == frame(next[j]));
        if (same) next.erase(next.begin() + static_cast<ptrdiff_t>(j));
      }
    tops.swap(next);
    if (tops.empty()) {
      release(before);
      return false;
    }
  }
  keep_only(std::move(tops));
  return true;
}

/// Leaves of the frames only what the stacks still need; equal frames become one.
void Automaton::keep_only(std::vector<int32_t> tops) {
  std::vector<Frame> frames;
  std::vector<std::string> texts;
  std::vector<Seen> seens;
  std::map<int32_t, int32_t> moved;
  auto kept = [](auto& all, const auto& value) {
    const auto at = std::ranges::find(all, value);
    if (at != all.end()) return static_cast<int32_t>(at - all.begin());
    all.push_back(value);
    return static_cast<int32_t>(all.size()) - 1;
  };
  for (int32_t& top : tops) {
    std::vector<int32_t> chain;
    for (int32_t i = top; i != kEnd && !moved.contains(i); i = frame(i).parent) chain.push_back(i);
    for (size_t k = chain.size(); k-- > 0;) {
      Frame f = frame(chain[k]);
      if (f.parent != kEnd) f.parent = moved.at(f.parent);
      if (f.text >= 0) f.text = kept(texts, texts_[static_cast<size_t>(f.text)]);
      if (f.seen >= 0) f.seen = kept(seens, seens_[static_cast<size_t>(f.seen)]);
      moved[chain[k]] = kept(frames, f);
    }
    if (top != kEnd) top = moved.at(top);
  }
  std::ranges::sort(tops);
  tops.erase(std::unique(tops.begin(), tops.end()), tops.end());
  tops_ = std::move(tops);
  frames_ = std::move(frames), texts_ = std::move(texts), seens_ = std::move(seens);
}

bool Automaton::is_complete() const {
  return std::ranges::any_of(tops_, [&](int32_t top) {
    if (top == kEnd) return true;
    const Frame& f = frame(top);
    return f.kind == Kind::number && f.parent == kEnd && dfa(f.of).accepting(f.state);
  });
}

bool Automaton::can_go_on() const {
  return std::ranges::any_of(tops_, [](int32_t top) { return top != kEnd; });
}

std::string Automaton::key() const {
  std::string out;
  auto put = [&](int64_t v) { out.append(reinterpret_cast<const char*>(&v), sizeof v); };
  for (int32_t top : tops_) put(top);
  for (const Frame& f : frames_) {
    put(static_cast<int64_t>(f.kind) | f.space << 8 | f.is_first << 16 | f.wants_name << 17 |
        static_cast<int64_t>(f.reader.stage) << 24);
    put(f.of), put(f.state), put(f.count), put(f.text), put(f.seen), put(f.parent);
  }
  auto put_text = [&](const std::string& t) { put(std::ssize(t)), out += t; };
  for (const std::string& t : texts_) put_text(t);
  for (const Seen& s : seens_) {
    for (bool b : s.names) out += b ? '1' : '0';
    put(std::ssize(s.others));
    for (const std::string& t : s.others) put_text(t);
  }
  return out;
}

void Automaton::step(int32_t top, unsigned char byte, std::vector<int32_t>& out) {
  const Frame f = frame(top);
  switch (f.kind) {
    case Kind::value:
      if (!take_space(f, byte, out)) step_value(f, top, byte, out);
      return;
    case Kind::word: {
      const std::string& word = shape(f.of).word;
      if (static_cast<unsigned char>(word[static_cast<size_t>(f.state)]) != byte) return;
      Frame next = f;
      out.push_back(++next.state == std::ssize(word) ? f.parent : add(next));
      return;
    }
    case Kind::number: {
      Frame next = f;
      next.state = dfa(f.of).step(f.state, byte);
      ++next.count;
      if (next.state != Dfa::kDead) {
        if (number_has_room(next)) out.push_back(add(next));
      } else if (dfa(f.of).accepting(f.state) && f.parent != kEnd)
        step(f.parent, byte, out);
      return;
    }
    case Kind::string: return step_string(f, byte, out);
    case Kind::name: return step_name(f, byte, out);
    case Kind::colon:
      if (byte == ':') out.push_back(add({.kind = Kind::value, .of = f.of, .parent = f.parent}));
      return;
    case Kind::array: return step_array(f, byte, out);
    case Kind::object: return step_object(f, byte, out);
  }
}

/// Whether a number that goes on so can end within what a number may have.
bool Automaton::number_has_room(const Frame& f) const {
  const std::vector<int64_t>& distance = shapes_->distances[static_cast<size_t>(f.of)];
  const int64_t shortest = distance[static_cast<size_t>(dfa(f.of).start)];
  return f.count + distance[static_cast<size_t>(f.state)] <= std::max(kMostNumberBytes, shortest);
}

/// Whitespace where it may stand. What follows it is told from the frame.
bool Automaton::take_space(Frame f, unsigned char byte, std::vector<int32_t>& out) {
  if (byte != ' ' && byte != '\n' && byte != '\t') return false;
  if (f.space == 0 && byte == ' ')
    f.space = 1;
  else if (f.space == 0 && byte == '\n')
    f.space = 2;
  else if (f.space >= 2 && f.space < kMostSpace && byte != '\n')
    ++f.space;
  else
    return true;
  out.push_back(add(f));
  return true;
}

void Automaton::step_value(const Frame& f, int32_t, unsigned char byte, std::vector<int32_t>& out) {
  for (int32_t index : shapes_->of_value[static_cast<size_t>(f.of)]) {
    const Shape& s = shape(index);
    switch (s.kind) {
      case Shape::Kind::word:
        if (static_cast<unsigned char>(s.word[0]) == byte)
          out.push_back(add({.kind = Kind::word, .of = index, .state = 1, .parent = f.parent}));
        break;
      case Shape::Kind::number:
        if (const int32_t to = dfa(s.dfa).step(dfa(s.dfa).start, byte); to != Dfa::kDead)
          out.push_back(add({.kind = Kind::number, .of = s.dfa, .state = to, .count = 1, .parent = f.parent}));
        break;
      case Shape::Kind::string:
        if (byte == '"')
          out.push_back(add({.kind = Kind::string, .of = index, .state = dfa(s.dfa).start, .parent = f.parent}));
        break;
      case Shape::Kind::array:
        if (byte == '[') out.push_back(add({.kind = Kind::array, .is_first = true, .of = index, .parent = f.parent}));
        break;
      case Shape::Kind::object:
        if (byte == '{') {
          seens_.emplace_back().names.resize(s.names.size());
          out.push_back(add({.kind = Kind::object,
                             .is_first = true,
                             .of = index,
                             .seen = static_cast<int32_t>(seens_.size()) - 1,
                             .parent = f.parent}));
        }
        break;
    }
  }
}

bool Automaton::text_leads_on(const Shape& s, int32_t state, int64_t count) const {
  return state != Dfa::kDead && (s.most < 0 || count <= s.most);
}

void Automaton::step_string(Frame f, unsigned char byte, std::vector<int32_t>& out) {
  const Shape& s = shape(f.of);
  const Dfa& d = dfa(s.dfa);
  unsigned char c = 0;
  switch (f.reader.take(byte, c)) {
    case StringReader::Read::refused: return;
    case StringReader::Read::closed:
      if (d.accepting(f.state) && f.count >= s.least) out.push_back(f.parent);
      return;
    case StringReader::Read::character_byte:
      f.state = d.step(f.state, c);
      f.count += begins_character(c);
      if (!text_leads_on(s, f.state, f.count)) return;
      if (s.most < 0) f.count = std::min(f.count, s.least);
      break;
    case StringReader::Read::nothing:
      if (std::ranges::none_of(f.reader.possible(),
                               [&](unsigned char e) { return text_leads_on(s, d.step(f.state, e), f.count + 1); }))
        return;
      break;
  }
  out.push_back(add(f));
}

void Automaton::step_name(Frame f, unsigned char byte, std::vector<int32_t>& out) {
  const Shape& s = shape(f.of);
  const Dfa& d = dfa(s.dfa);
  unsigned char c = 0;
  switch (f.reader.take(byte, c)) {
    case StringReader::Read::refused: return;
    case StringReader::Read::closed: {
      int32_t to = 0;
      const std::string name = text_of(f);
      if (close_name(f.parent, name, f.state, to)) out.push_back(to);
      return;
    }
    case StringReader::Read::character_byte: {
      std::string text = text_of(f) + static_cast<char>(c);
      f.state = d.step(f.state, c);
      if (!name_leads_on(s, seen_of(frame(f.parent)), text, f.state)) return;
      texts_.push_back(std::move(text));
      f.text = static_cast<int32_t>(texts_.size()) - 1;
      break;
    }
    case StringReader::Read::nothing: {
      const std::string& text = text_of(f);
      const Seen& seen = seen_of(frame(f.parent));
      if (std::ranges::none_of(f.reader.possible(), [&](unsigned char e) {
            return name_leads_on(s, seen, text + static_cast<char>(e), d.step(f.state, e));
          }))
        return;
      break;
    }
  }
  out.push_back(add(f));
}

bool Automaton::has_room(const Shape& s, const Seen& seen, bool required) const {
  if (s.most < 0) return true;
  const int64_t all_required = std::ranges::count_if(s.names, &Shape::Name::required);
  return seen.count + 1 + (required ? 0 : all_required - seen.required) <= s.most;
}

bool Automaton::close_name(int32_t object, const std::string& name, int32_t state, int32_t& to) {
  Frame f = frame(object);
  const Shape& s = shape(f.of);
  const auto own = std::ranges::lower_bound(s.names, name, {}, &Shape::Name::name);
  const Seen& before = seen_of(f);
  ValueId value = kNoValue;
  Seen seen;
  if (own != s.names.end() && own->name == name) {
    const auto at = static_cast<size_t>(own - s.names.begin());
    if (before.names[at] || own->value == kNoValue || !has_room(s, before, own->required)) return false;
    seen = before;
    seen.names[at] = true;
    seen.required += own->required;
    value = own->value;
  } else {
    value = s.other_values[static_cast<size_t>(state)];
    if (!dfa(s.dfa).accepting(state) || value == kNoValue || !has_room(s, before, false)) return false;
    const auto place = std::ranges::lower_bound(before.others, name);
    if (place != before.others.end() && *place == name) return false;
    seen = before;
    seen.others.insert(seen.others.begin() + (place - before.others.begin()), name);
  }
  ++seen.count;
  seens_.push_back(std::move(seen));
  f.seen = static_cast<int32_t>(seens_.size()) - 1;
  f.is_first = f.wants_name = false;
  f.space = 0;
  to = add({.kind = Kind::colon, .of = value, .parent = add(f)});
  return true;
}

bool Automaton::name_leads_on(const Shape& s, const Seen& seen, const std::string& text, int32_t state) const {
  // Names that the schema names and that begin so.
  for (auto own = std::ranges::lower_bound(s.names, text, {}, &Shape::Name::name);
       own != s.names.end() && own->name.starts_with(text);
       ++own)
    if (!seen.names[static_cast<size_t>(own - s.names.begin())] && own->value != kNoValue &&
        has_room(s, seen, own->required))
      return true;
  if (!leads_on(s.dfa, state) || !has_room(s, seen, false)) return false;
  if (is_free(s, state)) return true;
  // Of finitely many names one must be left.
  int64_t taken = 0;
  auto count_taken = [&](std::string_view name) {
    if (!name.starts_with(text)) return;
    int32_t end = state;
    for (char c : name.substr(text.size())) end = dfa(s.dfa).step(end, static_cast<unsigned char>(c));
    taken += dfa(s.dfa).accepting(end);
  };
  for (const std::string& name : seen.others) count_taken(name);
  for (const Shape::Name& n : s.names) count_taken(n.name);
  return shapes_->name_counts[static_cast<size_t>(s.dfa)][static_cast<size_t>(state)] > taken;
}

bool Automaton::may_close(const Shape& s, const Seen& seen) const {
  return seen.count >= s.least && seen.required == std::ranges::count_if(s.names, &Shape::Name::required);
}
bool Automaton::may_add_member(const Shape& s, const Seen& seen) const {
  return name_leads_on(s, seen, "", dfa(s.dfa).start);
}

void Automaton::step_object(Frame f, unsigned char byte, std::vector<int32_t>& out) {
  const Shape& s = shape(f.of);
  const Seen& seen = seen_of(f);
  const bool takes_name = f.is_first || f.wants_name, may_end = !f.wants_name && may_close(s, seen);
  if (byte == '}') {
    if (may_end) out.push_back(f.parent);
    return;
  }
  if (byte == ',') {
    if (takes_name || f.space != 0 || !may_add_member(s, seen)) return;
    f.wants_name = true;
    out.push_back(add(f));
    return;
  }
  const bool may_name = takes_name && may_add_member(s, seen);
  if (byte != '"') {
    if (may_name || may_end) take_space(f, byte, out);
    return;
  }
  if (!may_name) return;
  f.space = 0;
  texts_.emplace_back();
  const int32_t object = add(f);
  out.push_back(add({.kind = Kind::name,
                     .of = f.of,
                     .state = dfa(s.dfa).start,
                     .text = static_cast<int32_t>(texts_.size()) - 1,
                     .parent = object}));
}

void Automaton::open_item(Frame array, unsigned char byte, std::vector<int32_t>& out) {
  const Shape& s = shape(array.of);
  const ValueId value = array.count < std::ssize(s.prefix) ? s.prefix[static_cast<size_t>(array.count)] : s.rest;
  array.is_first = false;
  array.space = 0;
  // Beyond what is counted an item is as good as the next.
  const int64_t counted = std::max<int64_t>({std::ssize(s.prefix), s.least, s.most}) + 1;
  array.count = std::min(array.count + 1, counted);
  const Frame item{.kind = Kind::value, .of = value, .parent = add(array)};
  if (byte == ',')
    out.push_back(add(item));
  else
    step_value(item, -1, byte, out);
}

void Automaton::step_array(Frame f, unsigned char byte, std::vector<int32_t>& out) {
  const Shape& s = shape(f.of);
  const bool has_room = s.most < 0 || f.count < s.most, may_end = f.count >= s.least;
  if (byte == ']') {
    if (may_end) out.push_back(f.parent);
    return;
  }
  if (byte == ',') {
    if (!f.is_first && f.space == 0 && has_room) open_item(f, byte, out);
    return;
  }
  if (f.is_first ? may_end || has_room : may_end)
    if (take_space(f, byte, out)) return;
  if (f.is_first && has_room) open_item(f, byte, out);
}

}  // namespace sator::json_schema
