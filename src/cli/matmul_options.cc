#include "cli/matmul_options.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "llm/scheme.h"

namespace sator::cli {

std::vector<int64_t> integers_of(const std::string& option, const std::string& given, char separator, size_t count,
                                 int64_t least) {
  std::vector<int64_t> values;
  for (std::string_view word : split(given, separator)) {
    word = trim(word);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc() || end != word.data() + word.size() || value < least) {
      values.clear();
      break;
    }
    values.push_back(value);
  }
  if (values.size() != count)
    fail({.what = text(option, " ", given),
          .needs = count == 1 ? text("an integer of at least ", least)
                              : text(count,
                                     " integers of at least ",
                                     least,
                                     " with ",
                                     string_literal(text(separator)),
                                     " between them"),
          .hint = text("as in ",
                       option,
                       " ",
                       option == "--size" ? "n=128"
                       : count == 1       ? "4"
                       : count == 2       ? "16x16"
                                          : "128,768,768")});
  return values;
}

dataflow::Matmul matmul_of(const std::vector<int64_t>& size, const std::string& name) {
  dataflow::Matmul m{.i = size[0], .j = size[1], .k = size[2]};
  const llm::Scheme scheme = llm::parse_scheme(name);
  m.float_bits = scheme.storage.bits;
  if (scheme.linear) {
    switch (scheme.linear->granularity) {
      case llm::Granularity::tensor: m.scale = dataflow::ScalePer::tensor; break;
      case llm::Granularity::input: m.scale = dataflow::ScalePer::input; break;
      case llm::Granularity::group: m.scale = dataflow::ScalePer::group; break;
      default: m.scale = dataflow::ScalePer::channel;
    }
    m.weight_bits = scheme.linear->bits;
    m.group = scheme.linear->group;
    m.asymmetric = scheme.linear->asymmetric;
    m.scale_bits = scheme.linear->scale_dtype.bits;
  }
  if (scheme.activation && scheme.activation->granularity == llm::Granularity::group)
    fail({.what =
              text(scheme.name, " has a scale for each group of inputs, whose product is costed with its model alone"),
          .needs = "inputs with a scale per token, or static ones",
          .hint = "`sator study --shapes-only` costs it; here +a8 is near to it"});
  if (scheme.activation) {
    m.activation_bits = scheme.activation->bits;
    m.token_scales = !scheme.activation->is_static();
    // Scales per input that the weights have leave one for X (scheme.h).
    if (!m.token_scales && m.scale != dataflow::ScalePer::input)
      m.static_scales = std::min(m.k, scheme.activation->num_scales(m.k));
  }
  return m;
}

}  // namespace sator::cli
