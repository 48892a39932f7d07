#pragma once

#include "cli/command.h"

namespace sator::cli {

struct HostArguments {
  std::optional<std::string> model;
  std::string folder;
  std::vector<std::string> schemes;
  std::optional<int64_t> threads;
  int64_t rounds = 7;
  bool replace = false;  ///< files in the way of its own
};

/// `sator calibrate --host`: measures this machine, writes its description, and fits it to kernels that run here.
void calibrate_host(const HostArguments& a, Streams& io);

}  // namespace sator::cli
