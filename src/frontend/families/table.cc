#include "frontend/families/table.h"

namespace sator::families {

const std::vector<Family>& all() {
  static const std::vector<Family> families = {
      kGpt2,  kLlama,   kQwen2,    kQwen3,    kMistral,  kPhi3,    kGemma,  kGemma2,     kOpt,       kStarcoder2,
      kOlmo2, kGranite, kStablelm, kGemma3,   kSmollm3,  kGlm4,    kCohere, kCohere2,    kPhi,       kGptNeox,
      kGptj,  kFalcon,  kBloom,    kQwen2Moe, kQwen3Moe, kMixtral, kGptOss, kDeepseekV2, kDeepseekV3};
  return families;
}

}  // namespace sator::families
