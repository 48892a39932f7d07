// Every node class under its name in TVM, with TVM's names for fields that we call otherwise. A new node class is one line here;
// a test holds the table against the headers.
#include <algorithm>

#include "arith/index_map.h"
#include "bind/convert.h"
#include "tir/nodes.h"
#include "tir/te.h"

namespace sator::bind {

namespace {

using Aliases = std::vector<std::pair<const char*, const char*>>;

template <class T>
std::string family_of() {
  if constexpr (std::is_base_of_v<ExprNode, T>)
    return "PrimExpr";
  else if constexpr (std::is_base_of_v<tir::StmtNode, T>)
    return "Stmt";
  else if constexpr (std::is_base_of_v<FuncNode, T>)
    return "BaseFunc";
  else if constexpr (std::is_base_of_v<relax::RelaxExprNode, T>)
    return "RelaxExpr";
  else if constexpr (std::is_base_of_v<relax::StructInfoNode, T>)
    return "StructInfo";
  else if constexpr (std::is_base_of_v<relax::BindingNode, T>)
    return "Binding";
  else
    return "Object";
}

template <class T>
bool holds_null(const Ref<T>& part) {
  return part == nullptr;
}
template <class T>
bool holds_null(const std::vector<Ref<T>>& parts) {
  return std::ranges::any_of(parts, [](const Ref<T>& part) { return part == nullptr; });
}
template <class T>
bool holds_null(const std::optional<std::vector<Ref<T>>>& parts) {
  return parts && holds_null(*parts);
}
bool holds_null(const auto&) { return false; }

/// What a node may lack.
template <class T>
bool may_be_absent(std::string_view field) {
  if constexpr (std::is_same_v<T, relax::FuncInfo> || std::is_same_v<T, relax::MatchCast>) return false;
  if constexpr (std::is_same_v<T, relax::PrimInfo>) return field == "value";
  if constexpr (std::is_same_v<T, relax::TensorInfo>) return field == "shape";
  static constexpr std::string_view kAbsent[] = {
      "init", "else_case", "message", "node", "sinfo", "ret_sinfo", "ret", "elem_offset", "dom", "inverse_index_map"};
  return std::ranges::find(kAbsent, field) != std::end(kAbsent);
}

/// Lists, dictionaries and modules hold what their owners check; a TargetConfig has parts of its own.
template <class T>
constexpr bool kHoldsAnything = std::is_same_v<T, Array> || std::is_same_v<T, Dict> || std::is_same_v<T, Module> ||
                                std::is_same_v<T, TargetConfig> || std::is_same_v<T, VDevice>;

/// Errors: None where a part of a program is needed, alone or in a list.
template <class T>
void require_parts(const T& node) {
  if constexpr (!kHoldsAnything<T>)
    detail::for_fields<T>([&](const auto& f) {
      if (holds_null(node.*f.pointer) && !may_be_absent<T>(f.name))
        throw nb::type_error(text(T::kInfo.name, ": None for ", f.name, "\n  needs: a part of a program").c_str());
    });
  if constexpr (std::is_same_v<T, Shuffle>)
    if (node.vectors.empty() || node.indices.empty())
      throw nb::type_error("Shuffle: no vectors or no indices\n  needs: one of each at least");
}

template <class T, class Tuple, size_t... I>
NodeRef make_from(const std::vector<nb::object>& values, const Tuple& fields, std::index_sequence<I...>) {
  T* node = new T;
  Ref<T> owned(node);
  ((node->*(std::get<I>(fields).pointer) =
        field_from_python<std::decay_t<decltype(node->*(std::get<I>(fields).pointer))>>(values[I])),
   ...);
  require_parts(*node);
  return detail::finished(node);
}

template <class T>
NodeRow row(const char* space, const char* name, const Aliases& aliases = {}) {
  NodeRow out{.info = &T::kInfo, .space = space, .name = name, .family = family_of<T>()};
  detail::for_fields<T>([&](const auto& f) {
    FieldRow field{.name = f.name};
    for (auto [ours, theirs] : aliases)
      if (field.name == ours) field.aliases.emplace_back(theirs);
    field.get = [pointer = f.pointer](const NodeBase& n) { return field_to_python(static_cast<const T&>(n).*pointer); };
    field.exact = [pointer = f.pointer](const NodeBase& n) {
      return field_to_python<true>(static_cast<const T&>(n).*pointer);
    };
    out.fields.push_back(std::move(field));
  });
  out.make = [name = out.name](const std::vector<nb::object>& values) {
    constexpr size_t kCount = std::tuple_size_v<decltype(T::fields())>;
    if (values.size() != kCount)
      throw nb::type_error(text(name, " has ", kCount, " fields, but ", values.size(), " values are given").c_str());
    return make_from<T>(values, T::fields(), std::make_index_sequence<kCount>());
  };
  return out;
}

/// A class whose objects Python only hands on.
template <class T>
NodeRow opaque_row(const char* space, const char* name) {
  return {
      .info = &T::kInfo, .space = space, .name = name, .family = family_of<T>(), .make = [](const auto&) -> NodeRef {
        throw nb::type_error("such a node is made by the compiler alone");
      }};
}

std::vector<NodeRow> all_rows() {
  return {
      row<Module>("ir", "IRModule"),
      row<TargetConfig>("ir", "TargetConfig"),
      row<VDevice>("ir", "VDevice", {{"index", "vdevice_id"}}),
      row<Range>("ir", "Range"),
      row<Array>("ir", "Array"),
      row<Dict>("ir", "Dict"),
      row<Var>("tir", "Var", {{"name", "name_hint"}}),
      row<IntImm>("tir", "IntImm"),
      row<FloatImm>("tir", "FloatImm"),
      row<StringImm>("tir", "StringImm"),
      row<Add>("tir", "Add"),
      row<Sub>("tir", "Sub"),
      row<Mul>("tir", "Mul"),
      row<Div>("tir", "Div"),
      row<Mod>("tir", "Mod"),
      row<FloorDiv>("tir", "FloorDiv"),
      row<FloorMod>("tir", "FloorMod"),
      row<Min>("tir", "Min"),
      row<Max>("tir", "Max"),
      row<EQ>("tir", "EQ"),
      row<NE>("tir", "NE"),
      row<LT>("tir", "LT"),
      row<LE>("tir", "LE"),
      row<GT>("tir", "GT"),
      row<GE>("tir", "GE"),
      row<And>("tir", "And"),
      row<Or>("tir", "Or"),
      row<Not>("tir", "Not"),
      row<Select>("tir", "Select"),
      row<Cast>("tir", "Cast"),
      row<Buffer>("tir", "Buffer"),
      row<BufferLoad>("tir", "BufferLoad"),
      row<Call>("tir", "Call"),
      row<Let>("tir", "Let"),
      row<Ramp>("tir", "Ramp"),
      row<Broadcast>("tir", "Broadcast"),
      row<Shuffle>("tir", "Shuffle"),
      row<arith::IndexMap>("tir", "IndexMap"),
      opaque_row<te::TensorLoad>("tir", "ProducerLoad"),
      row<tir::IterVar>("tir", "IterVar", {{"kind", "iter_type"}}),
      row<tir::BufferRegion>("tir", "BufferRegion"),
      row<tir::MatchBuffer>("tir", "MatchBufferRegion"),
      row<tir::BlockName>("tir", "BlockName"),
      row<tir::Block>("tir", "Block"),
      row<tir::BlockRealize>("tir", "BlockRealize", {{"values", "iter_values"}}),
      row<tir::For>("tir", "For", {{"var", "loop_var"}}),
      row<tir::Seq>("tir", "SeqStmt", {{"stmts", "seq"}}),
      row<tir::BufferStore>("tir", "BufferStore"),
      row<tir::IfThenElse>("tir", "IfThenElse"),
      row<tir::While>("tir", "While"),
      row<tir::LetStmt>("tir", "LetStmt"),
      row<tir::ThreadAxis>("tir", "ThreadAxis"),
      row<tir::CommReducer>("tir", "CommReducer", {{"identity", "identity_element"}}),
      row<tir::AttrStmt>("tir", "AttrStmt", {{"key", "attr_key"}}),
      row<tir::AssertStmt>("tir", "AssertStmt"),
      row<tir::Evaluate>("tir", "Evaluate"),
      row<tir::Allocate>("tir", "Allocate", {{"data", "buffer_var"}}),
      row<tir::AllocateConst>("tir", "AllocateConst", {{"data", "buffer_var"}}),
      row<tir::DeclBuffer>("tir", "DeclBuffer"),
      row<tir::PrimFunc>("tir", "PrimFunc", {{"ret_dtype", "ret_type"}}),
      row<relax::ObjectInfo>("relax", "ObjectStructInfo"),
      row<relax::PrimInfo>("relax", "PrimStructInfo"),
      row<relax::ShapeInfo>("relax", "ShapeStructInfo"),
      row<relax::TensorInfo>("relax", "TensorStructInfo"),
      row<relax::DeviceMesh>("relax", "DeviceMesh"),
      row<relax::DTensorInfo>("relax", "DTensorStructInfo"),
      row<relax::TupleInfo>("relax", "TupleStructInfo"),
      row<relax::FuncInfo>("relax", "FuncStructInfo"),
      row<relax::RVar>("relax", "Var", {{"name", "name_hint"}}),
      row<relax::GlobalVar>("relax", "GlobalVar", {{"name", "name_hint"}}),
      row<relax::Constant>("relax", "Constant"),
      row<relax::Tuple>("relax", "Tuple", {{"items", "fields"}}),
      row<relax::TupleGetItem>("relax", "TupleGetItem", {{"tuple", "tuple_value"}}),
      row<relax::ShapeExpr>("relax", "ShapeExpr"),
      row<relax::PrimValue>("relax", "PrimValue"),
      row<relax::RString>("relax", "StringImm"),
      row<relax::DTypeImm>("relax", "DataTypeImm"),
      row<relax::Op>("relax", "Op"),
      row<relax::ExternFunc>("relax", "ExternFunc", {{"name", "global_symbol"}}),
      row<relax::RCall>("relax", "Call"),
      row<relax::VarBinding>("relax", "VarBinding"),
      row<relax::MatchCast>("relax", "MatchCast", {{"sinfo", "struct_info"}}),
      row<relax::BindingBlock>("relax", "BindingBlock"),
      row<relax::SeqExpr>("relax", "SeqExpr"),
      row<relax::If>("relax", "If", {{"condition", "cond"}}),
      row<relax::Function>("relax", "Function", {{"ret", "ret_struct_info"}}),
      row<relax::LocalFunction>("relax", "LocalFunction"),
      row<relax::ExternDecl>("relax", "ExternDecl"),
  };
}

}  // namespace

const std::vector<NodeRow>& node_rows() {
  static const std::vector<NodeRow>* all = new std::vector<NodeRow>(all_rows());
  return *all;
}

}  // namespace sator::bind
