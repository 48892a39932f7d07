#include "driver/signature.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "passes/attach.h"
#include "relax/nodes.h"
#include "relax/struct_info.h"
#include "tir/nodes.h"

namespace sator::driver {

using runtime::Tensor;
using runtime::Value;

namespace {

[[noreturn]] void refuse_parameter(const std::string& function, const std::string& name, const char* what) {
  fail({.what = text("parameter ", name, " of ", function, " is ", what),
        .needs = "tensors, numbers, shapes, and tuples of them: what files and numbers can state",
        .hint = "call it from a function of the program that makes the argument"});
}

/// The parts of a graph function's parameter, in order.
void add_parts(const relax::StructInfo& info, const std::string& name, const std::string& function,
               std::vector<Parameter>& out) {
  if (const auto* tensor = info.as<relax::TensorInfo>()) {
    Parameter p{.name = name, .dtype = tensor->dtype, .extents = relax::shape_of(*tensor), .rank = tensor->ndim};
    out.push_back(std::move(p));
  } else if (const auto* scalar = info.as<relax::PrimInfo>()) {
    Parameter p{.name = name, .kind = Parameter::Kind::scalar, .dtype = scalar->dtype};
    if (scalar->value) p.variable = cast<Var>(scalar->value);
    out.push_back(std::move(p));
  } else if (const auto* shape = info.as<relax::ShapeInfo>()) {
    out.push_back(
        {.name = name, .kind = Parameter::Kind::shape, .dtype = i64, .extents = shape->values, .rank = shape->ndim});
  } else if (const auto* tuple = info.as<relax::TupleInfo>()) {
    for (size_t i = 0; i < tuple->items.size(); ++i) add_parts(tuple->items[i], text(name, "[", i, "]"), function, out);
  } else {
    refuse_parameter(function, name, info.as<relax::FuncInfo>() ? "a function" : "an object");
  }
}

/// What a tensor program does first with the memory behind its parameters.
class Accesses {
 public:
  Accesses(const tir::PrimFunc& func, std::vector<Parameter>& params) : params_(params) {
    for (size_t i = 0; i < func.params.size(); ++i)
      if (BufferRef buffer = func.buffer_of(func.params[i])) param_of_[buffer->data.get()] = i;
    for (const auto& [data, i] : param_of_) params_[i].is_read = false;
    visit(func.body);
  }

 private:
  void read(const Var* data) {
    auto at = param_of_.find(data);
    if (at != param_of_.end() && !params_[at->second].is_written) params_[at->second].is_read = true;
  }
  void write(const Var* data) {
    if (auto at = param_of_.find(data); at != param_of_.end()) params_[at->second].is_written = true;
  }

  void visit(const NodeRef& part) {
    walk(
        part,
        [&](const tir::BufferStore& store) {
          visit(store.value);
          for (const Expr& index : store.indices) visit(index);
          write(store.buffer->data.get());
          return false;
        },
        [&](const BufferLoad& load) {
          for (const Expr& index : load.indices) visit(index);
          read(load.buffer->data.get());
          return false;
        },
        [&](const tir::Block& block) {
          // Regions say nothing about the order; what the block does is in its statements.
          for (const tir::MatchBufferRef& match : block.match_buffers)
            if (auto at = param_of_.find(match->source->buffer->data.get()); at != param_of_.end())
              param_of_[match->buffer->data.get()] = at->second;
          if (block.init) visit(block.init);
          visit(block.body);
          return false;
        },
        [&](const tir::DeclBuffer& decl) {
          visit(decl.body);
          return false;
        },
        [&](const Call& call) {
          if (call.op != "tir.address_of") return true;
          if (const BufferLoad* load = call.args[0].as<BufferLoad>()) {
            read(load->buffer->data.get());
            write(load->buffer->data.get());
          }
          return true;
        },
        [&](const Var& pointer) {
          read(&pointer);
          write(&pointer);
        });
  }

