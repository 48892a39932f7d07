#include "schedule/intrinsics/in_text.h"

#include "tir/parse.h"

namespace sator::schedule {

const TensorIntrin* TextIntrins::find(const std::string& name) const {
  auto text = texts_.find(name);
  if (text == texts_.end()) return nullptr;
  std::lock_guard lock(mutex_);
  auto at = parsed_.find(name);
  if (at == parsed_.end()) {
    const IntrinTexts& texts = text->second;
    at = parsed_.emplace(name, TensorIntrin{tir::parse_function(texts.desc), tir::parse_function(texts.impl)}).first;
  }
  return &at->second;
}

std::vector<std::string> TextIntrins::names() const {
  std::vector<std::string> out;
  for (const auto& [name, texts] : texts_) out.push_back(name);
  return out;
}

}  // namespace sator::schedule
