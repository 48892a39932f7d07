#include "runtime/dnnl.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/error.h"

#ifdef SATOR_DNNL
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include <map>
#include <memory>
#include <mutex>
#endif

namespace sator::runtime {

namespace {

int64_t number(std::string_view word, std::string_view digits) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (error != std::errc() || end != digits.data() + digits.size())
    fail({.what = text("an operation of oneDNN with ", word), .needs = "whole numbers, with commas between"});
  return n;
}

std::vector<int64_t> numbers(std::string_view word, std::string_view list, size_t count) {
  std::vector<int64_t> out;
  for (std::string_view one : split(list, ',')) out.push_back(number(word, one));
  if (out.size() != count)
    fail({.what = text("an operation of oneDNN with ", word), .needs = text(static_cast<int64_t>(count), " numbers")});
  return out;
}

}  // namespace

DnnlOperation DnnlOperation::from_text(const std::string& words) {
  DnnlOperation op;
  for (std::string_view word : split(words, ' ')) {
    const size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = equals == word.npos ? "" : word.substr(equals + 1);
    if (word == "matmul" || word == "conv2d")
      op.kind = word;
    else if (word == "relu" || word == "gelu" || word == "gelu_tanh")
      op.activation = word;
    else if (word == "transposed")
      op.is_transposed = true;
    else if (key == "x")
      op.x = static_cast<size_t>(number(word, value));
    else if (key == "w")
      op.w = static_cast<size_t>(number(word, value));
    else if (key == "bias")
      op.bias = static_cast<int>(number(word, value));
    else if (key == "strides")
      op.strides = numbers(word, value, 2);
    else if (key == "padding")
      op.padding = numbers(word, value, 4);
    else if (key == "dilation")
      op.dilation = numbers(word, value, 2);
    else if (key == "groups")
      op.groups = number(word, value);
    else
      fail({.what = text("an operation of oneDNN with the word ", string_literal(word)),
            .needs = "the words of runtime/dnnl.h",
            .hint = "RunCodegen writes the text: run it again with this version"});
  }
  if (op.kind.empty())
    fail({.what = text("no operation of oneDNN: ", string_literal(words)), .needs = "matmul, conv2d"});
  return op;
}

#ifndef SATOR_DNNL

namespace {

[[noreturn]] void refuse() {
  fail({.what = "a function of this program runs in oneDNN, and Sator was built without it",
        .needs = "oneDNN 2 when Sator is built: Debian's package libdnnl-dev",
        .hint = "apt install libdnnl-dev and build again; or leave out RunCodegen, and Sator's own kernels run"});
}

}  // namespace

bool has_dnnl() { return false; }
std::string dnnl_version() { refuse(); }
void run_dnnl(const std::string&, std::span<Tensor* const>, Tensor&, int) { refuse(); }

#else

namespace {

using Dimensions = std::vector<dnnl_dim_t>;

/// The library's functions, found by their names: Sator starts where the library is not.
struct Library {
  void* handle = nullptr;
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  void (*set_num_threads)(int) = nullptr;  ///< OpenMP's, where the library uses it
  decltype(&::dnnl_version) version = nullptr;
  decltype(&::dnnl_status2str) status_name = nullptr;
  decltype(&::dnnl_engine_create) engine_create = nullptr;
  decltype(&::dnnl_stream_create) stream_create = nullptr;
  decltype(&::dnnl_stream_wait) stream_wait = nullptr;
  decltype(&::dnnl_memory_desc_init_by_strides) describe = nullptr;
  decltype(&::dnnl_memory_desc_init_by_tag) describe_by_tag = nullptr;
  decltype(&::dnnl_memory_desc_equal) same_layout = nullptr;
  decltype(&::dnnl_memory_desc_get_size) size_of = nullptr;
  decltype(&::dnnl_memory_create) memory_create = nullptr;
  decltype(&::dnnl_memory_destroy) memory_destroy = nullptr;
  decltype(&::dnnl_memory_set_data_handle) set_data = nullptr;
  decltype(&::dnnl_post_ops_create) post_ops_create = nullptr;
  decltype(&::dnnl_post_ops_destroy) post_ops_destroy = nullptr;
  decltype(&::dnnl_post_ops_append_eltwise) append_eltwise = nullptr;
  decltype(&::dnnl_primitive_attr_create) attr_create = nullptr;
  decltype(&::dnnl_primitive_attr_destroy) attr_destroy = nullptr;
  decltype(&::dnnl_primitive_attr_set_post_ops) set_post_ops = nullptr;
  decltype(&::dnnl_matmul_desc_init) matmul = nullptr;
  decltype(&::dnnl_dilated_convolution_forward_desc_init) convolution = nullptr;
  decltype(&::dnnl_reorder_primitive_desc_create) reorder = nullptr;
  decltype(&::dnnl_primitive_desc_create) primitive_desc_create = nullptr;
  decltype(&::dnnl_primitive_desc_destroy) primitive_desc_destroy = nullptr;
  decltype(&::dnnl_primitive_desc_query_md) query_layout = nullptr;
  decltype(&::dnnl_primitive_create) primitive_create = nullptr;
  decltype(&::dnnl_primitive_destroy) primitive_destroy = nullptr;
  decltype(&::dnnl_primitive_execute) execute = nullptr;

