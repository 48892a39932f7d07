#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "base/error.h"
#include "base/figures.h"
#include "base/owned_folder.h"
#include "cli/commands.h"
#include "cli/matmul_options.h"
#include "cli/model_options.h"
#include "cli/progress.h"
#include "dataflow/cost/described_chip.h"
#include "dataflow/cost/scheduled.h"
#include "dataflow/programs/matmul_program.h"
#include "explore/explore.h"
#include "study/explore_model.h"
#include "study/front_page.h"
#include "tir/parse.h"

namespace sator::cli {

namespace {

struct ExploreArguments {
  std::optional<std::string> model, quant, study, workload, scheme, chip, pe, dataflow, bandwidth, cores, csv, folder;
  std::vector<std::string> buffers;
  std::optional<double> max_area, max_latency, max_energy, max_power, max_perplexity;
  bool shapes_only = false, replace = false;
  int64_t prompt_len = study::ModelSpaceOptions{}.prompt_len, gen_len = study::ModelSpaceOptions{}.gen_len;
  int64_t mappings = 1, budget = 256, seed = 1, threads = 2;
};

[[noreturn]] void refuse_list(const std::string& option, const std::string& given, const std::string& example) {
  fail({.what = text(option, " ", given),
        .needs = "values above 0 with commas between them",
        .hint = text("as in ", option, " ", example)});
}

/// A number with K, M, G (times 1024, or 1000 where `thousand` is).
double number_with_unit(const std::string& option, std::string_view word, double thousand, const std::string& example) {
  double factor = 1;
  static constexpr std::string_view kUnits = "KMGT";
  if (!word.empty())
    if (const size_t unit = kUnits.find(word.back()); unit != std::string_view::npos) {
      for (size_t u = 0; u <= unit; ++u) factor *= thousand;
      word.remove_suffix(1);
    }
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc() || end != word.data() + word.size() || !(value > 0) || value > 1e15)
    refuse_list(option, std::string(word), example);
  return value * factor;
}

/// Each word once: what is named twice is no other point.
std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (std::string_view word : split(list, ','))
    if (std::find(words.begin(), words.end(), trim(word)) == words.end()) words.emplace_back(trim(word));
  return words;
}

explore::ChipAxes axes_of(const ExploreArguments& a, const Chip& chip) {
  explore::ChipAxes axes;
  if (a.pe)
    for (const std::string& word : words_of(*a.pe)) {
      const std::vector<int64_t> size = integers_of("--pe", word, 'x', 2, 1);
      axes.arrays.push_back({size[0], size[1]});
    }
  if (a.dataflow)
    for (const std::string& word : words_of(*a.dataflow)) {
      const Stationary* stays = nullptr;
      static constexpr std::pair<std::string_view, Stationary> kWords[] = {
          {"os", Stationary::output}, {"ws", Stationary::weight}, {"is", Stationary::input}};
      for (const auto& [name, means] : kWords)
        if (word == name) stays = &means;
      if (!stays) refuse_list("--dataflow", *a.dataflow, "os,ws,is");
      axes.dataflows.push_back(*stays);
    }
  for (const std::string& given : a.buffers) {
    const size_t equals = given.find('=');
    if (equals == std::string::npos && chip.memories.size() < 2)
      fail({.what = text(chip.name, " has no memory on the chip"), .needs = "one", .hint = "leave --buffer out"});
    explore::ChipAxes::Buffer buffer{equals == std::string::npos ? chip.memories[1].name : given.substr(0, equals), {}};
    for (const std::string& word : words_of(equals == std::string::npos ? given : given.substr(equals + 1)))
      buffer.bytes.push_back(static_cast<int64_t>(number_with_unit("--buffer", word, 1024, "scratchpad=64K,256K")));
    axes.buffers.push_back(std::move(buffer));
  }
  if (a.bandwidth)
    for (const std::string& word : words_of(*a.bandwidth))
      axes.bandwidths.push_back(number_with_unit("--bandwidth", word, 1000, "8G,16G"));
  if (a.cores)
    for (const std::string& word : words_of(*a.cores)) axes.cores.push_back(integers_of("--cores", word, ',', 1, 1)[0]);
  return axes;
}

