#include "target/target.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "target/nvidia.h"

namespace sator {

using target::CpuLevel;

namespace {

/// CPUs as LLVM names them, by the best level that they run.
struct CpuNames {
  std::string_view level, names;
};
// Source: LLVM 19, the features of its processor models: avx512 asks for VNNI, amx for tiles of int8 and bf16.
constexpr CpuNames kCpuNames[] = {
    {"amx", "sapphirerapids emeraldrapids graniterapids graniterapids-d"},
    {"avx512_bf16", "znver4 znver5"},
    {"avx512", "cascadelake cooperlake icelake-client icelake-server tigerlake rocketlake"},
    {"avx2",
     "x86-64-v3 x86-64-v4 haswell core-avx2 broadwell skylake skylake-avx512 skx cannonlake alderlake raptorlake "
     "meteorlake arrowlake lunarlake gracemont sierraforest znver1 znver2 znver3"},
    {"aarch64",
     "generic neoverse-n1 neoverse-n2 neoverse-v1 neoverse-v2 cortex-a75 cortex-a76 cortex-a78 apple-m1 "
     "apple-m2 apple-m3 apple-latest carmel ampere1 ampere1a a64fx"},
};

std::string attr(const TargetConfigRef& config, const std::string& key) {
  return string_attr(config->config, key).value_or("");
}

/// The levels of a configuration of kind "llvm".
std::vector<const CpuLevel*> levels_of(const TargetConfigRef& config, const std::string& given) {
  const std::string cpu = attr(config, "mcpu"), triple = attr(config, "mtriple");
  if (cpu.empty() && triple.empty()) return target::levels_for("native");
  if (cpu.empty())
    return triple.starts_with("aarch64") || triple.starts_with("arm64") ? target::levels_for("aarch64")
                                                                        : target::levels_for("avx2");
  std::vector<std::string> known;
  for (const CpuNames& row : kCpuNames)
    for (std::string_view name : split(row.names, ' ')) {
      if (name == cpu) return target::levels_for(row.level);
      known.emplace_back(name);
    }
  const std::vector<std::string> near = nearest_names(cpu, known);
  fail({.what = text("target ", string_literal(given), ": no kernels are made for the CPU ", cpu),
        .needs = "an x86-64 with AVX2 and FMA, or an Armv8.2 with half precision and dot products",
        .hint = near.empty() ? "leave -mcpu out for this machine" : text("the nearest are: ", join(near, ", "))});
}

NodeRef attr_of(const Json& value, const std::string& given);

TargetConfigRef config_of(const Json& json, const std::string& given) {
  if (json.is_string()) return Target::parse(json.get<std::string>()).config();
  Attrs out;
  if (json.is_object())
    for (const auto& [key, value] : json.items())
      out.emplace(key, key == "host" ? NodeRef(config_of(value, given)) : attr_of(value, given));
  if (!out.contains("kind") && out.contains("tag")) {
    Attrs of_tag = Target::parse(string_attr(out, "tag").value_or("")).config()->config;
    for (const auto& [key, value] : out) of_tag.insert_or_assign(key, value);
    return make<TargetConfig>(std::move(of_tag));
  }
  if (!out.contains("kind"))
    fail({.what = text("target ", string_literal(given), " has no kind"),
          .needs = "an object with \"kind\": \"llvm\", \"cuda\", ...",
          .hint = "add the kind"});
  return make<TargetConfig>(std::move(out));
}

NodeRef attr_of(const Json& value, const std::string& given) {
  if (value.is_string()) return string_imm(value.get<std::string>());
  if (value.is_boolean()) return bool_imm(value.get<bool>());
  if (value.is_number_integer()) return int_imm(value.get<int64_t>());
  if (value.is_array()) {
    std::vector<NodeRef> items;
    for (const Json& item : value) items.push_back(attr_of(item, given));
    return make<Array>(std::move(items));
  }
  fail({.what = text("target ", string_literal(given), " has the value ", value.dump()),
        .needs = "texts, integers, true, false, and lists of them",
        .hint = "correct the value"});
}

/// The attributes that a tag stands for, beside those given.
TargetConfigRef with_tag(const TargetConfigRef& config) {
  const std::optional<target::NvidiaDevice> device = target::find_nvidia_device(attr(config, "tag"));
  if (!device) return config;
  Attrs out = config->config;
  out.emplace("arch", string_imm(device->arch()));
  if (device->l2_bytes > 0) out.emplace("l2_cache_size_bytes", int_imm(device->l2_bytes));
  return make<TargetConfig>(std::move(out));
}

/// What every GPU has; a program may state others.
TargetConfigRef with_limits_of_gpu(const TargetConfigRef& config) {
  const target::NvidiaGpu any;
  Attrs out = config->config;
  out.emplace("max_threads_per_block", int_imm(any.max_threads_per_block));
  out.emplace("thread_warp_size", int_imm(any.warp_size));
  out.emplace("max_shared_memory_per_block", int_imm(any.max_shared_memory_bytes));
  out.emplace("registers_per_block", int_imm(any.registers_per_block));
  return make<TargetConfig>(std::move(out));
}

[[noreturn]] void refuse_name(const std::string& name) {
  std::vector<std::string> known;
  for (const TargetKind& kind : target_kinds()) known.emplace_back(kind.name);
  for (const CpuLevel& level : target::cpu_levels()) known.emplace_back(level.name);
  for (const std::string& chip : shipped_chips()) known.push_back(chip);
  known.insert(known.end(), {"native", "portable"});
  fail({.what = text("there is no target ", string_literal(name)),
        .needs = "a kind of TVM's (llvm, cuda, ...) with its attributes, a tag (nvidia/nvidia-a100), levels of "
                 "instruction sets, a described chip, or JSON",
        .hint = text("the nearest are: ", join(nearest_names(name, known), ", "))});
}

}  // namespace

Target Target::of_levels(std::vector<const CpuLevel*> levels) {
  Target out;
  out.kind_ = find_target_kind("llvm");
  out.spelling_ = "llvm";
  out.config_ = target_from_text("llvm");
  out.levels_ = std::move(levels);
  return out;
}

/// Errors: the target says something that its kind does not have.
static void require_attributes(const TargetKind& kind, const TargetConfig& target, const std::string& given) {
  if (kind.attributes.empty()) return;
  std::vector<std::string> known;
  for (std::string_view all : {kCommonAttributes, kind.attributes})
    for (std::string_view name : split(all, ' ')) known.emplace_back(name);
  for (const auto& [name, value] : target.config) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::vector<std::string> near = nearest_names(name, known);
    fail({.what = text("target \"", given, "\": ", kind.name, " has no attribute \"", name, "\""),
          .needs = text("-", join(split(kind.attributes, ' '), ", -")),
          .hint = text("the nearest are: ", join(near, ", "))});
  }
}

