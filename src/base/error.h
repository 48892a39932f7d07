#pragma once

#include <exception>
#include <string>
#include <vector>

#include "base/object.h"
#include "base/text.h"

namespace sator {

/// A place in the work that an error speaks of: a node of a program and what is wrong with it there.
struct At {
  Ref<const Object> node;
  std::string label;
};

/// Why something cannot be done, as a value. A query returns it, `fail` turns it into an Error.
///   what     what happened, with the actual values
///   needs    the precondition, as a rule worth learning
///   hint     one action that leads on
///   at       the offending nodes; whoever knows how to print the program underlines them
///   program  the program, already printed with its underlines (filled by the one who prints)
///   where    where in the work: "in func matmul, after 1 step", "config.json line 3"
struct Reason {
  std::string what;
  std::string needs;
  std::string hint;
  std::vector<At> at;
  std::string program;
  std::string where;

  /// The six parts in their fixed order, one line each (the program several).
  std::string render() const;
};

/// The user's mistake. Public calls throw this or InternalError and nothing else.
class Error : public std::exception {
 public:
  explicit Error(Reason reason) : reason(std::move(reason)), rendered_(this->reason.render()) {}
  const char* what() const noexcept override { return rendered_.c_str(); }
  Reason reason;

 private:
  std::string rendered_;
};

/// Our mistake: an invariant of the compiler does not hold.
class InternalError : public std::exception {
 public:
  explicit InternalError(std::string message) : message_("internal error: " + std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

[[noreturn]] void fail(Reason reason);
[[noreturn]] void internal_error(std::string message);

}  // namespace sator
