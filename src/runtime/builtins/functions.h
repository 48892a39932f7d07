#pragma once

// The functions behind the rows of table.cc; what each does is said there, what it takes here.
#include "runtime/args.h"

namespace sator::runtime {

class VirtualMachine;

namespace builtin {

// Symbolic shapes (shape.cc). `heap` is an int64 tensor with one slot per symbolic size of the function. Each
// dimension is a pair (code, value); the last argument of a check is the text that says which value of the
// program it concerns.
Value alloc_shape_heap(VirtualMachine&, const Args&);  // (slots) -> heap
Value match_shape(VirtualMachine&, const Args&);       // (tensor|shape, heap, rank, (code, value)..., context)
Value match_prim_value(VirtualMachine&, const Args&);  // (integer, heap, code, value, context)
Value make_shape(VirtualMachine&, const Args&);        // (heap, rank, (code, value)...) -> shape
Value make_prim_value(VirtualMachine&, const Args&);   // (heap, code, value) -> integer
Value shape_of(VirtualMachine&, const Args&);          // (tensor) -> shape
Value tensor_property(VirtualMachine&, const Args&);   // (tensor, what, [axis]) -> integer
Value tensor_to_shape(VirtualMachine&, const Args&);   // (int64 tensor of rank 1) -> shape
Value shape_to_tensor(VirtualMachine&, const Args&);   // (shape) -> int64 tensor of rank 1

// Checks of what a function was given (check.cc).
Value check_tensor_info(VirtualMachine&, const Args&);      // (value, rank|-1, [dtype], context)
Value check_shape_info(VirtualMachine&, const Args&);       // (value, rank|-1, context)
Value check_prim_value_info(VirtualMachine&, const Args&);  // (value, dtype, context)
Value check_tuple_info(VirtualMachine&, const Args&);       // (value, size, context)
Value check_func_info(VirtualMachine&, const Args&);        // (value, context)

// Memory (memory.cc).
Value alloc_storage(VirtualMachine&, const Args&);  // (shape, device, dtype, scope) -> storage
Value alloc_tensor(VirtualMachine&, const Args&);   // (storage, byte offset, shape, dtype) -> tensor
Value alloc_scalar(VirtualMachine&, const Args&);   // dtype -> tensor of one element
Value read_scalar(VirtualMachine&, const Args&);    // tensor of one element -> integer or float
Value null_value(VirtualMachine&, const Args&);     // ([anything]) -> nothing
Value reshape(VirtualMachine&, const Args&);        // (tensor, shape) -> tensor
Value view(VirtualMachine&, const Args&);           // (tensor, shape|(), dtype|(), bytes|()) -> tensor
Value copy(VirtualMachine&, const Args&);           // (value) -> value
Value to_device(VirtualMachine&, const Args&);      // (tensor, DLPack device kind, index) -> tensor

// Sorting along an axis (sort.cc): equal elements keep their order, NaN is greater than all numbers. Results are given.
Value sort(VirtualMachine&, const Args&);     // (tensor, axis, descending, values)
Value argsort(VirtualMachine&, const Args&);  // (tensor, axis, descending, indices)
Value topk(VirtualMachine&, const Args&);     // (tensor, axis, descending, values, indices)

/// (tensor, sorted, index, inverse, counts, [axis]) -> values, or a tuple (unique.h).
Value unique(VirtualMachine&, const Args&);
Value nonzero(VirtualMachine&, const Args&);  // (tensor) -> indices (nonzero.h)

// Functions that oneDNN computes (dnnl.cc). With a profiler the kernel runs too, before it, and both times are recorded.
Value dnnl(VirtualMachine&, const Args&);  // (kernel of the same meaning, operation (dnnl.h), operand..., result)

// Tuples, branches, calls (control.cc).
Value make_tuple(VirtualMachine&, const Args&);        // (field...) -> tuple
Value tuple_getitem(VirtualMachine&, const Args&);     // (tuple, index) -> field
Value tuple_reset_item(VirtualMachine&, const Args&);  // (tuple, index)
Value take_param(VirtualMachine&, const Args&);        // (source, index)
Value read_if_cond(VirtualMachine&, const Args&);      // (integer | tensor of one element) -> 0 or 1
Value make_closure(VirtualMachine&, const Args&);      // (function, captured...) -> function
Value invoke_closure(VirtualMachine&, const Args&);    // (function, argument...) -> its value
Value print(VirtualMachine&, const Args&);             // (format, value...) (printing.h)
Value assert_op(VirtualMachine&, const Args&);         // (condition, format, value...)
Value call_tir_dyn(VirtualMachine&,
                   const Args&);  // (function, tensor..., shape): the shape's extents become scalars

// A cache of one tensor (growing_cache.cc).
Value growing_cache_create(VirtualMachine&, const Args&);
Value growing_cache_append(VirtualMachine&, const Args&);
Value growing_cache_update(VirtualMachine&, const Args&);
Value growing_cache_view(VirtualMachine&, const Args&);
Value growing_cache_popn(VirtualMachine&, const Args&);
Value growing_cache_clear(VirtualMachine&, const Args&);

// The KV cache (kv.cc); arguments in kv_cache.h.
Value kv_cache_create(VirtualMachine&, const Args&);
Value kv_state_clear(VirtualMachine&, const Args&);
Value kv_state_add_sequence(VirtualMachine&, const Args&);
Value kv_state_remove_sequence(VirtualMachine&, const Args&);
Value kv_state_fork_sequence(VirtualMachine&, const Args&);
Value kv_state_popn(VirtualMachine&, const Args&);
Value kv_state_begin_forward(VirtualMachine&, const Args&);
Value kv_state_end_forward(VirtualMachine&, const Args&);
Value kv_attention_with_fused_qkv(VirtualMachine&, const Args&);
Value kv_get_query_positions(VirtualMachine&, const Args&);
Value kv_get_num_available_pages(VirtualMachine&, const Args&);
Value kv_get_total_sequence_length(VirtualMachine&, const Args&);
Value kv_debug_get_kv(VirtualMachine&, const Args&);

}  // namespace builtin
}  // namespace sator::runtime
