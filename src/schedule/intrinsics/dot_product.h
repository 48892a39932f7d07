// Tensor intrinsics of sums of four products of bytes, under TVM's names: "dot_16x4_vnni".
#pragma once

#include "schedule/intrinsics/in_text.h"

namespace sator::schedule {

///   dot_16x4_vnni, dot_16x4_avx512      C[16] += B[16, 4] A[4] of uint8 by int8, into int32: one instruction per level of the CPU
///   dp4a_s8s8s32, dp4a_u8s8s32, dp4a_s8u8s32, dp4a_u8u8u32    C[1] += B[4] A[4] of a GPU's threads, from shared memory
const TextIntrins& dot_product_intrins();

}  // namespace sator::schedule
