// NVIDIA's warp matrix instructions as tensor intrinsics.
#pragma once

#include "schedule/intrinsics/in_text.h"

namespace sator::schedule {

/// wmma_load_16x16x16_{f16,s8}_{a,b}[_trans]_{shared,shared_dyn}, wmma_fill_16x16x16_{f16,f32,s32},
/// wmma_store_16x16x16_{f16,f32,s32}_{shared,shared_dyn,global}, wmma_sync_16x16x16_{f16f16f16,f16f16f32,s8s8s32}[_trans]: of a
/// matrix of 16 x 16, which the 32 threads of a warp hold together ("wmma.matrix_a", ".matrix_b", ".accumulator").
/// Source: NVIDIA, "CUDA C++ Programming Guide", section "Warp Matrix Functions"; names and builtins: TVM.
const TextIntrins& wmma_intrins();

}  // namespace sator::schedule
