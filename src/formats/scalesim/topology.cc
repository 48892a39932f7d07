#include "formats/scalesim/topology.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "formats/scalesim/python_int.h"

namespace sator::formats {
namespace {

constexpr size_t kMostLayers = 1 << 20;

struct Field {
  std::string_view text;
  size_t column = 0;
};

/// The fields of a line, blanks removed. SCALE-Sim wants a comma after the last one; it may be missing here.
std::vector<Field> fields_of(std::string_view content) {
  std::vector<Field> fields;
  size_t column = 0;
  for (std::string_view part : split(content, ',')) {
    const std::string_view body = trim(part);
    fields.push_back({body, body.empty() ? column : static_cast<size_t>(body.data() - content.data())});
    column += part.size() + 1;
  }
  while (!fields.empty() && fields.back().text.empty()) fields.pop_back();
  return fields;
}

/// N:M, two positive numbers.
void check_sparsity(const Field& field, const TextLine& line) {
  const std::vector<std::string_view> parts = split(field.text, ':');
  if (parts.size() != 2)
    line.fail(field.column,
              text(shown(field.text), " is no sparsity ratio"),
              "the last field is N:M, like 1:1",
              "write 1:1, or leave the field out");
  for (std::string_view part : parts) positive_int(part, line, field.column, "each part of the sparsity ratio");
}

int64_t positions(int64_t input, int64_t filter, int64_t stride) {
  return (input - filter) / stride + ((input - filter) % stride != 0) + 1;
}

void derive(ScalesimLayer& layer, const TextLine& line, size_t column) {
  layer.ofmap_h = positions(layer.ifmap_h, layer.filter_h, layer.stride);
  layer.ofmap_w = positions(layer.ifmap_w, layer.filter_w, layer.stride);
  layer.n = layer.filters;
  int64_t words = 0, macs = 0;
  if (__builtin_mul_overflow(layer.ofmap_h, layer.ofmap_w, &layer.m) ||
      __builtin_mul_overflow(layer.filter_h, layer.filter_w, &layer.k) ||
      __builtin_mul_overflow(layer.k, layer.channels, &layer.k) || __builtin_mul_overflow(layer.m, layer.k, &macs) ||
      __builtin_mul_overflow(macs, layer.n, &macs) || __builtin_mul_overflow(layer.ifmap_h, layer.ifmap_w, &words) ||
      __builtin_mul_overflow(words, layer.channels, &words))
    line.fail(column,
              text("layer ", shown(layer.name), " has more multiplications than 64 bits can count"),
              "every count below 2^63",
              "use smaller sizes");
}

struct Number {
  const char* name;
  int64_t ScalesimLayer::* member;
};
constexpr Number kGemm[] = {
    {"M", &ScalesimLayer::ifmap_h}, {"N", &ScalesimLayer::filters}, {"K", &ScalesimLayer::ifmap_w}};
constexpr Number kConv[] = {{"the input height", &ScalesimLayer::ifmap_h},
                            {"the input width", &ScalesimLayer::ifmap_w},
                            {"the filter height", &ScalesimLayer::filter_h},
                            {"the filter width", &ScalesimLayer::filter_w},
                            {"the number of channels", &ScalesimLayer::channels},
                            {"the number of filters", &ScalesimLayer::filters},
                            {"the stride", &ScalesimLayer::stride}};

ScalesimLayer read_layer(const TextLine& line, bool gemm) {
  const std::vector<Field> fields = fields_of(line.content);
  const std::span<const Number> numbers = gemm ? std::span<const Number>(kGemm) : std::span<const Number>(kConv);
  const size_t least = 1 + numbers.size();
  if (fields.size() < least || fields.size() > least + 1) {
    const size_t column = fields.size() > least + 1 ? fields[least + 1].column : line.content.size();
    line.fail(
        column,
        text("the line has ", fields.size(), " fields"),
        gemm ? "name, M, N, K and perhaps a sparsity ratio N:M"
             : "name, input height, input width, filter height, filter width, channels, filters, stride and perhaps a "
               "sparsity ratio N:M",
        text("give ", least, " fields", gemm ? "" : "; products M, N, K are read with \"gemm\": true"));
  }
  ScalesimLayer layer{.name = std::string(fields[0].text), .gemm = gemm};
  for (size_t i = 0; i < numbers.size(); ++i)
    layer.*numbers[i].member = positive_int(fields[i + 1].text, line, fields[i + 1].column, numbers[i].name);
  if (fields.size() > least) check_sparsity(fields[least], line);
  if (gemm) layer.filter_w = layer.ifmap_w;
  if (layer.filter_h > layer.ifmap_h || layer.filter_w > layer.ifmap_w)
    line.fail(fields[3].column,
              text("the filter ",
                   layer.filter_h,
                   " x ",
                   layer.filter_w,
                   " is larger than its input ",
                   layer.ifmap_h,
                   " x ",
                   layer.ifmap_w),
              "the filter fits into the input (padding is part of the input's size)",
              "add the padding to the input's height and width");
  derive(layer, line, fields[0].column);
  return layer;
}

}  // namespace

std::vector<ScalesimLayer> parse_scalesim_topology(std::string_view text, bool gemm, std::string_view file) {
  const std::vector<TextLine> lines = text_lines(text, file);
  std::vector<ScalesimLayer> layers;
  for (size_t i = 1; i < lines.size(); ++i) {  // the first line is the heading
    if (trim(lines[i].content).empty()) continue;
    ScalesimLayer layer = read_layer(lines[i], gemm);
    const bool depthwise = !gemm && layer.name.find("DP") != std::string::npos;
    const int64_t copies = depthwise ? layer.channels : 1;
    if (copies > static_cast<int64_t>(kMostLayers - layers.size()))
      lines[i].fail(0,
                    sator::text("the file has more than ", kMostLayers, " layers with this one"),
                    sator::text("at most ", kMostLayers, " layers"),
                    "split the file");
    if (depthwise) {
      const std::string name = layer.name;
      layer.channels = 1;
      derive(layer, lines[i], 0);
      for (int64_t channel = 0; channel < copies; ++channel) {
        layer.name = sator::text(name, "Channel_", channel);
        layers.push_back(layer);
      }
    } else {
      layers.push_back(std::move(layer));
    }
  }
  if (layers.empty())
    (lines.empty() ? TextLine{"", file, 1} : lines.back())
        .fail(0, "the file has no layer", "a heading line, then one layer a line", "add a line for each layer");
  return layers;
}

std::string scalesim_topology_text(const std::vector<ScalesimLayer>& layers, bool gemm) {
  std::string out =
      gemm ? "Layer, M, N, K,\n"
           : "Layer, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n";
  for (const ScalesimLayer& layer : layers) {
    out += layer.name;
    for (const Number& number : gemm ? std::span<const Number>(kGemm) : std::span<const Number>(kConv))
      out += text(", ", layer.*number.member);
    out += ",\n";
  }
  return out;
}

}  // namespace sator::formats