/// What is known of the points of a search.
struct Explored {
  std::vector<explore::ChipSpace::Dimension> dimensions;
  explore::SearchResult search;
  std::vector<explore::Design> front;  // in the order of search.front

  std::string value(const explore::Evaluated& e, size_t d) const { return dimensions[d].values[e.point[d]]; }
};

nlohmann::json point_json(const Explored& x, const explore::Evaluated& e) {
  nlohmann::json point;
  for (size_t d = 0; d < x.dimensions.size(); ++d) point[x.dimensions[d].name] = x.value(e, d);
  if (!e.refused.empty()) {
    point["refused"] = e.refused;
    return point;
  }
  point["latency_s"] = e.objectives[0];
  point["energy_j"] = e.objectives[1] > 0 ? nlohmann::json(e.objectives[1]) : nlohmann::json();
  point["area_mm2"] = e.objectives[2];
  if (e.objectives.size() > 3) point["perplexity"] = e.objectives[3];
  point["within_limits"] = e.violation == 0;
  return point;
}

nlohmann::json explored_json(const Explored& x, const ExploreArguments& a) {
  nlohmann::json dimensions = nlohmann::json::array(), points = nlohmann::json::array(), front = points;
  for (const auto& d : x.dimensions) dimensions.push_back({{"name", d.name}, {"values", d.values}});
  for (const explore::Evaluated& e : x.search.evaluated) points.push_back(point_json(x, e));
  for (size_t f = 0; f < x.search.front.size(); ++f) {
    nlohmann::json point = point_json(x, x.search.evaluated[x.search.front[f]]);
    point["mapping"] = x.front[f].mapping;
    point["bound"] = x.front[f].bound;
    point["watts"] = x.front[f].watts();
    front.push_back(std::move(point));
  }
  return {{"space", {{"points", x.search.size}, {"exhaustive", x.search.exhaustive}, {"dimensions", dimensions}}},
          {"evaluated", points},
          {"front", front},
          {"seed", a.seed}};
}

std::string explored_csv(const Explored& x) {
  std::string csv;
  for (const auto& d : x.dimensions) csv += d.name + ",";
  csv += "latency_s,energy_j,area_mm2,perplexity,within_limits,on_front\n";
  std::vector<bool> on_front(x.search.evaluated.size(), false);
  for (size_t f : x.search.front) on_front[f] = true;
  for (size_t i = 0; i < x.search.evaluated.size(); ++i) {
    const explore::Evaluated& e = x.search.evaluated[i];
    for (size_t d = 0; d < x.dimensions.size(); ++d) csv += x.value(e, d) + ",";
    if (e.refused.empty())
      csv += text(e.objectives[0],
                  ",",
                  e.objectives[1],
                  ",",
                  e.objectives[2],
                  ",",
                  e.objectives.size() > 3 ? text(e.objectives[3]) : "",
                  ",",
                  e.violation == 0 ? 1 : 0,
                  ",",
                  on_front[i] ? 1 : 0,
                  "\n");
    else
      csv += ",,,,,0\n";
  }
  return csv;
}

/// Dimensions that vary.
std::vector<size_t> shown_dimensions(const Explored& x) {
  std::vector<size_t> shown;
  for (size_t d = 0; d < x.dimensions.size(); ++d)
    if (x.dimensions[d].values.size() > 1) shown.push_back(d);
  return shown;
}

/// The front in words: a column per dimension that varies, the figures, what binds, and where there is one the mapping. Empty
/// where no point keeps the limits.
study::FrontTable table_of(const Explored& x) {
  study::FrontTable table;
  if (x.search.front.empty()) return table;
  const std::vector<size_t> shown = shown_dimensions(x);
  const bool quality = x.search.evaluated[x.search.front[0]].objectives.size() > 3,
             mapped = !x.front[0].mapping.empty();
  for (size_t d : shown) table.head.push_back(x.dimensions[d].name);
  for (const char* name : {"latency", "energy", "area", "power"}) table.head.emplace_back(name);
  if (quality) table.head.emplace_back("perplexity");
  table.head.emplace_back("bound by");
  if (mapped) table.head.emplace_back("mapping");
  for (size_t f = 0; f < x.search.front.size(); ++f) {
    const explore::Evaluated& e = x.search.evaluated[x.search.front[f]];
    const explore::Design& design = x.front[f];
    std::vector<std::string>& row = table.rows.emplace_back();
    for (size_t d : shown) row.push_back(x.value(e, d));
    row.push_back(quantity(design.latency_s, "s"));
    row.push_back(design.energy_j > 0 ? quantity(design.energy_j, "J") : "-");
    row.push_back(quantity(design.area_mm2, "mm2"));
    row.push_back(quantity(design.watts(), "W"));
    if (quality) row.push_back(fixed(e.objectives[3], 3));
    row.push_back(design.bound);
    if (mapped) row.push_back(design.mapping);
  }
  return table;
}

