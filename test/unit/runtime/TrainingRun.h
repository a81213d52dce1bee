//===- TrainingRun.h - A run of the toy model -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_TRAININGRUN_H
#define REPRISE_TEST_UNIT_RUNTIME_TRAININGRUN_H

#include "ToyModel.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <regex>
#include <string>
#include <unistd.h>

namespace reprise::runtime::test {

/// All bytes of a file.
inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What a run ended with and wrote.
struct Outcome {
  int status;
  std::string out, err;

  /// The JSON lines of the steps without the times.
  std::string steps() const {
    std::string text;
    std::regex line("\\{\"step\".*"), times(",\"ms\":.*");
    for (std::sregex_iterator i(out.begin(), out.end(), line), end; i != end;
         ++i)
      text += std::regex_replace(i->str(), times, "") + "\n";
    return text;
  }

  double loss(int64_t step) const {
    std::string key = "{\"step\":" + std::to_string(step) + ",\"loss\":";
    size_t at = out.find(key);
    EXPECT_NE(at, std::string::npos) << key << " in " << out << err;
    return at == std::string::npos ? 0 : atof(out.c_str() + at + key.size());
  }
};

/// Runs of the toy model on a text of 13800 bytes.
class Training : public testing::Test {
protected:
  void SetUp() override {
    std::ofstream file(data, std::ios::binary);
    for (int i = 0; i < 300; ++i)
      file << "the quick brown fox jumps over the lazy dog " << i % 10 << "\n";
  }
  void TearDown() override {
    remove(data.c_str());
    remove(dump.c_str());
  }

  Outcome run(std::vector<std::string> args, const RepriseModel &model) {
    return run(std::move(args), std::vector<const RepriseModel *>{&model});
  }
  Outcome run(std::vector<std::string> args,
              const std::vector<const RepriseModel *> &models) {
    args.insert(args.begin(), "bin/train");
    std::vector<char *> argv;
    for (std::string &arg : args)
      argv.push_back(arg.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int status = repriseMain(int(argv.size()), argv.data(), models.data(),
                             int32_t(models.size()));
    Outcome outcome = {status, testing::internal::GetCapturedStdout(),
                       testing::internal::GetCapturedStderr()};
    signal(SIGHUP, SIG_DFL); // Unless a test has it ignored.
    return outcome;
  }
  Outcome train(std::vector<std::string> args) {
    args.insert(args.begin(), {"--data", data, "--log-format=json"});
    return run(args, toy.model);
  }

  /// Tests may run side by side, each in a process of its own.
  const std::string stem =
      testing::TempDir() + "reprise-training-" + std::to_string(getpid());
  const std::string data = stem + ".txt";
  const std::string dump = stem + ".safetensors";
  ToyModel toy;
};

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_TRAININGRUN_H
