#include "fuzz/schedule/nest.h"

#include <algorithm>

namespace sator::fuzz {

void Nest::add_axis(size_t k) {
  const Axis& axis = axes[k];
  const std::string name = loop_name(k, "");
  if (!axis.extent.empty()) {  // ragged: the loops before it are named by their plain names
    loops_.push_back({name, axis.extent, false});
    values_.push_back(name);
    return;
  }
  if (axis.begin > 0) {
    loops_.push_back({name, sator::text(axis.begin, ", ", axis.size.text), false});
    values_.push_back(name);
    return;
  }
  const bool is_named =
      std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return a.extent.find(name) != std::string::npos; });
  switch (is_named ? 0 : draw_.below(8)) {
    case 6: {  // for i in range(3, n + 3): v = i - 3
      const int64_t low = draw_.from(1, 4);
      loops_.push_back({name, sator::text(low, ", ", axis.size.plus(low).text), false});
      values_.push_back(sator::text(name, " - ", low));
      break;
    }
    case 7: {  // for o, i in T.grid((n + 3) // 4, 4): v = o * 4 + i, where that is below n
      const int64_t tile = draw_.from(2, 4);
      std::string outer = loop_name(k, "o"), inner = loop_name(k, "i");
      loops_.push_back({outer,
                        axis.size.value ? sator::text((*axis.size.value + tile - 1) / tile)
                                        : sator::text("(", axis.size.text, " + ", tile - 1, ") // ", tile),
                        true});
      loops_.push_back({inner, sator::text(tile), true});
      values_.push_back(sator::text(outer, " * ", tile, " + ", inner));
      conditions_.push_back(sator::text(values_.back(), " < ", axis.size.text));
      break;
    }
    default: loops_.push_back({name, axis.size.text, true}); values_.push_back(name);
  }
}

std::string Nest::text() {
  for (size_t k = 0; k < axes.size(); ++k) add_axis(k);
  std::string out, indent = "    ";
  auto line = [&](const std::string& s) { out += indent + s + "\n"; };
  if (std::all_of(loops_.begin(), loops_.end(), [](const Loop& l) { return l.is_plain; })) {
    std::vector<std::string> names, ranges;
    for (const Loop& l : loops_) names.push_back(l.name), ranges.push_back(l.range);
    line("for " + join(names, ", ") + " in T.grid(" + join(ranges, ", ") + "):");
    indent += "    ";
  } else {
    for (const Loop& l : loops_) {
      line("for " + l.name + " in range(" + l.range + "):");
      indent += "    ";
    }
  }
  line("with T.block(\"" + name + "\"):");
  indent += "    ";
  for (size_t k = 0; k < axes.size(); ++k) {
    const Axis& a = axes[k];
    std::string domain = a.begin ? sator::text("(", a.begin, ", ", a.size.text, ")") : a.size.text;
    line(sator::text("v", k, " = T.axis.", a.kind == 'S' ? "spatial" : "reduce", "(", domain, ", ", values_[k], ")"));
  }
  if (!conditions_.empty()) line("T.where(" + join(conditions_, " and ") + ")");
  if (!init.empty()) {
    line("with T.init():");
    for (const std::string& s : init) line("    " + s);
  }
  for (const std::string& s : body) line(s);
  return out;
}

}  // namespace sator::fuzz
