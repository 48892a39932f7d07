// Which program a compiled library is of.
#pragma once

#include <nlohmann/json.hpp>

#include "llm/program.h"
#include "llm/scheme.h"

namespace sator::llm {

/// Digest of a program before any pass: its graph with every constant, and the names, shapes and dtypes of its parameters.
/// Programs that give other results have another digest, whatever made them differ.
std::string graph_digest(const Program& program);

/// What shaped the program, by the names of config.json and of the options, as an object of numbers, booleans and words: for
/// people who are told what differs.
nlohmann::json shaped_by(const ModelConfig& config, const Scheme& scheme, const Program& program);

/// "rope_theta: library 10000, model 500" for each name whose values differ or are in one of them alone.
std::vector<std::string> differences(const nlohmann::json& a, const nlohmann::json& b, const std::string& name_a,
                                     const std::string& name_b);

}  // namespace sator::llm
