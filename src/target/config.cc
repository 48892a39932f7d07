#include "target/config.h"

#include "base/text.h"

namespace sator {

TargetConfigRef target_from_text(const std::string& text) {
  Attrs out;
  for (std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    if (word[0] != '-') {
      out.emplace("kind", string_imm(std::string(word)));
      continue;
    }
    word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
    size_t equals = word.find('=');
    std::string key(word.substr(0, equals)), value(equals == word.npos ? "1" : word.substr(equals + 1));
    out.insert_or_assign(std::move(key), string_imm(std::move(value)));
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

TargetDevice device_of(const TargetConfigRef& target) {
  struct Row {
    std::string_view kind, device;
    bool is_called;
  };
  static constexpr Row rows[] = {
      {"llvm", "cpu", true},
      {"c", "cpu", true},
      {"ext_dev", "ext_dev", true},
      {"hexagon", "hexagon", true},
      {"cuda", "cuda", false},
      {"nvptx", "cuda", false},
      {"rocm", "rocm", false},
      {"opencl", "opencl", false},
      {"metal", "metal", false},
      {"vulkan", "vulkan", false},
      {"webgpu", "webgpu", false},
  };
  std::string kind = string_attr(target->config, "kind").value_or("");
  for (const Row& row : rows) {
    if (row.kind == kind) return {std::string(row.device), row.is_called};
  }
  return {kind, false};
}

}  // namespace sator
