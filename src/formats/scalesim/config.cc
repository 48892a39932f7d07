#include "formats/scalesim/config.h"

#include <optional>

#include "base/text.h"
#include "formats/scalesim/ini.h"
#include "formats/scalesim/python_int.h"

namespace sator::formats {
namespace {

constexpr const char* kArchitecture = "architecture_presets";
constexpr const char* kRun = "run_presets";
constexpr const char* kLayout = "layout";

int64_t positive(const IniFile& ini, const char* section, const char* option) {
  const IniFile::Value value = ini.get(section, option);
  return positive_int(value.text, value.line, value.column, option);
}

/// An address: read, so that a wrong one is found, and of no effect on any count.
void check_offset(const IniFile& ini, const char* option) {
  const IniFile::Value value = ini.get(kArchitecture, option);
  natural_int(value.text, value.line, value.column, option);
}

/// True or False in one of the words that Python's ConfigParser takes for them.
bool boolean(const IniFile::Value& value, const char* option) {
  const std::string word = lower_case(value.text);
  for (const char* yes : {"1", "yes", "true", "on"})
    if (word == yes) return true;
  for (const char* no : {"0", "no", "false", "off"})
    if (word == no) return false;
  value.line.fail(
      value.column, text(option, " is ", shown(value.text)), text(option, " is True or False"), "write False");
}

Stationary dataflow_of(const IniFile& ini) {
  const IniFile::Value value = ini.get(kArchitecture, "Dataflow");
  for (Stationary s : {Stationary::output, Stationary::weight, Stationary::input})
    if (value.text == to_string(s)) return s;
  value.line.fail(value.column,
                  text("Dataflow is ", shown(value.text)),
                  "Dataflow is os, ws or is, in small letters",
                  "write os, ws or is");
}

/// The first of the comma-separated numbers of Bandwidth: SCALE-Sim reads all and uses this one.
int64_t first_bandwidth(const IniFile& ini) {
  const IniFile::Value value = ini.get(kArchitecture, "Bandwidth");
  std::optional<int64_t> first;
  for (std::string_view part : split(value.text, ',')) {
    const int64_t words = positive_int(part, value.line, value.column, "Bandwidth");
    if (!first) first = words;
  }
  return *first;
}

/// The words per cycle of one operand's interface under USER, and what SCALE-Sim asserts of them.
int64_t bank_words(const IniFile& ini, const char* bandwidth_option, const char* banks_option) {
  const int64_t words = positive(ini, kLayout, bandwidth_option);
  const int64_t banks = positive(ini, kLayout, banks_option);
  if (words % banks != 0) {
    const IniFile::Value value = ini.get(kLayout, banks_option);
    value.line.fail(value.column,
                    text(bandwidth_option, " ", words, " is no multiple of ", banks_option, " ", banks),
                    "every bank has the same whole number of words per cycle",
                    text("set ", banks_option, " to 1"));
  }
  return words;
}

void refuse_if(bool on, const IniFile::Value& value, const char* option, const char* what) {
  if (on)
    value.line.fail(value.column,
                    text(option, " switches on ", what, ", which is not modelled"),
                    text(option, ": False"),
                    text("set ", option, " to False"));
}

void check_layout(const IniFile& ini) {
  for (const char* option : {"IfmapCustomLayout", "FilterCustomLayout"}) {
    const IniFile::Value value = ini.get(kLayout, option);
    refuse_if(boolean(value, option), value, option, "a data layout of its own");
  }
  for (const char* option : {"IfmapSRAMBankBandwidth",
                             "IfmapSRAMBankNum",
                             "IfmapSRAMBankPort",
                             "FilterSRAMBankBandwidth",
                             "FilterSRAMBankNum",
                             "FilterSRAMBankPort"})
    positive(ini, kLayout, option);
}

}  // namespace

ScalesimConfig parse_scalesim_config(std::string_view text, std::string_view file) {
  const IniFile ini(text, file);
  // The first release named its topology in network_presets.
  ini.only_sections({"general", kArchitecture, kRun, kLayout, "sparsity", "network_presets"});
  ScalesimConfig config;
  config.run_name = ini.get("general", "run_name").text;

  const IniFile::Value mode = ini.get(kRun, "InterfaceBandwidth");
  if (mode.text != "USER" && mode.text != "CALC")
    mode.line.fail(mode.column,
                   sator::text("InterfaceBandwidth is ", shown(mode.text)),
                   "InterfaceBandwidth is CALC or USER, in capital letters",
                   "write CALC or USER");
  ScalesimMemory& memory = config.memory;
  memory.user_bandwidth = mode.text == "USER";
  if (const std::optional<IniFile::Value> ramulator = ini.find(kRun, "UseRamulatorTrace"))
    refuse_if(boolean(*ramulator, "UseRamulatorTrace") && memory.user_bandwidth,
              *ramulator,
              "UseRamulatorTrace",
              "DRAM latencies of a Ramulator run");

  config.rows = positive(ini, kArchitecture, "ArrayHeight");
  config.cols = positive(ini, kArchitecture, "ArrayWidth");
  memory.ifmap_kb = positive(ini, kArchitecture, "ifmapsramszkB");
  memory.filter_kb = positive(ini, kArchitecture, "filtersramszkB");
  memory.ofmap_kb = positive(ini, kArchitecture, "ofmapsramszkB");
  for (const char* option : {"IfmapOffset", "FilterOffset", "OfmapOffset"}) check_offset(ini, option);
  config.dataflow = dataflow_of(ini);

  const bool v3 = ini.has_section(kLayout);
  if (v3) check_layout(ini);
  if (memory.user_bandwidth) {
    memory.ofmap_words_per_cycle = first_bandwidth(ini);
    memory.ifmap_words_per_cycle =
        v3 ? bank_words(ini, "IfmapSRAMBankBandwidth", "IfmapSRAMBankNum") : memory.ofmap_words_per_cycle;
    memory.filter_words_per_cycle =
        v3 ? bank_words(ini, "FilterSRAMBankBandwidth", "FilterSRAMBankNum") : memory.ofmap_words_per_cycle;
  } else {
    memory.ifmap_words_per_cycle = memory.filter_words_per_cycle = 10;  // of the first fill; SCALE-Sim's own choice
    memory.ofmap_words_per_cycle = config.cols;
  }
  if (ini.has_section("sparsity")) {
    const IniFile::Value sparsity = ini.get("sparsity", "SparsitySupport");
    refuse_if(boolean(sparsity, "SparsitySupport"), sparsity, "SparsitySupport", "sparse weights");
  }
  return config;
}

}  // namespace sator::formats