  std::vector<Parameter>& params_;
  std::map<const Var*, size_t> param_of_;  // by the variable of their memory
};

Signature of_program(const tir::PrimFunc& func, const std::string& name) {
  Signature out{.function = name, .is_tensor_program = true};
  for (const VarRef& param : func.params) {
    if (BufferRef buffer = func.buffer_of(param)) {
      out.params.push_back({.name = buffer->name,
                            .dtype = buffer->dtype,
                            .extents = buffer->shape,
                            .rank = static_cast<int>(buffer->shape.size())});
    } else if (param->dtype.is_handle()) {
      refuse_parameter(name, param->name, "a pointer without a buffer");
    } else {
      out.params.push_back(
          {.name = param->name, .kind = Parameter::Kind::scalar, .dtype = param->dtype, .variable = param});
    }
  }
  Accesses(func, out.params);
  return out;
}

/// An extent as people write it: "n * 4" for n * T.int64(4).
std::string extent_text(const Expr& extent) {
  constexpr std::string_view kWide = "T.int64(";
  std::string out = text(extent);
  for (size_t at = out.find(kWide); at != out.npos; at = out.find(kWide, at)) {
    const size_t close = out.find(')', at);
    out = out.substr(0, at) + out.substr(at + kWide.size(), close - at - kWide.size()) + out.substr(close + 1);
  }
  return out;
}

std::string extents_text(const Parameter& p) {
  if (p.extents) {
    std::vector<std::string> extents;
    for (const Expr& e : *p.extents) extents.push_back(extent_text(e));
    return text("[", join(extents, ", "), "]");
  }
  return p.rank < 0 ? "[...]" : text("[", join(std::vector<std::string>(static_cast<size_t>(p.rank), "?"), ", "), "]");
}

std::string type_text(const Parameter& p) {
  switch (p.kind) {
    case Parameter::Kind::tensor: return text(p.dtype.is_void() ? "any" : p.dtype.name(), extents_text(p));
    case Parameter::Kind::scalar: return p.dtype.name();
    case Parameter::Kind::shape: return text("shape", extents_text(p));
  }
  internal_error("a kind of parameter");
}

/// Which input bound a size, and to what.
struct Bound {
  int64_t value;
  std::string by;
};

class Binder {
 public:
  Binder(const Signature& signature, const std::map<std::string, int64_t>& sizes)
      : signature_(signature), given_sizes_(sizes) {
    call_.leaves.resize(signature.params.size());
  }

  PreparedCall run(std::vector<GivenInput> given) {
    put_in_places(std::move(given));
    for (size_t i = 0; i < places_.size(); ++i)
      if (places_[i]) bind_plain_sizes(i);
    bind_given_sizes();
    for (size_t i = 0; i < places_.size(); ++i)
      if (places_[i]) solve_sizes(i);
    for (size_t i = 0; i < places_.size(); ++i)
      if (places_[i]) check_sizes(i);
    for (size_t i = 0; i < places_.size(); ++i)
      if (!places_[i]) call_.leaves[i] = zeros(signature_.params[i]);
    for (const auto& [var, bound] : bound_) {
      call_.sizes[var->name] = bound.value;
      const auto most = signature_.bounds.find(var->name);
      if (most != signature_.bounds.end() && bound.value > most->second)
        refuse(text(var->name, " = ", bound.value, " by ", bound.by, " is above its upper bound ", most->second),
               text("sizes within the bounds that the program was built with: ", var->name, " <= ", most->second),
               text("build it again with --bounds ", var->name, "=", bound.value));
    }
    return std::move(call_);
  }

 private:
  [[noreturn]] void refuse(std::string what, std::string needs, std::string hint) const {
    fail({.what = std::move(what),
          .needs = std::move(needs),
          .hint = std::move(hint),
          .where = text("in a call of ", describe(signature_))});
  }

  bool takes_input(const Parameter& p) const { return p.is_read || !p.is_written; }

  void put_in_places(std::vector<GivenInput> given) {
    places_.resize(signature_.params.size());
    std::vector<std::string> names;
    for (const Parameter& p : signature_.params) names.push_back(p.name);
    std::vector<GivenInput> in_order;
    for (GivenInput& g : given) {
      if (g.name.empty()) {
        in_order.push_back(std::move(g));
        continue;
      }
      const size_t i = static_cast<size_t>(std::ranges::find(names, g.name) - names.begin());
      if (i == names.size())
        refuse(text("there is no parameter ", g.name), text("one of ", join(names, ", ")), "correct the name");
      if (places_[i]) refuse(text(g.name, " is given twice"), "one input for each parameter", "leave one out");
      places_[i] = std::move(g);
    }
    size_t next = 0, unnamed = 0;
    for (GivenInput& g : in_order) {
      ++unnamed;
      while (next < places_.size() && (places_[next] || !takes_input(signature_.params[next]))) ++next;
      if (next == places_.size()) refuse_too_many(unnamed);
      g.name = names[next];
      places_[next] = std::move(g);
    }
    for (size_t i = 0; i < places_.size(); ++i) {
      const Parameter& p = signature_.params[i];
      if (places_[i] || !takes_input(p)) continue;
      if (!p.is_written)
        refuse(text("the input ", describe(p), " is missing"),
               "an input for each parameter that is read",
               text("--input ", p.name, p.kind == Parameter::Kind::tensor ? "=FILE.npy" : "=NUMBER"));
      call_.zeroed.push_back(p.name);
    }
  }

