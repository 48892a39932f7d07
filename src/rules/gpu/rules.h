// The GPU rules, one file each. What each takes and why it declines stands beside its definition.
#pragma once

#include "rules/gpu/blocks.h"

namespace sator::rules::gpu {

MaybeReason apply_matmul_int8_tensor_core(Schedule& s, const GpuContext& context, GpuChoice& choice);
MaybeReason apply_matmul_f16_tensor_core(Schedule& s, const GpuContext& context, GpuChoice& choice);
MaybeReason apply_matmul(Schedule& s, const GpuContext& context, GpuChoice& choice);
MaybeReason apply_low_batch_gemv(Schedule& s, const GpuContext& context, GpuChoice& choice);
MaybeReason apply_gemv(Schedule& s, const GpuContext& context, GpuChoice& choice);
MaybeReason apply_rms_norm(Schedule& s, const GpuContext& context, GpuChoice& choice);
MaybeReason apply_transpose(Schedule& s, const GpuContext& context, GpuChoice& choice);
MaybeReason apply_reduction(Schedule& s, const GpuContext& context, GpuChoice& choice);
MaybeReason apply_general_reduction(Schedule& s, const GpuContext& context, GpuChoice& choice);
MaybeReason apply_fallback(Schedule& s, const GpuContext& context, GpuChoice& choice);

}  // namespace sator::rules::gpu