/// The same for the terminal. Dimensions with one value are said once, above the table.
std::string front_table(const Explored& x) {
  const std::vector<size_t> shown = shown_dimensions(x);
  std::string fixed_values;
  for (const auto& dimension : x.dimensions)
    if (dimension.values.size() == 1)
      fixed_values += text(fixed_values.empty() ? "" : ", ", dimension.name, " ", dimension.values[0]);
  std::string out = fixed_values.empty() ? "" : text("everywhere   ", fixed_values, "\n");
  const study::FrontTable table = table_of(x);
  const size_t bound =
      static_cast<size_t>(std::find(table.head.begin(), table.head.end(), "bound by") - table.head.begin());
  auto add = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i < shown.size()) {
        size_t widest = std::max<size_t>(10, table.head[i].size());
        for (const std::string& value : x.dimensions[shown[i]].values) widest = std::max(widest, value.size());
        out += pad_right(cells[i], widest + 2);
      } else if (i < bound) {
        out += pad_left(cells[i], i == shown.size() ? 10 : 12);
      } else {
        out += "  " + (i == bound ? pad_right(cells[i], 12) : cells[i]);
      }
    }
    out += "\n";
  };
  add(table.head);
  for (const std::vector<std::string>& row : table.rows) add(row);
  return out;
}

std::string plot_page(const Explored& x, const std::string& title) {
  std::vector<study::PlotPoint> points;
  std::vector<bool> on_front(x.search.evaluated.size(), false);
  for (size_t f : x.search.front) on_front[f] = true;
  for (size_t i = 0; i < x.search.evaluated.size(); ++i) {
    const explore::Evaluated& e = x.search.evaluated[i];
    if (!e.allowed()) continue;
    std::vector<std::string> words;
    for (size_t d = 0; d < x.dimensions.size(); ++d)
      if (x.dimensions[d].values.size() > 1) words.push_back(x.value(e, d));
    const std::string name = join(words, " ");
    points.push_back({.name = on_front[i] ? name : "",
                      .title = text(name,
                                    ": ",
                                    quantity(e.objectives[0], "s"),
                                    ", ",
                                    quantity(e.objectives[1], "J"),
                                    ", ",
                                    significant(e.objectives[2]),
                                    " mm2"),
                      .x = e.objectives[2],
                      .y = e.objectives[0],
                      .on_front = on_front[i]});
  }
  return study::front_page(
      title,
      "Marked points are beaten by no other in latency, energy and area together, and listed below.",
      points,
      {"area", "mm2", "latency", "s"},
      table_of(x));
}

/// The mapping as steps, or why there are none.
std::string schedule_of(const tir::PrimFuncRef& func, const dataflow::KernelCost& cost) {
  try {
    return dataflow::schedule_as_costed(func, "matmul", cost).trace;
  } catch (const Error& error) {
    return text("# not written as a schedule: ", error.reason.what, "\n");
  }
}

/// The product's program and, per point of the front, the schedule that maps it.
void add_schedules(const Explored& x, const explore::KernelSpace& space, const dataflow::Matmul& matmul,
                   OwnedFolder::Files& files) {
  const std::string program = dataflow::matmul_program(matmul);
  const tir::PrimFuncRef func = tir::parse_function(program);
  files.emplace_back("program.py", program);
  for (size_t f = 0; f < x.search.front.size(); ++f) {
    const explore::Evaluated& e = x.search.evaluated[x.search.front[f]];
    std::vector<std::string> head;
    for (size_t d = 0; d < x.dimensions.size(); ++d) head.push_back(text(x.dimensions[d].name, " ", x.value(e, d)));
    std::string code = text("# ", join(head, ", "), "\n# ", x.front[f].mapping, "\n");
    const dataflow::KernelCost cost = space.costs(e.point)[0];
    code += space.chips().base().tenet
                ? text("# the mapping is TENET's own: ", space.chips().base().tenet->mapping_file, "\n")
                : schedule_of(func, cost);
    files.emplace_back(text("schedules/front-", f + 1, ".py"), code);
  }
}