  [[noreturn]] void refuse_too_many(size_t unnamed) const {
    std::vector<std::string> inputs, results;
    for (const Parameter& p : signature_.params) (takes_input(p) ? inputs : results).push_back(p.name);
    refuse(text("there are more inputs than parameters that take one: ", unnamed),
           inputs.empty() ? "no input" : text("inputs for ", join(inputs, ", ")),
           results.empty() ? "leave the others out"
                           : text(join(results, ", "),
                                  results.size() == 1 ? " is a result" : " are results",
                                  "; --input ",
                                  results[0],
                                  "=FILE.npy gives one a value to begin with"));
  }

  std::string named(size_t i) const {
    const GivenInput& g = *places_[i];
    return text(signature_.params[i].name, g.origin.empty() ? "" : text(" (", g.origin, ")"));
  }

  /// The dtype and rank of input i, and sizes that stand by themselves as an extent or as a scalar.
  void bind_plain_sizes(size_t i) {
    const Parameter& p = signature_.params[i];
    Value value = places_[i]->value;
    if (p.kind == Parameter::Kind::scalar) {
      value = scalar(p, value, i);
      if (p.variable && value.as_int()) bind(p.variable, *value.as_int(), i, "is");
    } else {
      if (p.kind == Parameter::Kind::tensor) check_tensor(p, value, i);
      const runtime::Dims dims = dims_of(p, value, i);
      const size_t rank = p.extents ? p.extents->size() : static_cast<size_t>(std::max(p.rank, 0));
      if ((p.extents || p.rank >= 0) && dims.size() != rank)
        refuse_value(i, text("a ", p.kind == Parameter::Kind::tensor ? "tensor" : "shape", " of rank ", rank));
      for (size_t d = 0; p.extents && d < rank; ++d)
        if (VarRef v = cast<Var>((*p.extents)[d])) bind(v, dims[d], i, text("has extent ", d, " of"));
    }
    call_.leaves[i] = value;
  }

  void bind(const VarRef& var, int64_t value, size_t i, const std::string& how) {
    auto [at, fresh] = bound_.try_emplace(var, Bound{value, signature_.params[i].name});
    if (fresh || at->second.value == value) return;
    refuse(text("input ",
                named(i),
                " ",
                how,
                " ",
                value,
                ", but ",
                var->name,
                " = ",
                at->second.value,
                " by ",
                at->second.by),
           text("one value for ", var->name),
           "give inputs whose sizes agree");
  }

  void bind_given_sizes() {
    std::map<std::string, VarRef> known;
    for (const Parameter& p : signature_.params) {
      if (p.variable) known[p.variable->name] = p.variable;
      for (const Expr& e : p.extents ? *p.extents : std::vector<Expr>())
        for (const VarRef& v : vars_in(e)) known[v->name] = v;
    }
    for (const auto& [name, value] : given_sizes_) {
      auto at = known.find(name);
      if (at == known.end()) {
        std::vector<std::string> names;
        for (const auto& [n, v] : known) names.push_back(n);
        refuse(text("no size is called ", name),
               names.empty() ? "nothing: all sizes are numbers" : text("one of ", join(names, ", ")),
               "correct the name");
      }
      auto [bound, fresh] = bound_.try_emplace(at->second, Bound{value, "--size"});
      if (!fresh && bound->second.value != value)
        refuse(text("--size ", name, "=", value, ", but ", name, " = ", bound->second.value, " by ", bound->second.by),
               text("one value for ", name),
               "leave the option out");
    }
  }

  /// Sizes that no input has as an extent, where an extent is linear in one of them: n of n + 2.
  void solve_sizes(size_t i) {
    const Parameter& p = signature_.params[i];
    if (p.kind == Parameter::Kind::scalar || !p.extents) return;
    const runtime::Dims dims = dims_of(p, call_.leaves[i], i);
    for (size_t d = 0; d < dims.size(); ++d) {
      const Expr& extent = (*p.extents)[d];
      std::vector<VarRef> unknown = vars_in(extent);
      std::erase_if(unknown, [&](const VarRef& v) { return bound_.contains(v); });
      if (unknown.size() != 1) continue;
      auto at = [&](int64_t v) {
        arith::Values known = values();
        known[unknown[0]] = v;
        return arith::evaluate(extent, known);
      };
      const std::optional<int64_t> zero = at(0), one = at(1), two = at(2);
      if (!zero || !one || !two || *one == *zero || *two - *one != *one - *zero) continue;
      const int64_t solution = (dims[d] - *zero) / (*one - *zero);
      if (solution >= 0 && at(solution) == dims[d])
        bind(unknown[0], solution, i, text("gives ", extent_text(extent), " of"));
    }
  }

