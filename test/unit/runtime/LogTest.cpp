//===- LogTest.cpp - What a run shows -------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TrainingRun.h"

#include "runtime/base/Text.h"
#include "runtime/show/Log.h"

#include <cmath>
#include <fcntl.h>
#include <poll.h>
#include <sstream>
#include <sys/ioctl.h>

using namespace reprise::runtime::test;

namespace {

/// The numbers of the steps that a log has.
std::vector<int> stepsIn(const Outcome &outcome) {
  std::vector<int> steps;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    int step = 0, all = 0;
    if (sscanf(line.c_str(), "{\"step\":%d", &step) == 1 ||
        sscanf(line.c_str(), "step %d/%d", &step, &all) == 2)
      steps.push_back(step);
  }
  return steps;
}

/// Puts another file in a descriptor's place for a while.
class Redirected {
public:
  Redirected(int descriptor, int file)
      : descriptor(descriptor), kept(dup(descriptor)) {
    EXPECT_EQ(dup2(file, descriptor), descriptor);
  }
  Redirected(const Redirected &) = delete;
  Redirected &operator=(const Redirected &) = delete;
  ~Redirected() {
    dup2(kept, descriptor);
    close(kept);
  }

private:
  int descriptor, kept;
};

/// A terminal of so many columns, whose screen is read at the end.
class Terminal {
public:
  explicit Terminal(unsigned short columns)
      : master(posix_openpt(O_RDWR | O_NOCTTY)) {
    EXPECT_GE(master, 0);
    EXPECT_EQ(grantpt(master), 0);
    EXPECT_EQ(unlockpt(master), 0);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    EXPECT_GE(slave, 0);
    winsize size = {24, columns, 0, 0};
    EXPECT_EQ(ioctl(slave, TIOCSWINSZ, &size), 0);
  }
  Terminal(const Terminal &) = delete;
  Terminal &operator=(const Terminal &) = delete;
  ~Terminal() {
    close(slave);
    close(master);
  }

  std::string shown() const {
    std::string text;
    char bytes[512];
    pollfd ready = {master, POLLIN, 0};
    while (poll(&ready, 1, /*milliseconds=*/100) == 1) {
      ssize_t count = read(master, bytes, sizeof(bytes));
      if (count <= 0)
        break;
      text.append(bytes, size_t(count));
    }
    return text;
  }

  int master, slave = -1;
};

class Log : public Training {
protected:
  /// Four steps on a terminal, in text.
  std::string onTerminal(unsigned short columns) {
    Terminal terminal(columns);
    setenv("TERM", "dumb", 1);
    std::vector<std::string> args = {"train", "--data", data, "--steps=4",
                                     "--peak-flops=1e12"};
    std::vector<char *> argv;
    for (std::string &arg : args)
      argv.push_back(arg.data());
    fflush(stdout);
    {
      Redirected out(STDOUT_FILENO, terminal.slave);
      EXPECT_EQ(runProgram(int(argv.size()), argv.data(), toy.model), 0);
    }
    return terminal.shown();
  }

  /// Four steps with a terminal as standard error; what that shows.
  std::string bar(unsigned short columns, const char *kind) {
    Terminal terminal(columns);
    setenv("TERM", kind, 1);
    std::vector<std::string> args = {"train", "--data", data, "--steps=4",
                                     "--log-format=json"};
    std::vector<char *> argv;
    for (std::string &arg : args)
      argv.push_back(arg.data());
    testing::internal::CaptureStdout();
    {
      Redirected error(STDERR_FILENO, terminal.slave);
      EXPECT_EQ(runProgram(int(argv.size()), argv.data(), toy.model), 0);
    }
    testing::internal::GetCapturedStdout();
    return terminal.shown();
  }
};

} // namespace

TEST_F(Log, IntervalLeavesStepsOutButNotTheFirstAndTheLast) {
  EXPECT_EQ(stepsIn(train({"--steps=10", "--log-interval=4"})),
            (std::vector<int>{1, 4, 8, 10}));
  EXPECT_EQ(stepsIn(run({"--data", data, "--steps=4", "--log-interval=99"},
                        toy.model)),
            (std::vector<int>{1, 4}));
  EXPECT_EQ(stepsIn(train({"--steps=3"})), (std::vector<int>{1, 2, 3}));
}

TEST_F(Log, AnInterruptedRunShowsItsLastStep) {
  toy.addLaunch(toy.update, "signal",
                [](void *const *b, const int64_t *, int64_t, int64_t) {
                  // The correction of the third step.
                  if (*f32(b, 0) > 0.25f)
                    raise(SIGTERM);
                },
                1, {toy.model.biasCorrection1});
  toy.finish();
  Outcome outcome = train({"--log-interval=10"});
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_EQ(stepsIn(outcome), (std::vector<int>{1, 3}));
  EXPECT_NE(outcome.out.find("{\"event\":\"interrupted\",\"steps\":3}"),
            std::string::npos);
}

