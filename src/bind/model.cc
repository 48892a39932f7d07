// Language models, and the program's commands, from Python. Whoever waits is asked for signals as often as there is news: Ctrl-C ends
// a generation or a study between two tokens or windows.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "bind/gil.h"
#include "bind/node.h"
#include "bind/parts.h"
#include "bind/tensor.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "cli/sampling_options.h"
#include "engine/evaluate.h"
#include "engine/generate.h"
#include "frontend/hf_config.h"
#include "llm/open.h"

namespace sator::bind {

namespace {

/// To be called without Python's lock. Errors: KeyboardInterrupt, or what the callback raises.
void tell(const nb::object& callback, const std::string& news) {
  WithGil gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (!callback.is_none()) callback(news);
}

/// A warning of Python's at the line that called LM or one of its methods.
void warn(const std::string& words, int level) {
  nb::module_::import_("warnings").attr("warn")(words, nb::arg("stacklevel") = level);
}

class LanguageModel {
 public:
  LanguageModel(const std::string& folder, std::optional<std::string> quantization, std::optional<int64_t> threads,
                const nb::object& progress)
      : folder_(model_folder(folder)) {
    const WithoutGil released;
    llm::OpenOptions options{.scheme = llm::scheme_for(folder_, quantization), .threads = threads};
    options.progress = [&](const std::string& what) { tell(progress, what); };
    options.remark = [&](const std::string& what) {
      WithGil gil;
      warn(what, 4);
    };
    model_ = llm::open_model(folder_, options);
    session_.emplace(model_.session());
  }

  std::vector<int32_t> encode(const std::string& text, bool special) const {
    const WithoutGil released;
    return tokenizer().encode(text, special);
  }
  std::string decode(const std::vector<int32_t>& ids) const { return tokenizer().decode(ids); }

  /// The text that follows; `take`, if given, gets each piece and ends the text where it returns False. What the arguments
  /// do not say comes from generation_config.json, as for `sator generate`; its remarks are warnings of Python's.
  nb::dict generate(const std::string& prompt, int64_t max_tokens, double temperature, double top_p, int64_t top_k,
                    int64_t seed, const std::vector<std::string>& stop, const nb::object& take) {
    cli::SamplingArguments given{.greedy = temperature == 0, .stop = stop, .seed = seed};
    if (!given.greedy) given.temperature = temperature, given.top_p = top_p, given.top_k = top_k;
    const GenerationConfig suggested = read_generation_config(folder_);
    GenerateOptions options{.sampling = cli::sampling_of(given, suggested), .max_tokens = max_tokens};
    options.sampling.top_p = top_p, options.sampling.top_k = top_k;  // checked at temperature 0 too
    std::istringstream in;
    std::ostringstream unused, notes;
    nlohmann::json json;
    cli::Streams streams{in, unused, notes, json};
    cli::say_what_is_not_done(suggested, streams);
    cli::fit_to_model(options, given, tokenizer(), model_.config, suggested, streams);
    if (const std::string said = notes.str(); !said.empty()) warn(said.substr(0, said.size() - 1), 4);
    const std::vector<int32_t> ids = tokenizer().encode(prompt, true);
    if (ids.empty())
      fail({.what = "the prompt is empty", .needs = "a text that is continued", .hint = "give a word to begin with"});
    GeneratedText made;
    {
      const WithoutGil released;
      const Turn turn(*this);
      session_->reset();
      bool stopped = false;
      made = generate_text(*session_, tokenizer(), ids, options, [&](const std::string& piece) {
        if (stopped) return false;  // what was held back, at the end
        WithGil gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        stopped = !piece.empty() && !take.is_none() && take(piece).is(Py_False);
        return !stopped;
      });
    }
    nb::dict out;
    out["text"] = made.text;
    out["ids"] = made.ids;
    out["prefill_s"] = made.done.prefill_s;
    out["decode_s"] = made.done.decode_s;
    return out;
  }

  /// As `sator perplexity`.
  nb::dict perplexity(const std::string& text, std::optional<int64_t> windows, std::optional<int64_t> window_tokens,
                      std::optional<int64_t> stride, const nb::object& progress) {
    std::optional<Perplexity> p;
    {
      const WithoutGil released;
      const Turn turn(*this);
      const std::vector<int32_t> stream = llm::token_stream_of(folder_, text, "the text");
      const int64_t tokens = window_tokens.value_or(std::min(kWindowTokens, model_.limits.context_window));
      const std::vector<Window> all = windows_of(stream, tokens, windows, stride);
      session_->reset();
      p = evaluate_perplexity(*session_, all, [&](int64_t done) {
        tell(progress, sator::text("predicting windows, ", done, " of ", all.size()));
      });
    }
    nb::dict out;
    out["perplexity"] = p->perplexity();
    out["standard_error"] = p->standard_error() ? nb::cast(*p->standard_error()) : nb::none();
    out["windows"] = p->windows();
    out["predictions"] = p->predictions();
    return out;
  }

  /// float32 [tokens, vocabulary]
  NDArray logits(const std::vector<int32_t>& ids) {
    const WithoutGil released;
    const Turn turn(*this);
    const auto rows = static_cast<int64_t>(ids.size()), columns = model_.limits.vocab_size;
    Ref<runtime::Tensor> out = runtime::Tensor::empty({rows, columns}, f32);
    session_->reset();
    session_->append_all(ids, [&](int64_t position, std::span<const float> row) {
      std::copy(row.begin(), row.end(), out->data_as<float>() + position * columns);
    });
    return {out};
  }