  void check(dnnl_status_t status, std::string_view doing) const {
    if (status == dnnl_success) return;
    fail(
        {.what = text("oneDNN ", version()->major, ".", version()->minor, " cannot ", doing, ": ", status_name(status)),
         .needs = "shapes and attributes that the library takes",
         .hint = "leave this function out of the partition: Sator's own kernel runs it"});
  }
};

std::string library_file() { return text("libdnnl.so.", DNNL_VERSION_MAJOR); }

/// The library, opened at the first call; `handle` is null where it is not there.
const Library& opened() {
  static const Library library = [] {
    Library l;
    // Its threads share the cores with Sator's: they sleep while they wait, unless the user says otherwise. OpenMP reads this
    // when it is loaded. Measured on two busy cores: a product of 0.24 ms took 7.5 ms with threads that spin.
    setenv("OMP_WAIT_POLICY", "passive", 0);
    l.handle = dlopen(library_file().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!l.handle) return l;
    auto find = [&]<class F>(const char* name, F*& function) {
      function = reinterpret_cast<F*>(dlsym(l.handle, name));
      if (!function) fail({.what = text(library_file(), " has no function ", name), .needs = "oneDNN 2"});
    };
    find("dnnl_version", l.version);
    find("dnnl_status2str", l.status_name);
    find("dnnl_engine_create", l.engine_create);
    find("dnnl_stream_create", l.stream_create);
    find("dnnl_stream_wait", l.stream_wait);
    find("dnnl_memory_desc_init_by_strides", l.describe);
    find("dnnl_memory_desc_init_by_tag", l.describe_by_tag);
    find("dnnl_memory_desc_equal", l.same_layout);
    find("dnnl_memory_desc_get_size", l.size_of);
    find("dnnl_memory_create", l.memory_create);
    find("dnnl_memory_destroy", l.memory_destroy);
    find("dnnl_memory_set_data_handle", l.set_data);
    find("dnnl_post_ops_create", l.post_ops_create);
    find("dnnl_post_ops_destroy", l.post_ops_destroy);
    find("dnnl_post_ops_append_eltwise", l.append_eltwise);
    find("dnnl_primitive_attr_create", l.attr_create);
    find("dnnl_primitive_attr_destroy", l.attr_destroy);
    find("dnnl_primitive_attr_set_post_ops", l.set_post_ops);
    find("dnnl_matmul_desc_init", l.matmul);
    find("dnnl_dilated_convolution_forward_desc_init", l.convolution);
    find("dnnl_reorder_primitive_desc_create", l.reorder);
    find("dnnl_primitive_desc_create", l.primitive_desc_create);
    find("dnnl_primitive_desc_destroy", l.primitive_desc_destroy);
    find("dnnl_primitive_desc_query_md", l.query_layout);
    find("dnnl_primitive_create", l.primitive_create);
    find("dnnl_primitive_destroy", l.primitive_destroy);
    find("dnnl_primitive_execute", l.execute);
    l.set_num_threads = reinterpret_cast<void (*)(int)>(dlsym(l.handle, "omp_set_num_threads"));
    l.check(l.engine_create(&l.engine, dnnl_cpu, 0), "make an engine");
    l.check(l.stream_create(&l.stream, l.engine, dnnl_stream_default_flags), "make a stream");
    return l;
  }();
  return library;
}

const Library& library() {
  const Library& l = opened();
  if (!l.handle)
    fail({.what = text("a function of this program runs in oneDNN, and ", library_file(), " cannot be opened"),
          .needs = text("oneDNN ", DNNL_VERSION_MAJOR, ": Debian's package libdnnl", DNNL_VERSION_MAJOR),
          .hint = "install it; or leave out RunCodegen, and Sator's own kernels run"});
  return l;
}

Dimensions row_major(const Dimensions& shape) {
  Dimensions strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<dnnl_dim_t>(1, shape[i]);
  return strides;
}

dnnl_memory_desc_t described(const Dimensions& shape, const Dimensions& strides) {
  dnnl_memory_desc_t md;
  library().check(library().describe(&md, static_cast<int>(shape.size()), shape.data(), dnnl_f32, strides.data()),
                  "describe a tensor");
  return md;
}
dnnl_memory_desc_t described(const Dimensions& shape) { return described(shape, row_major(shape)); }

Dimensions shape_of(const Tensor& t) { return {t.shape().begin(), t.shape().end()}; }

[[noreturn]] void refuse_shapes(const std::string& words, std::span<Tensor* const> operands, const Tensor& out) {
  std::vector<std::string> shown;
  for (const Tensor* t : operands) shown.push_back(text(*t));
  fail({.what = text("oneDNN's ", string_literal(words), " of ", join(shown, ", "), " into ", out),
        .needs = "float32 tensors of the shapes that the operation makes"});
}

/// Memory that the library reads or writes; the place of its elements is told at each call.
class Memory {
 public:
  explicit Memory(const dnnl_memory_desc_t& md) {
    library().check(library().memory_create(&memory_, &md, library().engine, DNNL_MEMORY_NONE), "make a memory");
  }
  ~Memory() { library().memory_destroy(memory_); }
  Memory(const Memory&) = delete;
  dnnl_memory_t at(void* data) const {
    library().check(library().set_data(memory_, data), "take a tensor");
    return memory_;
  }

