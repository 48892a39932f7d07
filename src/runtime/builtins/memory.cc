#include "base/error.h"
#include "runtime/builtins/functions.h"
#include "runtime/scalars.h"
#include "runtime/tensor_view.h"
#include "runtime/vm.h"

namespace sator::runtime::builtin {

Value alloc_storage(VirtualMachine& vm, const Args& args) {
  const Dims& shape = args.shape(0).dims;
  DType dtype = args.dtype(2);
  if (args.integer(1) != 0 || args.string(3) != "global")
    fail({.what = text(
              "a storage on device ", args.integer(1), " in scope ", string_literal(args.string(3)), " is asked for"),
          .needs = "device 0, the CPU, and scope \"global\""});
  std::optional<int64_t> size_bytes = Tensor::bytes_of(shape, dtype);
  if (dtype.is_void() || !size_bytes)
    fail({.what = text("a storage of shape ", shape, " and dtype ", dtype, " is asked for"),
          .needs = "extents >= 0 whose product fits 62 bits, and a dtype"});
  return vm.memory().allocate(*size_bytes);
}

Value alloc_tensor(VirtualMachine&, const Args& args) {
  Storage& storage = args.object<Storage>(0, "a storage");
  return Tensor::view(Ref<Storage>(&storage), args.integer(1), args.shape(2).dims, args.dtype(3));
}

Value alloc_scalar(VirtualMachine& vm, const Args& args) {
  const DType dtype = args.dtype(0);
  return Tensor::view(vm.memory().allocate(dtype.element_bytes()), 0, Dims{1}, dtype);
}

Value read_scalar(VirtualMachine&, const Args& args) {
  const Tensor& tensor = args.tensor(0);
  const DType d = tensor.dtype();
  const void* at = tensor.data_as<const char>();
  if (d.is_float()) return real_at(at, d);
  if (d.is_integer() || d.is_bool()) return integer_at(at, d);
  args.fail_expected(0, "one number");
}

Value null_value(VirtualMachine&, const Args&) { return {}; }

Value reshape(VirtualMachine&, const Args& args) { return args.tensor(0).reshaped(args.shape(1).dims); }

Value view(VirtualMachine&, const Args& args) { return view_of(args.tensor(0), args[1], args[2], args[3]); }

Value copy(VirtualMachine&, const Args& args) { return args[0]; }

Value to_device(VirtualMachine&, const Args& args) {
  Tensor& tensor = args.tensor(0);
  Device wanted{static_cast<Device::Kind>(args.integer(1)), static_cast<int32_t>(args.integer(2))};
  if (wanted != tensor.device())
    fail({.what = text("a tensor on ",
                       tensor.device(),
                       " is wanted on device kind ",
                       args.integer(1),
                       ", index ",
                       args.integer(2)),
          .needs = "a device of this build: cpu0"});
  return args[0];
}

}  // namespace sator::runtime::builtin