  arith::Values values() const {
    arith::Values out;
    for (const auto& [var, bound] : bound_) out.emplace(var, bound.value);
    return out;
  }

  /// Extents that are numbers, or follow from sizes.
  void check_sizes(size_t i) {
    const Parameter& p = signature_.params[i];
    if (p.kind == Parameter::Kind::scalar || !p.extents) return;
    const runtime::Dims dims = dims_of(p, call_.leaves[i], i);
    const arith::Values known = values();
    for (size_t d = 0; d < dims.size(); ++d) {
      const std::optional<int64_t> wanted = arith::evaluate((*p.extents)[d], known);
      if (wanted && *wanted != dims[d]) refuse_value(i, describe(p) + sizes_text(p));
    }
  }

  /// ", where n = 4 by x"
  std::string sizes_text(const Parameter& p) const {
    std::vector<std::string> known;
    std::set<VarRef> seen;
    for (const Expr& e : p.extents ? *p.extents : std::vector<Expr>())
      for (const VarRef& v : vars_in(e))
        if (auto at = bound_.find(v); at != bound_.end() && seen.insert(v).second)
          known.push_back(text(v->name, " = ", at->second.value, " by ", at->second.by));
    return known.empty() ? "" : text(", where ", join(known, ", "));
  }

  [[noreturn]] void refuse_value(size_t i, std::string needs, std::string hint = "give an input of that form") const {
    const Value& value = places_[i]->value;
    const Tensor* tensor = value.as<Tensor>();
    refuse(
        text("input ", named(i), " is ", tensor ? text(*tensor) : value.describe()), std::move(needs), std::move(hint));
  }

  void check_tensor(const Parameter& p, Value& value, size_t i) const {
    const Tensor* tensor = value.as<Tensor>();
    if (!tensor) refuse_value(i, describe(p), text("--input ", p.name, "=FILE.npy"));
    if (p.dtype.is_void() || tensor->dtype() == p.dtype) return;
    // NumPy has no integers of less than a byte; they are stored as bytes here too.
    const bool bytes = p.dtype.is_integer() && p.dtype.bits < 8 && tensor->dtype() == (p.dtype.is_int() ? i8 : u8);
    if (!bytes)
      refuse_value(
          i, describe(p), text("convert it: numpy.save(\"", p.name, ".npy\", ", p.name, ".astype(\"", p.dtype, "\"))"));
    for (int64_t k = 0; k < tensor->num_elements(); ++k) {
      const int64_t v = p.dtype.is_int() ? tensor->data_as<int8_t>()[k] : tensor->data_as<uint8_t>()[k];
      if (v < min_int(p.dtype) || v > max_int(p.dtype))
        refuse(text("element ", k, " of input ", named(i), " is ", v),
               text(p.dtype, ": ", min_int(p.dtype), " to ", max_int(p.dtype)),
               "give values of that range");
    }
    value = Value(Tensor::view(tensor->storage(), tensor->byte_offset(), tensor->shape(), p.dtype));
  }

  /// A number: given as one, or as an array of one element.
  Value scalar(const Parameter& p, const Value& value, size_t i) const {
    const bool wants_float = p.dtype.is_float();
    if (const int64_t* v = value.as_int()) return wants_float ? Value(static_cast<double>(*v)) : value;
    if (value.as_float() && wants_float) return value;
    const Tensor* tensor = value.as<Tensor>();
    if (!tensor || tensor->num_elements() != 1) refuse_value(i, describe(p), text("--input ", p.name, "=NUMBER"));
    const DType dtype = tensor->dtype();
    if (wants_float && dtype == f32) return Value(static_cast<double>(*tensor->data_as<float>()));
    if (wants_float && dtype == f64) return Value(*tensor->data_as<double>());
    if (dtype == i64) return scalar(p, Value(*tensor->data_as<int64_t>()), i);
    if (dtype == i32) return scalar(p, Value(*tensor->data_as<int32_t>()), i);
    if (dtype.is_bool()) return scalar(p, Value(int64_t{*tensor->data_as<uint8_t>()}), i);
    refuse_value(i, describe(p), text("--input ", p.name, "=NUMBER"));
  }

