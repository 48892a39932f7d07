// Codes of other programs that do not fit each other, or stand for nothing.
#include "llm/stored_codes.h"

#include <gtest/gtest.h>

#include <functional>

#include "frontend/hf_config.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

/// What a change of one tensor of the MXFP4 model leads to.
std::string error_with(const std::string& tensor,
                       const std::function<void(SafeTensor&, std::vector<std::byte>&)>& change) {
  const fs::path from = reference_data("models/quantized/mxfp4");
  const SafeTensors given = SafeTensors::open_folder(from);
  std::vector<SafeTensor> tensors;
  std::vector<std::byte> bytes;
  bool found = false;
  for (SafeTensor t : given.tensors()) {
    if (t.name == tensor) {
      found = true;
      bytes.assign(t.bytes.begin(), t.bytes.end());
      change(t, bytes);
      t.bytes = bytes;
    }
    if (!t.name.empty()) tensors.push_back(t);
  }
  EXPECT_TRUE(found) << tensor;
  TempFolder folder;
  fs::copy_file(from / "config.json", folder.path() / "config.json");
  write_safetensors(folder.path() / "model.safetensors", tensors);
  return error_of([&] {
    const Checkpoint checkpoint = Checkpoint::open(folder.path(), read_model_config(folder.path()));
    for (const StoredWeight& w : checkpoint.weights())
      if (w.format) w.codes();
  });
}

TEST(StoredCodesErrors, MicroscaledExperts) {
  const std::string stack = "model.layers.1.mlp.experts.down_proj";
  auto none = [](SafeTensor&, std::vector<std::byte>&) {};
  EXPECT_EQ(error_with(stack + "_scales", none), "");
  EXPECT_NE(error_with(stack + "_scales", [](SafeTensor&, auto& bytes) { bytes[17] = std::byte{255}; })
                .find(stack + "_scales has the scale 255"),
            std::string::npos);
  EXPECT_NE(error_with(stack + "_scales", [](SafeTensor& t, auto&) { t.name = ""; }).find(stack + "_scales is missing"),
            std::string::npos);
  EXPECT_NE(error_with(stack + "_scales", [](SafeTensor& t, auto&) { t.shape = {t.shape[0], t.shape[2], t.shape[1]}; })
                .find("as the layer's codes say"),
            std::string::npos);
  EXPECT_NE(
      error_with(stack + "_blocks", [](SafeTensor& t, auto&) { t.shape = {t.shape[0] * t.shape[1], t.shape[2], 16}; })
          .find("four dimensions"),
      std::string::npos);
  EXPECT_NE(error_with(stack + "_blocks", [](SafeTensor& t, auto&) { t.dtype = i8; }).find("is int8"),
            std::string::npos);
  EXPECT_NE(error_with(stack + "_bias", [](SafeTensor& t, auto&) { t.shape = {t.shape[0] * t.shape[1]}; })
                .find("a matrix or a vector for each expert"),
            std::string::npos);
}

}  // namespace
}  // namespace sator::llm