/// The programs of the front's schemes and, per point, a folder with the schedules that map their kernels.
void add_schedules(const Explored& x, const study::ModelSpace& space, const std::vector<std::string>& schemes,
                   OwnedFolder::Files& files) {
  std::set<size_t> used;
  for (size_t f = 0; f < x.search.front.size(); ++f) {
    const explore::Point& point = x.search.evaluated[x.search.front[f]].point;
    used.insert(point.back());
    for (const auto& [name, code] : space.schedules(point))
      files.emplace_back(text("schedules/front-", f + 1, "/", name), code);
  }
  for (size_t scheme : used) files.emplace_back(text("programs/", schemes[scheme], ".py"), space.program(scheme));
  for (const auto& [name, code] : space.runtime_programs()) files.emplace_back(text("programs/", name, ".py"), code);
}

void check(const ExploreArguments& a) {
  if (!a.chip || a.workload.has_value() == a.model.has_value())
    fail({.what = a.workload && a.model ? "a matmul and a model are given together" : "there is nothing to explore",
          .needs = "--workload I,J,K or MODEL, and --chip CHIP",
          .hint = text("as in --workload 128,768,3072 --chip gemmini16 --pe 8x8,16x16,32x32; shipped chips are ",
                       join(shipped_chips(), ", "))});
  struct Companion {
    const char* option;
    bool given;
    const char* belongs_to;
    bool there;
  };
  for (const Companion& c : {Companion{"--scheme", a.scheme.has_value(), "--workload", a.workload.has_value()},
                             {"--mappings", a.mappings != 1, "--workload", a.workload.has_value()},
                             {"--quant", a.quant.has_value(), "MODEL", a.model.has_value()},
                             {"--study", a.study.has_value(), "MODEL", a.model.has_value()},
                             {"--shapes-only", a.shapes_only, "MODEL", a.model.has_value()},
                             {"--replace", a.replace, "-o", a.folder.has_value()},
                             {"--max-perplexity", a.max_perplexity.has_value(), "--study", a.study.has_value()}})
    if (c.given && !c.there)
      fail({.what = text(c.option, " is given without ", c.belongs_to),
            .needs = text(c.option, " together with ", c.belongs_to),
            .hint = text("leave ", c.option, " out")});
}

/// Searches a space and says what was found.
template <class Space>
Explored explored(const Space& space, const std::string& what, const ExploreArguments& a, Streams& io) {
  ProgressLines progress(io.notes);
  Explored x{.dimensions = space.dimensions(), .search = {}, .front = {}};
  x.search = explore::search(space.choices(),
                             [&](const explore::Point& p, int) { return space.evaluate(p); },
                             {.budget = a.budget,
                              .seed = static_cast<uint64_t>(a.seed),
                              .threads = static_cast<int>(std::min<int64_t>(a.threads, 64)),
                              .progress = [&](int64_t done, int64_t of) {
                                progress(text("evaluating, ", done, " of ", of, " points"), true);
                              }});
  progress.end();
  for (size_t f : x.search.front) x.front.push_back(space.design(x.search.evaluated[f].point));
  io.json = explored_json(x, a);
  io.out << what << "space        " << static_cast<int64_t>(x.search.size) << " points, "
         << (x.search.exhaustive ? std::string("all evaluated")
                                 : text(x.search.evaluated.size(), " evaluated, guided, seed ", a.seed))
         << "\n";
  if (x.search.front.empty()) {
    io.out << "no point keeps the limits\n";
    for (const explore::Evaluated& e : x.search.evaluated)
      if (!e.refused.empty()) {
        io.notes << "note: " << e.refused << "\n";
        break;
      }
  } else {
    const bool quality = x.search.evaluated[x.search.front[0]].objectives.size() > 3;
    io.out << "front        " << x.search.front.size() << " points that no other beats in latency, energy"
           << (quality ? ", area and perplexity\n" : " and area\n") << front_table(x);
  }
  if (a.csv) write_file(*a.csv, explored_csv(x));
  return x;
}

