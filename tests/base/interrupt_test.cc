#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/temporary.h"
#include "temp_folder.h"

namespace sator {
namespace {

/// The exit status of a process that does `work` and then waits; 1000 + the signal that killed it.
int status_of(const std::function<void()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!::freopen("/dev/null", "w", stderr)) ::_exit(2);
    work();
    for (int i = 0; i < 100; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(Interrupt, RemovesWhatIsTemporaryAndEndsWithTheSignalsStatus) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    TempFolder folder;
    EXPECT_EQ(status_of([&] {
                end_on_interrupt();
                RemoveOnInterrupt guard(folder.path() / "partial");
                write_file(folder.path() / "partial", "half");
                {
                  RemoveOnInterrupt done(folder.path() / "whole");
                }
                write_file(folder.path() / "whole", "all");
                const TemporaryFolder temporary(folder.path());
                write_file(temporary.path() / "below/x", "x");
                ::kill(::getpid(), signal);
                std::this_thread::sleep_for(std::chrono::seconds(10));
              }),
              128 + signal);
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator(folder.path())) left.push_back(entry.path().filename());
    EXPECT_EQ(left, std::vector<std::string>{"whole"});
  }
}

TEST(Interrupt, WaitsForStepsThatBelongTogether) {
  TempFolder folder;
  EXPECT_EQ(status_of([&] {
              end_on_interrupt();
              {
                HoldInterrupts hold;
                ::kill(::getpid(), SIGINT);
                std::this_thread::sleep_for(std::chrono::milliseconds(200));
                write_file(folder.path() / "second", "x");
              }
              std::this_thread::sleep_for(std::chrono::seconds(10));
            }),
            130);
  EXPECT_TRUE(fs::exists(folder.path() / "second"));
}

TEST(Interrupt, ASecondOneEndsAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(status_of([] {
              end_on_interrupt();
              HoldInterrupts hold;  // as if what the first waits for never came
              ::kill(::getpid(), SIGINT);
              std::this_thread::sleep_for(std::chrono::milliseconds(300));
              ::kill(::getpid(), SIGINT);
              std::this_thread::sleep_for(std::chrono::seconds(20));
            }),
            1000 + SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Interrupt, WhatIsIgnoredFromTheStartStaysSo) {
  EXPECT_EQ(status_of([] {
              ::signal(SIGHUP, SIG_IGN);  // nohup
              end_on_interrupt();
              ::kill(::getpid(), SIGHUP);
              std::this_thread::sleep_for(std::chrono::milliseconds(200));
              ::_exit(7);
            }),
            7);
}

}  // namespace
}  // namespace sator
