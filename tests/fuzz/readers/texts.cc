// Readers of texts that a generation or an evaluation follows.
#include "engine/json_schema/completion.h"
#include "engine/json_schema/token_masks.h"
#include "engine/reference_run.h"
#include "engine/task.h"
#include "fuzz/readers/readers.h"

namespace sator::fuzz {

/// A schema, and behind a line "====" a document. Whatever the schema is, a document that can be completed is whole with its completion.
void read_json_schema(std::string_view bytes, const fs::path&) {
  using namespace json_schema;
  const std::vector<std::string> texts = texts_of(bytes, 2);
  const auto shapes = std::make_shared<const Shapes>(Shapes::of(Schema::read(texts[0], "schema")));
  TokenMasks masks({"a", "{", "}", "\"", "\":", "1", "[", "]", ",", "\\", "true", "\",\""});
  Automaton place(shapes);
  for (size_t i = 0; i <= texts[1].size(); ++i) {
    const std::span<const uint64_t> mask = masks.of(place);
    for (int32_t id = 0; id < masks.vocab_size(); ++id) {
      Automaton next = place;
      require(next.take(masks.bytes_of(id)) == TokenMasks::has(mask, id), "a mask says what the automaton takes");
    }
    if (const auto rest = completion_of(place)) {
      Automaton end = place;
      require(end.take(*rest) && end.is_complete(), "a completion completes");
    }
    if (i == texts[1].size() || !place.take(std::string_view(texts[1]).substr(i, 1))) break;
  }
}

void read_task_file(std::string_view bytes, const fs::path&) {
  for (const TaskItem& item : read_task(std::string(bytes), "task"))
    for (int64_t gold : item.gold)
      require(gold >= 0 && gold < std::ssize(item.choices), "a right choice is one of the choices");
}

void read_reference_run(std::string_view bytes, const fs::path& folder) {
  put_file(folder / "run", sealed(std::string(bytes)));  // what is damaged after it was sealed gets no further
  ReferenceRun run(folder / "run", 2, "t");
  for (int64_t i = 0; i < run.predictions(); ++i) run.logits(i);
}

}  // namespace sator::fuzz