/// What both kinds of search leave in the folder, by name.
OwnedFolder::Files points_of(const Explored& x, const std::string& title, const Streams& io) {
  return {{"explore.json", io.json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"},
          {"explore.csv", explored_csv(x)},
          {"index.html", plot_page(x, title)}};
}

/// The folder of the results, before they are searched for: then nothing is in their way. Nothing without -o.
std::unique_ptr<OwnedFolder> place_of(const ExploreArguments& a) {
  if (!a.folder) return nullptr;
  auto place = std::make_unique<OwnedFolder>(*a.folder, "explore", a.replace);
  place->require_free({"explore.json", "explore.csv", "index.html"});
  if (a.workload) place->require_free({"program.py"});
  place->require_free_below({"schedules"}, {".py"});
  if (a.model) place->require_free_below({"programs"}, {".py"});
  return place;
}

void write(OwnedFolder& place, const OwnedFolder::Files& files, const ExploreArguments& a, const Streams& io) {
  place.replace(files);
  io.out << "written: " << (fs::path(*a.folder) / "index.html").string() << ", explore.json, explore.csv";
}

void explore_matmul(const ExploreArguments& a, const Chip& base, Streams& io) {
  const std::string scheme = a.scheme.value_or("int8-channel+a8");
  const dataflow::Matmul matmul = matmul_of(integers_of("--workload", *a.workload, ',', 3, 1), scheme);
  const explore::KernelSpace space(explore::ChipSpace(base, axes_of(a, base)),
                                   {{dataflow::matmul_kernel(matmul)}},
                                   static_cast<size_t>(a.mappings),
                                   {a.max_area, a.max_latency, a.max_energy, a.max_power});
  const std::unique_ptr<OwnedFolder> place = place_of(a);
  const Explored x = explored(space,
                              text("workload     Y[i,j] = X[i,k] * W[k,j], i ",
                                   matmul.i,
                                   ", j ",
                                   matmul.j,
                                   ", k ",
                                   matmul.k,
                                   "; ",
                                   scheme,
                                   "\nchip         variants of ",
                                   base.name,
                                   "\n"),
                              a,
                              io);
  if (!place) return;
  OwnedFolder::Files files =
      points_of(x, text("matmul ", *a.workload, ", ", scheme, ", on variants of ", base.name), io);
  add_schedules(x, space, matmul, files);
  write(*place, files, a, io);
  io.out << ", program.py, schedules/\n";
}

void explore_model(const ExploreArguments& a, const Chip& base, Streams& io) {
  study::ModelSpaceOptions options{.model = model_folder(*a.model),
                                   .schemes = words_of(a.quant.value_or("f16,int8-channel,int4-group32")),
                                   .prompt_len = a.prompt_len,
                                   .gen_len = a.gen_len,
                                   .shapes_only = a.shapes_only,
                                   .perplexity = {},
                                   .max_perplexity = a.max_perplexity,
                                   .limits = {a.max_area, a.max_latency, a.max_energy, a.max_power}};
  for (std::string& name : options.schemes) name = llm::parse_scheme(name).name;
  if (a.study) options.perplexity = study::perplexities_of(*a.study);
  ProgressLines progress(io.notes);
  const study::ModelSpace space(explore::ChipSpace(base, axes_of(a, base)),
                                options,
                                [&](const std::string& line, bool passing) { progress(line, passing); });
  progress.end();
  for (const std::string& words : space.refused()) io.notes << "note: " << words << "\n";
  const std::unique_ptr<OwnedFolder> place = place_of(a);
  const Explored x = explored(space,
                              text("model        ",
                                   options.model.string(),
                                   ", a prompt of ",
                                   counted(a.prompt_len, "token"),
                                   " and ",
                                   a.gen_len,
                                   " generated\nchip         variants of ",
                                   base.name,
                                   "\n"),
                              a,
                              io);
  if (!place) return;
  OwnedFolder::Files files = points_of(x, text(options.model.filename().string(), " on variants of ", base.name), io);
  add_schedules(x, space, options.schemes, files);
  write(*place, files, a, io);
  io.out << ", programs/, schedules/\n";
}

void run(const ExploreArguments& a, Streams& io) {
  check(a);
  Chip base = dataflow::described_chip(*a.chip);
  if (base.calibration) {
    io.notes << "note: the calibration of " << base.name << " is left out: it holds for the chip that was measured\n";
    base.calibration.reset();
  }
  if (a.workload)
    explore_matmul(a, base, io);
  else
    explore_model(a, base, io);
}

}  // namespace