// All that the Unicode Standard calls ill-formed, byte for byte, and what only
// looks like it.
TEST_F(Log, JsonIsUtf8WhateverFilesAreCalled) {
  const std::pair<std::string, std::string> names[] = {
      {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\xb3", ""},
      {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", ""},
      {"a\xff\"\xe4z", "a\\ufffd\\\"\\ufffdz"},
      {"\xc0\xaf\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"},
      {"\xed\xa0\x80\xf4\x90", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"},
      {"\xe2\x82", "\\ufffd\\ufffd"}};
  for (auto &[name, shown] : names) {
    std::string path = stem + name;
    ASSERT_EQ(rename(data.c_str(), path.c_str()), 0);
    Outcome outcome =
        run({"--data", path, "--steps=1", "--log-format=json"}, toy.model);
    ASSERT_EQ(rename(path.c_str(), data.c_str()), 0);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::string expected =
        "\"data\":[\"" + stem + (shown.empty() ? name : shown) + "\"]";
    EXPECT_NE(outcome.out.find(expected), std::string::npos) << outcome.out;
  }
}

TEST_F(Log, ARunThatIsLongerThanItsScheduleIsNoted) {
  const std::string note =
      "--steps 3 is more than train_iters, 2: from step 3 on the learning rate "
      "stays min_lr, 0.001";
  toy.model.trainIters = toy.model.decayIters = 2;
  toy.model.minLearningRate = 0.001;
  for (int32_t style : {REPRISE_LR_LINEAR, REPRISE_LR_COSINE}) {
    toy.model.lrDecayStyle = style;
    EXPECT_NE(train({"--steps=3"}).out.find(",\"note\":\"" + note + "\"}\n"),
              std::string::npos);
    EXPECT_NE(run({"--data", data, "--steps=3"}, toy.model)
                  .out.find("\nnote     " + note + "\nstep 1/3 "),
              std::string::npos);
    EXPECT_EQ(train({"--steps=2"}).out.find("note"), std::string::npos);
  }
  toy.model.lrDecayStyle = REPRISE_LR_CONSTANT;
  EXPECT_EQ(train({"--steps=3"}).out.find("note"), std::string::npos);
  toy.model.lrDecayStyle = REPRISE_LR_LINEAR;
  toy.model.trainIters = 4;
  EXPECT_NE(train({"--steps=3"}).out.find("more than lr_decay_iters, 2:"),
            std::string::npos);
}

TEST(ShownNumbers, OfNoNumberTheSignIsNotShown) {
  EXPECT_STREQ(reprise::runtime::shown(-NAN).chars, "nan");
  EXPECT_STREQ(reprise::runtime::shown(-INFINITY).chars, "-inf");
  EXPECT_STREQ(reprise::runtime::shown(0.5).chars, "0.5");
}

TEST_F(Log, TimeOfValidationAndSamplingCounts) {
  reprise::runtime::ShowOptions options;
  options.json = true;
  options.steps = 4;
  reprise::runtime::Log log(toy.model, options);
  reprise::runtime::Error error;
  reprise::runtime::StepReport report = {};
  report.seconds = 1;
  testing::internal::CaptureStdout();
  log.step(report, error);
  log.validation({1, 2.5, 3, 4.0}, error);
  log.sample({1, "", "", nullptr, 0, 6.0}, error);
  report.step = 1;
  log.step(report, error);
  log.end(2, 0, -1, error);
  std::string out = testing::internal::GetCapturedStdout();
  EXPECT_NE(out.find("\"seconds_left\":3}"), out.npos) << out;
  EXPECT_NE(out.find("\"seconds_left\":12}"), out.npos) << out;
  EXPECT_NE(out.find("\"steps\":2,\"seconds\":12,"), out.npos) << out;
}

// A run without steps has no rates, and of its memory there is little to say.
TEST_F(Log, OfNoStepsNothingIsShown) {
  Outcome outcome = run({"--steps=0"}, toy.model);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("done: 0 steps in 0.0 s; memory high-water"),
            std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.out.find("in use"), std::string::npos) << outcome.out;
}

// A file that is open for reading only stands for a disk that is full.
TEST_F(Log, ALogThatCannotBeWrittenIsAnError) {
  for (std::vector<std::string> args :
       {std::vector<std::string>{"train", "--data", data, "--steps=2"},
        {"train", "--help"},
        {"train", "--version"}}) {
    std::vector<char *> argv;
    for (std::string &arg : args)
      argv.push_back(arg.data());
    fflush(stdout);
    int file = open(data.c_str(), O_RDONLY);
    int status = 0;
    testing::internal::CaptureStderr();
    {
      Redirected out(STDOUT_FILENO, file);
      status = runProgram(int(argv.size()), argv.data(), toy.model);
      clearerr(stdout);
    }
    close(file);
    EXPECT_EQ(status, 1);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "train: error: cannot write the log: Bad file descriptor\n");
  }
}

// What does not fit is left out piece by piece, and no word is cut.
TEST_F(Log, StepLinesFitTheTerminal) {
  int probe = posix_openpt(O_RDWR | O_NOCTTY);
  if (probe < 0)
    GTEST_SKIP() << "needs a pseudo-terminal, but this machine gives none";
  close(probe);
  toy.model.modelFlops = 1e6;
  auto stepLines = [&](unsigned short columns) {
    std::istringstream lines(onTerminal(columns));
    std::vector<std::string> found;
    for (std::string line; std::getline(lines, line);)
      if (line.rfind("step ", 0) == 0 && isdigit(line[5]))
        found.push_back(line.substr(0, line.find('\r')));
    EXPECT_EQ(found.size(), 4u);
    return found;
  };
  const std::string number = "[-+.0-9e]+";
  const std::string start = "step [1-4]/4  loss " + number;
  const std::pair<unsigned short, std::string> expected[] = {
      {200, start + "  norm " + number + " +lr " + number + "  " + number +
                " ms  " + number + " tokens/s  mfu " + number +
                "%(  0:00 left)?"},
      {79, start + "  norm " + number + " +lr " + number + "  " + number +
               " ms  " + number + " tokens/s"},
      {68, start + "  norm " + number + " *  " + number + " ms  " + number +
               " tokens/s"},
      {30, start}};
  for (auto &[columns, pattern] : expected)
    for (const std::string &line : stepLines(columns)) {
      EXPECT_TRUE(std::regex_match(line, std::regex(pattern)))
          << columns << ": " << line;
      EXPECT_LT(line.size(), columns);
    }
}

// The last line has two parts, which stand below one another where they have no
// room side by side; both stay, as scripts read them.
TEST_F(Log, TheLastLineFitsTheTerminal) {
  int probe = posix_openpt(O_RDWR | O_NOCTTY);
  if (probe < 0)
    GTEST_SKIP() << "needs a pseudo-terminal, but this machine gives none";
  close(probe);
  const std::string time = "done: 4 steps in [0-9.]+ s, [0-9.]+ GFLOP/s";
  const std::string memory =
      "memory high-water [0-9,]+ bytes of [0-9,]+ planned";
  auto end = [&](unsigned short columns) {
    std::string text = onTerminal(columns);
    std::string line = text.substr(text.find("done: "));
    return line.substr(0, line.find_last_not_of("\r\n") + 1);
  };
  std::string wide = end(200);
  EXPECT_TRUE(std::regex_match(wide, std::regex(time + "; " + memory))) << wide;
  // The last column stays free.
  for (size_t columns : {wide.size(), size_t(60)}) {
    std::string narrow = end(static_cast<unsigned short>(columns));
    EXPECT_TRUE(std::regex_match(narrow, std::regex(time + "\r\n" + memory)))
        << columns << ": " << narrow;
  }
}

TEST_F(Log, TheProgressBarFitsTheTerminal) {
  // A chroot may have none.
  int probe = posix_openpt(O_RDWR | O_NOCTTY);
  if (probe < 0)
    GTEST_SKIP() << "needs a pseudo-terminal, but this machine gives none";
  close(probe);
  std::string wide = bar(200, "xterm");
  EXPECT_NE(wide.find("\r\033[K[" + std::string(10, '=') + ">" +
                      std::string(29, ' ') + "] 1/4  25%  "),
            std::string::npos)
      << wide;
  std::string narrow = bar(40, "xterm");
  EXPECT_NE(narrow.find("\r\033[K[====>"), std::string::npos) << narrow;
  std::string tiny = bar(12, "xterm");
  EXPECT_NE(tiny.find("\r\033[K1/4  25%  0\r\033[K2/4"), std::string::npos)
      << tiny;
  for (auto &[columns, text] : {std::pair(40, narrow), std::pair(12, tiny)})
    for (size_t begin = 0, end; begin < text.size(); begin = end + 4) {
      end = std::min(text.find("\r\033[K", begin), text.size());
      EXPECT_LT(int(end - begin), columns) << text;
    }
  EXPECT_EQ(bar(80, "dumb"), "");
  EXPECT_EQ(bar(80, ""), "");
}
