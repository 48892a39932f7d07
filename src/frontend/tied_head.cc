#include "frontend/tied_head.h"

#include <cstring>

#include "base/error.h"
#include "frontend/safetensors.h"

namespace sator {

/// The weight of a layer, with or without the `transformer.` or `model.` that some published folders leave out.
static const SafeTensor* find_weight(const SafeTensors& tensors, const std::string& layer) {
  std::string_view name = layer;
  if (const SafeTensor* found = tensors.find(text(name, ".weight"))) return found;
  for (std::string_view prefix : {"transformer.", "model."})
    if (name.starts_with(prefix)) return tensors.find(text(name.substr(prefix.size()), ".weight"));
  return nullptr;
}

bool has_head_of_its_own(const fs::path& folder, const TensorNames& names) {
  try {
    const SafeTensors tensors = SafeTensors::open_folder(folder).of_text_part();
    const SafeTensor* head = find_weight(tensors, names.head);
    const SafeTensor* embedding = find_weight(tensors, names.embedding);
    if (!head || !embedding) return false;
    return head->dtype != embedding->dtype || head->shape != embedding->shape ||
           std::memcmp(head->bytes.data(), embedding->bytes.data(), head->bytes.size()) != 0;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace sator
