#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

static void set_annotations(Schedule& s, const Value& of, const Attrs& annotations) {
  if (auto* loop = of.get_if<Loop>()) {
    const For& node = s.get(*loop);
    s.replace(node, with(node, &For::annotations, annotations));
  } else {
    const BlockRealize& realize = s.realize(value_to_block(s, of, "block_or_loop"));
    s.replace(Stmt(&realize),
              with(realize, &BlockRealize::block, with(realize.block, &Block::annotations, annotations)));
  }
}

static const Attrs& annotations_of(const Schedule& s, const Value& of) {
  if (auto* loop = of.get_if<Loop>()) return s.get(*loop).annotations;
  return s.get(value_to_block(s, of, "block_or_loop")).annotations;
}

/// Attaches `key: value` to a loop or block, in the place of the value that the key had.
static void do_annotate(Schedule& s, Value of, std::string key, Value value) {
  Attrs annotations = annotations_of(s, of);
  annotations[key] = value_to_node(value, "ann_val");
  set_annotations(s, of, annotations);
}

/// Takes `key` off a loop or block.
static void do_unannotate(Schedule& s, Value of, std::string key) {
  Attrs annotations = annotations_of(s, of);
  if (!annotations.erase(key)) {
    std::vector<std::string> keys;
    for (const auto& [k, v] : annotations) keys.push_back(k);
    s.fail({.what = text("there is no annotation ", string_literal(key)),
            .needs = "an annotation that is there",
            .hint = keys.empty() ? std::string("nothing is annotated here") : text("there are: ", join(keys, ", "))});
  }
  set_annotations(s, of, annotations);
}

const Primitive<void(Value, std::string, Value)> annotate{
    "annotate", do_annotate, {"block_or_loop", "ann_key", "ann_val"}, "attaches a key and value to a loop or block"};
const Primitive<void(Value, std::string)> unannotate{
    "unannotate", do_unannotate, {"block_or_loop", "ann_key"}, "takes an annotation off a loop or block"};

}  // namespace sator::schedule
