// The main job: schemes x chips, evaluated, measured, costed.
#pragma once

#include <functional>
#include <span>

#include "base/error.h"
#include "base/owned_folder.h"
#include "dataflow/cost/described_chip.h"
#include "dataflow/mapping/mapper.h"
#include "llm/scheme.h"
#include "study/result.h"
#include "study/sweep_axes.h"

namespace sator::study {

struct StudyOptions {
  fs::path model;                    // a Hugging Face folder
  std::vector<std::string> schemes;  // names; empty: the defaults
  std::vector<std::string> chips;    // names, files or folders with TENET's files; empty: the defaults
  dataflow::ChipChanges changes;     // of each of them
  dataflow::Goal goal;               // what mappings are chosen for
  SweepAxes sweep;                   // batches and contexts that are costed besides
  bool traces = false;               // write each phase as a trace of Chakra
  int64_t prompt_len = 128, gen_len = 32;
  int64_t windows = 32;                 // of the text, at most
  std::optional<fs::path> text;         // to predict; absent: validation.txt of the model's folder
  std::optional<fs::path> calibration;  // of static activation scales; absent: calibration.txt there, if it is there
  bool shapes_only = false;             // config.json alone: nothing is run
  std::optional<int64_t> threads;       // all cores unless told
  int64_t speed_age_s = 3600;  // speeds here that an earlier run measured may be so old; 0: they are measured again
  fs::path folder;             // results, and those of finished schemes under .parts/
  bool replace = false;        // files in the way of results
  bool routes = false;         // the caller adds Study::routes before it is written
  std::string version;         // of the program
};

/// What `sator study` costs for unless told.
const std::vector<std::string>& default_chips();

/// Told what is being done. `passing`: the next line may take its place (windows done).
using Progress = std::function<void(const std::string& line, bool passing)>;

/// One scheme of a study, as the half that costs needs it.
struct SchemeJob {
  llm::Scheme scheme;
  StudyOptions options;        // with text and calibration found
  int64_t decode_context = 0;  // tokens that the costed decode step attends to, its own among them
};

/// The schemes of a study that run here, together: their speeds are measured in turns, their predictions window by window
/// beside those of a reference.
struct MeasureJob {
  struct Request {
    llm::Scheme scheme;
    bool quality = false, speed = false;  // what no earlier run has left
  };
  StudyOptions options;  // with text and calibration found
  std::vector<Request> requests;
  std::optional<llm::Scheme> reference;  // none where the weights are converted already
  int64_t window_tokens = 0;
  int64_t decode_context = 0;
  std::optional<int64_t> memory_bytes;  // that models may take at one time; what the machine has, unless told
};

/// What was asked of a scheme: of a SchemeResult the figures of quality and sizes, those of speed, or why there are none.
struct Measured {
  std::string scheme;
  std::optional<SchemeResult> quality, speed;
  std::optional<Reason> failed;
};
using TakeMeasured = std::function<void(Measured)>;

/// The two halves of the work on a scheme. Functions, so that tests run studies without a model.
struct Workers {
  /// Perplexity, sizes and speeds here; nothing of chips. Each scheme is handed out as soon as it is finished. Returns how
  /// many rounds in turns are behind each speed.
  std::function<int64_t(const MeasureJob&, const TakeMeasured&, const Progress&)> measure;
  /// Costs on these chips, in their order.
  std::function<std::vector<ChipResult>(const SchemeJob&, std::span<const Chip>, const Progress&)> cost;
  /// Parameters of the checkpoint, or those that config.json implies.
  std::function<int64_t(const StudyOptions&)> parameters;
};

/// Runs what no earlier run has left finished under `options.folder`/.parts. A part is reused if everything that shaped it
/// is the same: the model's files, the scheme, text, windows, lengths, threads, processor, program and LLVM; of costs, the
/// chip's file. Speeds here belong to one machine and one run in turns: they are reused if one run within
/// `options.speed_age_s` measured all schemes of this one, else all are measured again.
/// Errors: an unknown scheme or chip; two chips of one name; lengths beyond the model's context; no text; static scales
/// without a calibration text; the folder cannot be written, another study works in it, or what no study wrote stands where
/// its results go; those of the workers, with the scheme named.
Study run_study(const StudyOptions& options, const Workers& workers, const Progress& progress);

/// Beside the results of every study.
struct WriteOptions {
  bool traces = false;   ///< each phase as a trace of Chakra
  bool replace = false;  ///< files in the way of results
};

/// Writes study.json, study.csv, kernels.csv, sweep.csv and routes.csv where there are such, the schedules of its kernels, their products as
/// TENET's files, and index.html, in place of what an earlier study wrote there (base/owned_folder.h).
/// Errors: the folder cannot be written; what no study wrote stands where a result goes.
void write_study(const Study& study, const fs::path& folder, const WriteOptions& options = {});

}  // namespace sator::study
