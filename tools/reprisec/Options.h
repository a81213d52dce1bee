//===- Options.h - What the command line says -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_OPTIONS_H
#define REPRISE_TOOLS_REPRISEC_OPTIONS_H

#include "tools/command-line/CommandLine.h"
#include "llvm/Support/CommandLine.h"
#include <memory>
#include <string>
#include <vector>

namespace reprise::driver {
namespace cl = llvm::cl;
using tools::Takes;

/// Options that the help shows together, in the order of their declaration.
struct Topic {
  struct Entry {
    cl::Option *option;
    Takes takes;
    std::vector<std::string> words; ///< Values that it may have.
  };

  std::string title;
  std::vector<Entry> entries = {};
};

/// Puts an option in a topic, and says what it takes.
struct in {
  in(Topic &topic, Takes takes = Takes::Text,
     std::vector<std::string> words = {})
      : topic(topic), takes(takes), words(std::move(words)) {}

  template <class Option>
  void apply(Option &option) const {
    topic.entries.push_back({&option, takes, words});
  }

  Topic &topic;
  Takes takes;
  std::vector<std::string> words;
};

/// A switch is on without a value.
struct on : in {
  on(Topic &topic) : in(topic, Takes::MaybeWord, {"true", "false"}) {}
};

/// Reads a whole number of at least 1.
struct CountParser : cl::parser<int> {
  using parser::parser;
  bool parse(cl::Option &option, llvm::StringRef name, llvm::StringRef text,
             int &value);
};

/// All options: its own, and one for each key of the description.
struct Options {
  Topic most{"Used most"}, program{"The program"},
      memory{"Memory and recomputation"},
      reports{"Reports (without -o or --emit nothing else is written)"},
      phases{"Phases of the compiler, and what is printed"};

  cl::opt<std::string> output{
      "o", cl::desc("Write the program here; - is standard output"),
      cl::value_desc("file"), in(most, Takes::OutputFile)};
  cl::opt<std::string> memoryBudget{
      "memory-budget",
      cl::desc("Recompute what makes the program need no more than this, "
               "parameters and optimizer included, for the least time: 24GiB"),
      cl::value_desc("bytes"), in(most)};
  enum class Explain { Nothing, Plan, Kernels };
  cl::opt<Explain> explain{
      "explain",
      cl::desc("Print why each value is kept or recomputed, and what it takes "
               "at the peak (plan, which is the default); or of each kernel "
               "for GPUs what it moves, and takes of the chip (kernels). "
               "Without -o or --emit nothing else is written"),
      cl::ValueOptional,
      cl::value_desc("plan|kernels"),
      cl::values(clEnumValN(Explain::Plan, "plan", ""),
                 clEnumValN(Explain::Kernels, "kernels", ""),
                 clEnumValN(Explain::Plan, "", "")),
      cl::init(Explain::Nothing),
      in(most, Takes::MaybeWord, {"plan", "kernels"})};
  bool explainsPlan() const { return explain == Explain::Plan; }
  cl::opt<std::string> report{
      "report",
      cl::desc("Write a page with the plan here, to be opened in a browser; "
               "it shows other plans for the same step, too. Without -o or "
               "--emit nothing else is written"),
      cl::value_desc("file"), in(most, Takes::OutputFile)};
  cl::opt<std::string> target{
      "target",
      cl::desc("What the program runs on: cpu (default), cuda or cpu,cuda"),
      cl::value_desc("list"), cl::init("cpu"),
      in(most, Takes::List, {"cpu", "cuda", "cpu,cuda"})};

  cl::opt<std::string> cpu{
      "cpu",
      cl::desc("The one processor to compile kernels for, or native (default "
               "x86-64-v3 and x86-64-v4)"),
      cl::value_desc("name"), cl::init("x86-64-v3"),
      in(program, Takes::Text, {"native", "x86-64-v3", "x86-64-v4"})};
  cl::opt<std::string> cudaArch{
      "cuda-arch",
      cl::desc("With --target=cuda: the chips (sm_80,sm_90a,sm_100a,sm_120). "
               "The program has PTX for the oldest, and machine code for each "
               "if ptxas is found"),
      cl::value_desc("list"), cl::init("sm_80,sm_90a,sm_100a,sm_120"),
      in(program, Takes::List)};
  cl::opt<std::string> biasGradients{
      "cuda-bias-gradients",
      cl::desc("With --target=cuda: gradients of biases by kernels (default), "
               "or by the GEMMs that make those of weights"),
      cl::value_desc("kernel|product"), cl::init("kernel"),
      in(program, Takes::Word, {"kernel", "product"})};
  cl::opt<std::string> overlap{
      "overlap",
      cl::desc("on (default on GPUs) or off (on processors): ranks compute "
               "while they meet, to the same bits"),
      cl::value_desc("on|off"), cl::init("on"),
      in(program, Takes::Word, {"on", "off"})};
  cl::opt<std::string> inference{
      "inference",
      cl::desc("on (default) or off: compile validation and sampling too"),
      cl::value_desc("on|off"), cl::init("on"),
      in(program, Takes::Word, {"on", "off"})};
  cl::opt<std::string> runtime{
      "runtime", cl::desc("The runtime archive (default beside this program)"),
      cl::value_desc("file"), in(program, Takes::InputFile)};

