// Perplexities under every kind of scheme against a numpy program written from the definitions (reference/).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/corpus.h"
#include "engine/evaluate.h"
#include "llm/open.h"

namespace sator::llm {
namespace {

constexpr int64_t kWindowTokens = 512;

TEST(Reference, PerplexityOfEveryKindOfScheme) {
  const fs::path example = fs::path(SATOR_SOURCE_DIR) / "examples" / "gpt2-stories";
  const auto expected = nlohmann::json::parse(
      std::ifstream(fs::path(SATOR_SOURCE_DIR) / "tests" / "llm" / "reference" / "quantized_perplexity.json"));
  const std::vector<int32_t> stream = token_stream_of(example, example / "validation.txt");
  const int64_t windows = expected.at("windows");
  int schemes = 0;
  for (const auto& [name, value] : expected.at("perplexity").items()) {
    OpenOptions options;
    options.scheme = parse_scheme(name);
    options.calibration = example / "calibration.txt";
    OpenModel model = open_model(example, options);
    Session session = model.session();
    double p = evaluate_perplexity(session, windows_of(stream, kWindowTokens, windows), [](int64_t) {}).perplexity();
    // Weights alone: the order of float sums. A quantized activation that lies between two codes goes either way with it,
    // and each such choice moves the following ones: the two programs then are two samples of the same rounding noise,
    // which over 1,022 predictions moves the perplexity by 1.4 % at most here; up to the first such choice logits agree.
    double tolerance = options.scheme.activation ? 0.02 : 5e-5;
    // Beside scales per input feature one static scale serves products of very different size: most codes have few bits,
    // and the noise is that of such codes, 3.8 % at most here.
    if (options.scheme.needs_calibration() && options.scheme.linear->granularity == Granularity::input)
      tolerance = 0.06;
    EXPECT_NEAR(p / value.get<double>(), 1, tolerance) << name;
    ++schemes;
  }
  EXPECT_GE(schemes, 20);
}

}  // namespace
}  // namespace sator::llm
