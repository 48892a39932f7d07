// The engine's counts against a chip that executes: random small programs run, scheduled onto random arrays, and registers,
// wires and memories count what passes.
#include <gtest/gtest.h>

#include <random>

#include "dataflow/cost/scheduled.h"
#include "dataflow/cost/virtual_chip.h"
#include "dataflow/programs/from_tir.h"
#include "tir/parse.h"

namespace sator::dataflow {
namespace {

using Random = std::mt19937_64;

int64_t pick(Random& random, int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); }

struct Program {
  std::string text;
  FunctionFacts facts;
};

/// A product in TVMScript, after what makes its factors.
///   loops     names and extents, spatial ones first
struct Product {
  std::vector<std::pair<std::string, int64_t>> loops;
  std::string kinds;  // "SSR"
  std::string output, first, second;
  std::string text() const {
    std::string extents, bound, vars, joined;
    for (const auto& [name, extent] : loops) {
      extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
      bound += (bound.empty() ? "" : ", ") + name;
      vars += (vars.empty() ? "v" : ", v") + name;
    }
    return sator::text("    for ",
                       bound,
                       " in T.grid(",
                       extents,
                       "):\n        with T.block(\"product\"):\n            ",
                       vars,
                       " = T.axis.remap(\"",
                       kinds,
                       "\", [",
                       bound,
                       "])\n            with T.init():\n                ",
                       output,
                       " = T.float32(0)\n            ",
                       output,
                       " = ",
                       output,
                       " + ",
                       first,
                       " * ",
                       second,
                       "\n");
  }
};

std::string buffer(const std::string& name, const std::vector<int64_t>& shape) {
  return text(name, ": T.Buffer((", join(shape, ", "), shape.size() == 1 ? "," : "", "), \"float32\")");
}

Program function(const std::vector<std::string>& params, const std::string& body, std::vector<ParamFacts> facts) {
  return {text("@T.prim_func\ndef f(", join(params, ", "), "):\n", body),
          {.name = "f", .sizes = {}, .params = std::move(facts)}};
}

/// A matrix product whose weights are codes, with scales of every granularity, and zero points.
Program draw_quantized(Random& random) {
  const int64_t m = pick(random, 1, 9), n = pick(random, 1, 9), k = pick(random, 1, 12), g = pick(random, 2, 5);
  const int kind = static_cast<int>(pick(random, 0, 3));
  const bool asymmetric = pick(random, 0, 1) == 1;
  const int64_t groups = (k + g - 1) / g;
  const std::string at[] = {"0", "v0", "v1", text("v0, v1 // ", g)};
  const std::vector<int64_t> shapes[] = {{1}, {n}, {k}, {n, groups}};
  std::string value = "Q[v0, v1]";
  if (asymmetric) value = text("(", value, " - Z[", at[kind], "])");
  std::vector<std::string> params = {buffer("A", {m, k}), buffer("Q", {n, k}), buffer("S", shapes[kind])};
  std::vector<ParamFacts> facts = {{OperandKind::activation, 8}, {OperandKind::weight, 4}, {OperandKind::scale, 16}};
  if (asymmetric) params.push_back(buffer("Z", shapes[kind])), facts.push_back({OperandKind::scale, 8});
  params.push_back(buffer("C", {m, n})), facts.push_back({});
  std::string body =
      text("    W = T.alloc_buffer((",
           n,
           ", ",
           k,
           "), \"float32\")\n    for i0, i1 in T.grid(",
           n,
           ", ",
           k,
           "):\n        with T.block(\"dequantize\"):\n            v0, v1 = T.axis.remap(\"SS\", [i0, i1])\n",
           "            W[v0, v1] = ",
           value,
           " * S[",
           at[kind],
           "]\n");
  body += Product{{{"i", m}, {"j", n}, {"k", k}}, "SSR", "C[vi, vj]", "A[vi, vk]", "W[vj, vk]"}.text();
  return function(params, body, facts);
}

/// A matrix product of codes that are made of its inputs, whose sums are rescaled: both are made and used inside.
Program draw_codes(Random& random) {
  const int64_t m = pick(random, 1, 9), n = pick(random, 1, 9), k = pick(random, 1, 12);
  std::string body =
      text("    A = T.alloc_buffer((",
           m,
           ", ",
           k,
           "), \"float32\")\n    P = T.alloc_buffer((",
           m,
           ", ",
           n,
           "), \"float32\")\n    for i0, i1 in T.grid(",
           m,
           ", ",
           k,
           "):\n        with T.block(\"quantize\"):\n            v0, v1 = T.axis.remap(\"SS\", [i0, i1])\n"
           "            A[v0, v1] = X[v0, v1] * T.float32(2)\n");
  body += Product{{{"i", m}, {"j", n}, {"k", k}}, "SSR", "P[vi, vj]", "A[vi, vk]", "W[vj, vk]"}.text();
  body += text("    for i0, i1 in T.grid(",
               m,
               ", ",
               n,
               "):\n        with T.block(\"rescale\"):\n            v0, v1 = T.axis.remap(\"SS\", [i0, i1])\n",
               "            C[v0, v1] = P[v0, v1] * S[v1]\n");
  return function({buffer("X", {m, k}), buffer("W", {n, k}), buffer("S", {n}), buffer("C", {m, n})},
                  body,
                  {{}, {OperandKind::weight, 8}, {OperandKind::scale, 32}, {}});
}

/// Heads of attention that share keys.
Program draw_batched(Random& random) {
  const int64_t share = pick(random, 1, 3), heads = share * pick(random, 1, 3);
  const int64_t m = pick(random, 1, 6), n = pick(random, 1, 7), d = pick(random, 1, 6);
  Product p{{{"h", heads}, {"i", m}, {"j", n}, {"d", d}},
            "SSSR",
            "S[vh, vi, vj]",
            "Q[vh, vi, vd]",
            text("K[vh // ", share, ", vj, vd]")};
  return function({buffer("Q", {heads, m, d}), buffer("K", {heads / share, n, d}), buffer("S", {heads, m, n})},
                  p.text(),
                  {{}, {OperandKind::kv, 8}, {}});
}

/// Windows with strides and dilations.
Program draw_convolution(Random& random) {
  const int64_t out = pick(random, 1, 5), rows = pick(random, 1, 5), columns = pick(random, 1, 4),
                in = pick(random, 1, 3);
  const int64_t u = pick(random, 1, 3), v = pick(random, 1, 2), stride = pick(random, 1, 2),
                dilation = pick(random, 1, 2);
  Product p{{{"o", out}, {"y", rows}, {"x", columns}, {"c", in}, {"u", u}, {"v", v}},
            "SSSRRR",
            "O[vo, vy, vx]",
            text("I[vc, vy * ", stride, " + vu * ", dilation, ", vx + vv]"),
            "W[vo, vc, vu, vv]"};
  const int64_t height = (rows - 1) * stride + (u - 1) * dilation + 1;
  return function(
      {buffer("I", {in, height, columns + v - 1}), buffer("W", {out, in, u, v}), buffer("O", {out, rows, columns})},
      p.text(),
      {{OperandKind::activation, 8}, {OperandKind::weight, 8}, {}});
}

Chip draw_chip(Random& random) {
  const char* const names[] = {"tpuv1", "gemmini16", "edge_npu32"};
  Chip chip = find_chip(text(SATOR_SOURCE_DIR, "/chips/", names[pick(random, 0, 2)], ".toml"));
  constexpr Stationary kKept[] = {Stationary::output, Stationary::weight, Stationary::input};
  constexpr Wires kWires[] = {Wires::systolic, Wires::multicast, Wires::none};
  chip.dataflow = kKept[pick(random, 0, 2)];
  chip.wires = kWires[pick(random, 0, 2)];
  chip.rows = pick(random, 1, 4), chip.columns = pick(random, 1, 4);
  // Memories so small that tensors pass them in tiles, and large enough for a step of the array.
  for (Memory& memory : chip.memories)
    if (memory.capacity_bytes)
      memory.capacity_bytes = std::max(pick(random, 16, 160), 4 * (chip.pes() + chip.rows + chip.columns));
  return chip;
}

/// Memory for a function's buffers, with small integers in it: sums in any order are exact.
struct Arguments {
  std::vector<std::vector<float>> memory;
  std::vector<tir::Argument> args;
  explicit Arguments(const tir::PrimFunc& f) {
    for (const VarRef& param : f.params) {
      const BufferRef b = f.buffer_of(param);
      std::vector<int64_t> shape;
      size_t elements = 1;
      for (const Expr& e : b->shape) shape.push_back(*as_int(e)), elements *= static_cast<size_t>(shape.back());
      std::vector<float>& data = memory.emplace_back(elements);
      for (size_t n = 0; n < elements; ++n) data[n] = static_cast<float>(n * 37 % 13) - 6;
      args.push_back(tir::ArrayView{data.data(), b->dtype, shape, {}});
    }
  }
};

/// The elements that a product's instance has to do with, per tensor: those it reads, those that its factors are made of on
/// the way, and the sum.
class Touched {
 public:
  explicit Touched(const std::vector<BlockEvents>& blocks) {
    for (const BlockEvents& b : blocks)
      if (b.block != "product")
        for (const Event& e : b.events) made_of_[{e.written, e.element}] = e.reads;
  }
  std::vector<Touch> operator()(const Event& e, const std::string& tensor) const {
    std::vector<Touch> out;
    if (e.written == tensor) out.push_back({tensor, e.element, 0});
    for (const Touch& t : e.reads) {
      if (t.tensor == tensor) out.push_back(t);
      auto made = made_of_.find({t.tensor, t.element});
      if (made == made_of_.end()) continue;
      for (const Touch& source : made->second)
        if (source.tensor == tensor) out.push_back(source);
    }
    return out;
  }

