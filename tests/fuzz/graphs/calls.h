// Random graphs as text: parameters, bindings of calls, blocks, results.
#pragma once

#include <string>
#include <vector>

#include "fuzz/draw.h"
#include "relax/ops/op.h"

namespace sator::fuzz {

/// A tensor of the graph. `is_exact`: neither rounding nor the order of a sum changes it, so that it may be compared,
/// sorted or rounded; small multiples of 1/4 are what arguments hold.
struct TensorVar {
  std::string name;
  DType dtype;
  std::vector<std::string> shape;  ///< numbers, symbolic sizes, expressions of them
  bool is_exact = true;
};

/// Whether the extent is a number; whether all are numbers or symbolic sizes, as those of parameters are.
bool is_number(const std::string& extent);
bool can_be_param(const std::vector<std::string>& shape);

/// A graph that grows call by call; a call that struct info inference refuses is left out.
class GraphText {
 public:
  explicit GraphText(Draw& draw);

  /// The function `main` in TVMScript.
  std::string text() const;
  int64_t refused = 0;

  // For rows of draws.

  Draw& draw;
  /// A tensor for which `fits` holds; a new parameter where there is none.
  const TensorVar& value(FunctionRef<bool(const TensorVar&)> fits, const char* dtype = "float32");
  const TensorVar& any_value() {
    return value([](const TensorVar&) { return true; });
  }
  const TensorVar& float_value();
  /// A new parameter. Errors: none; the name is returned.
  std::string param(const std::vector<std::string>& shape, const std::string& dtype);
  std::string param(const std::vector<int64_t>& shape, const std::string& dtype);
  std::vector<std::string> random_shape();
  /// The tensor that can be combined with `with`: another value of its dtype, a parameter of a shape that broadcasts, a number.
  std::string partner(const TensorVar& with);
  void inexact() { is_exact_ = false; }

 private:
  struct Line {
    std::string name, value;
    int block;
  };
  void grow();
  /// Binds the call; whether it was accepted.
  bool bind(const std::string& call, bool is_exact);
  void note(const std::string& name, const relax::StructInfo& info, bool is_exact);
  std::string function(const std::vector<std::string>& results) const;

  std::vector<TensorVar> params_, values_;
  std::vector<Line> lines_;
  std::vector<std::string> results_;
  int block_ = 0, first_is_dataflow_ = 1;
  bool is_exact_ = true;
};

/// A drawn call of the op: "R.nn.softmax(v1, axis=0)". Empty where no argument fits.
std::string drawn_call(GraphText& g, const relax::OpDef& op);

}  // namespace sator::fuzz
