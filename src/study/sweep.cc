#include "study/sweep.h"

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"
#include "study/cost_program.h"
#include "study/csv_table.h"
#include "study/words.h"

namespace sator::study {

namespace {

bool touches_cache(const llm::KernelCall& call) {
  return std::any_of(call.params.begin(), call.params.end(), [](const dataflow::ParamFacts& p) {
    return p.kind == dataflow::OperandKind::kv;
  });
}

bool same_work(const llm::KernelCall& a, const llm::KernelCall& b) {
  return a.function == b.function && a.sizes == b.sizes && a.params == b.params && a.sequences == b.sequences;
}

}  // namespace

Steps::Walked& Steps::walked(const std::string& function, int64_t tokens) {
  auto [at, fresh] = walked_.try_emplace({function, tokens});
  if (!fresh) return at->second;
  // What differs between two contexts is the context.
  const int64_t here = tokens, there = tokens + 1;
  const std::vector<llm::KernelCall> calls = workload_.calls(function, {.tokens = tokens, .context = here}),
                                     others = workload_.calls(function, {.tokens = tokens, .context = there});
  Walked& out = at->second;
  for (size_t c = 0; c < calls.size(); ++c) {
    const auto known = std::find_if(
        out.calls.begin(), out.calls.end(), [&](const CountedCall& k) { return same_work(k.call, calls[c]); });
    const int64_t count = repeats_.times(calls[c].layer);
    if (known != out.calls.end()) {
      known->count += count;
      continue;
    }
    std::vector<std::string> sizes;
    for (const auto& [name, value] : calls[c].sizes)
      if (others.at(c).sizes.at(name) != value) sizes.push_back(name);
    out.calls.push_back({calls[c], count});
    out.sizes_of_context.push_back(std::move(sizes));
  }
  return out;
}

std::span<const CountedCall> Steps::at(const std::string& function, int64_t tokens, int64_t context) {
  Walked& all = walked(function, tokens);
  for (size_t c = 0; c < all.calls.size(); ++c)
    for (const std::string& name : all.sizes_of_context[c]) all.calls[c].call.sizes[name] = context;
  return all.calls;
}

std::span<const CountedCall> Steps::prefill(int64_t tokens, int64_t context) {
  return at(Session::function_of(tokens), tokens, context);
}

std::span<const CountedCall> Steps::prefill_of(int64_t batch, int64_t tokens, int64_t context, Logits logits) {
  if (batch == 1 && logits == Logits::last) return prefill(tokens, context);
  batched_.clear();
  auto take = [&](const char* function, int64_t rows, auto&& wanted) {
    for (const CountedCall& c : at(function, rows, context))
      if (wanted(c.call)) batched_.push_back(c);
  };
  auto in_head = [](const llm::KernelCall& c) { return c.layer == llm::kHeadLayer; };
  const char* function = logits == Logits::last ? "prefill" : "verify";  // `verify` has logits for each of its rows
  take(function, tokens, touches_cache);
  for (CountedCall& c : batched_) c.call.sequences = batch;
  take(function, tokens * batch, [&](const llm::KernelCall& c) {
    return !touches_cache(c) && (logits == Logits::all || !in_head(c));
  });
  if (logits == Logits::last) take("verify", batch, in_head);
  return batched_;
}

std::span<const CountedCall> Steps::decode(int64_t batch, int64_t context) {
  const std::span<const CountedCall> one = at("decode", 1, context);
  if (batch == 1) return one;
  batched_.clear();
  for (const CountedCall& c : one) {
    if (!touches_cache(c.call)) continue;
    batched_.push_back(c);
    batched_.back().call.sequences = batch;
  }
  // `verify` has logits for each of its rows, as a batch wants them.
  for (const CountedCall& c : at("verify", batch, context))
    if (!touches_cache(c.call)) batched_.push_back(c);
  return batched_;
}

namespace {

void add(SweepCost& sum, const SweepCost& part, int64_t times) {
  sum.latency_cycles += part.latency_cycles * times;
  sum.latency_s += part.latency_s * static_cast<double>(times);
  sum.macs += part.macs * times;
  sum.energy_j += part.energy_j * static_cast<double>(times);
  sum.outer_bytes += part.outer_bytes * times;
  sum.kernels_without_cost += part.kernels_without_cost * times;
  for (size_t c = 0; c < kComponentCount; ++c) {
    sum.components[c].latency_cycles += part.components[c].latency_cycles * times;
    sum.components[c].vector_ops += part.components[c].vector_ops * times;
    sum.components[c].vector_cycles += part.components[c].vector_cycles * times;
  }
}

}  // namespace

SweepCost step_cost(std::span<const CountedCall> calls, int64_t tokens, ChipCoster& coster, const Links& links) {
  SweepCost sum;
  double slots = 0;
  std::map<std::string, int64_t> bound;
  for (const CountedCall& c : calls) {
    const SweepCost& kernel = coster.cost_of(c.call);
    add(sum, kernel, c.count);
    slots += kernel.utilization * static_cast<double>(kernel.latency_cycles * c.count);
    bound[kernel.bound] += kernel.latency_cycles * c.count;
  }
  if (links.any()) {
    const auto sums = static_cast<int64_t>(links.layers.size());
    const Cost one = all_reduce_row(links, "", tokens, coster.chip()).cost;
    add(sum,
        {.latency_cycles = one.latency_cycles,
         .latency_s = one.latency_s,
         .energy_j = one.energy_j,
         .components = one.components},
        sums);
    bound["links"] += one.latency_cycles * sums;
  }
  if (sum.latency_cycles > 0) sum.utilization = slots / static_cast<double>(sum.latency_cycles);
  int64_t longest = 0;
  for (const auto& [name, cycles] : bound)
    if (cycles > longest) longest = cycles, sum.bound = name;
  return sum;
}

std::vector<SweepPoint> sweep_of(Steps& steps, int64_t chunk, const SweepAxes& axes, ChipCoster& coster,
                                 const Links& links) {
  std::vector<SweepPoint> points;
  for (int64_t batch : axes.batches)
    for (int64_t context : axes.contexts) {
      SweepPoint point{.batch = batch, .context = context};
      double slots = 0;
      int64_t longest = 0;
      for (const llm::StepSize& size : prefill_steps(context, chunk)) {
        const SweepCost step = step_cost(steps.prefill(size.tokens, size.context), size.tokens, coster, links);
        add(point.prefill, step, batch);
        slots += step.utilization * static_cast<double>(step.latency_cycles * batch);
        if (step.latency_cycles > longest) longest = step.latency_cycles, point.prefill.bound = step.bound;
      }
      if (point.prefill.latency_cycles > 0)
        point.prefill.utilization = slots / static_cast<double>(point.prefill.latency_cycles);
      point.decode = step_cost(steps.decode(batch, context), batch, coster, links);
      points.push_back(std::move(point));
    }
  return points;
}

namespace {

double tokens_per_s(const SweepPoint& point) {
  return point.decode.latency_s > 0 ? static_cast<double>(point.batch) / point.decode.latency_s : 0;
}
double joules_per_token(const SweepPoint& point) { return point.decode.energy_j / static_cast<double>(point.batch); }

}  // namespace

std::string sweep_table(const Study& study) {
  size_t width = 8;
  for (const SchemeResult& s : study.schemes) width = std::max(width, display_width(s.name) + 2);
  std::string out;
  for (size_t chip = 0; chip < study.chips.size(); ++chip) {
    const bool any = std::any_of(study.schemes.begin(), study.schemes.end(), [&](const SchemeResult& s) {
      return !s.chips[chip].sweep.empty();
    });
    if (!any) continue;
    out += text("\nsweep on ",
                study.chips[chip].name,
                "\n",
                pad_right("scheme", width),
                pad_left("batch", 6),
                pad_left("context", 9),
                pad_left("prefill", 11),
                pad_left("decode step", 13),
                pad_left("tokens/s", 10),
                pad_left("per token", 11),
                "  bound\n");
    for (const SchemeResult& scheme : study.schemes)
      for (const SweepPoint& point : scheme.chips[chip].sweep)
        out += text(pad_right(scheme.name, width),
                    pad_left(text(point.batch), 6),
                    pad_left(text(point.context), 9),
                    pad_left(quantity(point.prefill.latency_s, "s"), 11),
                    pad_left(quantity(point.decode.latency_s, "s"), 13),
                    pad_left(significant(tokens_per_s(point)), 10),
                    pad_left(energy_text(joules_per_token(point)), 11),
                    "  ",
                    point.decode.bound,
                    "\n");
  }
  return out;
}

std::string sweep_csv(const Study& given) {
  Study study = given;  // the descriptions take fields to read and to write
  CsvTable table;
  auto add = [&](SchemeResult& scheme, ChipResult& chip, SweepPoint& point, bool prefill) {
    const double tokens = static_cast<double>(point.batch * (prefill ? point.context : 1));
    table.begin();
    CsvWriter w(table);
    w(csv_only("model"), study.model.name);
    w(csv_only("scheme"), scheme.name);
    w(csv_only("chip"), chip.chip);
    describe_place(w, point);
    w(csv_only("phase"), std::string(prefill ? "prefill" : "decode"));
    describe(w, prefill ? point.prefill : point.decode, tokens);
  };
  SchemeResult scheme;
  ChipResult chip;
  SweepPoint point;
  add(scheme, chip, point, true);
  table.keep_head_alone();
  for (SchemeResult& s : study.schemes)
    for (ChipResult& c : s.chips)
      for (SweepPoint& p : c.sweep)
        for (bool prefill : {true, false}) add(s, c, p, prefill);
  return table.words();
}

}  // namespace sator::study
