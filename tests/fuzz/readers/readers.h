// Everything that reads bytes from outside, as rows: one fuzzer each.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace sator::fuzz {

/// A reader. It must read the bytes or refuse them with an Error that has words; a crash, an InternalError or another exception
/// is a finding, and so is a hang, a leak, or memory beyond what ./dev fuzz allows.
struct Reader {
  std::string_view name;  ///< also of its corpus, tests/fuzz/corpus/NAME
  std::string_view does;
  std::string_view dictionary;  ///< words of its format, tests/fuzz/dictionaries/WORD.dict; empty: none
  /// folder   empty, of this call alone: for readers of files
  void (*read)(std::string_view bytes, const fs::path& folder);
};

/// All readers: readers.cc.
std::span<const Reader> readers();

/// The row of that name; nullptr if there is none.
const Reader* find_reader(std::string_view name);

/// Runs a reader on an input; whether it read it, rather than refused it.
/// Errors: a finding, as an InternalError or whatever the reader threw.
bool run_reader(const Reader& reader, std::string_view bytes);

// ---- models.cc: folders of models ----
void read_safetensors(std::string_view bytes, const fs::path& folder);
void read_gguf(std::string_view bytes, const fs::path& folder);
void read_stored_codes(std::string_view bytes, const fs::path& folder);
void read_safetensors_index(std::string_view bytes, const fs::path& folder);
void read_config(std::string_view bytes, const fs::path& folder);
void read_generation_config_file(std::string_view bytes, const fs::path& folder);
void read_task_file(std::string_view bytes, const fs::path& folder);
void read_reference_run(std::string_view bytes, const fs::path& folder);
void read_json_schema(std::string_view bytes, const fs::path& folder);
void read_mlc_config_file(std::string_view bytes, const fs::path& folder);
void read_mlc_index(std::string_view bytes, const fs::path& folder);
void read_mlc_codes(std::string_view bytes, const fs::path& folder);
void read_tokenizer(std::string_view bytes, const fs::path& folder);
void read_tokenizer_model(std::string_view bytes, const fs::path& folder);
void read_tokenizer_config(std::string_view bytes, const fs::path& folder);
void read_vocab_and_merges(std::string_view bytes, const fs::path& folder);

// ---- programs.cc: programs, compiled or as text, and schedules ----
void read_tvmscript(std::string_view bytes, const fs::path& folder);
void read_schedule(std::string_view bytes, const fs::path& folder);
void read_bytecode(std::string_view bytes, const fs::path& folder);
void read_library_headers(std::string_view bytes, const fs::path& folder);

// ---- reports.cc: chips, measurements, studies ----
void read_chip(std::string_view bytes, const fs::path& folder);
void read_calibration_file(std::string_view bytes, const fs::path& folder);
void read_measurements(std::string_view bytes, const fs::path& folder);
void read_study(std::string_view bytes, const fs::path& folder);
void read_kernels_csv(std::string_view bytes, const fs::path& folder);
void read_chip_folder(std::string_view bytes, const fs::path& folder);

// ---- own_files.cc: what earlier runs left, and what else may lie there ----
void read_files_list(std::string_view bytes, const fs::path& folder);
void read_cache_entry(std::string_view bytes, const fs::path& folder);
void read_cache_folder(std::string_view bytes, const fs::path& folder);
void read_study_part(std::string_view bytes, const fs::path& folder);

// ---- formats.cc: files of other cost tools ----
void read_tenet(std::string_view bytes, const fs::path& folder);
void read_timeloop(std::string_view bytes, const fs::path& folder);
void read_scalesim(std::string_view bytes, const fs::path& folder);
void read_maestro(std::string_view bytes, const fs::path& folder);
void read_batch_row(std::string_view bytes, const fs::path& folder);

/// Several texts in one input, separated by lines of "====": so many, of which the last are empty where there are fewer.
std::vector<std::string> texts_of(std::string_view bytes, size_t count);

/// Writes without the care of write_file, thousands of times per second.
void put_file(const fs::path& file, std::string_view bytes);

/// What was read must hold together. Errors: an InternalError that says what does not.
void require(bool holds, std::string_view what);

}  // namespace sator::fuzz
