// Symbolic shapes at run time: each function keeps its sizes in a heap; VMShapeLower writes these calls.
#include "runtime/builtins/functions.h"
#include "runtime/tensor_property.h"
#include "runtime/vm.h"

namespace sator::runtime::builtin {

namespace {

/// How match_shape treats one extent, given the pair's value.
enum class MatchCode : int64_t {
  assert_equal_immediate = 0,  ///< it equals the value
  store_to_heap = 1,           ///< it is stored in slot `value`: the first sight of a symbolic size
  no_op = 2,
  assert_equal_heap = 3,  ///< it equals slot `value`
};

/// Where make_shape takes one extent from.
enum class MakeCode : int64_t { immediate = 0, load_from_heap = 1 };

int64_t& slot(const Args& args, const Tensor& heap, int64_t index) {
  if (index < 0 || index >= heap.num_elements())
    fail({.what = text(args.callee(), " uses slot ", index, " of a heap of ", heap.num_elements()),
          .needs = "a slot of the heap"});
  return heap.data_as<int64_t>()[index];
}

/// A context of two lines is that of a check of two sizes: the place, and what has to hold.
[[noreturn]] void fail_extent(const std::string& context, std::string_view subject, int64_t got, int64_t expected,
                              bool symbolic) {
  if (const size_t line = context.find('\n'); line != context.npos)
    fail({.what =
              text(context.substr(0, line), ": ", context.substr(line + 1), " does not hold: ", got, " and ", expected),
          .needs = "sizes that fit one another in every run",
          .hint = "pass arguments whose sizes fit, or declare one symbol for both"});
  fail({.what = text(context.empty() ? "" : context + ": ", subject, " is ", got),
        .needs = symbolic ? text("the same size as where the symbol was first seen, ", expected)
                          : text(expected, " there")});
}

void match_one(const Args& args, size_t pair_at, int64_t extent, Tensor& heap, const std::string& context,
               int64_t dim) {
  int64_t code = args.integer(pair_at), value = args.integer(pair_at + 1);
  auto subject = [&] { return dim < 0 ? std::string("the value") : text("extent ", dim); };
  switch (static_cast<MatchCode>(code)) {
    case MatchCode::assert_equal_immediate:
      if (extent != value) fail_extent(context, subject(), extent, value, false);
      return;
    case MatchCode::store_to_heap: slot(args, heap, value) = extent; return;
    case MatchCode::no_op: return;
    case MatchCode::assert_equal_heap:
      if (int64_t known = slot(args, heap, value); extent != known)
        fail_extent(context, subject(), extent, known, true);
      return;
  }
  args.fail_expected(pair_at, "a match code from 0 to 3");
}

int64_t make_one(const Args& args, size_t pair_at, Tensor& heap) {
  int64_t code = args.integer(pair_at), value = args.integer(pair_at + 1);
  switch (static_cast<MakeCode>(code)) {
    case MakeCode::immediate: return value;
    case MakeCode::load_from_heap: return slot(args, heap, value);
  }
  args.fail_expected(pair_at, "a make code, 0 or 1");
}

// The rank argument must agree with the number of pairs that follow it.
void require_pairs(const Args& args, size_t rank_at, size_t after) {
  int64_t rank = args.integer(rank_at);
  if (rank < 0 || args.size() != rank_at + 1 + 2 * static_cast<uint64_t>(rank) + after)
    fail({.what = text(args.callee(), " has rank ", rank, " and ", args.size(), " arguments"),
          .needs = "a code and a value for each extent"});
}

}  // namespace

Value alloc_shape_heap(VirtualMachine& vm, const Args& args) {
  int64_t slots = args.integer(0);
  if (slots < 0 || slots > (1 << 24)) args.fail_expected(0, "a number of slots");
  Ref<Tensor> heap = Tensor::view(vm.memory().allocate(slots * 8), 0, Dims{slots}, i64);
  std::fill_n(heap->data_as<int64_t>(), slots, 0);
  return heap;
}

Value match_shape(VirtualMachine&, const Args& args) {
  const Dims* dims = nullptr;
  if (const Tensor* tensor = args[0].as<Tensor>()) dims = &tensor->shape();
  if (const Shape* shape = args[0].as<Shape>()) dims = &shape->dims;
  if (dims == nullptr) args.fail_expected(0, "a tensor or a shape");
  Tensor& heap = args.shape_heap(1);
  require_pairs(args, 2, 1);
  const std::string& context = args.string(args.size() - 1);
  if (static_cast<int64_t>(dims->size()) != args.integer(2))
    fail_extent(context, "the rank", static_cast<int64_t>(dims->size()), args.integer(2), false);
  for (size_t d = 0; d < dims->size(); ++d)
    match_one(args, 3 + 2 * d, (*dims)[d], heap, context, static_cast<int64_t>(d));
  return {};
}

Value match_prim_value(VirtualMachine&, const Args& args) {
  match_one(args, 2, args.integer(0), args.shape_heap(1), args.string(4), -1);
  return {};
}

Value make_shape(VirtualMachine&, const Args& args) {
  Tensor& heap = args.shape_heap(0);
  require_pairs(args, 1, 0);
  Dims dims;
  dims.resize(static_cast<size_t>(args.integer(1)));
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = make_one(args, 2 + 2 * d, heap);
  return Shape::of(dims);
}

Value make_prim_value(VirtualMachine&, const Args& args) { return make_one(args, 1, args.shape_heap(0)); }

Value shape_of(VirtualMachine&, const Args& args) { return Shape::of(args.tensor(0).shape()); }

Value tensor_property(VirtualMachine&, const Args& args) {
  return runtime::tensor_property(args.tensor(0), args.string(1), args.size() > 2 ? args.integer(2) : 0);
}

Value tensor_to_shape(VirtualMachine&, const Args& args) {
  Tensor& tensor = args.tensor(0);
  if (tensor.dtype() != i64 || tensor.rank() != 1) args.fail_expected(0, "an int64 tensor of rank 1");
  return Shape::of(Dims(std::span(tensor.data_as<const int64_t>(), static_cast<size_t>(tensor.num_elements()))));
}

Value shape_to_tensor(VirtualMachine& vm, const Args& args) {
  const Dims& dims = args.shape(0).dims;
  auto rank = static_cast<int64_t>(dims.size());
  Ref<Tensor> tensor = Tensor::view(vm.memory().allocate(rank * 8), 0, Dims{rank}, i64);
  std::copy(dims.begin(), dims.end(), tensor->data_as<int64_t>());
  return tensor;
}

}  // namespace sator::runtime::builtin
