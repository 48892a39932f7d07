// The layers of which model families are built: each emits its part of the graph and notes its parameters.
#pragma once

#include "llm/program.h"
#include "relax/builder.h"
#include "relax/value.h"
#include "tir/nodes.h"

namespace sator::llm {

using relax::RExpr;

/// Emits one function of a program. All functions of a program are emitted in the same order, so that their parameters
/// are the same tuple; the first one notes the specs.
class Layers {
 public:
  Layers(relax::BlockBuilder& out, const Scheme& scheme, std::vector<ParamSpec>& specs)
      : out_(out), scheme_(scheme), specs_(specs) {}

  /// The tuple that holds the parameters, and its struct info once all layers have been emitted.
  void set_params(relax::RVarRef params) { params_ = std::move(params); }

  /// An op of the table, its result bound to a variable.
  RExpr op(const std::string& name, const std::vector<relax::Value>& positional,
           const std::vector<std::pair<std::string, relax::Value>>& keywords = {}, const std::string& layer = "");

  /// A vector of the checkpoint as f32 [n].
  RExpr vector(const std::string& tensor, int64_t n);
  /// Vectors one after the other as f32 [n]: `*` in the name is the number of each of so many.
  RExpr vectors(const std::string& tensors, int64_t count, int64_t n);

  /// y = x W^T (+ bias): x [n, in] f32 -> [n, out] f32.
  ///   tensors   the weight's names in the checkpoint, laid one under the other to [out, in]
  ///   outs      the rows of each
  ///   transposed  each is stored [in, out]
  /// The weight is quantized as the scheme says; where one scale would have to serve several tensors, each is a layer of
  /// its own and the results are joined.
  struct Weight {
    std::vector<std::string> tensors;
    std::vector<int64_t> outs;
    int64_t in = 0;
    bool transposed = false;
    std::vector<std::string> biases;  ///< none, or one for each tensor
    /// Several experts, each with a weight like this: `*` in a tensor's name is the expert's number. Row i of x goes
    /// to expert of_row[i], int32 [n]; rows of an expert that follow each other are one product.
    struct Experts {
      int64_t count = 0, per_token = 0;
      RExpr of_row;
      double read_share() const { return count > 0 ? static_cast<double>(per_token) / static_cast<double>(count) : 1; }
    } experts = {};
    GroupedRows rows = {};  ///< how those of the one tensor (of each expert), and of its bias, are arranged
  };
  RExpr linear(const RExpr& x, const Weight& weight, const std::string& layer);
  /// The same of a weight that no scheme quantizes.
  RExpr plain_linear(const RExpr& x, const Weight& weight, const std::string& layer);

  /// Rows of the embedding: ids int32 [n] -> [n, width] f32.
  ///   is_head   the head multiplies by the same weight
  RExpr embedding(const RExpr& ids, const std::string& tensor, int64_t vocab, int64_t width, bool is_head);
  /// Rows of a table that is never quantized.
  RExpr plain_embedding(const RExpr& ids, const std::string& tensor, int64_t rows, int64_t width, bool is_head = false);
  /// Logits: x [n, width] -> [n, vocab] f32, through the embedding's own weight where they are tied.
  ///   bias   a vector that is added; empty: none is
  RExpr head(const RExpr& x, const std::string& tensor, const std::string& bias, int64_t vocab, int64_t width);

  /// A block's attention over the cache: qkv [n, (H + 2 G) * D] -> [n, H * D].
  ///   place   of its keys and values in the cache
  ///   sinks   f32 [H], scores that join the softmax of each head; null: none do
  RExpr attention(const RExpr& qkv, const RExpr& cache, int64_t place, int64_t heads, int64_t kv_heads,
                  int64_t head_dim, double scale, const RExpr& sinks, const std::string& layer);
  /// Positions of the step's tokens, int32 [n].
  RExpr positions(const RExpr& cache, const Expr& n);

  /// A call of a tensor function.
  RExpr call_function(const tir::PrimFuncRef& func, const std::string& name, std::vector<RExpr> args,
                      relax::StructInfo out, const std::string& layer = "");

