//===- Driver.cpp - A fuzz target without a fuzzer ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hands each file of a folder to the target, as it is and with so much damage:
//
//   driver FOLDER [COPIES]
//
// The damage is the same in every run. Where the target dies, its input is
// left in the file FOLDER-input. A real fuzzer is linked in this file's place
// by utils/fuzz.
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

using Random = std::mt19937;

/// One to four bytes or stretches are changed, left out or put elsewhere.
static std::string damaged(std::string input, Random &random) {
  for (size_t changes = 1 + random() % 4; changes && !input.empty();
       --changes) {
    size_t at = random() % input.size();
    size_t count = std::min<size_t>(1 + random() % 12, input.size() - at);
    switch (random() % 5) {
    case 0:
      input[at] = char(random());
      break;
    case 1:
      input[at] = char(input[at] ^ (1 << random() % 8));
      break;
    case 2:
      input.erase(at, count);
      break;
    case 3:
      input.insert(random() % input.size(), input.substr(at, count));
      break;
    case 4:
      input.resize(at);
      break;
    }
  }
  return input;
}

static std::string input, leftBehind;

/// Writes what killed the target to a file, and dies of it.
static void leaveInput(int signal) {
  int file = open(leftBehind.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || write(file, input.data(), input.size()) < 0)
    _exit(1);
  raise(signal); // SA_RESETHAND: as if nobody had caught it.
}

static void run() {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(input.data()),
                         input.size());
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "needs a folder of inputs\n");
    return 2;
  }
  long copies = argc > 2 ? atol(argv[2]) : 0;
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(argv[1]))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    fprintf(stderr, "%s: no inputs\n", argv[1]);
    return 1;
  }
  leftBehind = std::filesystem::path(argv[1]).filename().string() + "-input";
  struct sigaction action = {};
  action.sa_handler = leaveInput;
  action.sa_flags = int(SA_RESETHAND);
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
    sigaction(signal, &action, nullptr);
  Random random(1);
  for (const std::filesystem::path &path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string whole(std::istreambuf_iterator<char>(file), {});
    input = whole;
    run();
    for (long i = 0; i < copies; ++i) {
      input = damaged(whole, random);
      run();
    }
  }
  printf("%zu inputs, %ld damaged copies of each\n", files.size(), copies);
  return 0;
}