 private:
  std::map<std::pair<std::string, Element>, std::vector<Touch>> made_of_;
};

struct Checked {
  int programs = 0, at_pes = 0, traffic = 0, in_tiles = 0, inside = 0, outside = 0;
};

/// The most bits of elements that a memory has between their first touch and their last, over the stamps of a run.
class Alive {
 public:
  /// Adds a tensor's elements.
  void add(const std::vector<Event>& events, const std::string& tensor, int64_t bits, const Touched& touched) {
    std::map<Element, std::pair<std::vector<int64_t>, std::vector<int64_t>>> spans;
    for (const Event& e : events)
      for (const Touch& t : touched(e, tensor)) {
        auto [at, fresh] = spans.try_emplace(t.element, e.time, e.time);
        at->second.first = std::min(at->second.first, e.time), at->second.second = std::max(at->second.second, e.time);
      }
    for (const auto& [element, span] : spans) begins_[span.first] += bits, ends_[span.second] += bits;
  }
  int64_t most() const {
    int64_t now = 0, most = 0;
    auto end = ends_.begin();
    for (const auto& [time, bits] : begins_) {
      for (; end != ends_.end() && end->first < time; ++end) now -= end->second;
      most = std::max(most, now += bits);
    }
    return most;
  }

 private:
  std::map<std::vector<int64_t>, int64_t> begins_, ends_;
};

void check(const Program& program, const Chip& chip, Checked& checked) {
  const tir::PrimFuncRef plain = tir::parse_function(program.text);
  const KernelCost cost = CostEngine(chip).cost(work_of(*plain, program.facts, &chip).kernel);
  const ScheduledFunction scheduled = schedule_as_costed(plain, "f", cost);
  SCOPED_TRACE(text(program.text, scheduled.trace));
  Arguments expected(*plain), found(*plain);
  tir::Interpreter(plain).run(expected.args);
  const std::vector<BlockEvents> blocks = Recorder::run(scheduled.func, found.args);
  EXPECT_EQ(expected.memory, found.memory) << "the scheduled program computes something else";
  const TirWork again = work_of(*scheduled.func, program.facts, &chip);
  EXPECT_EQ(difference(cost, CostEngine(chip).cost(again.kernel, again.placements)), "");
  const StatementCost* s = nullptr;
  for (const StatementCost& each : cost.statements)
    if (each.on_array()) s = &each;
  ASSERT_TRUE(s && s->counts);
  const BlockEvents* product = nullptr;
  for (const BlockEvents& b : blocks)
    if (b.block == s->name) product = &b;
  ASSERT_TRUE(product);
  ++checked.programs;
  EXPECT_EQ(s->macs, static_cast<int64_t>(product->events.size()));

  const Touched touched(blocks);
  const PeArray array(chip, product->events);
  const int sum_bits = s->precision->accumulator_bits;
  const size_t output = s->product->output;
  const size_t weight = s->placement->weight.value_or(weight_of(s->work, *s->product));
  std::map<std::pair<size_t, std::string>, Passed> bits;  // per memory and tensor: read, written
  std::map<size_t, Alive> alive;                          // per memory
  for (size_t a = 0; a < s->work.statement.accesses.size(); ++a) {
    const std::string& tensor = s->work.statement.accesses[a].tensor;
    SCOPED_TRACE(tensor);
    auto touches = [&](const Event& e) { return touched(e, tensor); };
    const AtPes pes = array.run(touches);
    const TensorCounts& counts = s->counts->tensors[a];
    const int64_t footprint = static_cast<int64_t>(pes.footprint.size());
    EXPECT_EQ(pes.assigned, counts.assigned);
    EXPECT_EQ(pes.scratchpad, counts.unique);
    EXPECT_EQ(pes.own, counts.temporal_hits);
    EXPECT_EQ(pes.wired, counts.spatial_hits);
    EXPECT_EQ(footprint, counts.footprint);
    ++checked.at_pes;
    if (a != output && tensor == s->work.statement.accesses[output].tensor) continue;

    const Operand& operand = s->work.operands[a];
    const std::vector<size_t> path = memory_path(s->work, *s->product, weight, a, chip);
    if (operand.internal && !operand.on_the_way && !path.empty()) {
      alive[path[0]].add(
          product->events, tensor, a == output ? std::max(sum_bits, operand.bits) : operand.bits, touched);
      ++checked.inside;
    }
    for (size_t i = 0; i < path.size(); ++i) {
      const bool last = i + 1 == path.size();
      Passed passed{pes.scratchpad, pes.scratchpad};
      if (!last) {
        const size_t inner = path[i + 1];
        const bool own = a < s->placement->held_by_access.size();
        const size_t since = own ? s->placement->held_by_access[a].at(inner) : s->placement->held_since[inner];
        passed = pass_through_memory(product->events, since, touches);
        checked.in_tiles += passed.in > footprint;
      }
      // The memory at i gives what passes inwards; the next one takes it. Sums come back where they were not complete.
      int64_t inwards = passed.in * operand.bits, outwards = 0;
      if (a == output) {
        const int64_t again = passed.in - footprint;
        const int whole_bits = last ? std::max(sum_bits, operand.bits) : operand.bits;
        inwards = again * sum_bits;
        outwards = footprint * whole_bits + (passed.out - footprint) * sum_bits;
      }
      Passed& here = bits[{path[i], tensor}];
      here.in += inwards, here.out += outwards;
      if (!last) {
        Passed& next = bits[{path[i + 1], tensor}];
        next.in += outwards, next.out += inwards;
      }
    }
  }
  for (const auto& [m, elements] : alive)
    EXPECT_LE(elements.most(), 8 * chip.memories[m].capacity_bytes.value_or(INT64_MAX / 8)) << chip.memories[m].name;
  checked.outside += static_cast<int>(s->placement->stored_outside.size());
  std::map<std::pair<size_t, std::string>, Passed> counted;
  for (const Traffic& t : s->traffic) {
    Passed& p = counted[{t.memory, t.tensor}];
    p.in += t.read_bits, p.out += t.write_bits;
    ++checked.traffic;
  }
  for (const auto& [key, passed] : bits) {
    const Passed& engine = counted[key];
    EXPECT_EQ(passed.in, engine.in) << key.second << " read from " << chip.memories[key.first].name;
    EXPECT_EQ(passed.out, engine.out) << key.second << " written to " << chip.memories[key.first].name;
  }
  EXPECT_EQ(bits.size(), counted.size());
}

TEST(CountingMemory, AgreesWithTheEngineOnRandomProgramsAndSchemes) {
  Checked checked;
  for (uint64_t seed = 1; seed <= 310 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(text("seed ", seed));
    Random random(seed);
    const Program program = seed > 210      ? draw_codes(random)
                            : seed % 3 == 0 ? draw_batched(random)
                            : seed % 3 == 1 ? draw_quantized(random)
                                            : draw_convolution(random);
    check(program, draw_chip(random), checked);
  }
  EXPECT_EQ(checked.programs, 310);
  // Of the kernels' own tensors some must have had room, and some none.
  EXPECT_GE(checked.inside, 100);
  EXPECT_GE(checked.outside, 8);
  // Of these, enough must have come in parts for the memories' counts to say something.
  EXPECT_GE(checked.in_tiles, 50);
  RecordProperty("inside", checked.inside);
  RecordProperty("outside", checked.outside);
  RecordProperty("programs", checked.programs);
  RecordProperty("tensors_at_pes", checked.at_pes);
  RecordProperty("traffic", checked.traffic);
  RecordProperty("tensors_in_tiles", checked.in_tiles);
}

}  // namespace
}  // namespace sator::dataflow
