#include "dataflow/tenet/tenet_text.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/counts/boxes.h"
#include "dataflow/tenet/relation_reader.h"

namespace sator::dataflow {

namespace {

/// The lines of a file that are not blank, with their numbers.
class Lines {
 public:
  Lines(std::string_view content, std::string file) : file_(std::move(file)) {
    int64_t number = 0;
    for (std::string_view line : split(content, '\n')) {
      ++number;
      if (!trim(line).empty()) lines_.push_back({line, number});
    }
    last_ = number;
  }
  bool done() const { return next_ == lines_.size(); }
  Source take(std::string_view what) {
    if (done())
      fail({.what = text("the file ends before ", what),
            .needs = text(what),
            .hint = "see a sample file of TENET",
            .where = text(file_, " line ", last_)});
    auto [content, number] = lines_[next_++];
    return {.content = content, .file = file_, .line = number};
  }
  void finish() {
    if (done()) return;
    Source rest = take("");
    rest.fail_at(0, "there is text after the last line that this file has", "end of file", "remove the line");
  }

 private:
  std::string file_;
  std::vector<std::pair<std::string_view, int64_t>> lines_;
  size_t next_ = 0;
  int64_t last_ = 0;
};

/// Integers separated by spaces, on this line.
std::vector<int64_t> integers(const Source& source, size_t most) {
  std::vector<int64_t> values;
  RelationReader reader(source);
  while (!reader.at_end()) {
    if (values.size() == most)
      reader.fail_here("there are more numbers than expected", text("at most ", most, " integers"));
    values.push_back(reader.integer());
  }
  return values;
}

void expect_tuple(const Source& source, const RelationPiece& piece, const std::string& name, size_t rank) {
  if (piece.from.name != name)
    source.fail_at(piece.from.column,
                   text("tuple ", piece.from.name, " is not the statement's tuple ", name),
                   text("the name ", name),
                   "use one tuple name in the mapping and the statement");
  if (piece.from.elements.size() != rank)
    source.fail_at(piece.from.column,
                   text("tuple ", name, " has ", piece.from.elements.size(), " coordinates"),
                   text(rank, " coordinates, as in the domain"),
                   "name all iterators");
}

void expect_plain(const Source& source, const RelationPiece& piece, std::string_view what) {
  if (piece.free_variables > 0)
    source.fail_at(piece.to.column,
                   text("the ", what, " names ", piece.variables[piece.from.elements.size()], ", which is no iterator"),
                   "coordinates made of the iterators",
                   "check the spelling of the iterators");
  if (!piece.constraints.empty())
    source.fail_at(piece.constraint_column,
                   text("the ", what, " has a condition"),
                   "a map of the whole domain",
                   "put conditions on the domain");
}

Domain read_domain(const Source& source, std::string& name) {
  std::vector<RelationPiece> pieces = read_relation(source, /*is_map=*/false);
  if (pieces.size() != 1)
    source.fail_at(0,
                   text("the set has ", pieces.size(), " parts"),
                   "one tuple with its bounds",
                   "write the bounds joined by `and`");
  name = pieces[0].from.name;
  return to_domain(source, pieces[0]);
}

Tuple read_map(const Source& source, const std::string& tuple, size_t rank, std::string_view what) {
  std::vector<RelationPiece> pieces = read_relation(source, /*is_map=*/true);
  if (pieces.size() != 1)
    source.fail_at(0, text("the ", what, " has ", pieces.size(), " parts"), "one map", "give each instance one stamp");
  expect_tuple(source, pieces[0], tuple, rank);
  expect_plain(source, pieces[0], what);
  return std::move(pieces[0].to);
}

Access read_access(const Source& source, Role role, const std::string& tuple, size_t rank) {
  Access access;
  access.role = role;
  std::vector<RelationPiece> pieces = read_relation(source, /*is_map=*/true);
  if (pieces.empty())
    source.fail_at(0, "the access is empty", "one reference or more", "name the tensor: {S[i,j] -> A[i,j]}");
  access.tensor = pieces.back().to.name;
  for (RelationPiece& piece : pieces) {
    expect_tuple(source, piece, tuple, rank);
    expect_plain(source, piece, "access");
    if (piece.to.name != access.tensor)
      source.fail_at(piece.to.column,
                     text("the line mixes tensors ", piece.to.name, " and ", access.tensor),
                     "references to one tensor on a line",
                     "give each tensor a line of its own");
    if (!access.references.empty() && piece.to.elements.size() != access.references[0].size())
      source.fail_at(piece.to.column,
                     text("tensor ",
                          access.tensor,
                          " has ",
                          piece.to.elements.size(),
                          " coordinates here and ",
                          access.references[0].size(),
                          " before"),
                     "references of one rank",
                     "write each tensor with all of its coordinates");
    access.references.push_back(std::move(piece.to.elements));
  }
  return access;
}

/// Adds a line's references; lines of one tensor and role are one access, as TENET takes them.
void add_access(const Source& source, Access access, std::vector<Access>& accesses) {
  for (Access& known : accesses) {
    if (known.tensor != access.tensor || known.role != access.role) continue;
    if (known.references[0].size() != access.references[0].size())
      source.fail_at(0,
                     text("tensor ",
                          access.tensor,
                          " has ",
                          access.references[0].size(),
                          " coordinates here and ",
                          known.references[0].size(),
                          " on a line before"),
                     "references of one rank",
                     "write each tensor with all of its coordinates");
    for (Map& reference : access.references) known.references.push_back(std::move(reference));
    return;
  }
  accesses.push_back(std::move(access));
}

/// The PE set, its wires and the hardware numbers.
///   space   what the space map of `mapping_name` leads to
TenetHardware read_array(std::string_view content, const std::string& name, const std::string& mapping_name,
                         const Tuple& space, Array& into) {
  Lines array(content, name);
  std::string pe;
  Source pe_line = array.take("the PE set");
  into.pes = read_domain(pe_line, pe);
  const size_t pe_rank = into.pes.extent.size();
  if (pe_rank != space.elements.size())
    pe_line.fail_at(
        0,
        text("PEs have ", pe_rank, " coordinates, but the space map of ", mapping_name, " has ", space.elements.size()),
        "a PE set and a space map of one rank",
        "change the array or the mapping");
  if (pe != space.name)
    pe_line.fail_at(
        0,
        text("the PE set is one of ", pe, ", but the space map of ", mapping_name, " leads to ", space.name),
        "one tuple name in the array and the space map",
        "change the array or the mapping");
  if (std::find(into.pes.extent.begin(), into.pes.extent.end(), 0) != into.pes.extent.end())
    pe_line.fail_at(0, "the array has no PEs", "one PE or more", "check the bounds");
  Source wires = array.take("the interconnect");
  for (RelationPiece& piece : read_relation(wires, /*is_map=*/true)) {
    if (piece.from.name != pe || piece.to.name != pe || piece.from.elements.size() != pe_rank ||
        piece.to.elements.size() != pe_rank)
      wires.fail_at(piece.from.column,
                    text("the wire does not lead from ", pe, " to ", pe, " with ", pe_rank, " coordinates"),
                    "wires between PEs of the array",
                    "use the PE set's tuple on both sides");
    for (int f = 0; f < piece.free_variables; ++f) {
      const QuasiAffine free = variable(static_cast<int>(pe_rank) + f);
      if (std::find(piece.to.elements.begin(), piece.to.elements.end(), free) == piece.to.elements.end())
        wires.fail_at(
            piece.to.column,
            text("variable ", piece.variables[pe_rank + static_cast<size_t>(f)], " is no coordinate of the source"),
            "free variables that are coordinates: {PE[i,j]->PE[i,x] : 0<=x<j}",
            "give the variable a coordinate of its own and state the rest as conditions");
    }
    into.interconnect.push_back({std::move(piece.to.elements), piece.free_variables, std::move(piece.constraints)});
  }
  std::vector<int64_t> hardware;
  Source last = wires;
  while (!array.done()) {
    last = array.take("the hardware numbers");
    for (int64_t v : integers(last, 4 - hardware.size())) hardware.push_back(v);
  }
  if (hardware.size() != 4)
    last.fail_at(0,
                 text("the file ends with ", hardware.size(), " hardware numbers"),
                 "four integers: L1 size, L2 size, bandwidth in bits per cycle, latency in cycles",
                 "write for example 256 1024 64 16");
  const TenetHardware numbers{hardware[0], hardware[1], hardware[2], hardware[3]};
  if (numbers.bandwidth_bits_per_cycle <= 0 || numbers.latency_cycles < 0)
    last.fail_at(0,
                 "the bandwidth is not positive or the latency is negative",
                 "bandwidth >= 1 bit per cycle, latency >= 0",
                 "check the order: L1 size, L2 size, bandwidth, latency");
  return numbers;
}

}  // namespace

TenetArray parse_tenet_array(const TenetTexts& texts) {
  TenetArray out;
  Lines mapping(texts.mapping, texts.mapping_name);
  const Source space = mapping.take("the space map");
  const std::vector<RelationPiece> pieces = read_relation(space, /*is_map=*/true);
  if (pieces.empty()) space.fail_at(0, "the space map is empty", "one map", "write {S[i,j,k] -> PE[i%8,j%8]}");
  out.tuple = pieces[0].from.name;
  out.rank = pieces[0].from.elements.size();
  const Tuple pe = read_map(space, out.tuple, out.rank, "space map");
  out.mapping.space = pe.elements;
  out.mapping.time = read_map(mapping.take("the time map"), out.tuple, out.rank, "time map").elements;
  mapping.finish();
  out.hardware = read_array(texts.pe_array, texts.pe_array_name, texts.mapping_name, pe, out.array);
  return out;
}

TenetInput parse_tenet(const TenetTexts& texts) {
  TenetInput input;
  Problem& problem = input.problem;

  Lines statement(texts.statement, texts.statement_name);
  Source counts_line = statement.take("the numbers of read and write lines");
  std::vector<int64_t> numbers = integers(counts_line, 2);
  if (numbers.size() != 2 || numbers[0] < 0 || numbers[1] < 0 || numbers[0] > 1000 || numbers[1] > 1000)
    counts_line.fail_at(0,
                        "the first line does not count the read and write lines",
                        "two integers from 0 to 1000",
                        "write for example 2 1");
  std::string tuple;
  problem.statement.domain = read_domain(statement.take("the iteration domain"), tuple);
  problem.statement.name = tuple;
  const size_t rank = problem.statement.domain.extent.size();
  for (int64_t line = 0; line < numbers[0] + numbers[1]; ++line) {
    Role role = line < numbers[0] ? Role::read : Role::write;
    const Source source = statement.take(role == Role::read ? "a read access" : "a write access");
    add_access(source, read_access(source, role, tuple, rank), problem.statement.accesses);
  }
  statement.finish();

  Lines mapping(texts.mapping, texts.mapping_name);
  const Tuple pe = read_map(mapping.take("the space map"), tuple, rank, "space map");
  problem.mapping.space = pe.elements;
  problem.mapping.time = read_map(mapping.take("the time map"), tuple, rank, "time map").elements;
  mapping.finish();
  input.hardware = read_array(texts.pe_array, texts.pe_array_name, texts.mapping_name, pe, problem.array);
  return input;
}

namespace {

std::string tuple_text(const std::string& name, const std::vector<std::string>& elements) {
  return text(name, "[", join(elements, ","), "]");
}

std::string map_text(const std::string& from, const std::vector<std::string>& names, const std::string& to,
                     const Map& map) {
  std::vector<std::string> elements;
  for (const QuasiAffine& e : map) elements.push_back(to_text(e, names));
  return text(tuple_text(from, names), "->", tuple_text(to, elements));
}

std::string set_text(const std::string& name, const Domain& domain) {
  std::vector<std::string> bounds;
  for (int i = 0; i < domain.rank(); ++i) {
    const size_t k = static_cast<size_t>(i);
    bounds.push_back(text(domain.lower[k], "<=", domain.names[k], "<", domain.lower[k] + domain.extent[k]));
  }
  for (const QuasiAffine& g : domain.guards) bounds.push_back(to_text(g, domain.names) + ">=0");
  std::string out = "{" + tuple_text(name, domain.names);
  if (!bounds.empty()) out += ": " + join(bounds, " and ");
  return out + "}";
}

}  // namespace

std::string tenet_array_text(const Array& array, const TenetHardware& hardware) {
  std::vector<std::string> wires;
  for (const Link& link : array.interconnect) {
    std::vector<std::string> names = array.pes.names, source;
    for (int x = 0; x < link.free_variables; ++x) names.push_back(text("x", x));
    for (const QuasiAffine& e : link.source) source.push_back(to_text(e, names));
    std::string wire = text(tuple_text("PE", array.pes.names), "->", tuple_text("PE", source));
    std::vector<std::string> guards;
    for (const QuasiAffine& g : link.guards) guards.push_back(to_text(g, names) + ">=0");
    if (!guards.empty()) wire += ": " + join(guards, " and ");
    wires.push_back(std::move(wire));
  }
  return text(set_text("PE", array.pes),
              "\n{",
              join(wires, "; "),
              "}\n",
              hardware.l1_size,
              " ",
              hardware.l2_size,
              " ",
              hardware.bandwidth_bits_per_cycle,
              " ",
              hardware.latency_cycles,
              "\n");
}

std::string tenet_mapping_text(const Problem& problem) {
  const std::vector<std::string>& names = problem.statement.domain.names;
  return text("{",
              map_text(problem.statement.name, names, "PE", problem.mapping.space),
              "}\n{",
              map_text(problem.statement.name, names, "T", problem.mapping.time),
              "}\n");
}

std::string tenet_statement_text(const Statement& statement) {
  int reads = 0, writes = 0;
  std::string lines;
  for (Role role : {Role::read, Role::write})
    for (const Access& access : statement.accesses) {
      if (access.role != role) continue;
      ++(role == Role::read ? reads : writes);
      std::vector<std::string> parts;
      for (const Map& reference : access.references)
        parts.push_back(map_text(statement.name, statement.domain.names, access.tensor, reference));
      lines += "{" + join(parts, "; ") + "}\n";
    }
  return text(reads, " ", writes, "\n", set_text(statement.name, statement.domain), "\n", lines);
}

}  // namespace sator::dataflow
