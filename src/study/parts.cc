#include "study/parts.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "frontend/gguf.h"
#include "frontend/mlc_config.h"
#include "runtime/isa.h"
#include "study/clock.h"
#include "study/json.h"

namespace sator::study {

namespace {

bool shapes_a_model(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name == "study.json" || name.starts_with(".sator-"))
    return false;  // of a study whose results lie beside the model
  const bool is_shard = name.starts_with("params_shard_") && name.ends_with(".bin");
  return name.ends_with(".json") || name.ends_with(".safetensors") || is_shard || name == "merges.txt" ||
         name == "vocab.txt";
}

}  // namespace

std::string model_hash(const fs::path& folder, bool shapes_only) {
  std::vector<fs::path> files;
  if (GgufFile::is_named_so(folder)) {
    const GgufFile gguf = GgufFile::open(folder);
    for (const Ref<MappedFile>& part : gguf.files()) files.push_back(part->path());
  } else {
    files.push_back(folder / (fs::exists(folder / "config.json") ? "config.json" : kMlcConfigFile));
  }
  if (!shapes_only && !GgufFile::is_named_so(folder))
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (entry.is_regular_file() && shapes_a_model(entry.path()) && entry.path() != files.front())
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Digest digest;
  for (const fs::path& file : files)
    digest.add(text(file.filename().string(), ":", static_cast<int64_t>(fs::file_size(file)), "\n")).add_file(file);
  return digest.hex();
}

std::string host_name() {
  std::string model = "unnamed processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      model = trim(std::string_view(line).substr(line.find(':') + 1));
      break;
    }
  return text(model, " (", runtime::available_isa_text(), ")");
}

bool is_host(const Chip& chip, int64_t threads) {
  return chip.host && chip.variation.empty() && chip.host->threads == threads && chip.host->cpu == host_name();
}

PartStore::PartStore(const fs::path& folder, std::function<void(const std::string&)> remark)
    : cache_(folder, ".json"), remark_(std::move(remark)) {
  write_file(folder / "version", text(kSchemaVersion, "\n"));
}

fs::path PartStore::file(const std::string& name, const std::string& key) const {
  return cache_.path_of(name, digest_of(text(name, "\n", key)));
}

std::optional<Study> PartStore::find(const std::string& name, const std::string& key) const {
  const fs::path path = file(name, key);
  const std::optional<std::string> content = cache_.read(path, remark_);
  if (!content) return {};
  try {
    const std::string source = path.filename().string();
    Json json = parse_json(*content, source);
    if (json.value("key", "") != key) return {};  // another part of the same digest
    return from_json(json, source, Extent::part);
  } catch (const Error&) {  // of another version
    return {};
  } catch (const Json::exception&) {
    return {};
  }
}

void PartStore::keep(const Study& part, const std::string& name, const std::string& key) const {
  Json json = to_json(part, Kernels::included);
  json["key"] = key;
  cache_.write(file(name, key), json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::optional<SchemeResult> PartStore::find_scheme(const std::string& name, const std::string& key) const {
  std::optional<Study> part = find(name, key);
  if (!part || part->schemes.size() != 1 || part->schemes[0].name != name || !part->schemes[0].chips.empty()) return {};
  return std::move(part->schemes[0]);
}

void PartStore::keep_scheme(const SchemeResult& scheme, const std::string& key) const {
  Study part;
  part.schemes.push_back(scheme);
  part.schemes[0].chips.clear();
  keep(part, scheme.name, key);
}

static constexpr const char* kSpeeds = "speeds here";

std::optional<SpeedRun> PartStore::find_speeds(const std::vector<std::string>& schemes, const std::string& key,
                                               int64_t age_s) const {
  std::optional<Study> part = find(kSpeeds, key);
  if (!part) return {};
  const auto age = seconds_since(part->protocol.measured_at);
  if (!age || *age < 0 || *age >= age_s) return {};
  for (const std::string& name : schemes)
    if (std::ranges::find(part->schemes, name, &SchemeResult::name) == part->schemes.end()) return {};
  return SpeedRun{std::move(part->schemes), part->protocol.measured_at, part->protocol.rounds};
}

void PartStore::keep_speeds(const SpeedRun& run, const std::string& key) const {
  Study part;
  part.schemes = run.schemes;
  part.protocol.measured_at = run.measured_at;
  part.protocol.rounds = run.rounds;
  keep(part, kSpeeds, key);
}

std::optional<ChipResult> PartStore::find_chip(const std::string& scheme, const std::string& chip,
                                               const std::string& key) const {
  std::optional<Study> part = find(text(scheme, "@", chip), key);
  if (!part || part->schemes.size() != 1 || part->schemes[0].chips.size() != 1 ||
      part->schemes[0].chips[0].chip != chip)
    return {};
  return std::move(part->schemes[0].chips[0]);
}

void PartStore::keep_chip(const std::string& scheme, const ChipResult& chip, const std::string& key) const {
  Study part;
  part.schemes.push_back({.name = scheme, .chips = {chip}});
  keep(part, text(scheme, "@", chip.chip), key);
}

}  // namespace sator::study
