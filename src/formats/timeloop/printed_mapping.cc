#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "formats/timeloop/mapping_checks.h"
#include "formats/timeloop/yaml.h"

namespace sator::formats::timeloop {

namespace {

/// One line of the file, read from left to right.
class Line {
 public:
  Line(std::string_view content, int64_t number, const std::string& file)
      : content_(content), number_(number), file_(file) {}

  bool at_end() { return skip(), at_ == content_.size(); }
  bool take(std::string_view word) {
    skip();
    if (content_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word))
      fail_here(text("here stands no ", word), text("`", word, "`"), "give the file as Timeloop wrote it");
  }
  std::string_view word(std::string_view what) {
    skip();
    size_t start = at_;
    while (at_ < content_.size() && std::string_view(" \t[]():,").find(content_[at_]) == std::string_view::npos) ++at_;
    if (at_ == start) fail_here(text("here stands no ", what), text(what), "give the file as Timeloop wrote it");
    return content_.substr(start, at_ - start);
  }
  int64_t number() {
    std::string_view w = word("number");
    auto value = whole_number(w);
    if (!value || *value < 1) fail_here(text(w, " is no bound"), "a whole number >= 1 below 2^63", "correct the bound");
    return *value;
  }
  [[noreturn]] void fail_here(std::string what, std::string needs, std::string hint) const {
    fail({.what = std::move(what),
          .needs = std::move(needs),
          .hint = std::move(hint),
          .where = text(file_, " line ", number_, ", column ", at_ + 1)});
  }

 private:
  std::string_view content_;
  int64_t number_;
  const std::string& file_;
  size_t at_ = 0;

  void skip() {
    while (at_ < content_.size() && (content_[at_] == ' ' || content_[at_] == '\t' || content_[at_] == '\r')) ++at_;
  }
};

/// Name [ Weights:864 (864) Inputs:3 (3) ]
size_t read_header(Line& line, std::string_view name, const Workload& w, const Architecture& a, Mapping& mapping) {
  std::vector<std::string> levels = level_names(a), spaces = space_names(w);
  auto level = std::find(levels.begin(), levels.end(), name);
  if (level == levels.end())
    line.fail_here(text("there is no level ", string_literal(name)),
                   text("one of: ", join(levels, ", ")),
                   "name a level of the architecture");
  SpaceSet& keep = mapping.levels[level - levels.begin()].keep;
  keep = 0;
  while (!line.take("]")) {
    std::string_view space = line.word("data space");
    auto s = std::find(spaces.begin(), spaces.end(), space);
    if (s == spaces.end())
      line.fail_here(text("there is no data space ", string_literal(space)),
                     text("one of: ", join(spaces, ", ")),
                     "name a data space of the problem");
    keep |= SpaceSet{1} << (s - spaces.begin());
    line.expect(":");
    line.number();
    if (line.take("(")) {
      line.word("size");
      line.expect(")");
    }
  }
  return level - levels.begin();
}

/// for P in [0:14) (Spatial-X)
void read_loop(Line& line, const Workload& w, LevelMapping& level) {
  std::string_view name = line.word("dimension");
  auto d = std::find(w.dimensions.begin(), w.dimensions.end(), name);
  if (d == w.dimensions.end())
    line.fail_here(text("there is no dimension ", string_literal(name)),
                   text("one of: ", join(w.dimensions, ", ")),
                   "name a dimension of the problem");
  line.expect("in");
  line.expect("[");
  if (line.word("0") != "0") line.fail_here("a loop does not start at 0", "loops from 0", "start it at 0");
  line.expect(":");
  Loop loop{.dimension = static_cast<int>(d - w.dimensions.begin()), .bound = line.number()};
  if (line.take(",") && line.number() != loop.bound)
    line.fail_here(
        "the last tile of this loop is smaller", "factors that divide the extent", "pad the dimension to a multiple");
  line.expect(")");
  if (line.take("(")) {
    std::string_view axis = line.word("Spatial-X or Spatial-Y");
    if (axis != "Spatial-X" && axis != "Spatial-Y")
      line.fail_here(text(axis, " is no axis"), "Spatial-X or Spatial-Y", "correct the axis");
    loop.on_y = axis == "Spatial-Y";
    line.expect(")");
    if (loop.bound > 1) level.spatial.push_back(loop);
  } else {
    if (!level.spatial.empty())
      line.fail_here("a temporal loop stands inside of a spatial one of the same level",
                     "temporal loops around spatial ones",
                     "move the spatial loops inwards");
    if (loop.bound > 1) level.temporal.push_back(loop);
  }
  if (level.spatial.size() + level.temporal.size() > kMaxDimensions * 2)
    line.fail_here("the level has too many loops", "one loop per dimension, temporal and spatial", "merge loops");
}

void check_nest(Line& line, const std::vector<Loop>& loops, const Workload& w) {
  for (size_t i = 0; i < loops.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (loops[i].dimension == loops[j].dimension)
        line.fail_here(text("two loops of one level run over ", w.dimensions[loops[i].dimension]),
                       "one loop per dimension, level and kind",
                       "merge the two");
    if (i > 0 && loops[i - 1].on_y && !loops[i].on_y)
      line.fail_here("a spatial loop along X stands around one along Y", "loops along X innermost", "exchange the two");
  }
}

}  // namespace

bool is_printed_mapping(std::string_view content) { return content.find("<< Compute >>") != std::string_view::npos; }

Mapping parse_printed_mapping(std::string_view content, const Workload& w, const Architecture& a,
                              const std::string& file) {
  Mapping mapping;
  mapping.levels.resize(a.levels.size());
  size_t next = a.levels.size();  // levels come from the outermost inwards, each once
  bool done = false;
  int64_t number = 0;
  for (std::string_view row : split(content, '\n')) {
    Line line(row, ++number, file);
    if (line.at_end() || trim(row).find_first_not_of('-') == std::string_view::npos) continue;
    if (done) line.fail_here("there is text after << Compute >>", "the end of the file", "remove the line");
    bool nested = false;
    while (line.take("|")) nested = true;
    if (line.take("<< Compute >>")) {
      done = true;
    } else if (nested) {
      if (next == a.levels.size())
        line.fail_here("a loop stands before the first level", "the header of a level", "add it");
      line.expect("for");
      read_loop(line, w, mapping.levels[next]);
    } else {
      std::string_view name = line.word("level");
      line.expect("[");
      size_t level = read_header(line, name, w, a, mapping);
      if (level + 1 != next)
        line.fail_here(text("the level ", name, " stands here"),
                       next == 0 ? text("no further level") : text("the level ", a.levels[next - 1].name),
                       "write all levels, the outermost first");
      next = level;
    }
    if (!line.at_end()) line.fail_here("there is more on the line", "the end of the line", "remove the rest");
  }
  Line end("", number, file);
  if (next != 0) end.fail_here("the file ends before the innermost level", "all levels", "add the others");
  for (LevelMapping& level : mapping.levels) {
    std::reverse(level.temporal.begin(), level.temporal.end());
    std::reverse(level.spatial.begin(), level.spatial.end());
    check_nest(end, level.temporal, w);
    check_nest(end, level.spatial, w);
  }
  check_mapping(mapping, w, a, [&](std::string what, std::string needs, std::string hint) {
    end.fail_here(std::move(what), std::move(needs), std::move(hint));
  });
  return mapping;
}

}  // namespace sator::formats::timeloop
