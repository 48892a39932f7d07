#pragma once

#include "dataflow/cost/cost.h"
#include "shipped_chips.h"
#include "study/phase.h"

namespace sator::study {

/// Y[i,j] += X[i,k] * W[j,k]; with a group, W is made from codes of `bits` and a scale per `group` inputs.
inline dataflow::Kernel linear(const std::string& name, int64_t i, int64_t j, int64_t k, int bits, bool is_float,
                               int activation_bits, int64_t group = 0) {
  using namespace dataflow;
  const bool float_input = activation_bits > 8;
  Work product;
  product.statement.name = "matmul";
  product.statement.domain = Domain::box({"i", "j", "k"}, {i, j, k});
  product.statement.accesses = {{"X", Role::read, {{variable(0), variable(2)}}},
                                {"W", Role::read, {{variable(1), variable(2)}}},
                                {"Y", Role::write, {{variable(0), variable(1)}}}};
  product.operands = {{.bits = activation_bits, .is_float = float_input},
                      {.bits = bits, .is_float = is_float, .kind = OperandKind::weight},
                      {.bits = 32, .is_float = float_input}};
  product.multiply_accumulate = true;
  if (group == 0) return {name, {product}};
  Work make;
  make.statement.name = "dequantize";
  make.statement.domain = Domain::box({"n", "c"}, {j, k});
  make.statement.accesses = {{"Q", Role::read, {{variable(0), variable(1)}}},
                             {"S", Role::read, {{variable(0), floor_div(variable(1), group)}}},
                             {"W", Role::write, {{variable(0), variable(1)}}}};
  make.operands = {{.bits = bits, .kind = OperandKind::weight},
                   {.bits = 32, .is_float = true, .kind = OperandKind::scale},
                   {.bits = 32, .is_float = true, .kind = OperandKind::weight, .internal = true}};
  make.vector_ops = 3;
  make.vector_work = VectorWork::dequantize;
  product.operands[1] = {.bits = 32, .is_float = true, .kind = OperandKind::weight, .internal = true};
  return {name, {make, product}};
}

/// Y[i,c] = f(X[i,c]) on the vector unit.
inline dataflow::Kernel vector_kernel(const std::string& name, int64_t i, int64_t columns, VectorWork what,
                                      dataflow::OperandKind kind = dataflow::OperandKind::activation) {
  using namespace dataflow;
  Work work;
  work.statement.name = name;
  work.statement.domain = Domain::box({"i", "c"}, {i, columns});
  work.statement.accesses = {{"X", Role::read, {{variable(0), variable(1)}}},
                             {"Y", Role::write, {{variable(0), variable(1)}}}};
  work.operands = {{.bits = 32, .is_float = true, .kind = kind}, {.bits = 32, .is_float = true}};
  work.vector_ops = 4;
  work.vector_work = what;
  return {name, {work}};
}

struct SampleScheme {
  std::string name;
  double perplexity;
  int bits;
  bool is_float;
  int activation_bits;
  int64_t group;
  double bits_per_weight;
};

/// A model of eight layers, 256 wide, under a scheme on a chip: real costs of a program put together by hand.
inline PhaseResult sample_phase(const SampleScheme& s, dataflow::CostEngine& engine, int64_t tokens, int64_t context) {
  std::vector<KernelRow> rows;
  auto add = [&](const dataflow::Kernel& kernel, const std::string& layer, int64_t count = 1) {
    rows.push_back(kernel_row({kernel.name, layer, count, 12.5}, kernel, engine.cost(kernel), engine.chip()));
  };
  auto add_linear = [&](const std::string& name, const std::string& layer, int64_t j, int64_t k) {
    add(linear(name, tokens, j, k, s.bits, s.is_float, s.activation_bits, s.group), layer);
  };
  add(vector_kernel("take", tokens, 256, VectorWork::elementwise), "transformer.wte");
  for (int layer = 0; layer < 8; ++layer) {
    const std::string h = "transformer.h." + std::to_string(layer);
    add(vector_kernel("layer_norm", tokens, 256, VectorWork::reduce), h + ".ln_1");
    if (s.activation_bits == 8) add(vector_kernel("quantize", tokens, 256, VectorWork::quantize), h + ".attn", 2);
    add_linear("qkv", h + ".attn.c_attn", 768, 256);
    add(vector_kernel("attention", tokens * 4, context * 64, VectorWork::reduce, dataflow::OperandKind::kv),
        h + ".attn");
    add_linear("proj", h + ".attn.c_proj", 256, 256);
    add_linear("up", h + ".mlp.c_fc", 1024, 256);
    if (s.activation_bits == 8) add(vector_kernel("rescale", tokens, 1024, VectorWork::rescale), h + ".mlp");
    add_linear("down", h + ".mlp.c_proj", 256, 1024);
  }
  add(linear("head", 1, 8192, 256, 16, true, 32), "lm_head");
  return sum_of(std::move(rows), engine.chip());
}

inline Study sample_study(const std::vector<SampleScheme>& schemes, const std::vector<std::string>& chips) {
  Study study;
  study.model = {"gpt2-stories", "examples/gpt2-stories", "gpt2", 8, 8192, 512, 8546816};
  study.protocol = {.text = "validation.txt",
                    .calibration = "calibration.txt",
                    .windows = 32,
                    .window_tokens = 512,
                    .prompt_len = 128,
                    .gen_len = 32,
                    .decode_context = 144,
                    .threads = 2,
                    .host = "Some <CPU> & more",
                    .version = "sator 0.1.0"};
  for (const SampleScheme& s : schemes)
    study.schemes.push_back(
        {.name = s.name,
         .description = "a scheme \"of\" " + s.name,
         .perplexity = s.perplexity,
         .standard_error = 0.61,
         .windows = 32,
         .predictions = 32 * 511,
         .weight_bytes = static_cast<int64_t>(8546816 * s.bits_per_weight / 8),
         .parameters = 8546816,
         .bits_per_weight = s.bits_per_weight,
         .host_prefill = HostSpeed{2000.0 + 80 * s.bits, 1990.0 + 80 * s.bits, 2010.0 + 80 * s.bits},
         .host_decode = HostSpeed{900.0 - 10 * s.bits, 800.0 - 10 * s.bits, 901.0 - 10 * s.bits},
         .load_s = 0.21});
  for (const std::string& name : chips) {
    dataflow::CostEngine engine(shipped(name));
    study.chips.push_back(facts_of(engine.chip()));
    for (size_t s = 0; s < schemes.size(); ++s)
      study.schemes[s].chips.push_back(
          {name, sample_phase(schemes[s], engine, 128, 128), sample_phase(schemes[s], engine, 1, 144)});
  }
  return study;
}

inline const std::vector<SampleScheme>& default_samples() {
  static const std::vector<SampleScheme> rows = {
      {"f32", 32.468, 32, true, 32, 0, 32},
      {"f16", 32.469, 16, true, 32, 0, 16},
      {"int8-tensor", 32.71, 8, true, 32, 1024, 10.9},
      {"int8-channel", 32.482, 8, true, 32, 256, 10.9},
      {"int8-input", 32.55, 8, true, 32, 128, 10.9},
      {"int8-channel+a8", 32.503, 8, false, 8, 0, 10.9},
      {"int8-channel+a8-tensor", 33.92, 8, false, 8, 0, 10.9},
      {"int8-channel+a8-embedding", 32.61, 8, false, 8, 0, 10.9},
      {"int8-channel+a8-peg8", 33.1, 8, false, 8, 0, 10.9},
      {"int4-group32", 33.61, 4, true, 32, 32, 8.6},
      {"int4-group32+a8", 33.66, 4, false, 8, 0, 8.6},
      {"q4f16_1", 34.02, 4, true, 32, 32, 4.5},
  };
  return rows;
}

}  // namespace sator::study
