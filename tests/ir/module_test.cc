// Modules: what replacing a function leaves as it was, and nodes' memory of their class.
#include "ir/module.h"

#include <gtest/gtest.h>

#include "ir/expr.h"

namespace sator {
namespace {

struct Marked final : Node<Marked, FuncNode> {
  int64_t mark = 0;
  std::vector<std::pair<std::string, Expr>> named;
  std::map<std::string, NodeRef> others;
  static constexpr auto fields() {
    return std::tuple{field("mark", &Marked::mark), field("named", &Marked::named), field("others", &Marked::others)};
  }
};

Func marked(int64_t mark) {
  return make<Marked>(mark, std::vector<std::pair<std::string, Expr>>{}, std::map<std::string, NodeRef>{});
}

ModuleRef module_of(int64_t mark) {
  return make<Module>(std::map<std::string, Func>{{"f", marked(mark)}}, Attrs(), Attrs());
}

int64_t mark_of(const ModuleRef& module, const std::string& name) {
  return module->functions.at(name).as<Marked>()->mark;
}

TEST(Module, AFunctionIsReplacedForItsHolderAlone) {
  ModuleRef first = module_of(1);
  const ModuleRef held = first;
  ModuleRef second = with_function(std::move(first), "f", marked(2));
  EXPECT_EQ(mark_of(held, "f"), 1);
  EXPECT_EQ(mark_of(second, "f"), 2);
  const Module* before = second.get();
  second = with_function(std::move(second), "g", marked(3));
  EXPECT_EQ(second.get(), before);  // nobody else held it
  EXPECT_EQ(mark_of(second, "f"), 2);
  EXPECT_EQ(mark_of(second, "g"), 3);
  EXPECT_EQ(held->functions.count("g"), 0u);
  const ModuleRef third = with_function(second, "g", marked(4));  // not given away
  EXPECT_EQ(mark_of(second, "g"), 3);
  EXPECT_EQ(mark_of(third, "g"), 4);
}

TEST(Node, IsToldByClassAndFamily) {
  const NodeRef func = marked(1), number = int_imm(7);
  EXPECT_TRUE(func.as<FuncNode>() && func.as<Marked>() && func.as<NodeBase>());
  EXPECT_FALSE(func.as<ExprNode>() || func.as<IntImm>() || func.as<Module>());
  EXPECT_TRUE(number.as<ExprNode>() && number.as<IntImm>());
  EXPECT_FALSE(number.as<FuncNode>() || number.as<FloatImm>());
  EXPECT_TRUE(int_imm(7)->info().is_leaf);
  EXPECT_FALSE(func->info().is_leaf);
}

// Fields of every shape: what changes is a copy, what does not is the same node.
TEST(Node, ChildrenAreMappedWhereTheyAre) {
  const Expr a = int_imm(1), b = int_imm(2);
  Ref<const Marked> node = make<Marked>(5,
                                        std::vector<std::pair<std::string, Expr>>{{"x", a}, {"y", b}, {"z", a}},
                                        std::map<std::string, NodeRef>{{"k", a}, {"n", NodeRef()}});
  EXPECT_EQ(replaced(node, NodeMap{{int_imm(9), b}}), node);
  const Ref<const Marked> changed = replaced(node, NodeMap{{a, b}});
  ASSERT_NE(changed, node);
  EXPECT_EQ(changed->mark, 5);
  for (const auto& [name, value] : changed->named) EXPECT_EQ(value, b) << name;
  EXPECT_EQ(changed->named[1].first, "y");
  EXPECT_EQ(changed->others.at("k"), b);
  EXPECT_EQ(changed->others.at("n"), nullptr);
  EXPECT_EQ(node->named[0].second, a);  // the first is as it was
  int seen = 0;
  walk(node, [&](const IntImm&) { ++seen; });
  EXPECT_EQ(seen, 4);
}

}  // namespace
}  // namespace sator