 private:
  dnnl_memory_t memory_ = nullptr;
};

/// An operation on tensors of fixed shapes, compiled by the library.
class Primitive {
 public:
  Primitive(const DnnlOperation& op, const std::string& words, std::span<Tensor* const> operands, const Tensor& out)
      : op_(op) {
    const size_t last = std::max({op.x, op.w, static_cast<size_t>(std::max(0, op.bias))});
    if (last >= operands.size()) refuse_shapes(words, operands, out);
    const auto attr = attributes();
    dnnl_primitive_desc_t desc = nullptr;
    const dnnl_status_t status = op.kind == "matmul" ? describe_matmul(words, operands, out, attr.get(), desc)
                                                     : describe_convolution(words, operands, out, attr.get(), desc);
    library().check(status, "run " + words);
    const std::unique_ptr<dnnl_primitive_desc, void (*)(dnnl_primitive_desc_t)> owner(
        desc, [](dnnl_primitive_desc_t d) { library().primitive_desc_destroy(d); });
    library().check(library().primitive_create(&primitive_, desc), "compile " + words);
    prepare_weights(*library().query_layout(desc, dnnl_query_weights_md, 0));
  }
  ~Primitive() {
    library().primitive_destroy(primitive_);
    if (reorder_) library().primitive_destroy(reorder_);
  }
  Primitive(const Primitive&) = delete;

