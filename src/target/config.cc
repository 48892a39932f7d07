#include "target/config.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "target/kinds.h"

namespace sator {

namespace {

/// What the devices of a maker run; the maker's own name where that is not known.
std::string kind_of_maker(std::string_view maker) {
  if (maker == "nvidia") return "cuda";
  if (maker == "apple") return "metal";
  if (maker == "raspberry-pi" || maker == "intel" || maker == "amd") return "llvm";
  return std::string(maker);
}

}  // namespace

TargetConfigRef target_from_text(const std::string& text) {
  Attrs out;
  for (std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    if (word[0] != '-') {
      const bool tag = word.find('/') != word.npos;
      out.emplace("kind", string_imm(tag ? kind_of_maker(word.substr(0, word.find('/'))) : std::string(word)));
      if (tag) out.emplace("tag", string_imm(std::string(word)));
      continue;
    }
    word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
    size_t equals = word.find('=');
    const std::string_view value = equals == word.npos ? "1" : word.substr(equals + 1);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_number = error == std::errc() && end == value.data() + value.size();
    out.insert_or_assign(std::string(word.substr(0, equals)),
                         is_number ? NodeRef(int_imm(number)) : string_imm(std::string(value)));
  }
  return make<TargetConfig>(std::move(out));
}

TargetConfigRef host_of(const TargetConfigRef& target) {
  auto at = target->config.find("host");
  return at == target->config.end() ? nullptr : cast<TargetConfig>(at->second);
}

TargetConfigRef with_host(const TargetConfigRef& target, const TargetConfigRef& host) {
  Attrs config = target->config;
  config.insert_or_assign("host", host);
  return make<TargetConfig>(std::move(config));
}

TargetConfigRef without_host(const TargetConfigRef& target) {
  Attrs config = target->config;
  return config.erase("host") ? make<TargetConfig>(std::move(config)) : target;
}

TargetConfigRef target_attr(const Attrs& attrs) {
  auto at = attrs.find("target");
  if (at == attrs.end()) return nullptr;
  if (const StringImm* text = at->second.as<StringImm>()) return target_from_text(text->value);
  return cast<TargetConfig>(at->second);
}

bool has_scalable_vectors(const TargetConfigRef& target) {
  if (!target) return false;
  const std::string triple = string_attr(target->config, "mtriple").value_or("");
  auto features = target->config.find("mattr");
  if (!triple.starts_with("aarch64") || features == target->config.end()) return false;
  auto names_sve = [](std::string_view all) {
    for (std::string_view word : split(all, ','))
      if (trim(word).starts_with("+sve")) return true;
    return false;
  };
  if (const StringImm* all = features->second.as<StringImm>()) return names_sve(all->value);
  const Array* list = features->second.as<Array>();
  return list && std::ranges::any_of(list->items, [&](const NodeRef& item) {
           const StringImm* feature = item->as<StringImm>();
           return feature && names_sve(feature->value);
         });
}

TargetDevice device_of(const TargetConfigRef& target) {
  const std::string kind = string_attr(target->config, "kind").value_or("");
  if (const TargetKind* known = find_target_kind(kind))
    return {std::string(known->device), known->device_number, known->is_called};
  return {kind, 0, false};
}

}  // namespace sator
