#include "engine/json_schema/shortest.h"

#include <algorithm>
#include <queue>

namespace sator::json_schema {

namespace {

constexpr int64_t kQuotesColonComma = 4;

int64_t written_bytes_of(std::string_view text) {
  int64_t bytes = 0;
  for (char c : text) bytes += written_bytes(static_cast<unsigned char>(c));
  return bytes;
}

/// Walks the automaton of an object's other names, always on from where the shortest member comes from.
class OtherMembers {
 public:
  OtherMembers(const Shapes& shapes, const Shape& object, const GivenNames& given)
      : shapes_(shapes),
        object_(object),
        given_(given),
        dfa_(shapes.dfas[static_cast<size_t>(object.dfa)]),
        distance_(shapes.distances[static_cast<size_t>(object.dfa)]) {}

  void add(const std::string& begun, int64_t count, std::vector<Member>& out) {
    int32_t state = dfa_.start;
    for (char c : begun) state = dfa_.step(state, static_cast<unsigned char>(c));
    if (distance_[static_cast<size_t>(state)] < 0) return;
    // So many texts at most are looked at: of the ways on from a place no more are needed.
    const int64_t texts = count + std::ssize(given_.others) + std::ssize(object_.names);
    open(-1, 0, state, written_bytes_of(begun));
    while (count > 0 && !queue_.empty()) {
      const auto [bytes, at] = queue_.top();
      queue_.pop();
      const Place place = places_[static_cast<size_t>(at)];
      if (!place.ends) {
        go_on(at, place, texts);
        continue;
      }
      std::string name = begun + text_of(at);
      if (is_taken(name)) continue;
      out.push_back(
          {std::move(name), object_.other_values[static_cast<size_t>(place.state)], bytes + kQuotesColonComma});
      --count;
    }
  }

 private:
  struct Place {
    int32_t before = -1, state = 0;
    int64_t bytes = 0;  // written so far
    unsigned char byte = 0;
    bool ends = false;
  };
  void open(int32_t before, unsigned char byte, int32_t state, int64_t bytes) {
    places_.push_back({.before = before, .state = state, .bytes = bytes, .byte = byte});
    queue_.emplace(bytes + distance_[static_cast<size_t>(state)], static_cast<int32_t>(places_.size()) - 1);
  }

  void go_on(int32_t at, const Place& place, int64_t texts) {
    struct Way {
      int64_t bytes;
      int order;
      int32_t state;
    };
    std::vector<Way> ways;
    for (int byte = 0; byte < 256; ++byte) {
      const int32_t to = dfa_.step(place.state, static_cast<unsigned char>(byte));
      if (const int64_t rest = distance_[static_cast<size_t>(to)]; rest >= 0)
        ways.push_back({written_bytes(static_cast<unsigned char>(byte)) + rest, (byte - 'a') & 255, to});
    }
    // Letters are nicer to read than other bytes that are as short. Of places with equal bytes the last one goes on first.
    std::ranges::sort(ways, {}, [](const Way& w) { return std::pair(w.bytes, w.order); });
    if (std::ssize(ways) > texts) ways.resize(static_cast<size_t>(texts));
    for (size_t i = ways.size(); i-- > 0;) {
      const auto byte = static_cast<unsigned char>(ways[i].order + 'a');
      open(at, byte, ways[i].state, place.bytes + written_bytes(byte));
    }
    if (!dfa_.accepting(place.state)) return;
    const ValueId value = object_.other_values[static_cast<size_t>(place.state)];
    const int64_t bytes = shapes_.least_bytes[static_cast<size_t>(value)];
    if (bytes == Shapes::kNoBytes) return;
    places_.push_back({.before = at, .state = place.state, .ends = true});
    queue_.emplace(place.bytes + bytes, static_cast<int32_t>(places_.size()) - 1);
  }

  std::string text_of(int32_t at) const {
    std::string out;
    for (at = places_[static_cast<size_t>(at)].before; places_[static_cast<size_t>(at)].before >= 0;
         at = places_[static_cast<size_t>(at)].before)
      out += static_cast<char>(places_[static_cast<size_t>(at)].byte);
    std::ranges::reverse(out);
    return out;
  }
  bool is_taken(const std::string& name) const {
    return std::ranges::binary_search(given_.others, name) ||
           std::ranges::binary_search(object_.names, name, {}, &Shape::Name::name);
  }

  const Shapes& shapes_;
  const Shape& object_;
  const GivenNames& given_;
  const Dfa& dfa_;
  const std::vector<int64_t>& distance_;  // bytes of the rest of a name and of its value
  std::vector<Place> places_;
  std::priority_queue<std::pair<int64_t, int32_t>, std::vector<std::pair<int64_t, int32_t>>,
                      decltype([](const auto& a, const auto& b) {
                        return a.first != b.first ? a.first > b.first : a.second < b.second;
                      })>
      queue_;
};

/// Where sums and products end that would overflow.
constexpr int64_t kMostBytes = Shapes::kNoBytes - 1;
int64_t sum(int64_t a, int64_t b) {
  return std::max(a, b) == Shapes::kNoBytes ? Shapes::kNoBytes : std::min(a + b, kMostBytes);
}
int64_t product(int64_t a, int64_t b) {
  if (a == Shapes::kNoBytes) return a;
  return a <= kMostBytes / b ? a * b : kMostBytes;
}

class ShortestFinder {
 public:
  explicit ShortestFinder(Shapes& shapes) : shapes_(shapes) {}

