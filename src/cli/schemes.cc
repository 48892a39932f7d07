#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "cli/commands.h"
#include "llm/scheme.h"

namespace sator::cli {

Command schemes_command() {
  auto name = std::make_shared<std::optional<std::string>>();
  return {.name = "schemes",
          .does = "lists the quantization schemes and what they mean",
          .options = {{"NAME", "describe this one alone", name.get()}},
          .run =
              [name](Streams& io) {
                if (*name) {
                  const std::optional<std::string> of_file = llm::describe_stored(**name);
                  const std::string means = of_file ? *of_file : llm::describe(llm::parse_scheme(**name));
                  io.json = {{"name", **name}, {"means", means}};
                  io.out << **name << ": " << means << "\n";
                  return;
                }
                size_t widest = 0;
                for (const llm::SchemeFamily& f : llm::scheme_families()) widest = std::max(widest, f.names.size());
                for (const llm::SchemeFamily& f : llm::scheme_families()) {
                  io.json.push_back({{"names", f.names}, {"means", f.means}, {"scales", f.scales}});
                  io.out << f.names << std::string(widest - f.names.size() + 2, ' ') << f.means << "; scales "
                         << f.scales << "\n";
                }
              },
          .also = {"quantizations", "list", "quants"}};
}

}  // namespace sator::cli
