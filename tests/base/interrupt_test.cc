#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

namespace sator {
namespace {

TEST(Interrupt, RemovesWhatIsBeingWrittenAndEndsWithStatus1) {
  fs::path folder = fs::temp_directory_path() / text("sator-interrupt-", static_cast<int64_t>(::getpid()));
  fs::create_directories(folder);
  pid_t pid = ::fork();
  if (pid == 0) {
    if (!::freopen("/dev/null", "w", stderr)) ::_exit(2);
    end_on_interrupt();
    RemoveOnInterrupt guard(folder / "partial");
    write_file(folder / "partial", "half");
    {
      RemoveOnInterrupt done(folder / "whole");
    }
    write_file(folder / "whole", "all");
    ::raise(SIGINT);
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_FALSE(fs::exists(folder / "partial"));
  EXPECT_TRUE(fs::exists(folder / "whole"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sator