  void all() {
    shapes_.least_bytes.assign(shapes_.of_value.size(), Shapes::kNoBytes);
    shapes_.shortest.assign(shapes_.of_value.size(), -1);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t v = 0; v < shapes_.of_value.size(); ++v)
        for (int32_t s : shapes_.of_value[v])
          if (const int64_t bytes = least_of(shapes_.shapes[static_cast<size_t>(s)]); bytes < shapes_.least_bytes[v])
            shapes_.least_bytes[v] = bytes, shapes_.shortest[v] = s, changed = true;
    }
    for (const Shape& s : shapes_.shapes)
      if (s.kind == Shape::Kind::object) find_distances(s);
  }

 private:
  int64_t of(ValueId v) const { return v == kNoValue ? Shapes::kNoBytes : shapes_.least_bytes[static_cast<size_t>(v)]; }
  int64_t of_texts(int32_t dfa) const {
    const auto at = static_cast<size_t>(dfa);
    return shapes_.distances[at][static_cast<size_t>(shapes_.dfas[at].start)];
  }

  int64_t least_of(const Shape& s) {
    constexpr int64_t kQuotes = 2;
    switch (s.kind) {
      case Shape::Kind::word: return std::ssize(s.word);
      case Shape::Kind::number: return of_texts(s.dfa);
      case Shape::Kind::string: return kQuotes + std::max(of_texts(s.dfa), s.least);
      case Shape::Kind::array: return least_of_array(s);
      case Shape::Kind::object: return least_of_object(s);
    }
    return Shapes::kNoBytes;
  }

  int64_t least_of_array(const Shape& s) const {
    int64_t bytes = 2 + std::max<int64_t>(s.least - 1, 0);  // brackets and commas
    const int64_t first = std::min(s.least, std::ssize(s.prefix)), others = s.least - first;
    for (int64_t i = 0; i < first; ++i) bytes = sum(bytes, of(s.prefix[static_cast<size_t>(i)]));
    return others == 0 ? bytes : sum(bytes, product(of(s.rest), others));
  }

  int64_t least_of_object(const Shape& s) {
    int64_t bytes = 2, members = 0;
    for (const Shape::Name& n : s.names)
      if (n.required) bytes = sum(bytes, sum(kQuotesColonComma + written_bytes_of(n.name), of(n.value))), ++members;
    if (const int64_t owed = s.least - members; owed > 0 && bytes < Shapes::kNoBytes) {
      find_distances(s);
      const GivenNames none{.names = std::vector<bool>(s.names.size()), .others = {}};
      const std::vector<Member> more = shortest_members(shapes_, s, none, owed);
      if (std::ssize(more) < owed) return Shapes::kNoBytes;
      for (const Member& m : more) bytes = sum(bytes, m.bytes);
      members += owed;
    }
    return members > 0 && bytes < kMostBytes ? bytes - 1 : bytes;  // the first has no comma
  }

  void find_distances(const Shape& object) {
    const auto at = static_cast<size_t>(object.dfa);
    const Dfa& d = shapes_.dfas[at];
    std::vector<int64_t> ends(d.accepts.size(), -1);
    for (size_t q = 0; q < ends.size(); ++q)
      if (d.accepts[q] != 0)
        if (const int64_t bytes = of(object.other_values[q]); bytes < Shapes::kNoBytes) ends[q] = bytes;
    shapes_.distances[at] = distances(d, ends);
  }

  Shapes& shapes_;
};

}  // namespace

std::vector<Member> shortest_members(const Shapes& shapes, const Shape& object, const GivenNames& given, int64_t count,
                                     const std::string& begun) {
  std::vector<Member> out;
  for (size_t i = 0; i < object.names.size(); ++i) {
    const Shape::Name& n = object.names[i];
    if (n.required || given.names[i] || n.value == kNoValue || !n.name.starts_with(begun)) continue;
    const int64_t value = shapes.least_bytes[static_cast<size_t>(n.value)];
    if (value < Shapes::kNoBytes)
      out.push_back({n.name, n.value, sum(kQuotesColonComma + written_bytes_of(n.name), value)});
  }
  OtherMembers(shapes, object, given).add(begun, count, out);
  std::ranges::stable_sort(out, {}, &Member::bytes);
  if (std::ssize(out) > count) out.resize(static_cast<size_t>(count));
  return out;
}

void find_shortest(Shapes& shapes) { ShortestFinder(shapes).all(); }

}  // namespace sator::json_schema