  void run(std::span<Tensor* const> operands, Tensor& out) {
    const Library& l = library();
    dnnl_memory_t weights = w_->at(operands[op_.w]->data());
    if (reorder_) {  // to the layout that the library chose
      dnnl_memory_t packed = packed_->at(packed_bytes_.data());
      const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, weights}, {DNNL_ARG_TO, packed}};
      l.check(l.execute(reorder_, l.stream, 2, args), "reorder the weights");
      weights = packed;
    }
    std::vector<dnnl_exec_arg_t> args = {{DNNL_ARG_SRC, x_->at(operands[op_.x]->data())},
                                         {DNNL_ARG_WEIGHTS, weights},
                                         {DNNL_ARG_DST, out_->at(out.data())}};
    if (op_.bias >= 0) args.push_back({DNNL_ARG_BIAS, bias_->at(operands[static_cast<size_t>(op_.bias)]->data())});
    l.check(l.execute(primitive_, l.stream, static_cast<int>(args.size()), args.data()), "run");
    l.check(l.stream_wait(l.stream), "run");
  }

 private:
  std::unique_ptr<dnnl_primitive_attr, void (*)(dnnl_primitive_attr_t)> attributes() const {
    const Library& l = library();
    dnnl_primitive_attr_t attr = nullptr;
    l.check(l.attr_create(&attr), "make attributes");
    std::unique_ptr<dnnl_primitive_attr, void (*)(dnnl_primitive_attr_t)> owner(
        attr, [](dnnl_primitive_attr_t a) { library().attr_destroy(a); });
    if (op_.activation.empty()) return owner;
    dnnl_post_ops_t post = nullptr;
    l.check(l.post_ops_create(&post), "make post-operations");
    const dnnl_alg_kind_t kind = op_.activation == "relu"   ? dnnl_eltwise_relu
                                 : op_.activation == "gelu" ? dnnl_eltwise_gelu_erf
                                                            : dnnl_eltwise_gelu_tanh;
    const dnnl_status_t appended = l.append_eltwise(post, 1, kind, 0, 0);
    const dnnl_status_t set = l.set_post_ops(attr, post);
    l.post_ops_destroy(post);
    l.check(appended, "append " + op_.activation);
    l.check(set, "append " + op_.activation);
    return owner;
  }

  dnnl_status_t describe_matmul(const std::string& words, std::span<Tensor* const> operands, const Tensor& out,
                                dnnl_primitive_attr_t attr, dnnl_primitive_desc_t& desc) {
    Dimensions x = shape_of(*operands[op_.x]), w = shape_of(*operands[op_.w]), y = shape_of(out);
    if (x.size() < 2 || w.size() < 2 || y.size() != x.size()) refuse_shapes(words, operands, out);
    if (w.size() == 2 && x.size() > 2) {  // all rows as one matrix
      auto rows = [](const Dimensions& d) {
        dnnl_dim_t m = 1;
        for (size_t i = 0; i + 1 < d.size(); ++i) m *= d[i];
        return Dimensions{m, d.back()};
      };
      x = rows(x);
      y = rows(y);
    }
    Dimensions w_strides = row_major(w);
    const size_t r = w.size();
    if (op_.is_transposed) {
      std::swap(w[r - 1], w[r - 2]);
      std::swap(w_strides[r - 1], w_strides[r - 2]);
    }
    Dimensions made = x;
    made.back() = w.back();
    if (x.size() != r || x[r - 1] != w[r - 2] || made != y || !std::equal(x.begin(), x.end() - 2, w.begin()))
      refuse_shapes(words, operands, out);
    const dnnl_memory_desc_t x_md = described(x), w_md = described(w, w_strides), y_md = described(y);
    Dimensions bias(y.size(), 1);
    bias.back() = y.back();
    const dnnl_memory_desc_t bias_md = described(bias);
    check_bias(words, operands, out, y.back());
    hold(x_md, w_md, bias_md, y_md);
    dnnl_matmul_desc_t matmul;
    library().check(library().matmul(&matmul, &x_md, &w_md, op_.bias >= 0 ? &bias_md : nullptr, &y_md), "run " + words);
    return library().primitive_desc_create(&desc, &matmul, attr, library().engine, nullptr);
  }

  dnnl_status_t describe_convolution(const std::string& words, std::span<Tensor* const> operands, const Tensor& out,
                                     dnnl_primitive_attr_t attr, dnnl_primitive_desc_t& desc) {
    const Dimensions x = shape_of(*operands[op_.x]), y = shape_of(out);
    Dimensions w = shape_of(*operands[op_.w]);
    const int64_t g = op_.groups;
    if (x.size() != 4 || w.size() != 4 || y.size() != 4 || g < 1 || w[0] % g != 0 || x[1] != w[1] * g || y[1] != w[0] ||
        y[0] != x[0])
      refuse_shapes(words, operands, out);
    for (size_t i = 0; i < 2; ++i) {
      const int64_t window = op_.dilation[i] * (w[i + 2] - 1) + 1;
      if (y[i + 2] != (x[i + 2] + op_.padding[i] + op_.padding[i + 2] - window) / op_.strides[i] + 1)
        refuse_shapes(words, operands, out);
    }
    if (g > 1) w = {g, w[0] / g, w[1], w[2], w[3]};
    const dnnl_memory_desc_t x_md = described(x), w_md = described(w), y_md = described(y), bias_md = described({y[1]});
    check_bias(words, operands, out, y[1]);
    hold(x_md, w_md, bias_md, y_md);
    dnnl_memory_desc_t any;  // the library chooses how the weights lie
    library().check(
        library().describe_by_tag(&any, static_cast<int>(w.size()), w.data(), dnnl_f32, dnnl_format_tag_any),
        "describe weights");
    const Dimensions dilation = {op_.dilation[0] - 1, op_.dilation[1] - 1};
    dnnl_convolution_desc_t convolution;
    library().check(library().convolution(&convolution,
                                          dnnl_forward_inference,
                                          dnnl_convolution_direct,
                                          &x_md,
                                          &any,
                                          op_.bias >= 0 ? &bias_md : nullptr,
                                          &y_md,
                                          op_.strides.data(),
                                          dilation.data(),
                                          op_.padding.data(),
                                          op_.padding.data() + 2),
                    "run " + words);
    return library().primitive_desc_create(&desc, &convolution, attr, library().engine, nullptr);
  }

  void check_bias(const std::string& words, std::span<Tensor* const> operands, const Tensor& out, int64_t n) const {
    if (op_.bias >= 0 && operands[static_cast<size_t>(op_.bias)]->num_elements() != n)
      refuse_shapes(words, operands, out);
  }

  void hold(const dnnl_memory_desc_t& x, const dnnl_memory_desc_t& w, const dnnl_memory_desc_t& bias,
            const dnnl_memory_desc_t& out) {
    given_ = w;
    x_.emplace(x);
    w_.emplace(w);
    bias_.emplace(bias);
    out_.emplace(out);
  }

  void prepare_weights(const dnnl_memory_desc_t& chosen) {
    const Library& l = library();
    if (l.same_layout(&chosen, &given_)) return;
    dnnl_primitive_desc_t desc = nullptr;
    l.check(l.reorder(&desc, &given_, l.engine, &chosen, l.engine, nullptr), "reorder the weights");
    const dnnl_status_t status = l.primitive_create(&reorder_, desc);
    l.primitive_desc_destroy(desc);
    l.check(status, "reorder the weights");
    packed_.emplace(chosen);
    packed_bytes_.resize(l.size_of(&chosen));
  }

  DnnlOperation op_;
  dnnl_primitive_t primitive_ = nullptr, reorder_ = nullptr;
  dnnl_memory_desc_t given_;  ///< of the weights
  std::optional<Memory> x_, w_, bias_, out_, packed_;
  std::vector<char> packed_bytes_;
};

