#include "schedule/trace.h"

#include "schedule/primitive.h"

namespace sator::schedule {

std::string describe(const Step& step) { return text(step.primitive, "(", join(step.inputs, ", "), ")"); }

namespace {

/// Rewrites the handles in a value by `map`; what is not a handle stays.
Value mapped(const Value& v, const std::unordered_map<const NodeBase*, Value>& map) {
  auto look_up = [&](const NodeBase* handle) -> Value {
    auto at = map.find(handle);
    return at == map.end() ? v : at->second;
  };
  if (auto* l = v.get_if<Loop>()) return look_up(l->get());
  if (auto* b = v.get_if<BlockHandle>()) return look_up(b->get());
  if (auto* list = v.get_if<List>()) {
    List out;
    for (const Value& item : *list) out.push_back(mapped(item, map));
    return out;
  }
  return v;
}

/// Notes that the handles of `from` correspond to those of `to`, which has the same shape.
void correspond(const Value& from, const Value& to, std::unordered_map<const NodeBase*, Value>& map) {
  if (auto* l = from.get_if<Loop>()) {
    map.insert_or_assign(l->get(), to);
  } else if (auto* b = from.get_if<BlockHandle>()) {
    map.insert_or_assign(b->get(), to);
  } else if (auto* list = from.get_if<List>()) {
    const List* other = to.get_if<List>();
    if (!other || other->size() != list->size())
      fail({.what = "the trace does not fit this program: a step returned another number of handles",
            .needs = "the program that the trace was recorded on",
            .hint = "replay on the function before scheduling"});
    for (size_t i = 0; i < list->size(); ++i) correspond((*list)[i], (*other)[i], map);
  }
}

/// Names for handles in the order they are made: b0, l1, l2, ...
class HandleNames {
 public:
  std::string define(const Value& v) {
    if (auto* l = v.get_if<Loop>()) return name(l->get(), "l");
    if (auto* b = v.get_if<BlockHandle>()) return name(b->get(), "b");
    if (auto* list = v.get_if<List>()) {
      std::vector<std::string> names;
      for (const Value& item : *list) names.push_back(define(item));
      return join(names, ", ") + (names.size() == 1 ? "," : "");
    }
    return text("v", next_++);
  }
  std::string use(const Value& v) {
    if (auto* l = v.get_if<Loop>()) return known(l->get(), v);
    if (auto* b = v.get_if<BlockHandle>()) return known(b->get(), v);
    if (auto* list = v.get_if<List>()) {
      std::vector<std::string> items;
      for (const Value& item : *list) items.push_back(use(item));
      return "[" + join(items, ", ") + "]";
    }
    return text(v);
  }

 private:
  std::string name(const NodeBase* handle, const char* prefix) {
    std::string n = text(prefix, next_++);
    names_[handle] = n;
    return n;
  }
  std::string known(const NodeBase* handle, const Value& v) {
    auto at = names_.find(handle);
    return at == names_.end() ? text(v) : at->second;
  }
  std::unordered_map<const NodeBase*, std::string> names_;
  int64_t next_ = 0;
};

}  // namespace

void Trace::apply_to(Schedule& s) const {
  std::unordered_map<const NodeBase*, Value> map;
  for (const Step& step : steps) {
    const AnyPrimitive& primitive = primitive_named(step.primitive);
    List inputs;
    for (const Value& v : step.inputs) inputs.push_back(mapped(v, map));
    correspond(step.output, primitive.invoke(s, std::move(inputs)), map);
  }
}

std::string Trace::as_python() const {
  HandleNames names;
  std::string out;
  for (const Step& step : steps) {
    const AnyPrimitive& primitive = primitive_named(step.primitive);
    std::vector<std::string> args;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      args.push_back(text(primitive.parameters[i].name, "=", names.use(step.inputs[i])));
    std::string result = step.output.is_none() ? "" : names.define(step.output);
    out += text(result.empty() ? "" : result + " = ", "sch.", step.primitive, "(", join(args, ", "), ")\n");
  }
  return out;
}

}  // namespace sator::schedule