  runtime::Dims dims_of(const Parameter& p, Value& value, size_t i) const {
    if (const Tensor* tensor = value.as<Tensor>(); tensor && p.kind == Parameter::Kind::tensor) return tensor->shape();
    if (const runtime::Shape* shape = value.as<runtime::Shape>()) return shape->dims;
    if (const Tensor* tensor = value.as<Tensor>(); tensor && tensor->dtype() == i64 && tensor->rank() == 1) {
      const runtime::Dims dims(
          std::span(tensor->data_as<const int64_t>(), static_cast<size_t>(tensor->num_elements())));
      value = Value(runtime::Shape::of(dims));
      return dims;
    }
    refuse_value(i, describe(p), text("--input ", p.name, "=[2,3]"));
  }

  Value zeros(const Parameter& p) const {
    const arith::Values known = values();
    std::vector<int64_t> shape;
    for (const Expr& e : *p.extents) {
      const std::optional<int64_t> extent = arith::evaluate(e, known);
      if (!extent) {
        std::vector<std::string> missing;
        for (const VarRef& v : vars_in(e))
          if (!bound_.contains(v)) missing.push_back(v->name);
        refuse(text("the extent ", extent_text(e), " of the result ", p.name, " is not known"),
               "sizes that inputs bind",
               missing.empty() ? "state an extent that is a number" : text("--size ", missing[0], "=NUMBER"));
      }
      shape.push_back(*extent);
    }
    Ref<Tensor> tensor = Tensor::empty(runtime::Dims(std::span<const int64_t>(shape)), p.dtype);
    std::fill_n(tensor->data_as<char>(), tensor->size_bytes(), 0);
    return Value(tensor);
  }

  const Signature& signature_;
  const std::map<std::string, int64_t>& given_sizes_;
  std::vector<std::optional<GivenInput>> places_;  // one per parameter
  std::map<VarRef, Bound> bound_;
  PreparedCall call_;
};

Value joined(const relax::StructInfo& info, const std::vector<Value>& leaves, size_t& next) {
  const auto* tuple = info.as<relax::TupleInfo>();
  if (!tuple) return leaves.at(next++);
  std::vector<Value> items;
  for (const relax::StructInfo& item : tuple->items) items.push_back(joined(item, leaves, next));
  return Value(runtime::Tuple::of(std::move(items)));
}

}  // namespace

std::vector<std::string> public_functions(const Module& module) {
  std::vector<std::string> out;
  for (const auto& [name, func] : module.functions)
    if (has_attr(func->attrs, "global_symbol") && !func.as<relax::ExternFunc>()) out.push_back(name);
  return out;
}

Signature signature_of(const Module& module, const std::string& function) {
  const std::vector<std::string> known = public_functions(module);
  if (std::ranges::find(known, function) == known.end())
    fail({.what = text("the program has no function ", function, " for callers"),
          .needs = known.empty() ? "a function that is not private" : text("one of ", join(known, ", ")),
          .hint = "functions that are decorated with private=True are for the program itself"});
  const Func& func = module.functions.at(function);
  if (const auto* program = func.as<tir::PrimFunc>()) return of_program(*program, function);
  Signature out{.function = function};
  out.bounds = passes::noted_bounds(*func.as<relax::Function>());
  for (const relax::RVarRef& param : func.as<relax::Function>()->params)
    add_parts(param->sinfo, param->name, function, out.params);
  return out;
}

std::string describe(const Parameter& param) { return text(param.name, ": ", type_text(param)); }

std::string describe(const Signature& signature) {
  std::vector<std::string> params;
  for (const Parameter& p : signature.params) params.push_back(describe(p));
  return text(signature.function, "(", join(params, ", "), ")");
}

PreparedCall prepare(const Signature& signature, std::vector<GivenInput> given,
                     const std::map<std::string, int64_t>& sizes) {
  return Binder(signature, sizes).run(std::move(given));
}

std::vector<Value> machine_arguments(const Module& module, const Signature& signature,
                                     const std::vector<Value>& leaves) {
  if (signature.is_tensor_program) return leaves;
  std::vector<Value> out;
  size_t next = 0;
  for (const relax::RVarRef& param : module.functions.at(signature.function).as<relax::Function>()->params)
    out.push_back(joined(param->sinfo, leaves, next));
  return out;
}

}  // namespace sator::driver
