#include "frontend/stored_quantization.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/tokenizer/regex.h"

namespace sator {

using Method = StoredQuantization::Method;

namespace {

constexpr int64_t kLargestGroup = int64_t{1} << 24;
constexpr std::string_view kOriginal = "start from the original checkpoint and pick a scheme here";

/// Inputs that share a scale: -1, or nothing, stands for all of them.
int64_t read_group(const JsonAt& at, std::string_view name) {
  auto given = at.find(name);
  if (!given) return 0;
  const int64_t group = given->integer(-1, kLargestGroup);
  if (group == 0) given->fail("is 0", "inputs that share a scale, or -1 for all of a row");
  return group < 0 ? 0 : group;
}

int read_bits(const JsonAt& at, std::string_view name, std::initializer_list<int64_t> widths) {
  const JsonAt given = at.at(name);
  const int64_t bits = given.integer();
  if (std::find(widths.begin(), widths.end(), bits) == widths.end())
    given.fail(text("is ", bits), text("one of ", join(widths, ", ")), kOriginal);
  return static_cast<int>(bits);
}

StoredQuantization read_gptq(const JsonAt& at) {
  StoredQuantization q{.method = Method::gptq, .bits = read_bits(at, "bits", {2, 3, 4, 8})};
  q.group = read_group(at, "group_size");
  q.symmetric = at.boolean_or("sym", true);
  // Static groups lie in the order of the inputs, in whatever order these were rounded.
  q.reordered = at.boolean_or("desc_act", false) && !at.boolean_or("static_groups", false);
  const std::string format = at.string_or("checkpoint_format", "gptq");
  if (format != "gptq" && format != "gptq_v2")
    at.at("checkpoint_format").fail(text("is ", string_literal(format)), "gptq or gptq_v2", kOriginal);
  q.zeros_less_one = format == "gptq";
  return q;
}

StoredQuantization read_awq(const JsonAt& at) {
  const std::string_view width = at.find("bits") ? "bits" : "w_bit",
                         group = at.find("group_size") ? "group_size" : "q_group_size";
  StoredQuantization q{.method = Method::awq, .bits = read_bits(at, width, {4})};
  q.group = read_group(at, group);
  q.symmetric = false;
  const std::string version = lower_case(at.string_or("version", "gemm"));
  if (version != "gemm") at.at("version").fail(text("is ", string_literal(version)), "gemm", kOriginal);
  if (!at.boolean_or("zero_point", true))
    at.at("zero_point").fail("is false, codes without zero points", "true", kOriginal);
  return q;
}

/// [outputs, inputs] that share a scale.
void read_block(const JsonAt& at, StoredQuantization& q) {
  std::vector<int64_t> sides;
  at.each([&](const JsonAt& side) { sides.push_back(side.integer(1, kLargestGroup)); });
  if (sides.size() != 2) at.fail(text("has ", sides.size(), " numbers"), "[outputs, inputs] that share a scale");
  q.block_rows = sides[0], q.group = sides[1];
}

/// DeepSeek's and Qwen's: 8-bit floats with a scale for each block, or, without a block's size, for each tensor.
StoredQuantization read_fp8(const JsonAt& at) {
  StoredQuantization q{.method = Method::fp8, .bits = 8};
  if (auto format = at.find("fmt"); format && format->string() != "e4m3" && format->string() != "e5m2")
    format->fail(text("is ", string_literal(format->string())), "e4m3 or e5m2", kOriginal);
  if (auto block = at.find("weight_block_size")) read_block(*block, q);
  q.activations = at.string_or("activation_scheme", "");
  return q;
}

/// Whether scales of inputs are taken from each row, or are stored.
std::string read_activations(const JsonAt& inputs) {
  return inputs.boolean_or("dynamic", false) ? "dynamic" : "static";
}

/// Weights of compressed-tensors that are 8-bit floats.
StoredQuantization read_compressed_floats(const JsonAt& group) {
  const JsonAt weights = group.at("weights");
  if (weights.string_or("type", "") != "float") weights.at("type").fail("is no float", "float", kOriginal);
  read_bits(weights, "num_bits", {8});
  if (!weights.boolean_or("symmetric", true)) weights.at("symmetric").fail("is false", "true", kOriginal);
  StoredQuantization q{.method = Method::fp8, .bits = 8};
  const std::string strategy = weights.string_or("strategy", "tensor");
  if (strategy == "block") {
    read_block(weights.at("block_structure"), q);
  } else if (strategy == "group") {
    q.block_rows = 1, q.group = read_group(weights, "group_size");
  } else if (strategy != "channel" && strategy != "tensor") {
    weights.at("strategy").fail(text("is ", string_literal(strategy)), "tensor, channel, group or block", kOriginal);
  }
  if (auto inputs = group.find("input_activations")) q.activations = read_activations(*inputs);
  return q;
}

/// Whether groups are of inputs that lie apart: "group", called "dynamic" too. With "weight", called "static", inputs were
/// quantized in another order than they lie in, and groups are of neighbours.
bool orders_inputs(const JsonAt& at) {
  if (at.is_boolean()) return at.boolean();
  const std::string name = lower_case(at.string());
  if (name == "group" || name == "dynamic") return true;
  if (name != "weight" && name != "static")
    at.fail(text("is ", string_literal(at.string())), "group, dynamic, weight, static, or none", kOriginal);
  return false;
}

/// Source: the description of quantization schemes in the documentation of compressed-tensors.
StoredQuantization read_compressed(const JsonAt& at) {
  const std::string format = at.string_or("format", "");
  if (format != "pack-quantized" && format != "int-quantized" && format != "float-quantized")
    at.fail(
        text("has the format ", string_literal(format)), "pack-quantized, int-quantized or float-quantized", kOriginal);
  std::optional<StoredQuantization> found;
  auto take = [&](const JsonAt& group, const StoredQuantization& q) {
    if (found && (found->bits != q.bits || found->group != q.group || found->symmetric != q.symmetric ||
                  found->block_rows != q.block_rows || found->reordered != q.reordered))
      group.fail("stores weights otherwise than another group", "one format for all weights", kOriginal);
    found = q;
  };
  at.at("config_groups").each_member([&](const std::string&, const JsonAt& group) {
    if (format == "float-quantized") return take(group, read_compressed_floats(group));
    const JsonAt weights = group.at("weights");
    if (weights.string_or("type", "int") != "int") weights.at("type").fail("is no integer", "int", kOriginal);
    StoredQuantization q{.method = Method::packed,
                         .bits = format == "int-quantized" ? read_bits(weights, "num_bits", {8})
                                                           : read_bits(weights, "num_bits", {4, 8})};
    const std::string strategy = weights.string_or("strategy", weights.find("group_size") ? "group" : "tensor");
    if (strategy != "group" && strategy != "channel")
      weights.at("strategy").fail(text("is ", string_literal(strategy)), "group or channel", kOriginal);
    q.group = strategy == "group" ? read_group(weights, "group_size") : 0;
    q.symmetric = weights.boolean_or("symmetric", true);
    if (auto inputs = group.find("input_activations")) {
      read_bits(*inputs, "num_bits", {8});
      q.activations = read_activations(*inputs);
    }
    if (auto actorder = weights.find("actorder")) q.reordered = orders_inputs(*actorder) && strategy == "group";
    take(group, q);
  });
  if (!found) at.at("config_groups").fail("is empty", "a group with weights", kOriginal);
  return *found;
}

}  // namespace

/// Errors: a rule for layers, an expression of Python's `re` behind "-:", is none.
static void require_expression(const JsonAt& at, const std::string& rule) {
  try {
    Regex::of_rust(rule.substr(2));
  } catch (const Error& e) {
    at.fail(text("cannot be read as a regular expression: ", e.reason.what),
            "-: and what Python's expressions and Rust's have in common",
            "mend the rule; it says which layers were left out, and the tensors show them too");
  }
}

/// Refuses what would be arithmetic of its own when the model runs, and layouts that are not read.
static void refuse_further_arithmetic(const JsonAt& at) {
  for (const char* key : {"transform_config", "rotation", "adapter"})
    if (auto given = at.find(key); given && !given->json().empty())
      given->fail("is given, which is not supported", text("no ", key, ", or an empty one"), kOriginal);
  // GPTQModel's rules for layers: "-:" leaves some out, which the tensors show; others give some another format.
  if (auto rules = at.find("dynamic"))
    rules->each_member([](const std::string& rule, const JsonAt& given) {
      if (!rule.starts_with("-:"))
        given.fail("gives some layers a format of their own, which is not supported",
                   "rules \"-:...\" alone, which leave layers out",
                   kOriginal);
      require_expression(given, rule);
    });
  if (auto marlin = at.find("is_marlin_format"); marlin && marlin->json() != false)
    marlin->fail("is true, another layout of the codes", "false", kOriginal);
  if (auto packed = at.find("pack_dtype"); packed && packed->json() != "int32")
    packed->fail(text("is ", packed->json().dump()), "int32", kOriginal);
  if (auto sparse = at.find("sparsity_config"); sparse && sparse->is_object())
    if (auto format = sparse->find("format"); format && format->json() != "dense")
      format->fail(text("is ", format->json().dump(), ", which is not supported"), "dense", kOriginal);
  if (auto groups = at.find("config_groups"); groups && groups->is_object())
    groups->each_member([](const std::string&, const JsonAt& group) {
      if (!group.is_object()) return;
      if (auto out = group.find("output_activations"))
        out->fail("asks for codes of results, which are not made", "weights alone", kOriginal);
    });
}

StoredQuantization read_stored_quantization(const JsonAt& at) {
  refuse_further_arithmetic(at);
  const JsonAt method = at.at("quant_method");
  const std::string name = method.string();
  if (name == "gptq") return read_gptq(at);
  if (name == "awq") return read_awq(at);
  if (name == "compressed-tensors") return read_compressed(at);
  if (name == "fp8") return read_fp8(at);
  if (name == "fbgemm_fp8") return {.method = Method::fp8, .bits = 8, .activations = "dynamic"};
  if (name == "mxfp4") return {.method = Method::mxfp4, .bits = 4, .group = 32};
  method.fail(text("is ", string_literal(name), ": such weights are not supported"),
              "gptq, awq, compressed-tensors, fp8, fbgemm_fp8 or mxfp4, or floating-point weights",
              kOriginal);
}

}  // namespace sator