  std::map<std::string, int64_t> limits() const {
    return {{"context_window", model_.limits.context_window}, {"vocab_size", model_.limits.vocab_size}};
  }
  std::string scheme() const { return model_.scheme.name; }
  double bits_per_weight() const { return model_.size.bits_per_weight(); }

 private:
  /// The one call that uses the cache; calls of other threads wait for it, without Python's lock.
  /// Errors: a callback of a call that runs makes another.
  class Turn {
   public:
    explicit Turn(LanguageModel& model) : model_(model) {
      if (model_.running_in_ == std::this_thread::get_id())
        fail({.what = "a callback calls the language model that called it",
              .needs = "one call at a time: its sequence is in the model's cache",
              .hint = "end the text first (return False), or open a second LM"});
      model_.turns_.lock();
      model_.running_in_ = std::this_thread::get_id();
    }
    ~Turn() {
      model_.running_in_ = std::thread::id();
      model_.turns_.unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    LanguageModel& model_;
  };

  /// Read when text first needs it: a model whose ids are given may have none.
  const Tokenizer& tokenizer() const {
    if (!tokenizer_) tokenizer_.emplace(load_tokenizer(folder_));
    return *tokenizer_;
  }

  fs::path folder_;
  mutable std::optional<Tokenizer> tokenizer_;
  llm::OpenModel model_;
  std::optional<Session> session_;
  std::mutex turns_;
  std::atomic<std::thread::id> running_in_;
};

/// What a command says while it works, line by line.
class News final : public std::streambuf {
 public:
  explicit News(const nb::object& callback) : callback_(callback) {}

 private:
  int overflow(int c) override {
    if (c == '\n' || c == '\r') {
      if (!line_.empty()) tell(callback_, std::exchange(line_, ""));
    } else if (c != EOF) {
      line_ += static_cast<char>(c);
    }
    return c;
  }
  const nb::object& callback_;  // a copy would need Python's lock
  std::string line_;
};

/// One of the program's commands: what it prints, and its results as the text of JSON.
nb::tuple command(const std::vector<std::string>& args, const nb::object& progress) {
  std::ostringstream out;
  std::string results = "null";
  {
    const WithoutGil released;
    News news(progress);
    std::ostream notes(&news);
    notes.exceptions(std::ios::badbit);  // what a callback raises ends the command
    std::istringstream none;
    std::vector<cli::Command> commands = cli::command_table();
    for (cli::Command& c : commands) {
      c.run = [run = c.run, &results](cli::Streams& io) {
        run(io);
        results = io.json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      };
    }
    cli::dispatch(args, commands, none, out, notes);
  }
  return nb::make_tuple(out.str(), results);
}

}  // namespace

void add_model(nb::module_& m) {
  nb::class_<LanguageModel>(m, "LanguageModel")
      .def(nb::init<const std::string&, std::optional<std::string>, std::optional<int64_t>, const nb::object&>(),
           nb::arg("folder"),
           nb::arg("quantization").none(),
           nb::arg("threads").none(),
           nb::arg("progress").none())
      .def("encode", &LanguageModel::encode)
      .def("decode", &LanguageModel::decode)
      .def("generate",
           &LanguageModel::generate,
           nb::arg("prompt"),
           nb::arg("max_tokens"),
           nb::arg("temperature"),
           nb::arg("top_p"),
           nb::arg("top_k"),
           nb::arg("seed"),
           nb::arg("stop"),
           nb::arg("take").none())
      .def("perplexity",
           &LanguageModel::perplexity,
           nb::arg("text"),
           nb::arg("windows").none(),
           nb::arg("window_tokens").none(),
           nb::arg("stride").none(),
           nb::arg("progress").none())
      .def("logits", &LanguageModel::logits)
      .def_prop_ro("limits", &LanguageModel::limits)
      .def_prop_ro("scheme", &LanguageModel::scheme)
      .def_prop_ro("bits_per_weight", &LanguageModel::bits_per_weight);
  m.def(
      "model_program",
      [](const std::string& given, const std::optional<std::string>& scheme, std::optional<int64_t> context_window) {
        const fs::path folder = model_folder(given);
        llm::OpenOptions options{.scheme = llm::scheme_for(folder, scheme)};
        options.program.context_window = context_window;
        const llm::Program program = llm::program_of(folder, options);
        nb::list params, layers;
        for (const llm::ParamSpec& p : program.params) {
          nb::list shape;
          for (int64_t d : p.shape) shape.append(d);
          params.append(nb::make_tuple(p.name, nb::tuple(shape), p.dtype.name()));
        }
        for (const std::string& layer : program.layers) layers.append(layer);
        return nb::make_tuple(to_python(NodeRef(program.module)), params, layers);
      },
      nb::arg("folder"),
      nb::arg("scheme").none(),
      nb::arg("context_window").none(),
      "The program of a model's folder before any pass, its parameters and the layers that bind results.");
  m.def("command", command, nb::arg("args"), nb::arg("progress").none());
  m.def(
      "run_program",
      [](const std::vector<std::string>& args) {
        std::optional<WithoutGil> released;
        if (has_other_threads()) released.emplace();
        end_on_interrupt();
        return cli::run_app(args, cli::command_table(), std::cin, std::cout, std::cerr);
      },
      "The program itself, on the process's streams: its exit status.");
  m.def("shipped_chips", &shipped_chips);
}

}  // namespace sator::bind
