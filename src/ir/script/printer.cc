#include "ir/script/printer.h"

#include <algorithm>

namespace sator::script {

Printer::Printer(PrintOptions options) : options_(std::move(options)) {
  for (const std::string* word :
       {&options_.ir_prefix, &options_.tir_prefix, &options_.relax_prefix, &options_.module_alias}) {
    if (!word->empty()) taken_.insert(*word);
  }
}

PrintOptions keeping(PrintOptions options, const std::set<std::string, std::less<>>& parameters) {
  for (const auto& [prefix, name] : {std::pair{&options.ir_prefix, "ir"},
                                     {&options.tir_prefix, options.style == Style::head ? "tirx" : "tir"},
                                     {&options.relax_prefix, "relax"}})
    if (parameters.contains(*prefix) && !parameters.contains(name)) *prefix = name;
  return options;
}

Doc Printer::ir(std::string_view name) {
  uses_ir_ = true;
  return Doc(text(options_.ir_prefix, ".", name));
}
Doc Printer::tir(std::string_view name) {
  uses_tir_ = true;
  if (is_head() && (name == "block" || name == "block_attr")) return Doc(text(options_.tir_prefix, ".s", name));
  return Doc(text(options_.tir_prefix, ".", name));
}
Doc Printer::relax(std::string_view name) {
  uses_relax_ = true;
  return Doc(text(options_.relax_prefix, ".", name));
}

Frame& Printer::push_frame(const NodeBase* node) {
  frames_.push_back(std::unique_ptr<Frame>(new Frame(node)));
  return *frames_.back();
}

void Printer::pop_frame() {
  for (const NodeBase* object : frames_.back()->defined_) {
    auto at = names_.find(object);
    taken_.erase(at->second.name);
    names_.erase(at);
  }
  frames_.pop_back();
}

Doc Printer::define(const NodeBase& object, std::string_view hint, Frame& frame) {
  if (auto doc = find(object)) return *doc;
  std::string base(hint);
  for (char& c : base) {
    const bool is_ascii = (c & 0x80) == 0;  // letters of other scripts are those of names too
    if (is_ascii && c != '_' && !std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  if (base.empty()) base = "v";
  if (std::isdigit(static_cast<unsigned char>(base[0]))) base = "v_" + base;
  std::string name = base;
  for (int i = 1; taken_.count(name); ++i) name = text(base, "_", i);
  taken_.insert(name);
  names_.emplace(&object, Name{[name] { return Doc(name); }, name});
  frame.defined_.push_back(&object);
  return marked(Doc(name), object);
}

void Printer::define_as(const NodeBase& object, Frame& frame, std::function<Doc()> doc) {
  if (is_defined(object)) return;
  names_.emplace(&object, Name{std::move(doc), {}});
  frame.defined_.push_back(&object);
}

std::optional<Doc> Printer::find(const NodeBase& object) const {
  auto at = names_.find(&object);
  if (at == names_.end()) return {};
  return at->second.doc();
}

void Printer::set_root(const NodeRef& root) {
  root_ = root;
  has_uses_ = false;
  common_path_.clear();
}

void Printer::find_uses(const NodeRef& node, std::vector<const NodeBase*>& path) {
  path.push_back(node.get());
  node->info().each_child(*node, [&](const NodeRef& child) { find_uses(child, path); });
  path.pop_back();
  if (!node->info().has_identity) return;
  auto [at, is_new] = common_path_.emplace(node.get(), path);
  if (is_new) return;
  auto& common = at->second;
  auto differs = std::mismatch(common.begin(), common.end(), path.begin(), path.end()).first;
  common.erase(differs, common.end());
}

Frame* Printer::lowest_frame_around_uses(const NodeBase& object) {
  if (!root_) return frames_.empty() ? nullptr : frames_.front().get();
  if (!std::exchange(has_uses_, true)) {
    std::vector<const NodeBase*> path;
    find_uses(root_, path);
  }
  auto at = common_path_.find(&object);
  if (at != common_path_.end()) {
    for (auto node = at->second.rbegin(); node != at->second.rend(); ++node) {
      for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
        if ((*frame)->node == *node) return frame->get();
      }
    }
  }
  return frames_.empty() ? nullptr : frames_.front().get();
}

bool Printer::is_around_all_uses(const NodeBase& node, const NodeBase& object) {
  if (!root_) return false;
  lowest_frame_around_uses(object);
  auto at = common_path_.find(&object);
  return at != common_path_.end() && std::find(at->second.begin(), at->second.end(), &node) != at->second.end();
}

bool Printer::is_marked(const Object& node) const {
  return std::any_of(
      options_.underline.begin(), options_.underline.end(), [&](const At& at) { return at.node.get() == &node; });
}

Doc Printer::marked(Doc doc, const Object& node) const {
  if (!options_.underline.empty() && is_marked(node)) doc.marks.push_back({0, doc.text.size(), &node});
  return doc;
}

Doc Printer::metadata(std::string_view kind, const NodeRef& object) {
  auto& objects = metadata_[std::string(kind)];
  auto at = std::find(objects.begin(), objects.end(), object);
  auto index = at - objects.begin();
  if (at == objects.end()) objects.push_back(object);
  return Doc(text("metadata[", string_literal(kind), "][", index, "]"));
}

std::vector<StmtDoc> Printer::header() const {
  std::vector<StmtDoc> out;
  const auto import = [&](std::string_view language, std::string_view prefix) {
    out.push_back(
        comment_doc(text("from tvm.script import ", language, language == prefix ? "" : text(" as ", prefix))));
  };
  if (uses_ir_) import("ir", options_.ir_prefix);
  if (uses_tir_) import(is_head() ? "tirx" : "tir", options_.tir_prefix);
  if (uses_relax_) import("relax", options_.relax_prefix);
  if (!out.empty()) out.push_back(comment_doc(""));
  return out;
}

namespace {

/// A line of the finished text; its marks count from the first character after the indentation.
struct Line {
  int indent;
  const Doc* head;
  std::string_view suffix;
  std::string text() const {
    return head->text.empty() ? "" : std::string(4 * indent, ' ') + head->text + std::string(suffix);
  }
  /// The same with the places of nodes between control characters, as `render` says.
  std::string marked_text(const std::vector<At>& underline) const {
    std::vector<std::pair<size_t, std::string>> insertions;
    for (const Doc::Mark& mark : head->marks)
      for (const At& at : underline)
        if (at.node.get() == mark.node) {
          insertions.emplace_back(mark.begin, "\x01" + at.label + "\x03");
          insertions.emplace_back(mark.end, "\x02" + at.label + "\x03");
        }
    std::ranges::stable_sort(insertions, std::greater(), [](const auto& i) { return i.first; });
    std::string out = text();
    for (const auto& [at, what] : insertions) out.insert(4 * static_cast<size_t>(indent) + at, what);
    return out;
  }
};

const Doc kPass("pass"), kBlank("");

void flatten(const std::vector<StmtDoc>& stmts, int indent, std::vector<Line>& out) {
  for (const StmtDoc& s : stmts) {
    out.push_back({indent, &s.head, s.is_compound ? ":" : ""});
    // Decorators are heads of several lines.
    if (s.is_compound) {
      if (s.body.empty()) out.push_back({indent + 1, &kPass, ""});
      flatten(s.body, indent + 1, out);
    }
    if (s.blank_after) out.push_back({indent, &kBlank, ""});
  }
}

}  // namespace

// Before each node that is to be underlined stands "\x01LABEL\x03", behind it "\x02LABEL\x03": no text of a program has these characters.
std::string Printer::render(const std::vector<StmtDoc>& stmts) const {
  std::vector<Line> lines;
  flatten(stmts, 0, lines);
  std::string out;
  for (const Line& line : lines) {
    out += options_.underline.empty() ? line.text() : line.marked_text(options_.underline);
    out += '\n';
  }
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}

std::string Printer::excerpt(const std::vector<StmtDoc>& stmts) const {
  constexpr size_t kWholeBelow = 24, kContext = 2;
  std::vector<Line> lines;
  flatten(stmts, 0, lines);
  while (!lines.empty() && lines.back().head->text.empty()) lines.pop_back();
  std::vector<bool> shown(lines.size(), lines.size() <= kWholeBelow);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].head->marks.empty()) continue;
    for (size_t j = i - std::min(i, kContext); j <= i + kContext && j < lines.size(); ++j) shown[j] = true;
    int indent = lines[i].indent;
    for (size_t j = i; j-- > 0 && indent > 0;) {  // the heads around it
      if (lines[j].head->text.empty() || lines[j].indent >= indent) continue;
      shown[j] = true;
      indent = lines[j].indent;
    }
  }
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!shown[i]) {
      size_t end = i;
      while (end < lines.size() && !shown[end]) ++end;
      if (end - i > 1) {
        out += std::string(4 * lines[i].indent, ' ') + text("... ", end - i, " lines\n");
        i = end - 1;
        continue;
      }
    }
    out += lines[i].text() + "\n";
    auto marks = lines[i].head->marks;
    std::stable_sort(marks.begin(), marks.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (const Doc::Mark& mark : marks) {
      for (const At& at : options_.underline) {
        if (at.node.get() != mark.node) continue;
        out += std::string(4 * lines[i].indent + mark.begin, ' ') +
               std::string(std::max<size_t>(1, mark.end - mark.begin), '^');
        out += at.label.empty() ? "\n" : " " + at.label + "\n";
      }
    }
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace sator::script
