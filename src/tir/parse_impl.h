// The parser of tensor programs' statements. Names of T that only make sense as statements are rows of a table in
// parse_scopes.cc; statements are in parse_stmt.cc; functions in parse.cc.
#pragma once

#include <functional>
#include <span>
#include <unordered_set>

#include "tir/parse.h"
#include "tir/parse_eval.h"
#include "tir/regions.h"

namespace sator::tir {

/// What opens a scope: a loop nest, a block, its init, or a wrapper around the statements that follow.
struct ScopeOpener {
  enum class Kind { loops, block, init, wrapper } kind = Kind::wrapper;
  struct Loop {
    VarRef var;
    Expr min, extent;
    LoopKind kind = LoopKind::serial;
    std::string thread;
    Attrs annotations;
    Expr first, step;  ///< the name stands for first + var * step, where there is a step
  };
  std::vector<Loop> loops;
  std::string block_name;
  bool no_realize = false;
  std::function<Stmt(Stmt)> wrap;
  Value bound;           ///< what `as` names, and an assignment
  BufferRef declares;    ///< a buffer that is visible inside
  BufferRef names_also;  ///< a buffer that gets the name of `bound` too
};
using ScopeOpenerRef = std::shared_ptr<ScopeOpener>;

class FunctionParser final : public Evaluator {
 public:
  FunctionParser(const script::Source& source, const ParseContext& context);
  PrimFuncRef parse(const script::Statement& def);

  // The rows of parse_scopes.cc work on these.
  struct BlockState {
    std::vector<IterVarRef> iter_vars;
    std::vector<Expr> values;
    Expr predicate;
    std::optional<std::vector<BufferRegionRef>> reads, writes;
    std::optional<Attrs> annotations;
    std::vector<BufferRef> alloc_buffers;
    std::vector<MatchBufferRef> match_buffers;
    Stmt init;
  };
  /// The block whose body is being read, at its own level. Errors: the place is inside a loop, or in no block.
  BlockState& block_here(const script::Expression& call, std::string_view what);
  /// Among those of the block or function whose statements are being read; false inside of a loop or a branch.
  bool alloc_buffer(const BufferRef& buffer);
  /// Whether something around the place gives the buffer its memory.
  bool is_visible(const BufferRef& buffer) const { return visible_.contains(buffer->data); }
  Value match_buffer(const script::Expression& call);
  /// `part`: where shape, dtype and scope are taken from if they are left out.
  BufferRef make_buffer_value(const Arguments& args, const BufferRegion* part = nullptr);
  Value broadcast_view(const BufferRef& buffer);
  const ScopeOpener::Loop* open_loop(const Var& v) const;
  void add_attrs(Attrs attrs, const script::Expression& call);
  void append(Stmt stmt);
  Stmt make_store(const BufferRef& buffer, Expr value, std::vector<Expr> indices, script::Place place);
  /// The variable of a thread axis, by variable or (fresh) by tag.
  Ref<const ThreadAxis> thread_axis(const Value& thread, DType dtype, script::Place place);
  VarRef declare_thread(std::string tag, DType dtype);

 protected:
  Value call_language(const std::string& name, const script::Expression& call) override;
  Value call_other(const Value& callee, const script::Expression& call) override;
  Value unknown_name(const script::Expression& name) override;

 private:
  enum class FrameKind { function, block, init, other };
  /// A list of statements being read, with the wrappers that its later ones are in.
  struct Frame {
    FrameKind kind;
    std::vector<Stmt> stmts;
    struct Open {
      size_t first;  ///< the wrapper holds the statements from here on
      ScopeOpenerRef opener;
    };
    std::vector<Open> open;
  };

  Stmt body(std::span<const script::Statement> stmts, FrameKind kind);
  void statements(std::span<const script::Statement> stmts);
  Stmt close(Frame& frame);
  void open(ScopeOpenerRef opener);
  void statement(const script::Statement& s);
  Expr assert_message(const script::Expression& e);
  void expression_statement(const script::Statement& s);
  void assign(const script::Statement& s);
  void annotated_assign(const script::Statement& s);
  void augmented_assign(const script::Statement& s);
  void store(const script::Expression& target, const Value& value);
  void for_loop(const script::Statement& s);
  void while_loop(const script::Statement& s);
  void over_list(const script::Statement& s, const Values& list);
  /// `break`, `continue`: false of any other statement. Errors: there is no loop that it could leave.
  bool exit_loop(const script::Statement& s);
  bool may_exit(const script::Statement& s) const;
  void rest_after_exit(std::span<const script::Statement> done, std::span<const script::Statement> rest);
  Stmt body_with_exits(const script::Statement& s, const BufferRef& state);
  Stmt counted_while(const ScopeOpener::Loop& loop, const BufferRef& state, Stmt inner, Span span);
  void with(const script::Statement& s, size_t item);
  Stmt block(const ScopeOpener& opener, const script::Statement& s, size_t item);
  void if_then_else(const script::Statement& s);

  /// Binds what an assignment gives: fresh variables and buffers take the name, scopes open, expressions become lets.
  void bind(const script::Expression& target, Value value, bool lets);
  Value bind_name(const std::string& name, Value value, script::Place place, bool lets);
  void name_value(const Value& value, const std::string& name);
  bool is_bound(const Var& v) const { return bound_.count(&v) > 0; }

  void params(const script::Statement& def);
  VarRef size_of_signature(const std::string& name);
  BufferRef complete_buffer(BufferRef buffer) const;
  Stmt with_root(Stmt body);
  void detect_regions(BlockState& state, const Stmt& body, const script::Place& place, int mask);

  const ParseContext& context_;
  std::vector<Frame> frames_;
  std::vector<BlockState> blocks_;
  std::vector<ScopeOpener::Loop> loops_;
  std::vector<BufferRef>
      exits_;  ///< of the loops around, how their iteration ended; null: nothing can be left from here
  std::map<const Var*, Ref<const ThreadAxis>> threads_;
  std::unordered_set<const Var*> bound_;
  VisibleBuffers visible_;
  std::unordered_map<const Block*, int> detected_;  ///< which regions of a block were detected: 1 reads, 2 writes

  const script::Statement* signature_ = nullptr;  ///< of the function, where names may stand for sizes of it
  std::map<std::string, VarRef> sizes_;           ///< that the signature names
  std::vector<VarRef> params_;
  std::vector<std::pair<VarRef, BufferRef>> buffer_map_;
  std::vector<BufferRef> root_allocs_;
  Attrs attrs_;
  bool is_private_ = false;
  int depth_ = 0, copies_ = 0;
};

/// A scope that puts `wrap` around the statements that follow; `bound` is what it gives.
inline ScopeOpenerRef wrapper(std::function<Stmt(Stmt)> wrap, Value bound = {}) {
  auto out = std::make_shared<ScopeOpener>();
  out->wrap = std::move(wrap);
  out->bound = std::move(bound);
  return out;
}

/// T.realize(A[4:8, 0:16], "shared").
Value fn_realize(FunctionParser& p, const script::Expression& call);
/// T.attr([B, A], "buffer_bind_scope", T.tvm_tuple(begin, extent, ...)): `pair` is [B, A].
Value bind_buffer(const Arguments& a, const Values& pair);

/// A name of T that makes a statement or opens a scope.
using ScopeFunction = Value (*)(FunctionParser&, const script::Expression& call);
ScopeFunction find_scope_function(std::string_view name);
std::vector<std::string> scope_function_names();

}  // namespace sator::tir
