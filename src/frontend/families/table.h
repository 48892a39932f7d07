// The families, one file each: to add one, write its file, name it here and in table.cc.
#pragma once

#include "frontend/families/keys.h"

namespace sator::families {

extern const Family kGpt2, kLlama, kQwen2, kQwen3, kMistral, kPhi3, kGemma, kGemma2, kOpt, kStarcoder2, kOlmo2,
    kGranite, kStablelm, kGemma3, kSmollm3, kGlm4, kCohere, kCohere2, kPhi, kGptNeox, kGptj, kFalcon, kBloom, kQwen2Moe,
    kQwen3Moe, kMixtral, kGptOss, kDeepseekV2, kDeepseekV3;

}  // namespace sator::families
