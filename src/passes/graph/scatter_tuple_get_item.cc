// Each use of an item of a tuple takes it from the tuple anew, where it is used: parameters that are fetched one by one are
// then held no longer than they are read.
#include "passes/graph/graph.h"
#include "relax/outline.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

class Scatterer final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override {
    if (value.as<TupleGetItem>()) {
      if (var->is_dataflow) items_[var] = value;
      return value;
    }
    return with_items(value);
  }
  RExpr result(const RExpr& body) override { return with_items(body); }

  RExpr with_items(const RExpr& e) {
    NodeMap fresh;
    for (const RVarRef& v : rvars_in(e))
      if (const auto at = items_.find(v); at != items_.end()) fresh[v] = builder().emit(at->second, v->name);
    return fresh.empty() ? e : RExpr(replaced(e, fresh));
  }

  std::map<RVarRef, RExpr> items_;
};

}  // namespace

ModuleRef scatter_tuple_get_item(const ModuleRef& module, const PassContext&) {
  return rewrite_functions(module,
                           [](const FuncRef& f, BlockBuilder& builder) { return Scatterer(builder).function(*f); });
}

}  // namespace sator::passes
