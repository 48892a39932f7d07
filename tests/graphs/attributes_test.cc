// Every attribute of every op is used or refused: with another value a call gives another result, or an error. A row says
// what is called and which other value each attribute is given; an op or an attribute without a row fails.
#include <gtest/gtest.h>

#include <map>

#include "relax/ops/table.h"
#include "relax/parse.h"
#include "support/arrays.h"
#include "support/graphs.h"

namespace sator::test {
namespace {

using Changes = std::map<std::string, std::vector<std::string>>;
/// The call's inputs are over x, y, z (see kInputs), its attributes as written; `changes` replaces or adds one at a time.
struct Row {
  std::string op, inputs;
  std::map<std::string, std::string> attrs;
  Changes changes;
};

/// Each is a tensor of random numbers: what a row needs by name.
const std::map<std::string, std::string> kInputs = {
    {"x", "(4, 6), \"float32\""},
    {"y", "(6,), \"float32\""},
    {"y2", "(6,), \"float32\""},
    {"i", "(4,), \"int32\""},
    {"p", "(4, 3), \"float32\""},
    {"t", "(4,), \"int64\""},
    {"q", "(1, 4, 2, 4), \"float32\""},
    {"k", "(1, 6, 2, 4), \"float32\""},
    {"b", "(1, 2, 4, 6), \"float32\""},
    {"c1", "(1, 4, 8), \"float32\""},
    {"w1", "(4, 4, 3), \"float32\""},
    {"c2", "(1, 4, 8, 8), \"float32\""},
    {"w2", "(4, 4, 3, 3), \"float32\""},
    {"c3", "(1, 4, 4, 4, 4), \"float32\""},
    {"w3", "(4, 4, 3, 3, 3), \"float32\""},
    {"g", "(4,), \"float32\""},
    {"g2", "(4,), \"float32\""},
    {"m", "(1, 4, 6), \"float32\""},
    {"s", "(4, 6), \"int64\""},
    {"h", "(4, 4), \"int8\""},
    {"h2", "(4, 4), \"int8\""},
    {"o", "(1, 3, 1), \"float32\""},
    {"u", "(2, 1), \"float32\""},
    {"r", "(2, 1), \"int64\""},
    {"f", "(3, 2), \"float32\""},
    {"sq", "(4, 4), \"float32\""},
    {"gs", "(4,), \"float32\""},
    {"z4", "(4,), \"int8\""},
};

/// Attributes of windows over `n` dimensions.
Changes window(int n) {
  auto all = [&](int v) {
    std::string out = "[";
    for (int d = 0; d < n; ++d) out += text(d ? ", " : "", v);
    return out + "]";
  };
  return {{"pool_size", {all(3), all(0)}},
          {"strides", {all(2), all(0)}},
          {"padding", {all(0), all(-1)}},
          {"dilation", {all(2), all(0)}},
          {"ceil_mode", {"True"}},
          {"count_include_pad", {"True"}},
          {"layout", {"\"NWC\"", "\"X\""}},
          {"out_layout", {"\"X\"", "\"NDHWC\"", "\"NHWC\"", "\"NWC\""}}};
}
Changes convolution(bool is_transpose) {
  const char *one = is_transpose ? "\"OIW\"" : "\"IOW\"", *two = is_transpose ? "\"OIHW\"" : "\"IOHW\"";
  return {{"strides", {"2", "0"}},
          {"padding", {"1", "-1"}},
          {"dilation", {"2", "0"}},
          {"groups", {"2", "0"}},
          {"data_layout", {"\"X\"", "\"NWC\"", "\"NHWC\"", "\"NDHWC\""}},
          {"kernel_layout", {"\"X\"", one, two, "\"OHWI\""}},
          {"out_layout", {"\"X\"", "\"NWC\"", "\"NHWC\"", "\"NDHWC\""}},
          {"out_dtype", {"\"float64\""}},
          {"output_padding", {"1", "-1"}}};
}

std::vector<Row> rows() {
  std::vector<Row> out = {
      {"full", "R.shape([2, 3]), R.const(1.5, \"float32\")", {}, {{"dtype", {"\"int32\""}}}},
      {"full_like", "x, R.const(1.5, \"float32\")", {}, {{"dtype", {"\"int32\""}}}},
      {"ones", "R.shape([2, 3])", {{"dtype", "\"float32\""}}, {{"dtype", {"\"int32\""}}}},
      {"zeros", "R.shape([2, 3])", {{"dtype", "\"float32\""}}, {{"dtype", {"\"int32\""}}}},
      {"ones_like", "x", {}, {{"dtype", {"\"int32\""}}}},
      {"zeros_like", "x", {}, {{"dtype", {"\"int32\""}}}},
      {"arange", "0, 5, 1", {}, {{"dtype", {"\"float32\""}}}},
      {"astype", "x", {{"dtype", "\"float64\""}}, {{"dtype", {"\"int32\""}}}},
      {"wrap_param", "x", {}, {{"dtype", {"\"int32\"", "\"float64\""}}}},
      {"expand_dims", "x", {{"axis", "0"}}, {{"axis", {"1", "[0, 1]", "7"}}}},
      {"squeeze", "o", {}, {{"axis", {"0", "[1]", "5"}}}},
      {"permute_dims", "x", {}, {{"axes", {"[0, 1]", "[0, 0]"}}}},
      {"layout_transform",
       "x",
       {{"index_map", "lambda i, j: (i, j // 4, j % 4)"}},
       {{"index_map", {"lambda i, j: (j, i)", "lambda i: i"}},
        {"pad_value", {"3"}},
        {"axis_separators", {"[9]"}},
        {"input_axis_separators", {"[3]"}}}},
      {"concat", "(x, x)", {}, {{"axis", {"1", "3"}}}},
      {"split",
       "x",
       {{"indices_or_sections", "2"}},
       {{"indices_or_sections", {"[1]", "4", "3", "0"}}, {"axis", {"1", "4"}}}},
      {"repeat", "x", {{"repeats", "2"}}, {{"repeats", {"3", "-1"}}, {"axis", {"0", "1", "3"}}}},
      {"tile", "x", {{"repeats", "[2]"}}, {{"repeats", {"[2, 1]", "[-1]"}}}},
      {"flip", "x", {{"axis", "0"}}, {{"axis", {"1", "2"}}}},
      {"scatter_elements",
       "x, s, x",
       {},
       {{"axis", {"1", "5"}}, {"reduction", {"\"add\"", "\"mul\"", "\"mean\"", "\"max\"", "\"min\"", "\"sum\""}}}},
      {"stack", "(x, x)", {}, {{"axis", {"1", "-1", "3"}}}},
      {"gather_elements", "sq, R.const([[1, 1, 1, 1], [0, 2, 3, 0]], \"int64\")", {}, {{"axis", {"1", "2"}}}},
      {"gather_nd", "sq, R.const([[0], [1], [2], [3]], \"int64\")", {}, {{"batch_dims", {"1", "2"}}}},
      {"scatter_nd",
       "sq, R.const([[1], [1]], \"int64\"), R.const([[-9, -9, -9, -9], [0.125, 0.25, 0.125, 0.25]], \"float32\")",
       {},
       {{"reduction", {"\"add\"", "\"mul\"", "\"mean\"", "\"max\"", "\"min\"", "\"sum\""}}}},
      {"grad.nll_loss_backward",
       "R.const(1.5, \"float32\"), p, t, R.const([1.0, 2.0, 3.0], \"float32\")",
       {},
       {{"reduction", {"\"sum\""}}, {"ignore_index", {"0", "1", "2"}}}},
      {"grad.take_backward", "sq, sq, i", {{"axis", "0"}}, {{"axis", {"1", "2", "None"}}}},
      {"eye", "3, 4, 1", {}, {{"dtype", {"\"int32\""}}}},
      {"eye_like", "x, 1", {}, {{"dtype", {"\"int32\""}}}},
      {"hamming_window", "5, False, 0.54, 0.46", {}, {{"dtype", {"\"float64\"", "\"int32\""}}}},
      {"meshgrid", "(y, g)", {}, {{"indexing", {"\"xy\"", "\"yx\""}}}},
      {"bucketize",
       "R.const([0.5, 1.0], \"float32\"), R.const([0.0, 1.0], \"float32\")",
       {},
       {{"out_int32", {"True"}}, {"right", {"True"}}}},
      {"slice_scatter", "sq, sq, 0, 4, 1", {}, {{"axis", {"2"}}}},
      {"slice_scatter", "sq, R.const([[1.0, 2.0, 3.0, 4.0]], \"float32\"), 0, 1, 1", {}, {{"axis", {"1"}}}},
      {"nn.prelu", "sq, g", {{"axis", "1"}}, {{"axis", {"0", "2"}}}},
      {"nn.softplus", "x", {}, {{"beta", {"0.5", "0"}}, {"threshold", {"-9.0"}}}},
      {"nn.pixel_shuffle", "c2", {{"upscale_factor", "2"}}, {{"upscale_factor", {"1", "3", "0"}}}},
      {"median", "x", {}, {{"axis", {"0", "[1]", "[0, 1, 2]"}}, {"keepdims", {"True"}}}},
      {"take", "sq, i", {{"axis", "0"}}, {{"axis", {"1", "2", "None"}}}},
      {"strided_slice", "x, [0], [-3], [9], [1]", {}, {{"assume_inbound", {"True"}}}},
      {"matmul", "h, h2", {}, {{"out_dtype", {"\"int32\""}}}},
      {"linear", "h, h2", {}, {{"out_dtype", {"\"int32\""}}}},
      {"einsum",
       "(sq, x)",
       {{"subscripts", "\"ij,jk->ik\""}},
       {{"subscripts", {"\"ij,ik->jk\"", "\"ij,jk->ki\"", "\"ij,jk->ii\"", "\"ij->i\""}}}},
      {"argmax", "x", {}, {{"axis", {"0", "1", "2"}}, {"keepdims", {"True"}}}},
      {"argmin", "x", {}, {{"axis", {"0", "1", "2"}}, {"keepdims", {"True"}}}},
      {"sort", "x", {}, {{"axis", {"0", "2"}}, {"descending", {"True"}}}},
      {"argsort", "x", {}, {{"axis", {"0", "2"}}, {"descending", {"True"}}, {"dtype", {"\"int64\""}}}},
      {"topk",
       "x",
       {},
       {{"k", {"2", "9"}},
        {"axis", {"0", "2"}},
        {"ret_type", {"\"values\"", "\"indices\"", "\"x\""}},
        {"largest", {"False"}},
        {"dtype", {"\"int64\""}}}},
      {"multinomial_from_uniform", "f, u, r", {}, {{"dtype", {"\"int32\""}}}},
      {"nn.leakyrelu", "x", {}, {{"alpha", {"0.5"}}}},
      {"nn.softmax", "x", {}, {{"axis", {"0", "2"}}}},
      {"nn.log_softmax", "x", {}, {{"axis", {"0", "2"}}}},
      {"nn.pad",
       "x",
       {{"pad_width", "[1, 0, 0, 1]"}},
       {{"pad_width", {"[0, 1, 0, 1]", "[1, 1]"}}, {"pad_mode", {"\"reflect\""}}}},
      {"nn.dropout", "x", {}, {{"rate", {"0.1"}}}},
      {"nn.nll_loss",
       "p, t, R.const([1.0, 2.0, 3.0], \"float32\")",
       {},
       {{"reduction", {"\"sum\"", "\"none\"", "\"max\""}}, {"ignore_index", {"0", "1", "2"}}}},
      {"nn.layer_norm",
       "sq, g, g2",
       {{"axes", "[1]"}},
       {{"axes", {"[0]", "[2]"}}, {"epsilon", {"0.1"}}, {"center", {"False"}}, {"scale", {"False"}}}},
      {"nn.rms_norm", "sq, g", {}, {{"axes", {"[0]", "[2]"}}, {"epsilon", {"0.1"}}}},
      {"nn.group_norm",
       "c1, g, g2",
       {{"num_groups", "2"}, {"channel_axis", "1"}, {"axes", "[2]"}},
       {{"num_groups", {"1", "4", "3", "0"}},
        {"channel_axis", {"2", "0"}},
        {"axes", {"[]", "[1]"}},
        {"epsilon", {"0.1"}},
        {"center", {"False"}},
        {"scale", {"False"}}}},
      {"nn.batch_norm",
       "sq, g, g2, gs, g",
       {{"axis", "1"}},
       {{"axis", {"0", "2"}},
        {"epsilon", {"0.1"}},
        {"center", {"False"}},
        {"scale", {"False"}},
        {"momentum", {"0.5"}},
        {"training", {"False"}}}},
      {"quantize", "sq, g, z4", {}, {{"axis", {"0", "2"}}, {"out_dtype", {"\"uint8\"", "\"int16\"", "\"float32\""}}}},
      {"dequantize", "h, g, z4", {}, {{"axis", {"0", "2"}}, {"out_dtype", {"\"float16\"", "\"int8\""}}}},
      {"image.resize2d",
       "c2, R.shape([4, 4])",
       {},
       {{"layout", {"\"NHWC\"", "\"NC\""}},
        {"method", {"\"cubic\"", "\"nearest_neighbor\"", "\"x\""}},
        {"coordinate_transformation_mode", {"\"asymmetric\"", "\"align_corners\"", "\"x\""}},
        {"out_dtype", {"\"float64\""}}}},
      {"image.resize2d",
       "c2, R.shape([3, 5])",
       {{"method", "\"nearest_neighbor\""}},
       {{"rounding_method", {"\"floor\"", "\"ceil\"", "\"x\""}}}},
      {"image.resize2d",
       "c2, R.shape([3, 5])",
       {{"method", "\"cubic\""}},
       {{"cubic_alpha", {"-0.75"}}, {"cubic_exclude", {"1"}}}},
      {"image.resize2d",
       "c2, R.shape([4, 4])",
       {{"coordinate_transformation_mode", "\"tf_crop_and_resize\""}, {"roi", "[0.0, 0.0, 1.5, 1.5]"}},
       {{"roi", {"0.5", "[0.0, 0.0, 1.0, 1.0]"}}, {"extrapolation_value", {"1.0"}}}},
      {"ccl.allreduce", "x", {}, {{"op_type", {"\"max\"", "\"x\""}}}},
      {"ccl.scatter_from_worker0", "x", {{"num_workers", "2"}}, {{"num_workers", {"4", "5"}}, {"axis", {"1"}}}},
  };
  for (const char* op : {"sum", "prod", "max", "min", "mean", "variance", "std"})
    out.push_back({op, "x", {}, {{"axis", {"0", "[1]", "2"}}, {"keepdims", {"True"}}}});
  for (const char* op : {"cumsum", "cumprod"})
    out.push_back({op,
                   "x",
                   {{"axis", "0"}},
                   {{"axis", {"1", "None", "2"}}, {"dtype", {"\"float64\""}}, {"exclusive", {"True"}}}});
  Changes attention = {{"scale", {"0.1"}},
                       {"causal_mask", {"\"TopLeft\"", "\"BottomRight\"", "\"x\""}},
                       {"window_size", {"1", "2", "0"}}};
  // A window needs a mask; of both masks each is changed to the other and to none.
  out.push_back({"nn.attention", "q, k, k", {}, attention});
  out.push_back({"nn.attention",
                 "q, k, k",
                 {{"causal_mask", "\"BottomRight\""}},
                 {{"window_size", {"1", "2", "0"}}, {"causal_mask", {"\"TopLeft\""}}}});
  out.push_back({"nn.attention_bias", "q, k, k, b", {}, attention});
  out.push_back(
      {"nn.attention_bias", "q, k, k, b", {{"causal_mask", "\"TopLeft\""}}, {{"window_size", {"1", "2", "0"}}}});
  out.push_back({"nn.attention_var_len", "q, k, k, i, 4", {}, attention});
  for (int n : {1, 2, 3}) {
    const std::string data = text("c", n), weight = text("w", n);
    out.push_back({text("nn.conv", n, "d"), data + ", " + weight, {}, convolution(false)});
    if (n < 3) out.push_back({text("nn.conv", n, "d_transpose"), data + ", " + weight, {}, convolution(true)});
    for (const char* kind : {"max", "avg"})
      out.push_back({text("nn.", kind, "_pool", n, "d"),
                     data,
                     {{"pool_size", "2"}, {"strides", "3"}, {"padding", "1"}},
                     window(n)});
    out.push_back({text("nn.max_pool", n, "d"), data, {{"pool_size", "2"}}, {{"padding", {"1", "-1"}}}});
    out.push_back({text("nn.adaptive_avg_pool", n, "d"),
                   data,
                   {{"output_size", "3"}},
                   {{"output_size", {"2", "None", "-1"}},
                    {"layout", {"\"X\"", "\"NDHWC\"", "\"NHWC\"", "\"NWC\""}},
                    {"out_layout", {"\"X\""}}}});
  }
  for (const char* op : {"grad.max_pool2d_backward", "grad.avg_pool2d_backward"})
    out.push_back({op, "c2, c2", {}, window(2)});
  return out;
}

/// Attributes that say something about a call and change no value: what they are for.
const std::map<std::string, std::string> kStatements = {
    {"call_tir_inplace.inplace_indices", "which memory a result takes; checked by struct info"},
    {"call_inplace_packed.inplace_indices", "which memory a result takes; checked by struct info"},
    {"call_tir_with_grad.te_grad_name", "the gradient, which nothing here takes"},
    {"call_tir_with_grad.te_grad_kwargs", "the gradient, which nothing here takes"},
    {"to_vdevice.dst_vdevice", "where the result lies: struct info says it"},
    {"hint_on_device.dst_vdevice", "where the result lies: struct info says it"},
    {"dist.annotate_sharding.device_mesh", "where the result is to lie: nothing runs on several devices"},
    {"dist.annotate_sharding.placement", "where the result is to lie: nothing runs on several devices"},
    {"dist.redistribute.device_mesh", "where the result lies: struct info says it"},
    {"dist.redistribute.placement", "where the result lies: struct info says it"},
    {"dist.redistribute_replica_to_shard.num_workers", "what a worker keeps: struct info says it"},
    {"dist.redistribute_replica_to_shard.axis", "what a worker keeps: struct info says it"},
    {"nn.dropout.rate", "how much training drops; inference drops nothing"},
    {"nn.max_pool1d.count_include_pad", "maxima count nothing"},
    {"nn.max_pool2d.count_include_pad", "maxima count nothing"},
    {"nn.max_pool3d.count_include_pad", "maxima count nothing"},
};

/// The value, or nothing where the call is refused.
std::optional<runtime::Value> evaluate(const Row& row, const std::map<std::string, std::string>& attrs) {
  std::string params, call = "R." + row.op + "(" + row.inputs;
  for (const auto& [name, value] : attrs) call += ", " + name + "=" + value;
  for (const auto& [name, type] : kInputs) {
    // As a word of the inputs.
    for (size_t at = row.inputs.find(name); at != std::string::npos; at = row.inputs.find(name, at + 1)) {
      auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '"'; };
      size_t end = at + name.size();
      if ((at > 0 && in_word(row.inputs[at - 1])) || (end < row.inputs.size() && in_word(row.inputs[end]))) continue;
      params += text(params.empty() ? "" : ", ", name, ": R.Tensor(", type, ")");
      break;
    }
  }
  try {
    ModuleRef module =
        relax::parse_module("@R.function\ndef main(" + params + "):\n    gv = " + call + ")\n    return gv\n");
    std::mt19937_64 random(3);
    auto args = arguments_for(*graph_of(*module), random, [](size_t) { return 4; });
    return relax::GraphInterpreter(module).call("main", *args);
  } catch (const Error&) {
    return {};
  }
}

TEST(Attributes, EachIsUsedOrRefused) {
  std::map<std::string, Changes> tried;
  for (const Row& row : rows()) {
    const relax::OpDef& op = relax::op_named(row.op);
    auto base = evaluate(row, row.attrs);
    const bool has_formula = op.has_formula() || row.op == "linear";
    EXPECT_EQ(base.has_value(), has_formula) << row.op << "(" << row.inputs << ")";
    for (const relax::AttrDef& attr : op.attrs) {
      auto change = row.changes.find(attr.name);
      if (change == row.changes.end()) continue;
      for (const std::string& value : change->second) {
        std::map<std::string, std::string> attrs = row.attrs;
        attrs[attr.name] = value;
        auto other = evaluate(row, attrs);
        bool same = base && other && !difference(*base, *other, 1e-9);
        EXPECT_TRUE(!same || kStatements.contains(row.op + "." + attr.name))
            << row.op << ": " << attr.name << "=" << value << " changes nothing";
      }
      tried[row.op][attr.name];
    }
  }
  for (const relax::OpDef& op : relax::op_table()) {
    for (const relax::AttrDef& attr : op.attrs)
      EXPECT_TRUE(tried[op.name].contains(attr.name) || kStatements.contains(op.name + "." + attr.name))
          << "no row changes " << attr.name << " of " << op.name;
  }
}

}  // namespace
}  // namespace sator::test
