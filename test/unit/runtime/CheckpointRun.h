//===- CheckpointRun.h - Runs of the toy model that save --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_CHECKPOINTRUN_H
#define REPRISE_TEST_UNIT_RUNTIME_CHECKPOINTRUN_H

#include "TestFiles.h"
#include "TrainingRun.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/file.h>
#include <sys/resource.h>

namespace reprise::runtime::test {

/// Runs that write into folders of one folder.
class Checkpoints : public Training {
protected:
  void SetUp() override {
    Training::SetUp();
    // Measuring takes longer than these runs.
    always = {"--peak-flops=1e9"};
    // Who runs tests may have them ignored.
    for (int each : {SIGINT, SIGHUP})
      signal(each, SIG_DFL);
  }

  std::string path(const std::string &name) const { return folder.path + name; }

  Outcome save(const std::string &name, int steps,
               std::vector<std::string> args = {}) {
    args.insert(args.end(),
                {"--save", path(name), "--steps", std::to_string(steps)});
    return train(args);
  }
  Outcome train(std::vector<std::string> args) {
    args.insert(args.end(), always.begin(), always.end());
    return Training::train(args);
  }

  /// As `save`, while a file has at most so many bytes, as on a full disk.
  Outcome saveInto(uint64_t bytes, const std::string &name, int steps,
                   std::vector<std::string> args) {
    rlimit old = {};
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    rlimit small = {rlim_t(bytes), old.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    Outcome outcome = save(name, steps, std::move(args));
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    return outcome;
  }

  /// Goes on with `name`, whose step 1 is saved, to step 9, and finds no room
  /// for what it saves each third: it goes on, tries again, and ends with the
  /// good one. `who` found none. Returns the refusal.
  std::string expectTriedAgain(const std::string &name, uint64_t bytes,
                               const std::string &who) {
    Outcome outcome =
        saveInto(bytes, name, 9, {"--resume=auto", "--save-interval=3"});
    for (auto [step, then] :
         {std::pair<std::string, std::string>(
              "3", "training goes on, and step 6 is saved next"),
          {"6", "training goes on, and step 9 is saved next"},
          {"9", "it is tried once more"}})
      EXPECT_NE(outcome.out.find(
                    "{\"event\":\"note\",\"note\":\"cannot save step " + step +
                    " in '" + path(name + "/step-0000000" + step) +
                    "': " + who + "File too large; " + then + "\"}"),
                outcome.out.npos)
          << outcome.out;
    EXPECT_EQ(list(name), "LATEST step-00000001 ");
    return refusal(outcome);
  }

  /// Why a run ended with status 1, without the name of the folder.
  std::string refusal(const Outcome &outcome) {
    EXPECT_EQ(outcome.status, 1);
    std::string text = outcome.err;
    const std::string start = "train: error: ";
    if (text.rfind(start, 0) == 0)
      text.erase(0, start.size());
    for (size_t at; (at = text.find(folder.path)) != text.npos;)
      text.erase(at, folder.path.size());
    return text.substr(0, text.find('\n'));
  }

  /// The names in a folder, sorted.
  std::string list(const std::string &name) const {
    std::set<std::string> names;
    for (auto &entry : std::filesystem::directory_iterator(path(name)))
      names.insert(entry.path().filename().string());
    std::string text;
    for (const std::string &each : names)
      text += each + " ";
    return text;
  }

  /// The files that are not the same in two folders.
  std::string different(const std::string &a, const std::string &b) const {
    std::string text;
    if (list(a) != list(b))
      text = list(a) + "but " + list(b);
    for (auto &entry : std::filesystem::directory_iterator(path(a)))
      if (readFile(entry.path()) !=
          readFile(path(b) + "/" + entry.path().filename().string()))
        text += entry.path().filename().string() + " ";
    return text;
  }

  /// Publishes embedding and output side by side, as columns of one tensor.
  void publishAsParts() {
    states.assign(toy.model.states, toy.model.states + toy.model.numStates);
    for (RepriseState &state : states) {
      bool isSecond = !strcmp(state.name, "output");
      if (!strcmp(state.name, "bias")) {
        state.hubName = "transformer.h.0.attn.c_attn.bias";
      } else {
        state.hubName = "transformer.h.0.attn.c_attn.weight";
        state.part = isSecond, state.parts = 2;
      }
    }
    toy.model.states = states.data();
  }

  Folder folder;
  std::vector<std::string> always;
  std::vector<RepriseState> states;
};

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_CHECKPOINTRUN_H
