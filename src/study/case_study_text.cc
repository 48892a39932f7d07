#include <algorithm>

#include "base/figures.h"
#include "base/text.h"
#include "study/case_study.h"
#include "study/compare.h"
#include "study/markdown.h"
#include "study/words.h"

namespace sator::study {

namespace {

std::string bytes(double n) { return quantity(n, "B"); }
std::string seconds(double s) { return quantity(s, "s"); }
std::string count_of(int64_t n) { return quantity(static_cast<double>(n), ""); }

/// The memory outside of the chip.
const LevelCost& outside(const Cost& cost) { return cost.levels.front(); }

double seconds_of_calls(const MatmulRow& row) {
  return row.kernel.cost.latency_s * static_cast<double>(row.kernel.count);
}
int64_t macs_of(const MatmulRow& row) { return row.kernel.cost.macs * row.kernel.count; }
int64_t macs_of(const std::vector<MatmulRow>& rows) {
  int64_t all = 0;
  for (const MatmulRow& row : rows) all += macs_of(row);
  return all;
}

bool is_attention(const MatmulRow& row) { return row.products.size() > 1; }

double attention_s(const StepCosts& step) {
  double all = 0;
  for (const MatmulRow& row : step.matmuls)
    if (is_attention(row)) all += seconds_of_calls(row);
  return all;
}

std::string with_batch(const ProductSize& s) { return s.batch == 1 ? text(s.i) : text(s.batch, " x ", s.i); }

/// Every kernel with products, one line per product; the kernel's own figures stand in its first line.
std::string matmul_table(const std::vector<MatmulRow>& rows) {
  MarkdownTable table({"kernel",
                       "layer",
                       "count",
                       ">i",
                       ">j",
                       ">k",
                       "tile",
                       ">MACs",
                       ">cycles",
                       ">latency",
                       ">bytes outside",
                       ">bandwidth",
                       ">energy",
                       "bound"});
  for (const MatmulRow& row : rows) {
    const KernelRow& k = row.kernel;
    for (size_t p = 0; p < row.products.size(); ++p) {
      const ProductUse& use = row.products[p];
      std::vector<std::string> cells = {p == 0 ? text("`", k.function, "`") : text("its `", use.name, "`"),
                                        p == 0 ? k.layer : "",
                                        p == 0 ? text(k.count) : "",
                                        with_batch(use.size),
                                        text(use.size.j),
                                        text(use.size.k),
                                        use.tile,
                                        count_of(use.macs)};
      if (p == 0)
        cells.insert(cells.end(),
                     {grouped(k.cost.latency_cycles),
                      seconds(k.cost.latency_s),
                      bytes(outside(k.cost).bytes()),
                      quantity(outside(k.cost).achieved_bytes_per_s, "B/s"),
                      energy_text(k.cost),
                      k.cost.bound});
      table.add(std::move(cells));
    }
  }
  return table.words();
}

std::string step_words(const StepCosts& step) {
  return text(seconds(step.all.cost.latency_s),
              ", ",
              count_of(step.all.cost.macs),
              " MACs, ",
              bytes(outside(step.all.cost).bytes()),
              " outside at ",
              quantity(outside(step.all.cost).achieved_bytes_per_s, "B/s"),
              ", ",
              energy_text(step.all.cost),
              "; of the latency ",
              percent(step.all.cost.latency_s > 0 ? [&] {
                double products = 0;
                for (const MatmulRow& row : step.matmuls) products += seconds_of_calls(row);
                return products / step.all.cost.latency_s;
              }()
                                                  : 0),
              " in kernels with products.");
}

std::string kind_words(const QuantizationKind& kind) {
  return kind.of.empty() ? text("`", kind.scheme, "`") : text(kind.kind, ", ", kind.of, ": `", kind.scheme, "`");
}

std::string question(const CaseStudy& s) {
  return text(
      "# Case study: ",
      s.model.name,
      " on a described chip\n\nWritten by the program; every number and every sentence with a number in it is "
      "computed.\n\n"
      "## The question\n\nWhich matrix products does ",
      s.model.name,
      " (",
      s.model.layers,
      " layers, ",
      count_of(s.model.parameters),
      " parameters, vocabulary of ",
      grouped(s.model.vocab_size),
      ") run when it reads a prompt and when it writes a token, with which i, j and k, and what does each cost on an "
      "accelerator that is only described, under quantization per tensor, per embedding, per token and per group of "
      "embeddings?\n\n");
}

std::string method(const CaseStudy& s) {
  std::string contexts;
  for (int64_t c : s.options.contexts) contexts += text(contexts.empty() ? "" : ", ", c);
  return text(
      "## Method\n\n"
      "1. The model is compiled from its `config.json` as it would be for this machine, through phase 3: fused "
      "kernels, the\n"
      "   dequantization inside of the product that needs it. Their names are those of the compiled program.\n"
      "2. The calls of a prompt of ",
      s.options.prompt_len,
      " tokens (prefill) and of one token at contexts of ",
      contexts,
      " (decode) give the values of\n"
      "   the symbolic sizes. A run on the virtual machine records the same values: a test compares them. Weights are "
      "not\n"
      "   needed for this, and nothing here was run.\n"
      "3. Each kernel's iteration domains and accesses at these sizes are what the cost engine reads: Y[i,j] += X[i,k] "
      "* W[k,j],\n"
      "   where W is what lies where the chip holds weights. It maps them to the array and counts exactly\n"
      "   ([dataflow.md](dataflow.md)).\n\n"
      "The chip: ",
      chip_line(s.chip),
      " (`chips/",
      s.chip.file,
      "`). An estimate, not calibrated to silicon.\n"
      "Figures of a kernel are those of one of its `count` calls; `*` in a layer's name stands for each layer's "
      "number; bytes are\n"
      "those that cross the chip's edge; the tile names the loops over tiles, outermost first, then what rows and "
      "columns of the\n"
      "array hold.\n\n");
}

std::string floats(const CaseStudy& s) {
  const SchemeCosts& base = s.schemes.front();
  std::string out = text("## The products, with weights of 16 bits\n\n### Prefill of ",
                         s.options.prompt_len,
                         " tokens\n\n",
                         matmul_table(base.prefill.matmuls),
                         "\nThe whole step: ",
                         step_words(base.prefill),
                         "\n");
  const StepCosts& decode = base.decode.front();
  out += text("\n### Decode of one token at a context of ",
              decode.step.context,
              "\n\n",
              matmul_table(decode.matmuls),
              "\nThe whole step: ",
              step_words(decode),
              "\n");
  return out + "\n";
}

std::string growth(const CaseStudy& s) {
  const SchemeCosts& base = s.schemes.front();
  std::string out =
      "### Attention grows with the context\n\n"
      "All other products of a decode step have one row (i = 1) and keep their sizes. Those of attention have the "
      "context as j\n"
      "(scores) and as k (values), read from each call:\n\n";
  MarkdownTable table({">context",
                       "product",
                       ">i",
                       ">j",
                       ">k",
                       ">cycles of the kernel",
                       ">bytes outside",
                       ">all layers",
                       ">share of the step's latency"});
  for (const StepCosts& step : base.decode)
    for (const MatmulRow& row : step.matmuls) {
      if (!is_attention(row)) continue;
      for (size_t p = 0; p < row.products.size(); ++p) {
        const ProductUse& use = row.products[p];
        std::vector<std::string> cells = {p == 0 ? text(step.step.context) : "",
                                          text("`", use.name, "`"),
                                          with_batch(use.size),
                                          text(use.size.j),
                                          text(use.size.k)};
        if (p == 0)
          cells.insert(cells.end(),
                       {grouped(row.kernel.cost.latency_cycles),
                        bytes(outside(row.kernel.cost).bytes()),
                        seconds(seconds_of_calls(row)),
                        percent(seconds_of_calls(row) / step.all.cost.latency_s)});
        table.add(std::move(cells));
      }
    }
  return out + table.words() + "\n";
}

std::string kinds(const CaseStudy& s) {
  std::string out = "## Four kinds of quantization\n\n";
  const SchemeCosts& base = s.schemes.front();
  const StepCosts &first = base.decode.front(), &last = base.decode.back();
  MarkdownTable table({"one scale",
                       "of",
                       "scheme",
                       ">weights",
                       ">prefill",
                       ">against f16",
                       text(">decode at ", first.step.context),
                       ">against f16",
                       text(">decode at ", last.step.context),
                       ">bytes outside per token",
                       ">energy per token"});
  for (const SchemeCosts& scheme : s.schemes) {
    const Cost& near = scheme.decode.front().all.cost;
    table.add({std::string(scheme.kind.kind),
               std::string(scheme.kind.of),
               text("`", scheme.kind.scheme, "`"),
               bytes(static_cast<double>(scheme.weight_bytes)),
               seconds(scheme.prefill.all.cost.latency_s),
               times(ratio(base.prefill.all.cost.latency_s, scheme.prefill.all.cost.latency_s)),
               seconds(near.latency_s),
               times(ratio(first.all.cost.latency_s, near.latency_s)),
               seconds(scheme.decode.back().all.cost.latency_s),
               bytes(outside(near).bytes()),
               energy_text(near)});
  }
  out += table.words() + "\n";
  for (const SchemeCosts& scheme : s.schemes)
    if (!scheme.kind.of.empty()) out += text("- ", kind_words(scheme.kind), ": ", scheme.kind.means, ".\n");
  out += "\nWhere the cycles of a step go (components as in [study.md](study.md)):\n\n";
  std::array<int64_t, kComponentCount> spent{};  // what no scheme spends anything on has no column
  for (const SchemeCosts& scheme : s.schemes)
    for (const StepCosts* step : {&scheme.prefill, &scheme.decode.front()})
      for (size_t c = 0; c < kComponentCount; ++c) spent[c] += step->all.cost.components[c].latency_cycles;
  std::vector<std::string> heads = {"scheme", "step"};
  for (size_t c = 0; c < kComponentCount; ++c)
    if (spent[c] > 0) heads.push_back(">" + std::string(components()[c].words));
  MarkdownTable parts(heads);
  for (const SchemeCosts& scheme : s.schemes)
    for (const StepCosts* step : {&scheme.prefill, &scheme.decode.front()}) {
      std::vector<std::string> cells = {text("`", scheme.kind.scheme, "`"),
                                        step == &scheme.prefill ? "prefill" : "decode"};
      for (size_t i = 0; i < kComponentCount; ++i) {
        const ComponentCost& c = step->all.cost.components[i];
        if (spent[i] == 0) continue;
        cells.push_back(c.latency_cycles == 0 ? "-"
                                              : percent(static_cast<double>(c.latency_cycles) /
                                                        static_cast<double>(step->all.cost.latency_cycles)));
      }
      parts.add(std::move(cells));
    }
  out += parts.words() + "\n";
  for (const SchemeCosts& scheme : s.schemes) {
    if (scheme.kind.of.empty()) continue;
    out += text("### ",
                kind_words(scheme.kind),
                "\n\nPrefill of ",
                s.options.prompt_len,
                " tokens: ",
                step_words(scheme.prefill),
                "\n\n");
    out += matmul_table(scheme.prefill.matmuls);
    out += text("\nDecode at ", scheme.decode.front().step.context, ": ", step_words(scheme.decode.front()), "\n\n");
    out += matmul_table(scheme.decode.front().matmuls) + "\n";
  }
  return out;
}

std::string pattern_names(const CaseStudy& s) {
  std::vector<std::string> names;
  for (const std::string& name : s.patterns) names.push_back(text("`", name, "`"));
  return names.empty() ? "it states none, and products with dequantization, scale and bias are taken"
                       : join(names, ", ");
}

std::string routes(const CaseStudy& s) {
  std::string out = text(
      "## Routes to the chip\n\n"
      "How a compiler can bring an array that it only has a description of into a program:\n\n"
      "- **schedule**: each kernel's loops are bound to `pe.x`, `pe.y`. All figures above are by this route.\n"
      "- **tensorize**: each product's innermost loops are replaced by an intrinsic, one stamp of the whole array of ",
      s.chip.rows,
      " x ",
      s.chip.columns,
      ".\n  Products are padded to whole tiles; their zeros are multiplied, and lie in the chip's memories, but not "
      "outside.\n"
      "- **pattern**: `FuseOpsByPattern` finds in the graph what the chip's patterns say (`[[pattern]]` in its file: ",
      pattern_names(s),
      ");\n  they are the chip's kernels, everything else is the host's.\n",
      s.keeps_between.empty()
          ? ""
          : text("- **merged**: the same, and `MergeCompositeFunctions` joins neighbouring kernels where half of `",
                 s.keeps_between,
                 "` has room\n  for what lies between them, in a prompt of ",
                 s.options.prompt_len,
                 " tokens.\n"),
      "\nThe host: ",
      chip_line(s.host),
      " (`chips/",
      s.host.file,
      "`). Chip and host take turns and share the chip's memory\noutside, at its bandwidth.\n\n");
  MarkdownTable table({"scheme",
                       "step",
                       "route",
                       ">MACs on the chip",
                       ">zeros among those issued",
                       ">latency",
                       ">of it the host",
                       ">against schedule",
                       ">bytes outside",
                       ">bandwidth",
                       ">launches on the chip",
                       ">on the host"});
  for (size_t first = 0; first < s.routes.size(); first += s.by_routes.size())
    for (const auto& [name, step] :
         {std::pair{"prefill", &RouteCosts::prefill}, std::pair{"decode", &RouteCosts::decode}})
      for (size_t r = 0; r < s.by_routes.size(); ++r) {
        const RouteCosts& route = s.routes[first + r];
        const RouteStep& cost = route.*step;
        table.add({r == 0 ? text("`", route.scheme, "`") : "",
                   r == 0 ? name : "",
                   std::string(name_of(route.route)),
                   percent(cost.share()),
                   cost.padded_share() > 0 ? percent(cost.padded_share()) : "-",
                   seconds(cost.latency_s()),
                   percent(cost.latency_s() > 0 ? cost.host_s / cost.latency_s() : 0),
                   times(ratio((s.routes[first].*step).latency_s(), cost.latency_s())),
                   bytes(cost.outside_bytes),
                   quantity(cost.bytes_per_s(), "B/s"),
                   text(cost.launches_on_chip),
                   text(cost.launches_on_host)});
      }
  out += table.words() + "\nWhat stays off the chip, and why:\n\n";
  auto list = [&](const std::function<std::vector<std::string>(const RouteKernel&)>& of) {
    std::vector<std::string> said;
    for (const RouteCosts& route : s.routes)
      for (const RouteStep* step : {&route.prefill, &route.decode})
        for (const RouteKernel& kernel : step->kernels)
          for (const std::string& words : of(kernel)) {
            const std::string line = text("- ", name_of(route.route), ": ", words, "\n");
            if (std::find(said.begin(), said.end(), line) == said.end()) said.push_back(line);
          }
    return said.empty() ? std::string("- nothing\n") : join(said, "");
  };
  out += list([](const RouteKernel& k) { return k.why.empty() ? std::vector<std::string>{} : std::vector{k.why}; });
  out += "\nWhat is padded to whole tiles:\n\n" + list([](const RouteKernel& k) { return k.padded; });
  if (!s.pattern_notes.empty()) {
    out += "\nWhat the passes say of parts that were not matched, or not joined:\n\n";
    for (const std::string& note : s.pattern_notes) out += text("- ", note, "\n");
  }
  return out + "\n";
}

/// The scheme with the shortest step.
const SchemeCosts& fastest(const CaseStudy& s, const std::function<double(const SchemeCosts&)>& latency) {
  return *std::ranges::min_element(s.schemes, {}, latency);
}

std::string lessons(const CaseStudy& s) {
  const SchemeCosts& base = s.schemes.front();
  const StepCosts &prefill = base.prefill, &decode = base.decode.front();
  std::string out = "## What one learns\n\n";
  size_t number = 0;
  auto say = [&](const std::string& words) { out += text(++number, ". ", words, "\n"); };
  auto intensity = [](const StepCosts& step) {
    return static_cast<double>(step.all.cost.macs) / outside(step.all.cost).bytes();
  };
  say(text("**Prompt and token.** Prefill does ",
           significant(intensity(prefill)),
           " MACs per byte from outside and ",
           prefill.all.cost.bound,
           " binds most of its cycles; decode does ",
           significant(intensity(decode)),
           " and ",
           decode.all.cost.bound,
           " binds, at ",
           percent(outside(decode.all.cost).achieved_bytes_per_s / outside(decode.all.cost).available_bytes_per_s),
           " of what it can do. ",
           count_of(decode.all.cost.macs),
           " MACs use ",
           percent(decode.all.cost.utilization),
           " of the array."));
  int64_t attention = 0, head = 0;
  for (const MatmulRow& row : decode.matmuls) {
    if (is_attention(row)) attention += macs_of(row);
    if (row.products[0].size.j == s.model.vocab_size) head += macs_of(row);
  }
  const auto all = static_cast<double>(macs_of(decode.matmuls));
  say(text("**The head.** Of a decode step's MACs at ",
           decode.step.context,
           " tokens, ",
           percent(static_cast<double>(head) / all),
           " are the head's (j = ",
           grouped(s.model.vocab_size),
           "), ",
           percent(static_cast<double>(attention) / all),
           " attention's."));
  const StepCosts& last = base.decode.back();
  if (base.decode.size() > 1)
    say(text("**Attention** depends on the context. From ",
             decode.step.context,
             " to ",
             last.step.context,
             " tokens the decode step takes ",
             times(ratio(last.all.cost.latency_s, decode.all.cost.latency_s)),
             " as long; attention's share goes from ",
             percent(attention_s(decode) / decode.all.cost.latency_s),
             " to ",
             percent(attention_s(last) / last.all.cost.latency_s),
             ", and no scheme here makes the cache smaller."));
  const SchemeCosts& p = fastest(s, [](const SchemeCosts& c) { return c.prefill.all.cost.latency_s; });
  const SchemeCosts& d = fastest(s, [](const SchemeCosts& c) { return c.decode.front().all.cost.latency_s; });
  say(text("**Fastest for a prompt:** ",
           kind_words(p.kind),
           ", ",
           times(ratio(prefill.all.cost.latency_s, p.prefill.all.cost.latency_s)),
           " f16's speed. **For a token:** ",
           kind_words(d.kind),
           ", ",
           times(ratio(decode.all.cost.latency_s, d.decode.front().all.cost.latency_s)),
           "."));
  for (const SchemeCosts& scheme : s.schemes) {
    if (scheme.kind.of.empty()) continue;
    auto moved = [](const StepCosts& step) { return outside(step.all.cost).by_kind; };
    const OperandBits a = moved(decode), b = moved(scheme.decode.front());
    const Cost &q = scheme.prefill.all.cost, &t = scheme.decode.front().all.cost;
    const int64_t making = at(t.components, Component::dequantize).latency_cycles +
                           at(t.components, Component::rescale).latency_cycles +
                           at(t.components, Component::quantize).latency_cycles;
    say(text("**",
             kind_words(scheme.kind),
             ":** the weights that a token reads go from ",
             bytes(static_cast<double>(a.weight) / 8),
             " to ",
             bytes(static_cast<double>(b.weight) / 8),
             ", scales are ",
             bytes(static_cast<double>(b.scale) / 8),
             "; a token takes ",
             times(ratio(decode.all.cost.latency_s, t.latency_s)),
             " and a prompt ",
             times(ratio(prefill.all.cost.latency_s, q.latency_s)),
             " f16's speed. Making codes and taking them back binds ",
             percent(static_cast<double>(making) / static_cast<double>(t.latency_cycles)),
             " of a token's cycles."));
  }
  for (const Route route : s.by_routes) {
    if (route == Route::schedule) continue;
    const auto found = std::ranges::find(s.routes, route, &RouteCosts::route);
    const RouteCosts &r = *found, &schedule = s.routes.front();
    const RouteStep &q = r.prefill, &t = r.decode;
    const std::string zeros = std::max(q.padded_share(), t.padded_share()) > 0
                                  ? text(", where ",
                                         percent(q.padded_share()),
                                         " and ",
                                         percent(t.padded_share()),
                                         " of what is multiplied are zeros that fill up tiles")
                                  : "";
    say(text("**Route ",
             name_of(route),
             "**, of `",
             r.scheme,
             "`: ",
             percent(q.share()),
             " of a prompt's MACs and ",
             percent(t.share()),
             " of a token's reach the chip",
             zeros,
             "; a prompt takes ",
             times(ratio(q.latency_s(), schedule.prefill.latency_s())),
             " and a token ",
             times(ratio(t.latency_s(), schedule.decode.latency_s())),
             " as long as by schedule. The host takes ",
             seconds(q.host_s),
             " of the prompt and ",
             seconds(t.host_s),
             " of the token.",
             t.outside_bytes <= schedule.decode.outside_bytes
                 ? ""
                 : text(" A token moves ",
                        bytes(t.outside_bytes - schedule.decode.outside_bytes),
                        " more outside: ",
                        route == Route::tensorize
                            ? "tiles are those of the whole array."
                            : "what runs apart from its product takes its tensor through the memory once more.")));
  }
  if (s.by_routes.back() == Route::merged)
    for (const RouteCosts& r : s.routes) {
      if (r.route != Route::merged) continue;
      const RouteCosts& apart = *std::ranges::find_if(
          s.routes, [&](const RouteCosts& p) { return p.route == Route::pattern && p.scheme == r.scheme; });
      const int64_t fewer = apart.decode.launches_on_chip - r.decode.launches_on_chip;
      say(text("**Merging** `",
               r.scheme,
               "`: ",
               apart.decode.launches_on_chip,
               " launches of a token become ",
               r.decode.launches_on_chip,
               fewer > 0 ? text("; what lies between them, ",
                                bytes(apart.decode.outside_bytes - r.decode.outside_bytes),
                                " written and read again, stays in `",
                                s.keeps_between,
                                "`")
                         : "",
               ". Of a prompt ",
               apart.prefill.launches_on_chip,
               " become ",
               r.prefill.launches_on_chip,
               "."));
      break;
    }
  // The scheme whose prompt gains or loses most by leaving what is no product to the host.
  const RouteCosts *changed = nullptr, *by_schedule = nullptr;
  auto gain = [](const RouteCosts& a, const RouteCosts& b) { return a.prefill.latency_s() / b.prefill.latency_s(); };
  for (size_t first = 0; first < s.routes.size(); first += s.by_routes.size()) {
    const RouteCosts &schedule = s.routes[first], &pattern = s.routes[first + 2];
    if (!changed || gain(schedule, pattern) > gain(*by_schedule, *changed)) changed = &pattern, by_schedule = &schedule;
  }
  const auto scheme = std::ranges::find(s.schemes, changed->scheme, [](const SchemeCosts& c) { return c.kind.scheme; });
  const Cost& q = scheme->prefill.all.cost;
  int64_t beside = 0;
  for (Component c : {Component::attention, Component::vector, Component::quantize})
    beside += at(q.components, c).latency_cycles;
  say(text("**What is no product of weights.** Of a prompt under `",
           changed->scheme,
           "`, attention, vector work and the quantization of activations take ",
           percent(static_cast<double>(beside) / static_cast<double>(q.latency_cycles)),
           " of the cycles on the chip (of `f16`: ",
           percent(static_cast<double>(at(prefill.all.cost.components, Component::attention).latency_cycles +
                                       at(prefill.all.cost.components, Component::vector).latency_cycles) /
                   static_cast<double>(prefill.all.cost.latency_cycles)),
           "); by route pattern the host does this work in ",
           seconds(changed->prefill.host_s),
           ", and the prompt takes ",
           times(ratio(changed->prefill.latency_s(), by_schedule->prefill.latency_s())),
           " as long."));
  return out + "\n";
}

}  // namespace

std::string case_study_text(const CaseStudy& study, const std::string& command) {
  return question(study) + method(study) + floats(study) + growth(study) + kinds(study) + routes(study) +
         lessons(study) +
         text(
             "## How to repeat it\n\n    ",
             command,
             "\n\nwrites this file. A test of the project fails when the file differs from what the program writes.\n");
}

}  // namespace sator::study
