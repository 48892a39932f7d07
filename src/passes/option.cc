#include "passes/option.h"

#include <algorithm>

#include "passes/lower/lower.h"
#include "relax/parse.h"
#include "relax/print.h"

namespace sator::passes {

namespace {

/// The parts between commas that stand outside of brackets and quotes.
std::vector<std::string_view> entries_of(std::string_view list) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{' || c == '(') {
      ++depth;
    } else if (c == ']' || c == '}' || c == ')') {
      --depth;
    } else if (c == ',' && depth == 0) {
      out.push_back(trim(list.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  out.push_back(trim(list.substr(begin)));
  std::erase(out, std::string_view());
  return out;
}

/// Whether a value is an expression of Python, not a plain word.
bool is_literal(std::string_view value) {
  const size_t digit = value.starts_with('-') ? 1 : 0;
  return value == "True" || value == "False" ||
         std::string_view("\"'[{(").find(value.front()) != std::string_view::npos ||
         (digit < value.size() && value[digit] >= '0' && value[digit] <= '9');
}

bool is_known(const std::vector<std::string>& known, const std::string& name) {
  return std::ranges::find(known, name) != known.end();
}

void require_known(const std::vector<std::string>& known, const std::string& name) {
  if (is_known(known, name)) return;
  std::vector<std::string> near;
  std::ranges::copy_if(
      known, std::back_inserter(near), [&](const std::string& option) { return option.starts_with(name + "."); });
  if (near.empty()) near = nearest_names(name, known);
  fail({.what = text("no pass has the option ", name),
        .needs = near.empty() ? text("one of ", join(known, ", ")) : "the name of an option",
        .hint = near.empty() ? "`sator opt --list` lists the passes" : text("the nearest are: ", join(near, ", "))});
}

}  // namespace

std::vector<std::string> all_option_names() {
  std::vector<std::string> out(option_names().begin(), option_names().end());
  for (const Pass& p : passes())
    for (const std::string& parameter : p.parameters) out.push_back(text(p.name, ".", parameter));
  out.push_back("relax.lift_transform_params.consume_params");
  out.push_back("ApplyDefaultSchedule.rules");  // a pass of rules/
  return out;
}

Attrs options_from_text(std::string_view list) {
  Attrs out;
  const std::vector<std::string> known = all_option_names();
  for (std::string_view entry : entries_of(list)) {
    const size_t equals = entry.find('=');
    const std::string name(trim(entry.substr(0, equals)));
    const std::string value(equals == entry.npos ? "" : trim(entry.substr(equals + 1)));
    if (name.empty() || value.empty())
      fail({.what = text("the option ", entry, " has no ", name.empty() ? "name" : "value"),
            .needs = "NAME=VALUE, an option of a pass",
            .hint = "as in tir.HoistExpression.hoisted_conditionals=1"});
    const NodeRef given = is_literal(value) ? relax::parse_attribute(value, name) : NodeRef(string_imm(value));
    const Dict* several = given.as<Dict>();
    if (!several || is_known(known, name)) {
      require_known(known, name);
      out[name] = given;
      continue;
    }
    // As in Python: tir.LoopPartition={"partition_const_loop": 1}.
    for (const auto& [key, of_key] : several->items) {
      const std::string whole = text(name, ".", key);
      require_known(known, whole);
      out[whole] = of_key;
    }
  }
  return out;
}

NodeRef option(const PassContext& ctx, const std::string& name) {
  auto at = ctx.config.find(name);
  return at == ctx.config.end() ? nullptr : at->second;
}

void refuse_option(const PassContext& ctx, const std::string& name, const std::string& needs, const std::string& hint) {
  fail({.what = text("the option ", name, " is ", relax::to_script(option(ctx, name))), .needs = needs, .hint = hint});
}

std::optional<std::string> text_option(const PassContext& ctx, const std::string& name) {
  NodeRef given = option(ctx, name);
  if (!given) return {};
  const StringImm* word = given.as<StringImm>();
  if (!word) refuse_option(ctx, name, "a text", "put it in quotes");
  return word->value;
}

bool flag_option(const PassContext& ctx, const std::string& name, bool otherwise) {
  NodeRef given = option(ctx, name);
  if (!given) return otherwise;
  const IntImm* value = given.as<IntImm>();
  if (!value || value->value < 0 || value->value > 1) refuse_option(ctx, name, "True or False", "write 1 or 0");
  return value->value != 0;
}

int64_t number_option(const PassContext& ctx, const std::string& name, int64_t otherwise, int64_t least) {
  NodeRef given = option(ctx, name);
  if (!given) return otherwise;
  const IntImm* value = given.as<IntImm>();
  if (!value || value->value < least)
    refuse_option(ctx, name, text("a whole number of at least ", least), text("leave it out for ", otherwise));
  return value->value;
}

std::vector<std::string> names_option(const PassContext& ctx, const std::string& name) {
  NodeRef given = option(ctx, name);
  std::vector<std::string> out;
  if (!given) return out;
  const Array* list = given.as<Array>();
  if (!list || !std::ranges::all_of(list->items, [](const NodeRef& n) { return n && n.as<StringImm>(); }))
    refuse_option(ctx, name, "a list of texts", "as in [\"x\", \"y\"]");
  for (const NodeRef& item : list->items) out.push_back(item.as<StringImm>()->value);
  return out;
}

std::string choice_option(const PassContext& ctx, const std::string& name, const std::vector<std::string>& choices) {
  const std::string word = text_option(ctx, name).value_or(choices.front());
  if (std::ranges::find(choices, word) == choices.end())
    refuse_option(ctx, name, text("one of ", join(choices, ", ")), text("leave it out for ", choices.front()));
  return word;
}

relax::NamedValues named_values_option(const PassContext& ctx, const std::string& name) {
  NodeRef given = option(ctx, name);
  relax::NamedValues out;
  if (!given) return out;
  auto refuse = [&] {
    refuse_option(ctx, name, "a dictionary, or a list of pairs of a name and its value", "as in {\"n\": 16}");
  };
  if (const Dict* d = given.as<Dict>()) {
    for (const auto& [key, value] : d->items) out.emplace_back(string_imm(key), value);
  } else if (const Array* pairs = given.as<Array>()) {
    for (const NodeRef& item : pairs->items) {
      const Array* pair = item ? item.as<Array>() : nullptr;
      if (!pair || pair->items.size() != 2 || !pair->items[0]) refuse();
      out.emplace_back(pair->items[0], pair->items[1]);
    }
  } else {
    refuse();
  }
  return out;
}

}  // namespace sator::passes