  relax::BlockBuilder& out() { return out_; }

  /// The layers of which results are bound, in the order of their first.
  const std::vector<std::string>& names() const { return names_; }

  /// What a calibration looks at: the layers and, per layer, the largest |x| of each input feature, f32 [in].
  struct Observed {
    std::vector<std::string> layers;
    std::vector<RExpr> ranges;
  };
  void observe(Observed* observed) { observed_ = observed; }

 private:
  using Experts = Weight::Experts;

  /// A matrix [rows, cols] of the checkpoint, or one for each expert.
  struct Matrix {
    WeightSource source;
    int64_t rows = 0, cols = 0;
    Experts experts = {};
    std::string name;   ///< of the parameters, by the tensor they come from
    std::string layer;  ///< whose results these are
  };

  /// Binds a layer's result, which is noted.
  RExpr emit(RExpr value, const std::string& layer);
  /// The format of a weight's tensor. Errors: experts of several.
  std::optional<IntegerFormat> format_of(const std::string& tensor, const Experts& experts) const;
  /// Where the tensors end that are stored alike and make one product, in order.
  std::vector<size_t> joined(const Weight& weight) const;
  void observe_input(const RExpr& x, const Weight& weight, const std::string& name);
  RExpr with_bias(const RExpr& y, const Weight& weight, const std::vector<std::string>& biases, int64_t rows,
                  const std::string& name, const std::string& layer);
  RExpr parameter(ParamSpec spec);
  /// A parameter that is not quantized, in the dtype that the scheme stores.
  RExpr plain(const std::string& name, const WeightSource& source, const runtime::Dims& shape, bool is_table = false,
              double read_share = 1);
  RExpr widened(const RExpr& x);
  /// The parts of a quantized weight, in the order of parts_of; of experts, each with all of them.
  using Quantized = std::vector<std::pair<ParamPart, RExpr>>;
  Quantized quantized_weight(const ParamSpec& like, int64_t rows, int64_t cols);
  /// A weight that is not quantized, as f32.
  RExpr weight_f32(const Matrix& w);
  /// Matrices of 16-bit floats as f32, in the kernel that reads them.
  RExpr widened_where_read(const RExpr& x);
  /// x W^T of x [n, in] and W [out, in] -> [n, out]: x is stored as the scheme's factors. All are f32.
  RExpr product(const RExpr& x, const RExpr& w, const Matrix& like);
  /// A function of rows and of a weight; with experts each row meets those of its own.
  ///   weights   which of the arguments are the experts' own
  RExpr call_by_row(const tir::PrimFuncRef& func, const std::string& name, std::vector<RExpr> args,
                    const std::vector<size_t>& weights, relax::StructInfo out, const Experts& experts,
                    const std::string& layer = "");
  /// Codes to numbers: [rows, cols] of a dtype.
  RExpr made_of_codes(const tir::PrimFuncRef& func, const std::string& name, std::vector<RExpr> args, const Matrix& w,
                      DType dtype);
  /// An op of x and a vector of the weight: [1] | [columns of x]; of experts, each row with that of its own.
  RExpr with_vector(const char* op_name, const RExpr& x, const RExpr& vector, const Experts& experts,
                    const std::string& layer);
  RExpr quantized_linear(const RExpr& x, const Matrix& w, const IntegerFormat& format,
                         const std::optional<ActivationFormat>& activation);

  relax::BlockBuilder& out_;
  const Scheme& scheme_;
  std::vector<ParamSpec>& specs_;
  relax::RVarRef params_;
  Observed* observed_ = nullptr;
  std::map<std::string, RExpr> parameters_;  ///< by name, of the function being emitted
  std::vector<std::string> names_;
};

/// A constant f32 [1].
RExpr number(double value);
/// The extent of a value's first dimension.
Expr rows_of(const RExpr& x);
/// The rows of each of so many tensors that hold some parts: one that holds them all has their sum.
std::vector<int64_t> rows_of_tensors(std::vector<int64_t> parts, size_t tensors);

}  // namespace sator::llm
