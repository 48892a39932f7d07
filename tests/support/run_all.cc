// Text tests: finds the files, runs the cases in processes of their own, and says what came out.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "support/texttest.h"

namespace sator::test {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct File {
  fs::path path;
  std::string content;
  std::vector<TestCase> cases;
};

struct Job {
  const File* file;
  const TestCase* test;
  Outcome outcome;
};

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::vector<fs::path> test_files(const std::vector<fs::path>& roots) {
  std::vector<fs::path> files;
  for (const fs::path& root : roots) {
    if (fs::is_directory(root)) {
      for (const auto& entry : fs::recursive_directory_iterator(root))
        if (entry.is_regular_file() && entry.path().extension() == ".test") files.push_back(fs::absolute(entry.path()));
    } else if (fs::exists(root)) {
      files.push_back(fs::absolute(root));
    } else {
      fail({.what = text("no file or folder ", root.string()),
            .needs = "folders with text tests, or their files",
            .hint = "the usual folder is tests"});
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// An outcome on its way through a pipe: "status is_error size-of-got\n", got, problem.
std::string packed(const Outcome& o) {
  return text(static_cast<int>(o.status), " ", static_cast<int>(o.is_error), " ", o.got.size(), "\n", o.got, o.problem);
}

std::optional<Outcome> unpacked(const std::string& bytes) {
  int status = 0, is_error = 0, used = 0;
  size_t size = 0;
  if (std::sscanf(bytes.c_str(), "%d %d %zu%n", &status, &is_error, &size, &used) != 3) return {};
  size_t begin = static_cast<size_t>(used) + 1;
  if (begin + size > bytes.size()) return {};
  return Outcome{.status = static_cast<Outcome::Status>(status),
                 .got = bytes.substr(begin, size),
                 .is_error = is_error != 0,
                 .problem = bytes.substr(begin + size)};
}

// A case that runs in a child process, and what has come out of its pipe so far.
struct Child {
  Job* job;
  pid_t pid;
  int fd;
  Clock::time_point start;
  std::string bytes;
};

Child start_child(Job& job, const std::vector<Runner>& table) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) internal_error("no pipe for a test process");
  std::cout.flush();
  std::cerr.flush();
  pid_t pid = ::fork();
  if (pid < 0) internal_error("no process for a test");
  if (pid == 0) {
    ::close(ends[0]);
    std::string bytes = packed(run_case(*job.test, job.file->cases, table));
    for (size_t sent = 0; sent < bytes.size();) {
      ssize_t n = ::write(ends[1], bytes.data() + sent, bytes.size() - sent);
      if (n <= 0) break;
      sent += static_cast<size_t>(n);
    }
    std::cout.flush();
    ::_exit(0);
  }
  ::close(ends[1]);
  return {&job, pid, ends[0], Clock::now(), {}};
}

// Reads what is there. True once the child has ended; then its job has its outcome.
bool poll_child(Child& child, bool readable, double limit_s) {
  char chunk[1 << 16];
  ssize_t n = readable ? ::read(child.fd, chunk, sizeof chunk) : -1;
  if (n > 0) {
    child.bytes.append(chunk, static_cast<size_t>(n));
    return false;
  }
  double seconds = seconds_since(child.start);
  bool late = n != 0 && seconds > limit_s;
  if (n != 0 && !late) return false;
  if (late) ::kill(child.pid, SIGKILL);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  ::close(child.fd);
  Outcome failed{.status = Outcome::Status::failed};
  if (late)
    failed.problem = text("no result after ", limit_s, " s");
  else if (WIFSIGNALED(status))
    failed.problem = text("crashed: ", ::strsignal(WTERMSIG(status)));
  else
    failed.problem = text("its process ended with status ", WEXITSTATUS(status));
  bool ended_well = !late && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  child.job->outcome = ended_well ? unpacked(child.bytes).value_or(failed) : failed;
  child.job->outcome.seconds = seconds;
  return true;
}

void run_isolated(std::vector<Job>& jobs, const std::vector<Runner>& table, int width, double limit_s) {
  std::vector<Child> running;
  for (size_t next = 0; next < jobs.size() || !running.empty();) {
    while (next < jobs.size() && static_cast<int>(running.size()) < width)
      running.push_back(start_child(jobs[next++], table));
    std::vector<pollfd> waits;
    for (const Child& child : running) waits.push_back({child.fd, POLLIN, 0});
    ::poll(waits.data(), waits.size(), 500);
    std::vector<Child> still;
    for (size_t i = 0; i < running.size(); ++i)
      if (!poll_child(running[i], waits[i].revents != 0, limit_s)) still.push_back(std::move(running[i]));
    running = std::move(still);
  }
}

std::string described(const Job& job) {
  const Section* expect = job.test->find("expect");
  std::string out = text("FAILED ", job.test->place(), ": ", job.test->name, ": ", job.test->description, "\n");
  if (!job.outcome.problem.empty()) out += indented(job.outcome.problem, "  ") + "\n";
  if (!job.outcome.got.empty() || (expect && job.outcome.problem.empty()))
    out += indented(line_difference(expect ? expect->text : "", job.outcome.got), "    ");
  return out;
}

nlohmann::json report_of(const std::vector<Job>& jobs, const std::vector<Job>& broken) {
  std::map<std::string, nlohmann::json> suites;
  for (const auto* list : {&broken, &jobs})
    for (const Job& job : *list) {
      std::string id = job.test->id();
      nlohmann::json entry = {{"name", job.test->name},
                              {"status", "RUN"},
                              {"result", job.outcome.status == Outcome::Status::skipped ? "SKIPPED" : "COMPLETED"},
                              {"time", text(job.outcome.seconds, "s")}};
      if (job.outcome.status == Outcome::Status::failed)
        entry["failures"] = {{{"failure", described(job)}, {"type", ""}}};
      suites[id.substr(0, id.rfind(':'))].push_back(std::move(entry));
    }
  nlohmann::json list = nlohmann::json::array();
  for (auto& [name, tests] : suites) list.push_back({{"name", name}, {"testsuite", std::move(tests)}});
  return {{"testsuites", std::move(list)}};
}

// Writes the failed cases that have a result as their own expectation.
int bless(const File& file, std::vector<Job>& jobs, std::ostream& out) {
  std::vector<Blessing> blessings;
  for (Job& job : jobs) {
    if (job.file != &file || job.outcome.status != Outcome::Status::failed) continue;
    // A crash or a misspelled section has no result to write.
    bool has_result = !job.outcome.got.empty() || job.outcome.problem.empty();
    if (!has_result) continue;
    out << "blessed " << described(job).substr(7);
    blessings.push_back({job.test, &job.outcome});
  }
  if (blessings.empty()) return 0;
  write_file(file.path, blessed(file.content, blessings));
  for (const Blessing& blessing : blessings)
    for (Job& job : jobs)
      if (job.test == blessing.test) job.outcome = {};
  return static_cast<int>(blessings.size());
}

}  // namespace

int run_text_tests(const TextTestOptions& options, const std::vector<Runner>& table, std::ostream& out) {
  auto start = Clock::now();
  std::vector<File> files;
  std::vector<TestCase> broken_cases;
  std::vector<Outcome> broken_outcomes;
  for (const fs::path& path : test_files(options.roots)) {
    File file{path, read_file(path), {}};
    try {
      file.cases = parse_cases(path, file.content);
      files.push_back(std::move(file));
    } catch (const Error& error) {
      broken_cases.push_back({.file = path, .line = 1, .name = "file"});
      broken_outcomes.push_back({.status = Outcome::Status::failed, .problem = error.what()});
    }
  }
  auto kept = [&](const TestCase& test) { return lower(test.id()).find(lower(options.filter)) != std::string::npos; };
  std::vector<Job> jobs, broken;
  for (const File& file : files)
    for (const TestCase& test : file.cases)
      if (kept(test)) jobs.push_back({&file, &test, {}});
  for (size_t i = 0; i < broken_cases.size(); ++i)
    if (kept(broken_cases[i])) broken.push_back({nullptr, &broken_cases[i], broken_outcomes[i]});

  if (options.isolate) {
    int width = options.jobs > 0 ? options.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    run_isolated(jobs, table, width, options.limit_s);
  } else {
    for (Job& job : jobs) job.outcome = run_case(*job.test, job.file->cases, table);
  }

  int blessings = 0;
  if (options.bless)
    for (const File& file : files) blessings += bless(file, jobs, out);

  int passed = 0, failed = 0;
  std::map<std::string, int> skipped;
  for (const auto* list : {&broken, &jobs})
    for (const Job& job : *list) {
      switch (job.outcome.status) {
        case Outcome::Status::passed: ++passed; break;
        case Outcome::Status::skipped: ++skipped[job.outcome.problem]; break;
        case Outcome::Status::failed: ++failed; out << described(job);
      }
    }
  int skips = 0;
  for (const auto& [reason, count] : skipped) {
    out << "skipped " << count << ": " << reason << "\n";
    skips += count;
  }
  out << "text tests: " << passed << " passed, " << failed << " failed, " << skips << " skipped";
  if (options.bless) out << ", " << blessings << " blessed";
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, " (%.1f s)\n", seconds_since(start));
  out << seconds;
  if (!options.report.empty())
    write_file(options.report,
               report_of(jobs, broken).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  return failed;
}

}  // namespace sator::test
