#include "study/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "study/compare.h"
#include "study/fields.h"

namespace sator::study {

namespace {

/// Writes described fields as members of an object.
struct Writer {
  static constexpr bool writes = true, is_csv = false;
  Json& json;

  static Json of(double v) {
    if (std::isfinite(v)) return v;
    return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
  }
  static Json of(int64_t v) { return v; }
  static Json of(bool v) { return v; }
  static Json of(const std::string& v) { return v; }
  template <class T>
  static Json of(const std::optional<T>& v) {
    return v ? of(*v) : Json(nullptr);
  }
  template <class T>
  static Json of(const std::vector<T>& v) {
    Json all = Json::array();
    for (const T& each : v) all.push_back(of(each));
    return all;
  }
  template <class T>
  void operator()(Key key, const T& v) {
    if (!key.json.empty()) json[key.json] = of(v);
  }
  template <class T>
  void later(Key key, const T& v) {
    (*this)(key, v);
  }
  template <class T>
  void derived(Key key, const T& v) {
    (*this)(key, v);
  }
  template <class T>
  void maybe(Key key, T v, bool known) {
    (*this)(key, known ? std::optional(v) : std::nullopt);
  }
  void bytes(Key key, int64_t bits, bool = true) {
    if (bits % 8 == 0)
      (*this)(key, bits / 8);
    else
      (*this)(key, static_cast<double>(bits) / 8);
  }
  template <class T>
  void list(Key key, std::vector<T>& items) {
    if (key.json.empty()) return;
    Json& all = json[key.json] = Json::array();
    for (T& item : items) {
      Writer inner{all.emplace_back(Json::object())};
      describe(inner, item);
    }
  }
  template <class T>
  void later_list(Key key, std::vector<T>& items) {
    list(key, items);
  }
  template <class T, class... More>
  void part(Key key, T& item, More... more) {
    Writer inner{json[key.json] = Json::object()};
    describe(inner, item, more...);
  }
  template <class T, class... More>
  void prefixed(Key key, T& item, More... more) {
    part(key, item, more...);
  }
  template <class T>
  void later_part(Key key, T& item) {
    part(key, item);
  }
  template <class T>
  void optional_part(Key key, std::optional<T>& item) {
    if (item) part(key, *item);
  }
  /// And by name what is asked for most: bytes moved, and bandwidth in bytes/s.
  void levels(Key key, std::vector<LevelCost>& all) {
    list(key, all);
    Json& bytes = json["bytes"] = Json::object();
    Json& bandwidth = json["bandwidth"] = Json::object();
    for (const LevelCost& l : all) {
      Writer(bytes).bytes(std::string_view(l.name), l.bits());
      bandwidth[l.name] = {{"required", of(l.required_bytes_per_s)},
                           {"achieved", of(l.achieved_bytes_per_s)},
                           {"available", of(l.available_bytes_per_s)}};
    }
  }
};

struct Reader {
  static constexpr bool writes = false, is_csv = false;
  JsonAt json;

