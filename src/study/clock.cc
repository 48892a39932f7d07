#include "study/clock.h"

#include <ctime>

#include "base/text.h"

namespace sator::study {

static constexpr const char* kFormat = "%Y-%m-%dT%H:%M:%SZ";

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  char words[32];
  return {words, std::strftime(words, sizeof words, kFormat, &parts)};
}

std::optional<int64_t> seconds_since(const std::string& utc) {
  std::tm parts = {};
  const char* end = ::strptime(utc.c_str(), kFormat, &parts);
  if (!end || *end) return {};
  return static_cast<int64_t>(std::time(nullptr) - ::timegm(&parts));
}

std::string ago_words(int64_t seconds) {
  const bool minutes = seconds >= 120;
  const int64_t n = minutes ? seconds / 60 : seconds;
  return text(n, minutes ? " minutes" : n == 1 ? " second" : " seconds", " ago");
}

}  // namespace sator::study