/// Compiled operations by text and shapes; one runs at a time.
struct Compiled {
  static constexpr size_t kMost = 256;  ///< symbolic sizes make one for each value that occurs
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Primitive> > by_key;
};

Compiled& compiled() {
  static Compiled all;
  return all;
}

}  // namespace

bool has_dnnl() { return opened().handle != nullptr; }

std::string dnnl_version() {
  const dnnl_version_t& v = *library().version();
  return text(v.major, ".", v.minor, ".", v.patch);
}

void run_dnnl(const std::string& words, std::span<Tensor* const> operands, Tensor& out, int num_threads) {
  const Library& l = library();
  std::string key = words;
  for (const Tensor* t : operands) key += text(" ", *t);
  for (const Tensor* t : operands)
    if (t->dtype() != f32) refuse_shapes(words, operands, out);
  if (out.dtype() != f32) refuse_shapes(words, operands, out);
  if (out.num_elements() == 0) return;
  key += text(" ", out);
  Compiled& all = compiled();
  const std::lock_guard lock(all.mutex);
  if (l.set_num_threads) l.set_num_threads(num_threads);
  auto at = all.by_key.find(key);
  if (at == all.by_key.end()) {
    if (all.by_key.size() >= Compiled::kMost) all.by_key.clear();
    auto made = std::make_unique<Primitive>(DnnlOperation::from_text(words), words, operands, out);
    at = all.by_key.emplace(key, std::move(made)).first;
  }
  at->second->run(operands, out);
}

#endif

}  // namespace sator::runtime
