// What a Timeloop input may not be: each malformed text gives an error with its file, line and reason.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "formats/timeloop/answer.h"
#include "timeloop_sample.h"

namespace sator::formats::timeloop {
namespace {

enum class File { architecture, tree, problem, mapping, printed, ert };

/// One mistake: `from` becomes `to` in one file of the sample; the error says `says`.
struct Mistake {
  File file;
  std::string_view from, to, says;
};

// clang-format off
const Mistake kMistakes[] = {
    // The file itself.
    {File::architecture, "architecture:", "architecture: [", "no YAML"},
    {File::architecture, "  version: 0.4", "\tversion: 0.4", "no YAML"},
    {File::architecture, "attributes: {technology: 45nm}", "attributes: {technology: {{ node }}}", "template"},
    {File::architecture, "  nodes:", "{% for x in y %}\n  nodes:", "template"},
    {File::architecture, "  nodes:", "---\n  nodes:", "more than one document"},
    {File::architecture, "architecture:", ", architecture:", "it begins with what begins no value"},
    {File::problem, "problem:", "\"problem:", "no map"},
    {File::problem, "instance: {K: 16", "instance: {K: 16]", "no YAML"},
    {File::mapping, "- target: DRAM", "- target: *none", "no YAML"},
    {File::ert, "ERT:", "ERT: &a [*b]\nx:", "no YAML"},
    // The architecture.
    {File::architecture, "nodes:", "nodos:", "neither nodes nor subtree"},
    {File::architecture, "nodes:", "nodes: 7\n  rest:", "no list"},
    {File::architecture, "class: intmac", "class: adder", "no arithmetic units"},
    {File::architecture, "class: SRAM", "class: intmac", "second component that computes"},
    {File::architecture, "name: buffer", "name: DRAM", "two levels have the name DRAM"},
    {File::architecture, "    name: buffer\n", "", "no key name"},
    {File::architecture, "name: buffer", "name: [buffer]", "no text"},
    {File::architecture, "width: 64, datawidth: 8", "width: 60, datawidth: 8", "does not divide"},
    {File::architecture, "width: 64, datawidth: 8", "width: 64, datawidth: 0", "whole number >= 1"},
    {File::architecture, "width: 64, datawidth: 8", "width: 64, datawidth: -8", "no whole number"},
    {File::architecture, "width: 64, datawidth: 8", "width: 64, datawidth: 8.5", "no whole number"},
    {File::architecture, "width: 64, datawidth: 8", "width: 64, datawidth: 2 * 4", "no whole number"},
    {File::architecture, "width: 64, datawidth: 8", "width: 64, datawidth: BITS", "no whole number"},
    {File::architecture, "width: 64, datawidth: 8", "width: 99999999999999999999, datawidth: 8", "more than 63 bits"},
    {File::architecture, "width: 64, datawidth: 8", "width: 64, width: 32, datawidth: 8", "twice"},
    {File::architecture, "depth: 1024", "depth: 9223372036854775807", "more than 63 bits"},
    {File::architecture, "depth: 1024", "depth: 1024, sizeKB: 4", "given twice"},
    {File::architecture, "depth: 1024", "deth: 1024", "did you mean depth"},
    {File::architecture, "depth: 1024", "dpeth: 1024", "did you mean depth"},
    {File::architecture, "width: 32, datawidth: 8", "width: 32, data-width: 8", "did you mean datawidth"},
    {File::architecture, "read_bandwidth: 16", "read_bandwith: 16", "did you mean read_bandwidth"},
    {File::architecture, "attributes: {technology: 45nm}", "attributes: {wdith: 8}", "did you mean width"},
    {File::architecture, "attributes: {depth: 1024", "atributes: {depth: 1024", "did you mean attributes"},
    {File::architecture, "spatial: {meshX: 4", "spacial: {meshX: 4", "did you mean spatial"},
    {File::architecture, "spatial: {meshX: 4", "spatial: {meshhX: 4", "did you mean meshX"},
    {File::tree, "meshX: 4}\n        - name: mac", "meshhX: 4}\n        - name: mac", "did you mean meshX"},
    {File::architecture, "depth: 1024", "depth: many", "no whole number"},
    {File::architecture, "depth: 1024", "depth: [1024]", "no text"},
    {File::architecture, "depth: 1024", "depth: 1024, block_size: 3", "does not divide"},
    {File::architecture, "depth: 1024", "depth: 1024, block_size: 2, cluster_size: 3", "block_size * datawidth * cluster_size"},
    {File::architecture, "depth: 64, width: 8", "depth: 64, width: 24, cluster_size: 3", "clusters"},
    {File::architecture, "read_bandwidth: 4", "read_bandwidth: 0", "words per cycle > 0"},
    {File::architecture, "read_bandwidth: 4", "read_bandwidth: -1", "number >= 0"},
    {File::architecture, "read_bandwidth: 4", "read_bandwidth: nan", "no finite number"},
    {File::architecture, "read_bandwidth: 4", "read_bandwidth: inf", "no finite number"},
    {File::architecture, "read_bandwidth: 4", "read_bandwidth: fast", "no finite number"},
    {File::architecture, "read_bandwidth: 4", "multiple_buffering: 0.5", "a number >= 1"},
    {File::architecture, "read_bandwidth: 4", "per_dataspace_bandwidth_consumption_scale: {Psums: 2}", "no data space"},
    {File::architecture, "read_bandwidth: 4", "network_read: mesh", "network of its own"},
    {File::architecture, "read_bandwidth: 4", "network_type: 'M:N'", "M:N"},
    {File::architecture, "read_bandwidth: 4", "allow_overbooking: true", "more than its size"},
    {File::architecture, "read_bandwidth: 4", "allow_overbooking: perhaps", "true or false"},
    {File::architecture, "read_bandwidth: 4", "power_gated_at: PSU", "no level"},
    {File::architecture, "read_bandwidth: 4", "meshX: 3, meshY: 1", "meshX * meshY"},
    {File::architecture, "read_bandwidth: 4", "instances: 3", "each side divides"},
    {File::architecture, "read_bandwidth: 4", "instances: 281474976710657, meshX: 16777216, meshY: 16777217", "more than 2^48"},
    {File::architecture, "meshX: 4, meshY: 2", "meshX: 0, meshY: 2", ">= 1"},
    {File::architecture, "meshX: 4, meshY: 2", "meshX: 99999999, meshY: 99999999", "more than 2^48"},
    {File::architecture, "class: SRAM", "class: XY_NoC", "network"},
    {File::architecture, "  - !Component\n    name: buffer", "  - !Magic\n    name: buffer", "!Magic"},
    {File::architecture, "  - !Component\n    name: buffer", "  - hello\n  - !Component\n    name: buffer", "no map"},
    {File::architecture, "attributes: {datawidth: 8}", "attributes: {datawidth: 8, energy: -1}", "number >= 0"},
    {File::architecture, "attributes: {datawidth: 8}", "attributes: {<<: *x, datawidth: 8}", "no YAML"},
    {File::architecture, "attributes: {technology: 45nm}", "attributes: {<<: {a: 1}}", "merges"},
    {File::architecture, "attributes: {technology: 45nm}", "attributes: {[a]: 1}", "no text"},
    {File::architecture, "spatial: {meshX: 4", "enabled: maybe\n    spatial: {meshX: 4", "true or false"},
    {File::tree, "PE[0..7]", "PE[0..7", "range of instances"},
    {File::tree, "PE[0..7]", "PE[7..0]", "range of instances"},
    {File::tree, "PE[0..7]", "PE[0..99999999999999999999]", "range of instances"},
    {File::tree, "PE[0..7]", "PE[a..b]", "range of instances"},
    {File::tree, "PE[0..7]", "PE[0..6]", "mesh side"},
    {File::tree, "    subtree:\n    - name: chip", "    subtree:\n    - name: other\n    - name: chip", "2 nodes"},
    {File::tree, "class: SRAM", "class: wire", "no level \"buffer\""},
    // The problem.
    {File::problem, "  shape:", "  shapes:", "unknown key, \"shapes\""},
    {File::problem, "  shape:\n    name: conv1d", "  old:\n    name: conv1d", "unknown key, \"old\""},
    {File::problem, "dimensions: [K, C, R, P]", "dimensions: []", "0 dimensions"},
    {File::problem, "dimensions: [K, C, R, P]", "dimensions: [K, C, R, P, K]", "twice"},
    {File::problem, "dimensions: [K, C, R, P]", "dimensions: [K, C, R]", "no dimension \"P\""},
    {File::problem, "dimensions: [K, C, R, P]", "dimensions: [K, C, R, P, X]", "the extent of dimension X"},
    {File::problem, "dimensions: [K, C, R, P]", "dimensions: [K, C, R, P, 'a b']", "no name"},
    {File::problem, "dimensions: [K, C, R, P]", "dimensions: {K: 1}", "no list"},
    {File::problem, "dimensions: [K, C, R, P]", "dimensions: [K, C, R, P, A, B, D, E, F, G, H, I, J, L, M, N, O, Q, S, T, U, V, W, X, Y]", "25 dimensions"},
    {File::problem, "default: 1", "default: one", "whole number"},
    {File::problem, "default: 1", "default: 99999999999999", "2^40"},
    {File::problem, "- {name: stride, default: 1}", "- {default: 1}", "no key name"},
    {File::problem, "[P, stride]", "[P, dilation]", "no coefficient"},
    {File::problem, "[P, stride]", "[P, stride, 2]", "3 parts"},
    {File::problem, "[P, stride]", "[]", "0 parts"},
    {File::problem, "[P, stride]", "P", "no list"},
    {File::problem, "projection: [[[K]], [[P]]]", "projection: K", "no list"},
    {File::problem, "projection: [[[K]], [[P]]]", "projection: [[[K]], [[P]], [[K]], [[K]], [[K]], [[K]], [[K]], [[K]], [[K]]]", "9 ranks"},
    {File::problem, "      projection: [[[K]], [[P]]]\n", "", "no key projection"},
    {File::problem, "- name: Inputs", "- name: Weights", "twice"},
    {File::problem, "- name: Inputs", "- name: cycles", "no data space \"Inputs\""},
    {File::problem, "- name: Inputs", "- names: Inputs", "did you mean name"},
    {File::problem, "read_write: true", "read_write: often", "true or false"},
    {File::problem, "data_spaces:", "data_space:", "did you mean data_spaces"},
    {File::problem, "      read_write: true\n", "", "no data space is written"},
    {File::problem, "read_write: true", "read_writ4e: true", "did you mean read_write"},
    {File::problem, "read_write: true", "read-wirte: true", "did you mean read_write"},
    {File::problem, "read_write: true", "read_write: false", "no data space is written"},
    {File::problem, "{name: stride, default: 1}", "{name: stride, defalt: 1}", "did you mean default"},
    {File::problem, "    name: conv1d", "    name: conv1d\n    flaten: []", "did you mean flatten"},
    {File::problem, "  instance: {K", "  instanse: {K", "unknown key, \"instanse\"|the extent of dimension"},
    {File::problem, "stride: 2}", "strid: 2}", "did you mean stride"},
    {File::problem, "stride: 2}", "stride: 2, densitie: {Weights: 0.5}}", "did you mean densities"},
    {File::problem, "stride: 2}", "stride: 2, commonDensty: 1}", "did you mean commonDensity"},
    {File::problem, "stride: 2}", "stride: 2, sparsity: {Weights: 0.5}}", "unknown key, \"sparsity\""},
    {File::problem, "stride: 2}", "stride: 2, sparsity: 0.5}", "unknown key, \"sparsity\""},
    {File::problem, "stride: 2}", "stride: 2, densities: {Wieghts: 1}}", "no data space \"Wieghts\""},
    {File::problem, "    name: conv1d", "    name: conv1d\n    flatten: [{name: X, dimensions: [K, C]}]", "flattens"},
    {File::problem, "K: 16,", "K: 0,", ">= 1"},
    {File::problem, "K: 16,", "K: -16,", "no whole number"},
    {File::problem, "K: 16,", "K: sixteen,", "no whole number"},
    {File::problem, "K: 16,", "K: 18446744073709551616,", "more than 63 bits"},
    {File::problem, "K: 16,", "K: 4611686018427387904,", "62 bits"},
    {File::problem, "K: 16,", "K: 16, K: 16,", "twice"},
    {File::problem, "K: 16,", "", "the extent of dimension K"},
    {File::problem, "instance: {", "instance: [", "no YAML"},
    {File::problem, "stride: 2}", "stride: 2, densities: {Inputs: 0.5}}", "sparse"},
    {File::problem, "stride: 2}", "stride: 2, densities: {Inputs: {distribution: hypergeometric, density: 0.5}}}", "sparse"},
    {File::problem, "stride: 2}", "stride: 2, commonDensity: 0.1}", "sparse"},
    // The mapping.
    {File::mapping, "mapping:", "mapping: {}\nx:", "no list"},
    {File::mapping, "- target: DRAM", "- tarket: DRAM", "no key \"tarket\""},
    {File::mapping, "- target: DRAM", "- target: DRUM", "did you mean DRAM"},
    {File::mapping, "- target: DRAM", "- target: 9", "no level"},
    {File::mapping, "- target: DRAM\n  type: temporal", "- target: DRAM\n  type: tempo", "type"},
    {File::mapping, "- target: DRAM\n  type: temporal", "- target: DRAM", "no key type"},
    {File::mapping, "- target: DRAM\n  type: temporal", "- target: DRAM\n  type: spatial", "twice|fans out|multiply"},
    {File::mapping, "- target: DRAM\n  type: temporal", "- target: DRAM\n  type: skew", "skews"},
    {File::mapping, "- target: DRAM", "- DRAM\n- target: DRAM", "no map"},
    {File::mapping, "factors: K=4 P=2", "factors: K=4 P=3", "dimension P multiply to 48"},
    {File::mapping, "factors: K=4 P=2", "factors: K=4 P=2 X=1", "no dimension \"X\""},
    {File::mapping, "factors: K=4 P=2", "factors: K=4 P=2 K=1", "twice"},
    {File::mapping, "factors: K=4 P=2", "factors: K=4 P=", "cannot be read"},
    {File::mapping, "factors: K=4 P=2", "factors: K=4 2", "cannot be read"},
    {File::mapping, "factors: K=4 P=2", "factors: K=4 P<=2", "cannot be read"},
    {File::mapping, "factors: K=4 P=2", "factors: K=4 P=-2", "cannot be read"},
    {File::mapping, "factors: K=4 P=2", "factors: K=4 P=99999999999999999999", "more than 63 bits"},
    {File::mapping, "factors: K=4 P=2", "factors: K=9223372036854775807 P=2", "more than 63 bits"},
    {File::mapping, "factors: K=4 P=2", "factors: K=4 P=2,1", "smaller last tile"},
    {File::mapping, "factors: K=4 P=2", "factors: {K: 4, P: 2}", "no text"},
    {File::mapping, "permutation: KPRC", "permutation: KPRCK", "twice in the permutation"},
    {File::mapping, "permutation: KPRC", "permutation: KPXC", "no dimension \"X\""},
    {File::mapping, "permutation: KPRC", "permutation: KPRC\n  split: 1", "temporal directive has a split"},
    {File::mapping, "split: 1", "split: -1", "no whole number"},
    {File::mapping, "split: 1", "split: half", "no whole number"},
    {File::mapping, "- target: registers", "- target: buffer", "stand twice"},
    {File::mapping, "- target: PE", "- target: DRAM", "nothing fans out"},
    {File::mapping, "bypass: [Weights]", "bypass: [Weight]", "no data space \"Weight\""},
    {File::mapping, "bypass: [Weights]", "bypass: [Weights]\n  no_coalesce: [Inputs]", "no_coalesce"},
    {File::mapping, "  bypass: [Weights]", "  bypass: [Weights]\n- {target: DRAM, type: bypass, bypass: [Weights]}\n- {target: registers, type: bypass, bypass: [Weights]}", "kept nowhere"},
    {File::mapping, "keep: [Inputs, Outputs]", "keep: {Inputs: 1}", "no text"},
    {File::printed, "| for P in [0:2)", "| for Y in [0:2)", "no dimension \"Y\""},
    {File::printed, "| for P in [0:2)", "| for P in [1:2)", "start at 0"},
    {File::printed, "| for P in [0:2)", "| for P in [0:2", "`)`"},
    {File::printed, "| for P in [0:2)", "| for P in [0:x)", "no bound"},
    {File::printed, "| for P in [0:2)", "| for P in [0:2,1)", "last tile"},
    {File::printed, "| for P in [0:2)", "| for P of [0:2)", "`in`"},
    {File::printed, "| for P in [0:2)", "| for P in [0:3)", "multiply to 48"},
    {File::printed, "| for P in [0:2)", "| for P in [0:2) (Spatial-Z)", "no axis"},
    {File::printed, "| for P in [0:2)", "| for K in [0:2)", "multiply|two loops"},
    {File::printed, "| for P in [0:2)", "| for P in [0:2) twice", "more on the line"},
    {File::printed, "DRAM [ Weights", "SRAM [ Weights", "no level \"SRAM\""},
    {File::printed, "DRAM [ Weights", "DRAM [ Wights", "no data space"},
    {File::printed, "DRAM [ Weights:192 (192)", "DRAM [ Weights:192 (192", "`)`"},
    {File::printed, "buffer [ Inputs:132 (132) Outputs:64 (64) ]", "registers [ Inputs:132 (132) Outputs:64 (64) ]", "the level"},
    {File::printed, "inter_PE_spatial [ ]\n--------------------\n", "", "the level"},
    {File::printed, "(Spatial-Y)", "(Spatial-X)", "4 x 2|units|stands around"},
    {File::printed, "<< Compute >>", "<< Compute >>\n| for P in [0:2)", "after << Compute >>"},
    // The energies.
    {File::ert, "tables:", "table:", "no key tables"},
    {File::ert, "energy: 512", "energy: lots", "no finite number"},
    {File::ert, "energy: 512", "energy: -512", "number >= 0"},
    {File::ert, "energy: 512", "energy: [512]", "no text"},
    {File::ert, "{name: read, arguments: {}, energy: 512}", "{name: read, arguments: {}}", "no key energy"},
    {File::ert, "{name: read, arguments: {}, energy: 512}", "{energy: 512}", "no key name"},
    {File::ert, "{name: read, arguments: {}, energy: 512}", "512", "no map"},
    {File::ert, "  - name: system.DRAM[1..1]\n    actions:", "  - name: system.DRAM[1..1]\n    action:", "no key actions"},
    {File::ert, "  - name: system.DRAM[1..1]", "  - system.DRAM\n  - name: system.DRAM[1..1]", "no map"},
};
// clang-format on

struct Sample {
  std::string architecture{kArchitecture}, problem{kProblem}, mapping{kMapping}, ert{kErt};
  std::string& of(File file) {
    if (file == File::tree) architecture = kTree;
    if (file == File::printed) mapping = kPrinted;
    return file == File::architecture || file == File::tree ? architecture
           : file == File::problem                          ? problem
           : file == File::mapping || file == File::printed ? mapping
                                                            : ert;
  }
  nlohmann::json answer() const {
    return answer_timeloop({{"architecture", architecture}, {"problem", problem}, {"mapping", mapping}, {"ert", ert}});
  }
};

TEST(TimeloopErrors, EachMistakeIsNamedWithItsPlace) {
  static_assert(std::size(kMistakes) >= 100);
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(text(mistake.from, "  =>  ", mistake.to));
    Sample sample;
    std::string& content = sample.of(mistake.file);
    size_t at = content.find(mistake.from);
    ASSERT_NE(at, std::string::npos);
    content.replace(at, mistake.from.size(), mistake.to);
    try {
      ADD_FAILURE() << "accepted: " << sample.answer().dump();
    } catch (const Error& e) {
      std::string said = e.what();
      bool found = false;
      for (std::string_view one : split(mistake.says, '|')) found |= said.find(one) != std::string::npos;
      EXPECT_TRUE(found) << said << "\nshould say " << mistake.says;
      EXPECT_FALSE(e.reason.what.empty() || e.reason.needs.empty() || e.reason.hint.empty()) << said;
      // What leaves the sizes of the chip is a fact of the whole and has no line.
      bool of_whole = said.find("units of") != std::string::npos;
      EXPECT_TRUE(of_whole || e.reason.where.find("line ") != std::string::npos) << said;
    }
  }
}

TEST(TimeloopErrors, TheInputItselfIsChecked) {
  Sample sample;
  nlohmann::json good = {
      {"architecture", sample.architecture}, {"problem", sample.problem}, {"mapping", sample.mapping}};
  EXPECT_NO_THROW(answer_timeloop(good));
  EXPECT_THROW(answer_timeloop(nlohmann::json::array()), Error);
  for (const char* key : {"architecture", "problem", "mapping"}) {
    nlohmann::json less = good;
    less.erase(key);
    EXPECT_THROW(answer_timeloop(less), Error) << key;
    less[key] = 7;
    EXPECT_THROW(answer_timeloop(less), Error) << key;
    less[key] = "";
    EXPECT_THROW(answer_timeloop(less), Error) << key;
  }
  for (const char* key : {"sparse_optimizations", "mappings", "layout"}) {
    nlohmann::json more = good;
    more[key] = text(key, ":\n  targets: []\n");
    EXPECT_THROW(answer_timeloop(more), Error) << key;
  }
  nlohmann::json release = good;
  release["release"] = "v9";
  EXPECT_THROW(answer_timeloop(release), Error);
}

TEST(TimeloopErrors, DeepAndCyclicTextsAreRefused) {
  for (std::string architecture : {std::string(100000, '['),
                                   std::string("nodes: &a [{nodes: *a}]"),
                                   std::string("subtree: &a [{name: x, subtree: *a}]"),
                                   std::string(3000, '{')}) {
    Sample sample;
    sample.architecture = architecture;
    EXPECT_THROW(sample.answer(), Error);
  }
}

TEST(TimeloopErrors, AliasesThatRepeatThemselvesEnd) {
  // Each list holds the one before ten times: 10^20 nodes if all were visited.
  std::string nodes = "nodes:\n- nodes: &a0 [{name: x, class: SRAM}]\n";
  for (int i = 1; i <= 20; ++i) {
    std::string one = text("{nodes: *a", i - 1, "}");
    nodes += text("- nodes: &a", i, " [", join(std::vector<std::string>(10, one), ", "), "]\n");
  }
  Sample sample;
  sample.architecture = nodes;
  EXPECT_THROW(sample.answer(), Error);
  Sample cyclic;
  cyclic.problem.replace(cyclic.problem.find("stride: 2}"), 10, "stride: 2, densities: &d {Inputs: {density: *d}}}");
  EXPECT_THROW(cyclic.answer(), Error);
}

// What Timeloop passes over, files may carry: numbers that no loop uses, attributes of other tools.
TEST(TimeloopErrors, WhatTimeloopPassesOverChangesNothing) {
  const nlohmann::json plain = Sample().answer();
  Sample sample;
  std::string& p = sample.problem;
  p.replace(p.find("stride: 2}"), 10, "stride: 2, H: 34, Hpad: 1, Wdilation: 1, densities: {Inputs: 1}}");
  std::string& a = sample.architecture;
  a.replace(a.find("depth: 1024"), 11, "depth: 1024, depths: 3, n_banks: 2, num_ports: 1, DATAWIDTH: 4, nports: 2");
  EXPECT_EQ(sample.answer(), plain);
  sample = Sample();
  p.replace(p.find("  shape:"), 8, "  name: mine\n  shape:");
  EXPECT_EQ(sample.answer(), plain);
}

// Attributes of containers go to what follows; the inner one's value does not change what stood before it.
TEST(TimeloopErrors, InheritedAttributesAreNotShared) {
  Sample sample;
  std::string& a = sample.architecture;
  a.replace(a.find("{technology: 45nm}"), 18, "{datawidth: 8}");
  a.replace(a.find("{width: 64, datawidth: 8, read"), 30, "{width: 64, read");
  a.replace(a.find("    name: PE\n"), 13, "    name: PE\n    attributes: {datawidth: 4}\n");
  a.replace(a.find("{depth: 64, width: 8, datawidth: 8}"), 35, "{depth: 64, width: 8}");
  Workload w = parse_problem(sample.problem);
  Architecture parsed = parse_architecture(a, w);
  ASSERT_EQ(parsed.levels.size(), 4u);
  EXPECT_EQ(parsed.levels[0].word_bits, 4);
  EXPECT_EQ(parsed.levels[0].block_size, 2);
  EXPECT_EQ(parsed.levels[3].word_bits, 8);
  EXPECT_EQ(parsed.levels[3].block_size, 8);
}

// Random edits of the sample: an error, or an answer, and always one of the two.
TEST(TimeloopErrors, RandomEditsNeverCrash) {
  constexpr File kFiles[] = {File::architecture, File::tree, File::problem, File::mapping, File::printed, File::ert};
  constexpr std::string_view kPieces[] = {"0",  "9",   "99999999999", "-", "[", "]", "{", "}",    ":",  " ",   "\n",
                                          ", ", "K=2", "null",        "~", "*", "&", "!", "name", "\"", "1e9", "|"};
  std::mt19937 random(2024);
  auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int refused = 0, answered = 0;
  for (int i = 0; i < 3000; ++i) {
    Sample sample;
    std::string& content = sample.of(kFiles[pick(std::size(kFiles))]);
    for (size_t edits = 1 + pick(3); edits > 0; --edits) {
      size_t at = pick(content.size());
      switch (pick(4)) {
        case 0: content.erase(at, 1 + pick(8)); break;
        case 1: content.insert(at, kPieces[pick(std::size(kPieces))]); break;
        case 2: content[at] = static_cast<char>(32 + pick(95)); break;
        case 3: content.insert(at, content.substr(pick(content.size()), pick(40))); break;
      }
    }
    try {
      nlohmann::json answer = sample.answer();
      EXPECT_GT(answer["cycles"].get<int64_t>(), 0);
      ++answered;
    } catch (const Error& e) {
      EXPECT_FALSE(e.reason.what.empty());
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(answered, 100);
}

}  // namespace
}  // namespace sator::formats::timeloop
