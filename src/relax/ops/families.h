// The families of ops: each gives its rows, table.cc joins them.
#pragma once

#include "relax/ops/op.h"

namespace sator::relax {

std::vector<OpDef> unary_ops();
std::vector<OpDef> binary_ops();
std::vector<OpDef> create_ops();
std::vector<OpDef> shape_ops();
std::vector<OpDef> rearrange_ops();
std::vector<OpDef> layout_transform_ops();
std::vector<OpDef> index_ops();
std::vector<OpDef> gather_ops();
std::vector<OpDef> linear_algebra_ops();
std::vector<OpDef> statistical_ops();
std::vector<OpDef> search_ops();
std::vector<OpDef> nn_ops();
std::vector<OpDef> norm_ops();
std::vector<OpDef> convolution_ops();
std::vector<OpDef> pooling_ops();
std::vector<OpDef> attention_ops();
std::vector<OpDef> quantize_ops();
std::vector<OpDef> image_ops();
std::vector<OpDef> collective_ops();
std::vector<OpDef> distributed_ops();
std::vector<OpDef> call_ops();
std::vector<OpDef> inspect_ops();
std::vector<OpDef> memory_ops();
std::vector<OpDef> grad_ops();

}  // namespace sator::relax
