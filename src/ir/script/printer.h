// What the printers of tir/ and relax/ share: documents, names and their scopes, layout, underlining.
//
// A program prints as statements (StmtDoc) whose parts are expressions (Doc). A frame is a scope that is being printed:
// a definition that turns out to be needed while an inner statement is printed goes to an outer frame, before it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "ir/node.h"

namespace sator::script {

/// How tightly the outermost operator of an expression binds (Python's table).
enum class Precedence : uint8_t {
  lambda,
  conditional,
  logical_or,
  logical_and,
  logical_not,
  comparison,
  bit_or,
  bit_xor,
  bit_and,
  shift,
  sum,
  product,
  unary,
  power,
  atom
};

/// The text of an expression, and which nodes stand where in it (only those to be underlined).
struct Doc {
  struct Mark {
    size_t begin, end;
    const Object* node;
  };
  std::string text;
  Precedence precedence = Precedence::atom;
  std::vector<Mark> marks;

  Doc() = default;
  explicit Doc(std::string t, Precedence p = Precedence::atom) : text(std::move(t)), precedence(p) {}
  Doc& operator+=(std::string_view s) {
    text += s;
    return *this;
  }
  Doc& operator+=(const Doc& d);
};

struct KeywordDoc {
  std::string name;
  Doc value;
};

// Literals are written as Python reads them; reals with 17 digits, infinities and nan as strings.
Doc integer_doc(int64_t value);
Doc real_doc(double value);
Doc boolean_doc(bool value);
Doc string_doc(std::string_view value);
Doc attribute_doc(Doc value, std::string_view name);
Doc call_doc(Doc callee, const std::vector<Doc>& args, const std::vector<KeywordDoc>& keywords = {});
/// value[i, j]; without indices value[()].
Doc index_doc(Doc value, const std::vector<Doc>& indices);
Doc slice_doc(const Doc& start, const Doc& stop, const std::optional<Doc>& step = {});
Doc unary_doc(std::string_view op, Precedence precedence, const Doc& operand);
Doc binary_doc(std::string_view op, Precedence precedence, const Doc& a, const Doc& b);
Doc tuple_doc(const std::vector<Doc>& items);
/// a, b, c: the targets of an assignment.
Doc bare_tuple_doc(const std::vector<Doc>& items);
Doc list_doc(const std::vector<Doc>& items);
Doc dict_doc(const std::vector<std::pair<Doc, Doc>>& items);
Doc lambda_doc(const std::vector<Doc>& params, const Doc& body);

/// A line, or a head and its indented body.
struct StmtDoc {
  Doc head;
  std::vector<StmtDoc> body;
  bool is_compound = false;  ///< has a body, `pass` if it is empty
  bool blank_after = false;  ///< functions are followed by an empty line
};
StmtDoc line_doc(Doc head);
StmtDoc assign_doc(const Doc& target, const Doc& value, const std::optional<Doc>& annotation = {});
StmtDoc compound_doc(Doc head, std::vector<StmtDoc> body);
StmtDoc comment_doc(std::string_view text);

/// Which TVM's spellings: that of 2024, or the newest, apache-tvm 0.27 ("head").
enum class Style : uint8_t { v0_17, head };

struct PrintOptions {
  std::string ir_prefix = "I", tir_prefix = "T", relax_prefix = "R";
  std::string module_name = "Module", module_alias = "cls";
  Style style = Style::v0_17;
  bool syntax_sugar = true;   ///< T.grid, T.axis.remap, T.Buffer parameters, the implicit root block
  std::vector<At> underline;  ///< nodes to underline, each with its label
};

/// The options with other names for the languages that a parameter of the program is called like: `T` is `tir` then, so that the
/// parameter keeps its name.
PrintOptions keeping(PrintOptions options, const std::set<std::string, std::less<>>& parameters);

class Printer;

/// A scope while it is printed.
class Frame {
 public:
  std::vector<StmtDoc> stmts;
  const NodeBase* node;                ///< the part of the program the frame is for, or null
  bool allow_concise_scoping = false;  ///< the statement being printed is the last one of its sequence

 private:
  friend class Printer;
  explicit Frame(const NodeBase* n) : node(n) {}
  std::vector<const NodeBase*> defined_;
};

class Printer {
 public:
  explicit Printer(PrintOptions options = {});

  const PrintOptions& options() const { return options_; }
  bool is_head() const { return options_.style == Style::head; }

  /// `T.name` and so on; remembers that the prefix is used, for the header.
  Doc ir(std::string_view name);
  Doc tir(std::string_view name);
  Doc relax(std::string_view name);

  // Frames form a stack; a name lives as long as the frame it was defined in.
  Frame& push_frame(const NodeBase* node);
  void pop_frame();
  Frame& frame() { return *frames_.back(); }
  const std::vector<std::unique_ptr<Frame>>& frames() const { return frames_; }

  /// Gives the object a name that is free, like `hint`; an object that has one keeps it.
  Doc define(const NodeBase& object, std::string_view hint, Frame& frame);
  /// Uses of the object print as what `doc` returns, as `A.data` for the pointer of a buffer.
  void define_as(const NodeBase& object, Frame& frame, std::function<Doc()> doc);
  bool is_defined(const NodeBase& object) const { return names_.count(&object) > 0; }
  std::optional<Doc> find(const NodeBase& object) const;

  /// Where undefined variables of `root` may be defined: the innermost open frame around all their uses.
  void set_root(const NodeRef& root);
  Frame* lowest_frame_around_uses(const NodeBase& object);
  /// Whether every use of the object lies inside `node`.
  bool is_around_all_uses(const NodeBase& node, const NodeBase& object);

  /// The document with a mark if the node is to be underlined.
  Doc marked(Doc doc, const Object& node) const;
  bool is_marked(const Object& node) const;

  /// Stands for an object that has no text: metadata["kind"][i].
  Doc metadata(std::string_view kind, const NodeRef& object);
  const std::map<std::string, std::vector<NodeRef>, std::less<>>& all_metadata() const { return metadata_; }

  /// The comment lines that say what the prefixes mean, and an empty one.
  std::vector<StmtDoc> header() const;
  /// The finished text, without an end of line after the last line.
  std::string render(const std::vector<StmtDoc>& stmts) const;
  /// Only what surrounds the marked nodes, underlined and labelled; all of it where it is short.
  std::string excerpt(const std::vector<StmtDoc>& stmts) const;

 private:
  struct Name {
    std::function<Doc()> doc;
    std::string name;  ///< empty if it is an expression
  };
  void find_uses(const NodeRef& node, std::vector<const NodeBase*>& path);

  PrintOptions options_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::unordered_map<const NodeBase*, Name> names_;
  std::set<std::string, std::less<>> taken_;
  bool uses_ir_ = false, uses_tir_ = false, uses_relax_ = false;
  NodeRef root_;
  bool has_uses_ = false;
  std::unordered_map<const NodeBase*, std::vector<const NodeBase*>> common_path_;
  std::map<std::string, std::vector<NodeRef>, std::less<>> metadata_;
};

/// A frame for as long as it lives.
class FrameScope {
 public:
  FrameScope(Printer& printer, const NodeBase* node) : printer_(printer), frame_(printer.push_frame(node)) {}
  ~FrameScope() { printer_.pop_frame(); }
  FrameScope(const FrameScope&) = delete;
  FrameScope& operator=(const FrameScope&) = delete;
  Frame* operator->() const { return &frame_; }
  Frame& operator*() const { return frame_; }

 private:
  Printer& printer_;
  Frame& frame_;
};

}  // namespace sator::script
