// schedule, schedule_error, schedule_query: primitives, applied one after the other.
#include <algorithm>
#include <regex>

#include "base/text.h"
#include "cases.h"
#include "ir/script/parser.h"
#include "schedule/primitives.h"
#include "schedule/script.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::conformance {

namespace {

using namespace schedule;

/// The text with its captured names: one that is an argument of the last action stands for that number. Unsupported: others.
std::string with_captured(const Json& request, std::string text) {
  for (const Json& captured : request.value("opaque", Json::array())) {
    const std::string name = captured;
    const Json& last = request.at("actions").back();
    const Json value = last.value("kwargs", Json::object()).value(name, Json());
    std::regex word("\\b" + name + "\\b");
    if (!value.is_number_integer()) throw Unsupported{"values of Python that the case captured"};
    text = std::regex_replace(text, word, value.dump());
  }
  return text;
}

/// IntImm('int8', 0) and IntImm(dtype='int8', value=0), in whatever module Python finds it.
const std::regex& int_imm_call() {
  static const std::regex call(R"((?:\w+\.)*IntImm\((?:dtype=)?['"](\w+)['"], (?:value=)?(-?\d+)\))");
  return call;
}

/// The body of an index map without separators of axes, which go to `separators`: before which output each stands.
std::string without_separators(const std::string& body, List& separators) {
  static const std::regex separator(R"(\s*(?:\w+\.)*AXIS_SEPARATOR\s*,?)");
  std::string out;
  auto from = body.cbegin();
  for (std::sregex_iterator m(body.begin(), body.end(), separator), end; m != end; ++m) {
    out.append(from, (*m)[0].first);
    from = (*m)[0].second;
    separators.emplace_back(static_cast<int64_t>(std::count(out.begin(), out.end(), ',')));
  }
  return out.append(from, body.cend());
}

/// The steps of a trace that a test writes as objects: tir.schedule.Trace(insts=[tir.schedule.Instruction(kind=
/// tir.schedule.InstructionKind.get('GetBlock'), inputs=[...], attrs=[...], outputs=[...])], decisions={}).
/// Unsupported: more than one variable, which have no name there; decisions; steps of other kinds.
struct WrittenStep {
  std::string kind;
  std::vector<script::Expression> inputs, attrs;
  bool has_output = false;
};
bool is_variable(const script::Expression& e) {
  return e.is(script::ExpressionKind::call) && script::dotted_name(e.items[0]).ends_with("BlockRV");
}
std::vector<WrittenStep> steps_of(const std::string& source) {
  const script::Program program = script::parse("trace = " + source + "\n", "trace");
  const script::Expression& trace = program.body.front().value;
  std::vector<WrittenStep> out;
  size_t outputs = 0;
  auto keyword = [](const script::Expression& call, const char* name) -> const script::Expression& {
    for (const script::Keyword& k : call.keywords)
      if (k.name == name) return k.value;
    throw Unsupported{"a trace of this form"};
  };
  if (!trace.is(script::ExpressionKind::call) || !script::dotted_name(trace.items[0]).ends_with("schedule.Trace") ||
      !keyword(trace, "decisions").items.empty())
    throw Unsupported{"a trace of this form"};
  for (const script::Expression& step : keyword(trace, "insts").items) {
    WrittenStep s;
    s.kind = keyword(step, "kind").items.at(1).text;
    s.inputs = keyword(step, "inputs").items;
    s.attrs = keyword(step, "attrs").items;
    s.has_output = !keyword(step, "outputs").items.empty();
    outputs += s.has_output;
    if (s.kind != "GetBlock" && s.kind != "ComputeInline" && s.kind != "Annotate")
      throw Unsupported{"a trace with " + s.kind};
    out.push_back(std::move(s));
  }
  if (outputs > 1) throw Unsupported{"a trace whose variables cannot be told apart"};
  return out;
}

/// The trace that an action applies to the schedule; nothing for other actions.
std::optional<std::string> applied_trace(const Json& action) {
  if (action.value("do", "") != "@call" || !action.contains("fn")) return {};
  const std::string fn = action["fn"];
  static const std::string kApply = ".apply_to_schedule", kJson = ".as_json()";
  if (fn.starts_with("tir.schedule.Trace(") && fn.ends_with(kApply)) return fn.substr(0, fn.size() - kApply.size());
  if (fn != "tir.schedule.Trace.apply_json_to_schedule" || !action.contains("args")) return {};
  const Json& given = action["args"].at(0);
  const std::string written = given.is_object() ? given.value("expr", "") : "";
  if (!written.ends_with(kJson)) return {};
  return written.substr(0, written.size() - kJson.size());
}

/// The program of a case while its actions run.
class Play {
 public:
  explicit Play(const Json& request) {
    if (!request.contains("before") || !request["before"].is_string()) throw Unsupported{"a program that is no text"};
    module_ = parse_program(with_captured(request, request["before"]));
    if (module_->functions.size() == 1) {  // a function given alone is called main
      if (auto f = cast<tir::PrimFunc>(module_->functions.begin()->second)) module_ = Schedule(f).module();
    }
    schedule_ = std::make_unique<Schedule>(module_);
    script_ = std::make_unique<Script>(*schedule_);
  }

  /// Unsupported: primitives and operands that are not built, before any action runs.
  void check(const Json& actions) const {
    for (const Json& action : actions) {
      if (!action.contains("do")) throw Unsupported{"an action that is no primitive"};
      std::string name = action["do"];
      if (const auto trace = applied_trace(action)) {
        steps_of(*trace);
        continue;
      }
      bool known = name == "get" || name == "work_on";
      for (const AnyPrimitive* p : primitives()) known |= p->name == name;
      if (!known) throw Unsupported{"primitive " + name};
      if (name == "tensorize") throw Unsupported{"tensor intrinsics that a test registers"};
      check_operand(action.value("args", Json::array()));
      check_operand(action.value("kwargs", Json::object()));
    }
  }

  void act(const Json& action) {
    std::string name = action["do"];
    if (const auto trace = applied_trace(action)) return apply(steps_of(*trace));
    separators_.clear();
    List args;
    for (const Json& a : action.value("args", Json::array())) {
      if (a.is_object() && a.contains("star")) {
        Value spread = value(a["star"]);
        const List* list = spread.get_if<List>();
        if (!list) throw Unsupported{"* of something that is no list"};
        args.insert(args.end(), list->begin(), list->end());
      } else {
        args.push_back(value(a));
      }
    }
    Value result;
    if (name == "work_on") {
      schedule_->work_on(value_to_string(args.at(0), "func_name"));
    } else if (name == "get") {
      result = args.at(0);  // a handle stands for what it names
    } else {
      std::vector<std::pair<std::string, Value>> keywords;
      const Json given = action.value("kwargs", Json::object());
      for (const auto& [key, v] : given.items()) keywords.emplace_back(key, value(v));
      result = script_->call(name, args, keywords);
      if (!separators_.empty()) {  // as Python does: two steps
        auto argument = [&](size_t at, const std::string& key) {
          for (const auto& [k, v] : keywords) {
            if (k == key) return v;
          }
          return args.at(at);
        };
        script_->call("set_axis_separator", {argument(0, "block"), argument(1, "buffer"), Value(separators_)}, {});
      }
    }
    if (action.contains("out") && action["out"].is_string()) script_->define(action["out"], result);
  }

  Value value(const Json& v) {
    if (v.is_null()) return {};
    if (v.is_boolean()) return v.get<bool>();
    if (v.is_number_integer()) return v.get<int64_t>();
    if (v.is_number_float()) return v.get<double>();
    if (v.is_string()) return v.get<std::string>();
    if (v.is_array()) {
      List list;
      for (const Json& item : v) list.push_back(value(item));
      return list;
    }
    if (v.contains("$")) return expression(v["$"]);
    if (v.contains("expr")) {
      const std::string source = v["expr"];
      std::smatch number;
      std::regex_match(source, number, int_imm_call());
      return Expr(int_imm(std::stoll(number[2]), *DType::parse(number[1].str())));
    }
    std::vector<std::string> parameters = v.at("lambda");
    try {
      return expression("lambda " + join(parameters, ", ") + ": " + without_separators(v.at("body"), separators_));
    } catch (const Error&) {
      throw Unsupported{"operand " + v.dump().substr(0, 60)};
    }
  }

  Value expression(std::string source) {
    source = named_parts(source);
    script::Program p = script::parse("_ = " + source, "operand");
    return script_->evaluate(p.body.front().value);
  }

  Schedule& schedule() { return *schedule_; }
  /// The module before the actions.
  const ModuleRef& module() const { return module_; }

 private:
  void apply(const std::vector<WrittenStep>& steps) {
    Value block;
    for (const WrittenStep& step : steps) {
      List args;
      for (const script::Expression& e : step.inputs) args.push_back(is_variable(e) ? block : script_->evaluate(e));
      for (const script::Expression& e : step.attrs) args.push_back(script_->evaluate(e));
      if (step.kind == "GetBlock") {
        block = script_->call("get_block", args, {});
      } else if (step.kind == "ComputeInline") {
        script_->call("compute_inline", args, {});
      } else {
        // A trace holds the value before the key.
        std::swap(args.at(1), args.at(2));
        script_->call("annotate", args, {});
      }
    }
  }

  /// The text with names in the place of the parts of the function that Python reaches through its objects.
  std::string named_parts(const std::string& source) {
    static const std::regex part(
        R"(<script:\w+>\.buffer_map\[<script:\w+>\.params\[(\d+)\]\]\.shape\[(\d+)\]|<schedule>\.mod\['main'\]\.params\[(\d+)\])"
        R"(|(\w+)\.(reads|writes)\[(\d+)\]\.buffer$)");
    std::string out;
    auto from = source.cbegin();
    for (std::sregex_iterator m(source.begin(), source.end(), part), end; m != end; ++m) {
      out.append(from, (*m)[0].first);
      from = (*m)[0].second;
      std::string name = text("part", static_cast<int64_t>(parts_++));
      tir::PrimFuncRef f = schedule_->func();
      if ((*m)[3].matched) {
        script_->define(name, Expr(f->params.at(std::stoul((*m)[3]))));
      } else if ((*m)[4].matched) {  // a buffer of a block, which steps call by its name
        const Value handle = expression((*m)[4]);
        const BlockHandle* owner = handle.get_if<BlockHandle>();
        if (!owner) throw Unsupported{"a buffer of no block"};
        const tir::Block& block = schedule_->get(*owner);
        const auto& regions = (*m)[5] == "reads" ? block.reads : block.writes;
        script_->define(name, regions.at(std::stoul((*m)[6]))->buffer->name);
      } else {
        BufferRef buffer = f->buffer_of(f->params.at(std::stoul((*m)[1])));
        script_->define(name, buffer->shape.at(std::stoul((*m)[2])));
      }
      out += name;
    }
    return out.append(from, source.cend());
  }

  static void check_operand(const Json& v) {
    if (v.is_object()) {
      const bool is_number = v.contains("expr") && std::regex_match(v["expr"].get<std::string>(), int_imm_call());
      if ((v.contains("expr") && !is_number) || v.contains("script") || v.contains("dict"))
        throw Unsupported{"operand " + v.dump().substr(0, 60)};
    }
    if (v.is_structured()) {
      for (const Json& item : v) check_operand(item);
    }
  }

  ModuleRef module_;
  int parts_ = 0;
  List separators_;  ///< of the index map that was read last
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Script> script_;
};

}  // namespace

void run_schedule(const Json& request) {
  std::string observed = request.value("observe", "");
  static const std::string kModule = "<schedule>.mod";
  if (size_t at = observed.find(kModule); at != observed.npos)
    observed.replace(at, kModule.size(), "case_before");
  else if (!observed.empty())
    throw Unsupported{"observed expressions"};
  if (request.contains("after_deps") || !request.contains("after") || !request["after"].is_string())
    throw Unsupported{"a result that is no text"};
  Play play(request);
  play.check(request.at("actions"));
  ModuleRef expected = parse_program(with_captured(request, request["after"]));
  const bool keeps_meaning = observed.empty() && std::ranges::none_of(request.at("actions"), [](const Json& action) {
                               return action.at("do").get<std::string>().starts_with("unsafe_");
                             });
  try {
    for (const Json& action : request.at("actions")) play.act(action);
  } catch (const Error&) {
    if (keeps_meaning) {
      if (auto words = counterexample(play.module(), expected)) throw Counterexample{*words};
    }
    throw;
  }
  ModuleRef got = play.schedule().module();
  if (!observed.empty()) {
    script::Program program = script::parse("value = " + observed + "\n");
    got = transformed(request, got, program.body.at(0).value);
  }
  bool single = expected->functions.size() == 1 && got->functions.size() == 1;
  bool ignore = single || (request.contains("check") && request["check"].value("ignore_global_symbol", false));
  if (!same_program(expected, got, ignore)) {
    if (keeps_meaning && !counterexample(play.module(), got)) {
      if (auto words = counterexample(play.module(), expected)) throw Counterexample{*words};
    }
    throw Failed{"the result differs\n" + difference(print_program(expected), print_program(got))};
  }
  if (request.value("trace_roundtrip", false)) {
    Schedule again(play.module());
    play.schedule().trace().apply_to(again);
    if (!same_program(play.schedule().module(), again.module(), false))
      throw Failed{"the trace replays to another program\n" +
                   difference(print_program(got), print_program(again.module()))};
  }
}

void run_schedule_error(const Json& request) {
  Play play(request);
  const Json& actions = request.at("actions");
  play.check(actions);
  for (size_t i = 0; i + 1 < actions.size(); ++i) play.act(actions[i]);
  const std::string name = actions.back().at("do");
  try {
    play.act(actions.back());
  } catch (const Error& e) {
    if (e.reason.what.starts_with(name + "(") || e.reason.what.starts_with(name + ":")) return;
    throw Failed{"the refusal is not the primitive's: " + e.reason.what};
  }
  throw Failed{"the last action is accepted"};
}

void run_schedule_query(const Json& request) {
  Play play(request);
  play.check(request.at("actions"));
  std::string observed = request.at("observe"), property;
  static const std::string kModule = "<schedule>.mod";
  if (size_t at = observed.find(kModule); at != observed.npos) {
    for (const Json& action : request.at("actions")) play.act(action);
    return ask(request, play.schedule().module(), observed.replace(at, kModule.size(), "case_before"));
  }
  // Handles as they are, and the name of what they stand for.
  for (const char* known : {".name_hint", ".loop_var.name"}) {
    if (observed.ends_with(known)) {
      property = known;
      observed.resize(observed.size() - property.size());
    }
  }
  const Json& after = request.at("after");
  if (request.value("op", "==") != "==" || observed.find_first_not_of("v0123456789[]") != observed.npos)
    throw Unsupported{"observed " + request.at("observe").get<std::string>()};
  for (const Json& action : request.at("actions")) play.act(action);
  Value got = play.expression(observed);
  if (property == ".name_hint") {
    if (const BlockHandle* b = got.get_if<BlockHandle>()) got = (*b)->text;
  } else if (property == ".loop_var.name") {
    if (const Loop* l = got.get_if<Loop>()) got = (*l)->name;
  }
  bool handle = after.is_string() && after.get<std::string>().starts_with("v") && property.empty();
  Value expected = handle ? play.expression(after) : play.value(after);
  if (!(static_cast<const Value::Base&>(got) == static_cast<const Value::Base&>(expected)))
    throw Failed{text("it is ", got, ", not ", expected)};
}

}  // namespace sator::conformance
