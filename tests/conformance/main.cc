#include <iostream>

#include "base/error.h"
#include "cases.h"

namespace sator::conformance {

const std::vector<Handler>& handlers() {
  static const std::vector<Handler> table = {
      {"parse", run_parse},
      {"roundtrip", run_roundtrip},
      {"equiv", run_equiv},
      {"print", run_print},
      {"script_error", run_script_error},
      {"infer", run_infer},
      {"expr_error", run_expr_error},
      {"expr_query", run_expr_query},
      {"expr_equal", run_expr_equal},
      {"expr_print", run_expr_print},
      {"construct", run_construct},
      {"arith_query", run_arith_query},
      {"transform", run_transform},
      {"transform2", run_transform},
      {"transform_error", run_transform_error},
      {"query", run_query},
      {"schedule", run_schedule},
      {"schedule_error", run_schedule_error},
      {"schedule_query", run_schedule_query},
  };
  return table;
}

namespace {

Json answer(const Json& request) {
  auto of = [&](const char* status, std::string detail) {
    return Json{{"id", request.at("id")}, {"status", status}, {"detail", std::move(detail)}};
  };
  std::string kind = request.at("kind");
  for (const Handler& h : handlers()) {
    if (h.kind != kind) continue;
    try {
      h.run(request);
      return of("passed", "");
    } catch (const Counterexample& c) {
      return of("passed", "counterexample: " + c.detail);
    } catch (const Unsupported& u) {
      return of("unsupported", u.reason);
    } catch (const Failed& f) {
      return of("failed", f.detail);
    } catch (const std::exception& e) {
      return of("failed", e.what());
    }
  }
  return of("unsupported", "cases of kind " + kind);
}

}  // namespace
}  // namespace sator::conformance

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    auto request = nlohmann::json::parse(line);
    // Details may quote damaged text, which is no valid UTF-8.
    std::cout << sator::conformance::answer(request).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
              << std::endl;
  }
}