Target Target::parse(const std::string& given) {
  const std::string name(trim(given));
  const std::string first = name.substr(0, name.find(' '));
  const bool levels =
      first == "native" || first == "portable" ||
      std::ranges::any_of(target::cpu_levels(), [&](const CpuLevel& l) { return split(first, ',')[0] == l.name; });
  Target out;
  if (levels) {
    out = of_levels(target::levels_for(name));
    return out;
  }
  out.spelling_ = name;
  if (name.starts_with("{")) {
    out.config_ = config_of(parse_json(name, "target"), name);
  } else if (first.ends_with(".toml") || std::ranges::count(shipped_chips(), first) > 0) {
    out.chip_ = std::make_shared<const Chip>(find_chip(name));
    out.config_ = make<TargetConfig>(Attrs{{"kind", string_imm("chip")}, {"model", string_imm(out.chip_->name)}});
  } else {
    out.config_ = target_from_text(name);
    if (const std::string host = attr(out.config_, "host"); !host.empty())
      out.config_ = with_host(out.config_, target_from_text(host));
  }
  const std::string kind = attr(out.config_, "kind");
  out.kind_ = find_target_kind(kind);
  if (!out.kind_) refuse_name(first.starts_with("{") ? kind : first);
  require_attributes(*out.kind_, *out.config_, name);
  out.config_ = with_tag(out.config_);
  if (out.kind_->device == "cuda") out.config_ = with_limits_of_gpu(out.config_);
  if (kind == "llvm") out.levels_ = levels_of(out.config_, name);
  return out;
}

std::vector<std::string> Target::keys() const {
  const std::string given = attr(config_, "keys");
  std::vector<std::string> out;
  for (std::string_view key : given.empty() ? split(kind_->keys, ' ') : split(given, ','))
    if (!key.empty()) out.emplace_back(key);
  return out;
}

std::vector<MemoryScope> Target::scopes() const {
  if (!chip_) return kind_->scopes;
  std::vector<MemoryScope> out;
  for (const Memory& m : chip_->memories)
    out.push_back({m.name, m.per_core ? "of each core" : out.empty() ? "outside of the chip" : "of all cores"});
  out.push_back({"pe", "registers of a PE"});
  return out;
}

std::vector<TargetLimit> Target::limits() const {
  std::vector<TargetLimit> out;
  if (chip_) {
    out = {{"cores", chip_->cores, ""}, {"rows", chip_->rows, "PEs"}, {"columns", chip_->columns, "PEs"}};
    for (const Memory& m : chip_->memories)
      if (m.capacity_bytes) out.push_back({m.name, *m.capacity_bytes, "bytes"});
    return out;
  }
  for (const CpuLevel* level : levels_) {
    const std::string of = text(" of ", level->name);
    out.push_back({"vector register" + of, level->vector_bits, "bits"});
    out.push_back({"vector registers" + of, level->vector_registers, ""});
    out.push_back({"L1 cache" + of, level->l1_bytes, "bytes"});
    out.push_back({"L2 cache" + of, level->l2_bytes, "bytes"});
    out.push_back({"streams of weights" + of, level->weight_streams, ""});
    out.push_back({"prefetches ahead" + of, level->prefetch_iterations, "reads of 128 bytes"});
  }
  for (const auto& [name, unit] :
       std::initializer_list<std::pair<const char*, const char*>>{{"max_threads_per_block", "threads"},
                                                                  {"thread_warp_size", "threads"},
                                                                  {"max_shared_memory_per_block", "bytes"},
                                                                  {"registers_per_block", ""},
                                                                  {"l2_cache_size_bytes", "bytes"}})
    if (const std::optional<int64_t> value = int_attr(config_->config, name)) out.push_back({name, *value, unit});
  return out;
}

}  // namespace sator
