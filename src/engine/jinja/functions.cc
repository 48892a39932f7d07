// What every template may call: Jinja's functions, and those that Transformers adds.
#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "engine/jinja/builtins.h"

namespace sator::jinja {

namespace {

Value f_raise(Taking& t) {
  fail({.what = text("the template refuses: ", to_text(t.need("message"))),
        .needs = "a conversation as the template wants it"});
}

/// Of Python's datetime.now(), which knows no time zone.
Value f_strftime(Taking& t) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::tm parts{};
  localtime_r(&now.tv_sec, &parts);
  const std::string micros = text(1'000'000 + now.tv_nsec / 1000).substr(1);
  std::string format = " ";  // so that an empty result differs from one that does not fit
  const std::string& given = t.need_text("format");
  for (size_t i = 0; i < given.size(); ++i) {
    const char kind = given[i] == '%' && i + 1 < given.size() ? given[++i] : '\0';
    if (kind == 'f')
      format += micros;
    else if (kind == '\0')
      format += given[i];
    else if (kind != 'z' && kind != 'Z')
      format += {'%', kind};
  }
  std::string out(256, '\0');
  size_t size = 0;
  while ((size = std::strftime(out.data(), out.size(), format.c_str(), &parts)) == 0) {
    require_text_size(out.size());
    out.resize(out.size() * 2);
  }
  return out.substr(1, size - 1);
}

Value f_range(Taking& t) {
  int64_t from = 0, to = t.need_integer("stop"), step = 1;
  if (const Value* stop = t.take("stop")) {
    if (!stop->is_integral()) fail({.what = text("range to a ", stop->type()), .needs = "an integer"});
    from = to, to = stop->integer(), step = t.integer_or("step", 1);
  }
  if (step == 0) fail({.what = "a range has steps of 0", .needs = "other steps"});
  const double count = (static_cast<double>(to) - static_cast<double>(from)) / static_cast<double>(step);
  require_items(count > 0 ? static_cast<size_t>(std::min(count, 1e9)) : 0);
  Sequence out{.items = {}, .kind = SequenceKind::range, .bounds = {from, to, step}};
  for (int64_t i = from; step > 0 ? i < to : i > to;) {
    out.items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return out;
}

/// Python's dict(...): of a dictionary or of pairs, and of named values.
Dict dict_of(Taking& t) {
  Dict out;
  if (const Value* given = t.take("")) {
    if (given->dict()) out = *given->dict();
    for (const Value& pair : given->dict() ? List{} : elements_of(*given)) {
      const List parts = elements_of(pair);
      if (parts.size() != 2)
        fail({.what = text("dict is given ", parts.size(), " values in place of a pair"),
              .needs = "a dictionary, or pairs of a name and a value"});
      put(out, parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : t.rest_named()) put(out, name, value);
  return out;
}

Value f_namespace(Taking& t) {
  auto made = std::make_shared<Object>(Object{.type = "Namespace", .members = dict_of(t)});
  for (const auto& [name, value] : made->members) {
    require_public(to_text(name));
    made->depth = std::max(made->depth, depth_around(value));
  }
  made->repr = [object = made.get()](int depth) { return text("<Namespace ", to_repr(object->members, depth), ">"); };
  return made;
}

Value f_dict(Taking& t) { return dict_of(t); }

/// Gives some values in turn: `next`, `current`, `reset`.
Value f_cycler(Taking& t) {
  const List items = t.rest();
  if (items.empty()) fail({.what = "a cycler of no values", .needs = "one or more"});
  auto made = std::make_shared<Object>(Object{.type = "Cycler", .depth = depth_around(items)});
  const auto at = std::make_shared<size_t>(0);
  made->computed["pos"] = [at] { return Value(static_cast<int64_t>(*at)); };
  made->computed["current"] = [at, items] { return items[*at]; };
  made->computed["next"] = [at, items] {
    return method("next", [at, items](Taking&) { return items[std::exchange(*at, (*at + 1) % items.size())]; }, items);
  };
  made->computed["reset"] = [at] {
    return method("reset", [at](Taking&) {
      *at = 0;
      return Value();
    });
  };
  return made;
}

/// Gives its text at each call but the first.
Value f_joiner(Taking& t) {
  const Value* given = t.take("sep");
  auto made = std::make_shared<Object>(Object{.type = "Joiner", .depth = depth_around(given ? *given : Value())});
  made->call = [between = given ? *given : Value(", "), used = false](Arguments& a) mutable {
    Taking("joiner", a).end();
    return std::exchange(used, true) ? between : Value("");
  };
  return made;
}

}  // namespace

void require_public(const std::string& name) {
  if (name.starts_with('_'))
    fail({.what = text("a namespace is given ", name), .needs = "names that do not begin with an underscore"});
}

std::map<std::string, Value> global_functions() {
  std::map<std::string, Value> out;
  auto add = [&](const char* name, Value (*call)(Taking&)) { out[name] = method(name, call); };
  add("raise_exception", f_raise);
  add("strftime_now", f_strftime);
  add("range", f_range);
  add("namespace", f_namespace);
  add("dict", f_dict);
  add("cycler", f_cycler);
  add("joiner", f_joiner);
  return out;
}

}  // namespace sator::jinja