  static void take(const JsonAt& at, double& v) {
    if (!at.is_string())
      v = at.number();
    else if (at.string() == "inf" || at.string() == "-inf")
      v = (at.string() == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
    else if (at.string() == "nan")
      v = std::numeric_limits<double>::quiet_NaN();
    else
      at.fail("is no number", "a number, or \"inf\", \"-inf\", \"nan\"");
  }
  static void take(const JsonAt& at, int64_t& v) { v = at.integer(); }
  static void take(const JsonAt& at, bool& v) { v = at.boolean(); }
  static void take(const JsonAt& at, std::string& v) { v = at.string(); }
  template <class T>
  static void take(const JsonAt& at, std::vector<T>& v) {
    v.clear();
    at.each([&](const JsonAt& e) { take(e, v.emplace_back()); });
  }
  template <class T>
  void operator()(Key key, T& v) {
    if (!key.json.empty()) take(json.at(key.json), v);
  }
  template <class T>
  void operator()(Key key, std::optional<T>& v) {
    v.reset();
    if (auto at = json.find(key.json)) take(*at, v.emplace());
  }
  template <class T>
  void later(Key key, T& v) {
    if (json.find(key.json)) (*this)(key, v);
  }
  template <class T>
  void derived(Key, const T&) {}
  template <class T>
  void maybe(Key key, T& v, bool) {
    v = 0;
    if (!json.json().contains(key.json) || json.find(key.json))
      (*this)(key, v);  // a member that is missing is an error
  }
  void bytes(Key key, int64_t& bits, bool = true) {
    if (key.json.empty()) return;
    const JsonAt at = json.at(key.json);
    const double value = at.number() * 8;
    if (!(value >= 0 && value < 9e18)) at.fail("is out of range", "bytes, from 0 to 2^60");
    bits = at.is_integer() ? at.integer() * 8 : static_cast<int64_t>(value);
  }
  template <class T>
  void list(Key key, std::vector<T>& items) {
    if (key.json.empty()) return;
    items.clear();
    json.at(key.json).each([&](const JsonAt& e) {
      Reader inner{e};
      describe(inner, items.emplace_back());
    });
  }
  template <class T>
  void later_list(Key key, std::vector<T>& items) {
    if (json.find(key.json)) list(key, items);
  }
  template <class T, class... More>
  void part(Key key, T& item, More... more) {
    Reader inner{json.at(key.json)};
    describe(inner, item, more...);
  }
  template <class T, class... More>
  void prefixed(Key key, T& item, More... more) {
    part(key, item, more...);
  }
  template <class T>
  void later_part(Key key, T& item) {
    if (json.find(key.json)) part(key, item);
  }
  template <class T>
  void optional_part(Key key, std::optional<T>& item) {
    if (json.find(key.json)) part(key, item.emplace());
  }
  void levels(Key key, std::vector<LevelCost>& all) { list(key, all); }
};

/// Rows of kernels; one that differs from an earlier row in the layer alone is written as {"as": its index, "layer"}.
Json kernels_json(const std::vector<KernelRow>& rows) {
  Json all = Json::array();
  std::multimap<std::string_view, size_t> written;  // by function
  for (size_t r = 0; r < rows.size(); ++r) {
    KernelRow row = rows[r];
    Json& json = all.emplace_back(Json::object());
    const auto [first, last] = written.equal_range(rows[r].function);
    const auto twin = std::find_if(first, last, [&](const auto& w) {
      row.layer = rows[w.second].layer;
      return row == rows[w.second];
    });
    row.layer = rows[r].layer;
    if (twin != last) {
      json = {{"as", twin->second}, {"layer", row.layer}};
      continue;
    }
    written.emplace(rows[r].function, r);
    Writer w{json};
    describe(w, row);
  }
  return all;
}

std::vector<KernelRow> kernels_of_json(const JsonAt& list) {
  std::vector<KernelRow> rows;
  list.each([&](const JsonAt& at) {
    Reader r{at};
    KernelRow row;
    if (const auto as = at.find("as")) {
      const int64_t twin = as->integer();
      if (twin < 0 || twin >= std::ssize(rows)) as->fail(text("is ", twin), "the index of an earlier kernel");
      row = rows[static_cast<size_t>(twin)];
      r("layer", row.layer);
    } else {
      describe(r, row);
    }
    rows.push_back(std::move(row));
  });
  return rows;
}

/// A phase, and its kernels where they are asked for or there.
void write_phase(Writer& row, const PhaseName& phase, PhaseResult& x, Kernels kernels) {
  row.part(phase.name, x);
  if (kernels == Kernels::included) row.json[phase.name]["kernels"] = kernels_json(x.rows);
}
void read_phase(Reader& row, const PhaseName& phase, PhaseResult& x) {
  row.part(phase.name, x);
  if (const auto kernels = row.json.at(phase.name).find("kernels")) x.rows = kernels_of_json(*kernels);
}

/// Steps of routes lie flat, each with what it is of.
void write_routes(Json& out, std::vector<RoutesOnChip>& all) {
  for (RoutesOnChip& on : all)
    for (RouteCosts& by : on.routes)
      for (const RouteStepName& named : kRouteSteps) {
        Writer w{out.emplace_back(Json::object())};
        w("chip", on.chip);
        w("scheme", on.scheme);
        describe(w, on.lengths);
        w("step", std::string(named.name));
        w("route", std::string(name_of(by.route)));
        describe(w, by.*named.step);
        w("notes", on.notes);
      }
}

void read_routes(const JsonAt& list, std::vector<RoutesOnChip>& all) {
  list.each([&](const JsonAt& at) {
    Reader r{at};
    RoutesOnChip on;
    std::string step, route;
    r("chip", on.chip);
    r("scheme", on.scheme);
    describe(r, on.lengths);
    r("step", step);
    r("route", route);
    r("notes", on.notes);
    const auto which = std::ranges::find(kAllRoutes, route, &name_of);
    const auto named = std::ranges::find(kRouteSteps, step, &RouteStepName::name);
    if (which == std::end(kAllRoutes)) at.at("route").fail(text("is ", string_literal(route)), "a route");
    if (named == std::end(kRouteSteps)) at.at("step").fail(text("is ", string_literal(step)), "prefill or decode");
    if (all.empty() || all.back().chip != on.chip || all.back().scheme != on.scheme) all.push_back(std::move(on));
    std::vector<RouteCosts>& routes = all.back().routes;
    if (routes.empty() || routes.back().route != *which)
      routes.push_back({.route = *which, .scheme = all.back().scheme, .prefill = {}, .decode = {}});
    describe(r, routes.back().*named->step);
  });
}

}  // namespace

Json phase_json(PhaseResult phase) {
  Json out = Json::object();
  Writer w{out};
  describe(w, phase);
  w.list("kernels", phase.rows);
  return out;
}

Json routes_json(std::vector<RoutesOnChip> all) {
  Json out = Json::array();
  write_routes(out, all);
  return out;
}

Json to_json(const Study& given, Kernels kernels) {
  Study study = given;  // the descriptions take fields to read and to write
  Json json = Json::object();
  Writer w{json};
  w("schema_version", kSchemaVersion);
  w("model", study.model.name);
  w.part("model_facts", study.model);
  w.part("protocol", study.protocol);
  w.list("chips", study.chips);
  for (size_t c = 0; c < study.chips.size() && !study.schemes.empty(); ++c)
    json["chips"][c]["ratio_baseline"] = study.schemes[baseline_of(study, c)].name;
  w.list("schemes", study.schemes);
  for (size_t s = 0; s < study.schemes.size(); ++s)
    Writer{json["schemes"][s]}("window_nats", study.schemes[s].window_nats);
  if (kernels == Kernels::included)
    for (size_t s = 0; s < study.schemes.size(); ++s)
      Writer{json["schemes"][s]}.list("host_calls", study.schemes[s].host_calls);
  Json& rows = json["rows"] = Json::array();
  for (SchemeResult& scheme : study.schemes)
    for (ChipResult& chip : scheme.chips) {
      Writer row{rows.emplace_back(Json::object())};
      describe(row, scheme);
      row("chip", chip.chip);
      row.optional_part("memory_need", chip.need);
      for (const PhaseName& phase : kPhases) write_phase(row, phase, chip.*phase.result, kernels);
    }
  Json& sweep = json["sweep"] = Json::array();
  for (SchemeResult& scheme : study.schemes)
    for (ChipResult& chip : scheme.chips)
      for (SweepPoint& point : chip.sweep) {
        Writer row{sweep.emplace_back(Json::object())};
        row("scheme", scheme.name);
        row("chip", chip.chip);
        describe(row, point);
      }
  if (!study.routes.empty()) write_routes(json["routes"] = Json::array(), study.routes);
  w.optional_part("routes_host", study.routes_host);
  return json;
}

Study from_json(const Json& json, std::string_view source, Extent extent) {
  const JsonAt root(json, source);
  if (const JsonAt version = root.at("schema_version"); version.integer() != kSchemaVersion)
    version.fail(text("is ", version.integer()), text("schema version ", kSchemaVersion));
  Study study;
  Reader r{root};
  r.part("model_facts", study.model);
  r.part("protocol", study.protocol);
  r.list("chips", study.chips);
  r.list("schemes", study.schemes);
  size_t next = 0;
  root.at("schemes").each([&](const JsonAt& at) {
    SchemeResult& scheme = study.schemes[next++];
    Reader{at}.later("window_nats", scheme.window_nats);
    Reader{at}.later_list("host_calls", scheme.host_calls);
  });
  root.at("rows").each([&](const JsonAt& at) {
    Reader row{at};
    std::string name;
    row("scheme", name);
    for (SchemeResult& scheme : study.schemes) {
      if (scheme.name != name) continue;
      const size_t next = scheme.chips.size();
      ChipResult& chip = scheme.chips.emplace_back();
      row("chip", chip.chip);
      if (extent == Extent::whole && (next >= study.chips.size() || study.chips[next].name != chip.chip))
        at.at("chip").fail(text("is ", string_literal(chip.chip), " in row ", next + 1, " of scheme ", name),
                           "one row for each scheme and chip, a scheme's chips in the order of `chips`",
                           "run the study again");
      row.optional_part("memory_need", chip.need);
      for (const PhaseName& phase : kPhases) read_phase(row, phase, chip.*phase.result);
      return;
    }
    at.at("scheme").fail(text("is ", string_literal(name), ", which `schemes` does not list"), "a scheme of the study");
  });
  for (const SchemeResult& scheme : study.schemes)
    if (extent == Extent::whole && scheme.chips.size() != study.chips.size())
      root.at("rows").fail(text("has ", scheme.chips.size(), " rows of scheme ", scheme.name),
                           text("one for each of the ", study.chips.size(), " chips"),
                           "run the study again");
  root.at("sweep").each([&](const JsonAt& at) {
    Reader row{at};
    std::string name, chip_name;
    row("scheme", name);
    row("chip", chip_name);
    for (SchemeResult& scheme : study.schemes)
      for (ChipResult& chip : scheme.chips)
        if (scheme.name == name && chip.chip == chip_name) return describe(row, chip.sweep.emplace_back());
    at.at("chip").fail(text("is ", string_literal(chip_name), ", which `rows` does not list for ", name),
                       "a scheme and a chip of the study");
  });
  if (const auto routes = root.find("routes")) read_routes(*routes, study.routes);
  r.optional_part("routes_host", study.routes_host);
  return study;
}

}  // namespace sator::study