Command explore_command() {
  auto a = std::make_shared<ExploreArguments>();
  return {
      .name = "explore",
      .does = "searches array shapes, buffers, bandwidths, cores, mappings and schemes for a matmul or a model",
      .options =
          {
              {"MODEL", "a Hugging Face folder, or its config.json: all kernels of prefill and decode", &a->model},
              {"--workload I,J,K", "instead of a model, one matmul Y[i,j] = X[i,k] * W[k,j]", &a->workload},
              {"--scheme NAME",
               "how weights and inputs are stored: a name of `sator schemes`; int8-channel+a8 unless told",
               &a->scheme},
              {"--quant LIST", "schemes of the model: f16,int8-channel,int4-group32 unless told", &a->quant},
              {"--study FOLDER", "a finished study of the model: its perplexities are an objective", &a->study},
              {"--max-perplexity X", "no schemes of more", &a->max_perplexity, false, {}, above(0)},
              {"--shapes-only", "from the model's config.json alone", &a->shapes_only},
              {"--prompt-len N", "tokens of the prompt", &a->prompt_len, false, {}, at_least(1)},
              {"--gen-len N", "tokens generated", &a->gen_len, false, {}, at_least(1)},
              {"--chip CHIP",
               "the described chip to vary: a name, a TOML file, or a folder with TENET's files",
               &a->chip},
              {"--pe LIST", "sizes of the array: 8x8,16x16,32x8", &a->pe},
              {"--dataflow LIST", "what stays in the PEs: os,ws,is", &a->dataflow},
              {"--buffer [NAME=]LIST",
               "sizes of a memory on the chip, the outermost unless named: scratchpad=64K,256K; may be repeated",
               &a->buffers},
              {"--bandwidth LIST", "bytes per second of the outermost memory: 8G,16G", &a->bandwidth},
              {"--cores LIST", "numbers of cores", &a->cores},
              {"--mappings N",
               "the engine's mapping and the N - 1 best of a longer search, with tiles of each memory its own",
               &a->mappings,
               false,
               {},
               between(1, 10'000'000)},
              {"--max-area MM2", "no larger chips", &a->max_area, false, {}, above(0)},
              {"--max-latency S", "no slower ones, in seconds", &a->max_latency, false, {}, above(0)},
              {"--max-energy J", "none that take more energy, in joules", &a->max_energy, false, {}, above(0)},
              {"--max-power W", "none that take more power, in watts", &a->max_power, false, {}, above(0)},
              {"--budget N",
               "points evaluated at most: smaller spaces are searched whole",
               &a->budget,
               false,
               {},
               between(1, 10'000'000)},
              {"--seed N", "of a guided search: the same seed, the same result", &a->seed, false, {}, at_least(0)},
              {"--threads N", "threads that evaluate points", &a->threads, false, {}, between(1, 10'000'000)},
              {"--csv FILE", "all points evaluated, as CSV", &a->csv},
              {"-o,--output FOLDER",
               "a page with the front, all points, and the programs with the front's mappings as schedules",
               &a->folder},
              {"--replace", "replace files that no search wrote and that stand where results go", &a->replace},
          },
      .run = [a](Streams& io) { run(*a, io); },
      .details =
          "Objectives are latency, energy and area. Areas are those of docs/explore.md; energies per bit of a buffer "
          "grow\n"
          "with the square root of its size; ports keep their widths.",
      .also = {"search", "dse", "sweep", "tune"}};
}

}  // namespace sator::cli
