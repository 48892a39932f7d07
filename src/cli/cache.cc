#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/figures.h"
#include "base/temporary.h"
#include "cli/commands.h"
#include "llm/model_cache.h"
#include "llm/packed_weights.h"

namespace sator::cli {

namespace {

struct CacheArguments {
  std::string action = "list";
  std::optional<std::string> limit;
};

/// Folders KEY/model.so in which earlier versions kept a model each.
std::vector<CacheEntry> earlier_entries(const fs::path& folder) {
  std::vector<CacheEntry> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const fs::path file = at->path() / "model.so";
    std::error_code gone;
    if (name.size() != 16 || name.find_first_not_of("0123456789abcdef") != name.npos || at->is_symlink(gone) ||
        !fs::is_regular_file(fs::symlink_status(file, gone)))
      continue;
    out.push_back({file, static_cast<int64_t>(fs::file_size(file, gone)), fs::last_write_time(file, gone)});
  }
  return out;
}

double age_s(const CacheEntry& entry) {
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - entry.used).count();
}

/// "3 days", for eyes.
std::string age_words(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  for (const Unit& u : {Unit{86400, "day"}, Unit{3600, "hour"}, Unit{60, "minute"}})
    if (const auto n = static_cast<int64_t>(seconds / u.seconds); n >= 1) return text(n, " ", u.name, n > 1 ? "s" : "");
  return "just now";
}

nlohmann::json to_json(const CacheEntry& e) {
  return {{"file", e.path.string()}, {"bytes", e.bytes}, {"seconds_since_use", age_s(e)}};
}

std::string size_words(int64_t bytes) { return quantity(static_cast<double>(bytes), "B"); }

///   what   the entries are, in words; `json` is told of them
void list(const FileCache& cache, const char* what, int64_t limit, Streams& io, nlohmann::json& json) {
  int64_t bytes = 0;
  json["entries"] = nlohmann::json::array();
  for (const CacheEntry& e : cache.entries()) {
    const bool whole = cache.is_whole(e);
    io.out << pad_left(size_words(e.bytes), 10) << "  " << pad_right(age_words(age_s(e)), 12)
           << e.path.filename().string() << (whole ? "" : "  damaged") << "\n";
    json["entries"].push_back(to_json(e));
    json["entries"].back()["damaged"] = !whole;
    bytes += e.bytes;
  }
  io.out << cache.folder().string() << ": " << json["entries"].size() << " " << what << ", " << size_words(bytes)
         << " of at most " << size_words(limit) << "\n";
  const std::vector<CacheEntry> earlier = earlier_entries(cache.folder());
  if (!earlier.empty())
    io.out << earlier.size() << " of earlier versions, which nothing reads: `sator cache prune` removes them\n";
  json["bytes"] = bytes;
  json["earlier"] = earlier.size();
}

/// Removes what is damaged, of earlier versions, left by killed processes, and, beyond the limit, least recently used.
void prune(const FileCache& cache, int64_t limit, Streams& io, nlohmann::json& json) {
  std::vector<CacheEntry> gone;
  std::error_code ignored;
  remove_abandoned(cache.folder());
  for (CacheEntry& e : earlier_entries(cache.folder())) {
    fs::remove(e.path, ignored);
    fs::remove(e.path.parent_path(), ignored);  // only if it is empty now
    gone.push_back(std::move(e));
  }
  for (CacheEntry& e : cache.entries())
    if (!cache.is_whole(e) && fs::remove(e.path, ignored)) gone.push_back(std::move(e));
  for (CacheEntry& e : cache.prune(limit, std::chrono::seconds(0))) gone.push_back(std::move(e));
  int64_t bytes = 0;
  json["removed"] = nlohmann::json::array();
  for (const CacheEntry& e : gone) {
    bytes += e.bytes;
    json["removed"].push_back(to_json(e));
  }
  json["removed_bytes"] = bytes;
  io.out << cache.folder().string() << ": " << gone.size() << " removed, " << size_words(bytes) << "\n";
}

void run(const CacheArguments& a, Streams& io) {
  const FileCache cache = llm::model_cache();
  int64_t limit = cache_limit_bytes();
  if (a.limit) {
    const std::optional<int64_t> given = parse_size(*a.limit);
    if (!given)
      fail({.what = text("--limit ", *a.limit),
            .needs = "a size in bytes, with K, M, G or T behind it where it is large",
            .hint = "as in --limit 500M"});
    limit = *given;
  }
  const FileCache weights = llm::weights_cache(), digests(weights.folder(), ".digest");
  const int64_t weights_limit = llm::weights_limit_bytes();
  io.json = {{"folder", cache.folder().string()}, {"limit_bytes", limit}};
  nlohmann::json kept = {{"folder", weights.folder().string()}, {"limit_bytes", weights_limit}};
  if (a.action == "list") {
    list(cache, "compiled models", limit, io, io.json);
    list(weights, "models' weights", weights_limit, io, kept);
  } else {
    const bool clear = a.action == "clear";
    prune(cache, clear ? 0 : limit, io, io.json);
    prune(weights, clear ? 0 : weights_limit, io, kept);
    if (clear) digests.prune(0, std::chrono::seconds(0));
  }
  io.json["weights"] = std::move(kept);
}

}  // namespace

Command cache_command() {
  auto a = std::make_shared<CacheArguments>();
  return {
      .name = "cache",
      .does = "lists, prunes or clears the compiled models and the weights that are kept",
      .options = {{.name = "ACTION",
                   .help = "list them; prune: remove what is damaged and what is beyond the limit; clear: remove all",
                   .into = &a->action,
                   .choices = {"list", "prune", "clear"}},
                  {"--limit SIZE",
                   "bytes of models to keep, as in 500M or 2G; $SATOR_CACHE_LIMIT unless told, else 4G",
                   &a->limit}},
      .run = [a](Streams& io) { run(*a, io); },
      .details =
          "Compiled models are kept in $SATOR_HOME/models (~/.cache/sator unless set), by all that shaped them. "
          "When a new\n"
          "one is beyond the limit, the least recently used go by themselves. Weights whose conversion took longer "
          "than\n"
          "half a second are kept in $SATOR_HOME/weights, up to $SATOR_WEIGHTS_LIMIT, 20G unless set. Everything here "
          "can\n"
          "be made again."};
}

}  // namespace sator::cli