  cl::opt<std::string> activationBudget{
      "activation-budget",
      cl::desc("As --memory-budget, for what lives within a step alone"),
      cl::value_desc("bytes"), in(memory)};
  cl::opt<std::string> costTable{
      "cost-table",
      cl::desc("With a report or a budget: how fast the machine is: cpu, "
               "a100, h100, h200, b200, or a JSON file (default: cpu, but "
               "h100 with --target=cuda)"),
      cl::value_desc("machine|file"),
      in(memory, Takes::Text, {"cpu", "a100", "h100", "h200", "b200"})};
  cl::opt<std::string> certificate{
      "certificate",
      cl::desc("With a budget: write here what proves the plan and its bound, "
               "for reprise-memplan --verify"),
      cl::value_desc("file"), in(memory, Takes::OutputFile)};

  cl::opt<std::string> pareto{
      "pareto",
      cl::desc("Write the plans for all budgets here, as JSON: peaks and "
               "times; - is standard output"),
      cl::value_desc("file"), in(reports, Takes::OutputFile)};
  cl::opt<std::string> savePlan{
      "save-plan",
      cl::desc("Write the effective plan here, as a file for --recompute-plan; "
               "- is standard output"),
      cl::value_desc("file"), in(reports, Takes::OutputFile)};
  cl::opt<std::string> planJSON{
      "plan-json",
      cl::desc("Write the plan as JSON here; - is standard output"),
      cl::value_desc("file"), in(reports, Takes::OutputFile)};
  cl::opt<std::string> trace{
      "trace",
      cl::desc("Write the planned step here as a timeline in Chrome's trace "
               "format, which Perfetto shows"),
      cl::value_desc("file"), in(reports, Takes::OutputFile)};
  cl::opt<std::string> dot{
      "dot",
      cl::desc("Write a layer and what is decided on its values here as a "
               "graph in DOT"),
      cl::value_desc("file"), in(reports, Takes::OutputFile)};
  cl::opt<std::string> dotLayer{
      "dot-layer", cl::desc("With --dot: the layer (0)"),
      cl::value_desc("layer"), cl::init("0"), in(reports)};
  cl::opt<std::string> accounting{
      "accounting",
      cl::desc("megatron: report beside the plan what Megatron's own scheme "
               "would keep for the same options"),
      cl::value_desc("scheme"), in(reports, Takes::Word, {"megatron"})};

  cl::opt<std::string> emit{"emit",
                            cl::desc("Stop early and write nn, joint, remat, "
                                     "kernels, rt, llvm, gpu, nvvm, "
                                     "ptx, cubin or obj instead of a program"),
                            cl::value_desc("phase"),
                            in(phases, Takes::Word,
                               {"nn", "joint", "remat", "kernels", "rt", "llvm",
                                "gpu", "nvvm", "ptx", "cubin", "obj"})};
  cl::opt<std::string> from{
      "from",
      cl::desc("The input is the IR of this phase: nn, joint, remat, kernels, "
               "rt, llvm, gpu or nvvm"),
      cl::value_desc("phase"),
      in(phases, Takes::Word,
         {"nn", "joint", "remat", "kernels", "rt", "llvm", "gpu", "nvvm"})};
  cl::opt<bool> quiet{"quiet", cl::desc("Do not print the plan"), on(phases)};
  cl::opt<bool> verbose{
      "verbose", cl::desc("Print which keys of the model's file mean nothing"),
      on(phases)};
  cl::opt<bool> printKeys{"print-keys",
                          cl::desc("Print the table of all keys and exit"),
                          cl::Hidden, on(phases)};

  Options();

  /// Reads the command line; keys may be spelt with dashes or underscores, as
  /// in a description. Ends the program after --help, --version and
  /// --completion, and after an error.
  void parse(int argc, char **argv);

  /// The first report of the plan that is asked for, "--explain"; or empty.
  llvm::StringRef getReport() const;

  /// Whether a report is asked for that compares plans for the same step.
  bool comparesPlans() const { return explainsPlan() || !report.empty(); }

  /// Whether a report has what the stages of a pipeline need.
  bool describesStages() const { return comparesPlans() || !planJSON.empty(); }

  /// The command line as it was given, and as it would be for another plan:
  /// the same description and keys but those of recompute, and no outputs.
  std::string getCommand() const;
  /// The command that this is, but for an option that has a value.
  std::string getCommandWithout(const llvm::cl::Option &option) const;
  std::string getCommand(llvm::ArrayRef<std::string> recompute) const;

  /// The value of a key that was given as an option of this name, or null.
  const std::string *getKey(llvm::StringRef name) const;

  /// The options that name files to be written, and these files or "", in the
  /// order of the help.
  std::vector<std::pair<std::string, std::string>> getOutputs() const;

  std::string input; ///< The description or IR.
  tools::Words words;
  std::string path; ///< Of this program, as it was called.

  /// One for each name of a key.
  std::vector<std::unique_ptr<cl::opt<std::string>>> keys;
  std::vector<std::string> keyNames;
  std::vector<bool> isRecomputeKey;

private:
  std::vector<const Topic *> getTopics() const {
    return {&most, &program, &memory, &reports, &phases};
  }
  void addKeys();
  void addForeign();
  void checkKeys() const;
  void addTopic(const Topic &topic);

  tools::Tool tool;
};

/// Prints `error: message`; 1, for `main` to return.
int fail(const llvm::Twine &message);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_OPTIONS_H
