#include "base/text.h"
#include "formats/maestro/network.h"
#include "formats/maestro/token_reader.h"

namespace sator::formats::maestro {
namespace {

struct Key {
  std::string_view name;
  int64_t Hardware::* member;
  int64_t least;
};
constexpr Key kHardwareKeys[] = {{"num_pes", &Hardware::pes, 1},
                                 {"l1_size_cstr", &Hardware::l1_bytes, 1},
                                 {"l2_size_cstr", &Hardware::l2_bytes, 1},
                                 {"noc_bw_cstr", &Hardware::noc_words_per_cycle, 1},
                                 {"offchip_bw_cstr", &Hardware::offchip_words_per_cycle, 1},
                                 {"NoC_NumHops", &Hardware::noc_latency_cycles, 0}};
constexpr const char* kNeeds =
    "num_pes, l1_size_cstr, l2_size_cstr, noc_bw_cstr, offchip_bw_cstr or NoC_NumHops, a colon and a number";

}  // namespace

Hardware parse_hardware(std::string_view text, std::string_view file) {
  TokenReader in(text, file);
  Hardware out;
  bool seen[std::size(kHardwareKeys)] = {};
  while (!in.at_end()) {
    const std::string_view name = in.word("a key of the hardware");
    size_t i = 0;
    while (i < std::size(kHardwareKeys) && kHardwareKeys[i].name != name) ++i;
    if (i == std::size(kHardwareKeys))
      in.fail_last(sator::text(shown(name), " is no key of the hardware"), kNeeds, "use one of these keys");
    if (seen[i]) in.fail_last(sator::text(name, " stands twice"), "each key once", "remove one of the two");
    seen[i] = true;
    in.accept(":");
    out.*kHardwareKeys[i].member = in.integer(name, kHardwareKeys[i].least);
    in.accept(",") || in.accept(";");
  }
  if (!seen[0]) in.fail_next("the hardware has no num_pes", "num_pes: the number of PEs", "add a line num_pes: 256");
  return out;
}

std::string hardware_text(const Hardware& hardware) {
  std::string out;
  for (const Key& key : kHardwareKeys) out += text(key.name, ": ", hardware.*key.member, "\n");
  return out;
}

}  // namespace sator::formats::maestro
