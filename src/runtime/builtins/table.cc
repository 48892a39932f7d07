#include "runtime/builtins/table.h"

#include "runtime/builtins/functions.h"

namespace sator::runtime {

namespace {

constexpr Builtin kBuiltins[] = {
    // name, fewest and most arguments, function, what it does
    {"vm.builtin.alloc_shape_heap", 1, 1, builtin::alloc_shape_heap, "makes the slots for a function's symbolic sizes"},
    {"vm.builtin.match_shape", 4, -1, builtin::match_shape, "compares extents with the heap or stores them there"},
    {"vm.builtin.match_prim_value", 5, 5, builtin::match_prim_value, "the same for one integer"},
    {"vm.builtin.make_shape", 2, -1, builtin::make_shape, "builds a shape from the heap"},
    {"vm.builtin.make_prim_value", 3, 3, builtin::make_prim_value, "reads an integer from the heap"},
    {"vm.builtin.shape_of", 1, 1, builtin::shape_of, "the shape of a tensor"},
    {"vm.builtin.tensor_property", 2, 3, builtin::tensor_property, "dtype, rank, an extent or a stride of a tensor"},
    {"vm.builtin.tensor_to_shape", 1, 1, builtin::tensor_to_shape, "the elements of a tensor as a shape"},
    {"vm.builtin.shape_to_tensor", 1, 1, builtin::shape_to_tensor, "the extents of a shape as a tensor"},

    {"vm.builtin.check_tensor_info", 3, 4, builtin::check_tensor_info, "requires a tensor of some rank and dtype"},
    {"vm.builtin.check_shape_info", 3, 3, builtin::check_shape_info, "requires a shape of some rank"},
    {"vm.builtin.check_prim_value_info", 3, 3, builtin::check_prim_value_info, "requires an integer or float"},
    {"vm.builtin.check_tuple_info", 3, 3, builtin::check_tuple_info, "requires a tuple of some size"},
    {"vm.builtin.check_func_info", 2, 2, builtin::check_func_info, "requires a function"},

    {"vm.builtin.alloc_storage", 4, 4, builtin::alloc_storage, "bytes from the machine's pool"},
    {"vm.builtin.alloc_tensor", 4, 4, builtin::alloc_tensor, "a tensor inside a storage"},
    {"vm.builtin.alloc_scalar", 1, 1, builtin::alloc_scalar, "a tensor of one element, for what a kernel returns"},
    {"vm.builtin.read_scalar", 1, 1, builtin::read_scalar, "the number in a tensor of one element"},
    {"vm.builtin.null_value", 0, 0, builtin::null_value, "nothing: written over a register, it drops what was there"},
    {"vm.builtin.kill_object", 1, 1, builtin::null_value, "nothing: to be written over the register of its argument"},
    {"vm.builtin.reshape", 2, 2, builtin::reshape, "the same elements under another shape"},
    {"vm.builtin.view", 4, 4, builtin::view, "the same bytes under another shape, dtype or offset"},
    {"vm.builtin.copy", 1, 1, builtin::copy, "its argument"},
    {"vm.builtin.to_device", 3, 3, builtin::to_device, "the tensor on that device"},

    {"vm.builtin.sort", 4, 4, builtin::sort, "the elements along an axis in their order", true},
    {"vm.builtin.argsort", 4, 4, builtin::argsort, "where the elements of that order stand", true},
    {"vm.builtin.topk", 5, 5, builtin::topk, "the first elements of that order, and where they stand", true},
    {"vm.builtin.unique", 5, 6, builtin::unique, "the values of a tensor, each once"},
    {"vm.builtin.nonzero", 1, 1, builtin::nonzero, "where a tensor is not 0"},

    {"vm.builtin.dnnl", 5, -1, builtin::dnnl, "a product or convolution by oneDNN", true},

    {"vm.builtin.make_tuple", 0, -1, builtin::make_tuple, "a tuple of its arguments"},
    {"vm.builtin.tuple_getitem", 2, 2, builtin::tuple_getitem, "a field of a tuple"},
    {"vm.builtin.tuple_reset_item", 2, 2, builtin::tuple_reset_item, "drops a field of a tuple"},
    {"vm.builtin.take_param", 2, 2, builtin::take_param, "a parameter from a source, which gives it away"},
    {"vm.builtin.read_if_cond", 1, 1, builtin::read_if_cond, "a condition as 0 or 1"},
    {"vm.builtin.make_closure", 1, -1, builtin::make_closure, "a function with its last arguments bound"},
    {"vm.builtin.invoke_closure", 1, -1, builtin::invoke_closure, "calls a function value"},
    {"vm.builtin.print", 1, -1, builtin::print, "prints values, in a format"},
    {"vm.builtin.assert_op", 2, -1, builtin::assert_op, "requires that a condition holds"},
    {"vm.builtin.call_tir_dyn", 2, -1, builtin::call_tir_dyn, "calls a kernel with symbolic sizes as scalars"},

    {"vm.builtin.attention_kv_cache_create", 3, 3, builtin::growing_cache_create, "a cache of one tensor that grows"},
    {"vm.builtin.attention_kv_cache_append", 2, 2, builtin::growing_cache_append, "adds rows to it"},
    {"vm.builtin.attention_kv_cache_update", 2, 2, builtin::growing_cache_update, "puts rows in the place of all"},
    {"vm.builtin.attention_kv_cache_view", 1, 2, builtin::growing_cache_view, "its rows, as a tensor in its memory"},
    {"vm.builtin.attention_kv_cache_array_popn", 2, 2, builtin::growing_cache_popn, "drops the last rows of several"},
    {"vm.builtin.attention_kv_cache_array_clear", 1, 1, builtin::growing_cache_clear, "drops all rows of several"},

    {"vm.builtin.paged_attention_kv_cache_create", 15, -1, builtin::kv_cache_create, "a paged KV cache"},
    {"vm.builtin.kv_state_clear", 1, 1, builtin::kv_state_clear, "forgets all sequences"},
    {"vm.builtin.kv_state_add_sequence", 2, 2, builtin::kv_state_add_sequence, "begins an empty sequence"},
    {"vm.builtin.kv_state_remove_sequence", 2, 2, builtin::kv_state_remove_sequence, "forgets a sequence"},
    {"vm.builtin.kv_state_fork_sequence",
     3,
     4,
     builtin::kv_state_fork_sequence,
     "begins a sequence with another's content"},
    {"vm.builtin.kv_state_popn", 3, 3, builtin::kv_state_popn, "drops the last positions of a sequence"},
    {"vm.builtin.kv_state_begin_forward", 3, 3, builtin::kv_state_begin_forward, "states what a step appends"},
    {"vm.builtin.kv_state_end_forward", 1, 1, builtin::kv_state_end_forward, "ends the step"},
    {"vm.builtin.attention_kv_cache_attention_with_fused_qkv",
     5,
     6,
     builtin::kv_attention_with_fused_qkv,
     "appends a layer's keys and values and attends to all"},
    {"vm.builtin.attention_kv_cache_get_query_positions",
     1,
     1,
     builtin::kv_get_query_positions,
     "positions of the step's tokens"},
    {"vm.builtin.attention_kv_cache_get_num_available_pages", 1, 1, builtin::kv_get_num_available_pages, "free pages"},
    {"vm.builtin.attention_kv_cache_get_total_sequence_length",
     1,
     1,
     builtin::kv_get_total_sequence_length,
     "positions held, over all sequences"},
    {"vm.builtin.attention_kv_cache_debug_get_kv", 4, 4, builtin::kv_debug_get_kv, "keys and values of a range, dense"},
};

}  // namespace

std::span<const Builtin> builtins() { return kBuiltins; }

}  // namespace sator::runtime
