//===- reprise-memplan.cpp - Packs buffers into one arena -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory planner of the compiler as a program of its own: reads buffers
// with sizes and lifetimes, prints how small an arena holds them and how small
// it could be at best. What checks plans is in verify/, which knows nothing of
// the planner.
//
//===----------------------------------------------------------------------===//

#include "OtherFiles.h"
#include "SolveStep.h"
#include "reprise/Solver/Packing.h"
#include "reprise/Solver/StepText.h"
#include "runtime/base/FileKind.h"
#include "tools/command-line/CommandLine.h"
#include "verify/Verify.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>

using namespace reprise;
using namespace reprise::solver;

/// Steps of a search, in millions, if nothing is said of them.
static constexpr int64_t kWork = 3000;
/// The most that a number may be; what leaves room for arithmetic.
static constexpr int64_t kMost = int64_t(1) << 62;

/// The end of a file's name until all of it is written.
static constexpr const char *kPart = ".part";

namespace {
struct Options {
  std::string input, output, against;
  std::optional<int64_t> capacity;
  std::optional<int64_t> alignment, workInMillions;
  bool verify = false, solve = false;
  std::vector<int64_t> budgets;
};
} // namespace

static int fail(const std::string &message) {
  std::cerr << "reprise-memplan: error: " << message << '\n';
  return 1;
}

/// The same of a file, with the reason that the system gave last.
static int failTo(const char *what, const std::string &name) {
  std::string message = "cannot " + std::string(what) + " '" + name + "'";
  if (errno != 0)
    message += std::string(": ") + std::strerror(errno);
  return fail(message);
}

/// Reads a whole number from 1 on, up to what leaves room for arithmetic.
static bool parseNumber(std::string_view text, int64_t highest,
                        int64_t &number) {
  const char *end = text.data() + text.size();
  auto [rest, code] = std::from_chars(text.data(), end, number);
  return code == std::errc() && rest == end && number >= 1 && number <= highest;
}

static tools::Tool getTool() {
  using tools::Takes;
  tools::Tool tool;
  tool.name = "reprise-memplan";
  tool.overview =
      "Packs buffers into one arena as small as possible, and checks plans. "
      "FILE.csv ('-' reads standard input) has the columns id, lower, upper "
      "and size; a buffer is alive in [lower, upper). Prints the number of "
      "items, the peak (the arena's size), the bound (most bytes alive at one "
      "time; no arena is smaller), their ratio, and the time.";
  tool.input = "input";
  tool.usage = "FILE.csv [options]";
  tool.examples = {
      {"reprise-memplan buffers.csv -o plan.csv",
       "packs, and writes the same rows with a column offset"},
      {"reprise-memplan --verify plan.csv --against buffers.csv",
       "checks a plan of these rows, of this program or another"},
      {"reprise-memplan --verify proof.json",
       "checks what reprisec --certificate has written"},
      {"reprise-memplan --solve model.step --memory 1000000",
       "finds what a training step should keep, by every solver there is"},
  };
  tool.topics = {
      {"Options",
       {{"o", "file",
         "Write the same rows with a column offset; - is standard output",
         Takes::OutputFile},
        {"capacity", "n",
         "Bytes available: stop at the first plan that fits; the status is 2 "
         "if none is found"},
        {"alignment", "n",
         "Round offsets and sizes up to multiples of n bytes (1)"},
        {"work", "n",
         "Elementary steps to spend at most, in millions; the plan depends on "
         "this, but on no clock (3000)"},
        {"verify", "",
         "Check the column offset of FILE.csv instead of packing, or a "
         "certificate that the compiler wrote, with code that is not the "
         "planner's: it prints what holds, or the first fault",
         Takes::Nothing},
        {"against", "file",
         "With --verify: the rows must be those of this file",
         Takes::InputFile},
        {"solve", "",
         "Read a step (FILE.step) instead of rows, and print what each solver "
         "of plans finds: bytes at the peak, and seconds of replays",
         Takes::Nothing},
        {"memory",
         "n",
         "With --solve: bytes to find the fastest plan within; may be given "
         "again",
         Takes::Text,
         {},
         /*mayRepeat=*/true}}}};
  tool.isSame = [](const std::string &, const std::string &lhs,
                   const std::string &rhs) {
    int64_t left, right;
    return parseNumber(lhs, kMost, left) && parseNumber(rhs, kMost, right) &&
           left == right;
  };
  tools::addCommonOptions(tool);
  return tool;
}

/// Puts a value where it belongs, or says why it is none.
static std::optional<std::string> apply(const tools::Given &given,
                                        Options &options) {
  const std::string &name = given.option->name, &value = given.value;
  if (name == "verify")
    options.verify = true;
  else if (name == "solve")
    options.solve = true;
  else if (name == "o")
    options.output = value;
  else if (name == "against")
    options.against = value;
  else {
    int64_t number, highest = name == "capacity" ? kMost : kMost >> 22;
    if (!parseNumber(value, highest, number))
      return "option --" + name + ": needs a whole number from 1 to " +
             std::to_string(highest) + ", but got '" + value + "'";
    if (name == "capacity")
      options.capacity = number;
    else if (name == "memory")
      options.budgets.push_back(number);
    else if (name == "alignment")
      options.alignment = number;
    else
      options.workInMillions = number;
  }
  return std::nullopt;
}

/// Whether the options go together, and with the files that there are.
static std::optional<std::string> check(const Options &options) {
  if (options.input.empty())
    return "needs an input; see --help";
  std::error_code ignored;
  if (std::filesystem::equivalent(options.input, options.output, ignored))
    return "-o needs another file than the input '" + options.input + "'";
  if (std::filesystem::equivalent(options.input, options.output + kPart,
                                  ignored))
    return "-o needs another file than '" + options.output +
           "', which is written as the input '" + options.input + "' first";
  if (options.verify && !options.output.empty())
    return "--verify writes no plan, so it does not go with -o";
  if (!options.verify && !options.against.empty())
    return "--against needs --verify";
  if (options.solve &&
      (options.verify || options.capacity || !options.output.empty()))
    return "--solve finds plans of a step, so it does not go with --verify, "
           "--capacity and -o";
  if (!options.solve && !options.budgets.empty())
    return "--memory needs --solve";
  if (options.solve && options.alignment)
    return "--solve has the alignment that the step says, so it does not go "
           "with --alignment";
  if ((options.solve || options.verify) && options.workInMillions)
    return "--work is of packing, so it does not go with --solve and --verify";
  if (std::string refusal = tools::checkPlace(options.output); !refusal.empty())
    return "option -o: " + refusal;
  return std::nullopt;
}

/// Returns an exit status when there is nothing more to do.
static std::optional<int> parseOptions(int argc, char **argv,
                                       Options &options) {
  tools::Tool tool = getTool();
  tools::Words words;
  if (auto answer = tools::read(tool, {argv + 1, argv + argc}, words)) {
    if (answer->isError)
      return fail(answer->text);
    std::cout << answer->text;
    return 0;
  }
  for (const tools::Given &given : words.options)
    if (auto error = apply(given, options))
      return fail(*error);
  if (!words.inputs.empty())
    options.input = words.inputs.front().text;
  if (auto error = check(options))
    return fail(*error);
  return std::nullopt;
}

/// Prints the line of figures and returns the exit status.
static int report(std::FILE *out, size_t numItems, int64_t peak, int64_t bound,
                  const Options &options, const char *how) {
  double ratio = bound == 0 ? 1.0 : static_cast<double>(peak) / bound;
  // A few bytes of millions are lost among the ratio's digits.
  std::string above;
  if (peak > bound)
    above = " (" + std::to_string(peak - bound) +
            (peak - bound == 1 ? " byte" : " bytes") + " above)";
  std::fprintf(out, "%zu item%s  peak %lld  bound %lld  ratio %.5f%s  %s\n",
               numItems, numItems == 1 ? "" : "s", static_cast<long long>(peak),
               static_cast<long long>(bound), ratio, above.c_str(), how);
  if (!options.capacity || peak <= *options.capacity)
    return 0;
  std::string message = "the plan needs " + std::to_string(peak) +
                        " bytes, but the capacity is " +
                        std::to_string(*options.capacity);
  if (bound > *options.capacity)
    message += "; no plan fits: " + std::to_string(bound) +
               " bytes are alive at one time";
  fail(message);
  return 2;
}

/// Writes the plan, all or nothing: what was there before stays until all of
/// the new bytes are.
static bool writeFile(const std::string &name, const PackingProblem &problem,
                      const PackingSolution &solution) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(name, error);
  if (error)
    path = name; // Not there yet.
  bool isPlain = !std::filesystem::exists(path, error) ||
                 std::filesystem::is_regular_file(path, error);
  std::filesystem::path whole = path;
  if (isPlain)
    path += kPart;
  errno = 0;
  std::ofstream out(path);
  writePacking(out, problem, &solution);
  out.close();
  if (isPlain && out)
    std::filesystem::rename(path, whole, error);
  else if (isPlain) {
    int reason = errno;
    std::filesystem::remove(path, error);
    errno = reason;
  }
  return out && !error;
}

static int pack(const PackingProblem &problem, const Options &options) {
  PackingOptions effort;
  effort.capacity = options.capacity;
  effort.workLimit = options.workInMillions.value_or(kWork) * 1'000'000;
  auto start = std::chrono::steady_clock::now();
  PackingResult result = pack(problem, effort);
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  if (auto error = solver::verify(problem, result.solution))
    return fail("the plan is wrong: " + *error);

  bool toStdout = options.output == "-";
  if (toStdout) {
    writePacking(std::cout, problem, &result.solution);
  } else if (!options.output.empty() &&
             !writeFile(options.output, problem, result.solution)) {
    return failTo("write", options.output);
  }
  char how[80];
  std::snprintf(how, sizeof how, "by %s in %.3f s", result.method,
                time.count());
  return report(toStdout ? stderr : stdout, problem.items.size(),
                result.solution.peak, result.bound, options, how);
}

static bool readFile(const std::string &name, std::string &text) {
  errno = 0;
  std::ifstream file;
  if (name != "-")
    file.open(name, std::ios::binary);
  std::istream &in = name == "-" ? std::cin : file;
  if (!in)
    return false;
  char piece[1 << 16];
  while (in.read(piece, sizeof piece) || in.gcount() > 0)
    text.append(piece, in.gcount());
  return !in.bad(); // A folder, for one.
}

/// What a file is, if it is no text, or of another kind than `use`; empty if
/// that is not known.
static std::string explainFile(const std::string &name, tools::FileUse use) {
  std::error_code ignored; // Of pipes nothing is left to be read.
  if (!std::filesystem::is_regular_file(name, ignored))
    return "";
  std::string begin(1 << 16, 0);
  std::ifstream file(name, std::ios::binary);
  file.read(begin.data(), std::streamsize(begin.size()));
  begin.resize(size_t(file.gcount()));
  const runtime::FileKind *kind = runtime::findKind(
      std::string_view(begin).substr(0, runtime::kBytesOfKind),
      std::filesystem::file_size(name, ignored));
  runtime::Error refusal;
  if (kind)
    kind->refuse(name.c_str(), ", not text", refusal);
  else if (size_t zero = begin.find('\0'); zero != begin.npos)
    return "'" + name + "' is no text: its byte " + std::to_string(zero) +
           " is 0x00";
  else
    return tools::explainOtherFile(name, begin, use);
  return refusal.text;
}

static int failAt(const std::string &name, tools::FileUse use,
                  const TextError &error) {
  if (std::string other = explainFile(name, use); !other.empty())
    return fail(other);
  std::cerr << name << ':' << error.line << ':' << error.column
            << ": error: " << error.message << '\n';
  return 1;
}

static int failAt(const std::string &name, const std::string &text,
                  const verify::Fault &fault) {
  verify::Place place = verify::getPlace(text, fault.at);
  return failAt(name, tools::FileUse::Plan,
                TextError{place.line, place.column, fault.message});
}

/// The words of what was decided before: plan and bound are under that.
static std::string formatUnder(const verify::CertificateFigures &figures) {
  return figures.under.empty() ? "" : ", under " + figures.under;
}

/// What the bound takes as given: every plan that it speaks of obeys it.
static void printRules(const verify::CertificateFigures &figures) {
  std::printf("; under %lld rule%s to keep, %lld to drop, and %lld op%s that "
              "cannot run again\n",
              static_cast<long long>(figures.keepRules),
              figures.keepRules == 1 ? "" : "s",
              static_cast<long long>(figures.dropRules),
              static_cast<long long>(figures.fixedOps),
              figures.fixedOps == 1 ? "" : "s");
}

static void print(const verify::CertificateFigures &figures) {
  auto share = [](double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0.0;
  };
  std::printf("%s on %s: %lld layers%s\n", figures.model.c_str(),
              figures.machine.c_str(), static_cast<long long>(figures.layers),
              formatUnder(figures).c_str());
  std::printf("memory   peak %lld of %lld bytes%s, %.2f %%; %lld buffers at "
              "%lld positions share no byte\n",
              static_cast<long long>(figures.peak),
              static_cast<long long>(figures.budget),
              figures.isOfActivations ? " for activations" : "",
              share(figures.peak, figures.budget),
              static_cast<long long>(figures.buffers),
              static_cast<long long>(figures.positions));
  std::printf("replays  %lld, %.9g s a step of %lld micro-batch%s, %.4f %% of "
              "%.9g s\n",
              static_cast<long long>(figures.replays), figures.replay,
              static_cast<long long>(figures.microBatches),
              figures.microBatches == 1 ? "" : "es",
              share(figures.replay, figures.step), figures.step);
  std::printf(
      "bound    %.9g s, %.4f %% of a step below; %.6g ms per GiB, points: "
      "%lld",
      figures.bound,
      share(std::max(figures.replay - figures.bound, 0.0), figures.step),
      figures.secondsPerByte * 1e3 * (1 << 30),
      static_cast<long long>(figures.points));
  printRules(figures);
  std::printf("verified\n");
}

static void printPipeline(const verify::CertificateFigures &figures) {
  auto share = [](double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0.0;
  };
  std::printf("%s on %s: %lld layers on %zu stages, micro-batches: %lld\n",
              figures.model.c_str(), figures.machine.c_str(),
              static_cast<long long>(figures.layers), figures.stages.size(),
              static_cast<long long>(figures.microBatches));
  for (size_t s = 0; s < figures.stages.size(); ++s) {
    const verify::CertificateFigures &stage = figures.stages[s];
    std::string inFlight;
    for (int64_t count : stage.inFlight)
      inFlight += (inFlight.empty() ? "" : " and ") + std::to_string(count);
    std::printf("stage %zu  peak %lld of %lld bytes%s, in flight "
                "%s; replays %.9g s of a micro-batch, at least %.9g s",
                s, static_cast<long long>(stage.peak),
                static_cast<long long>(figures.budget),
                stage.base ? "" : " for activations", inFlight.c_str(),
                stage.replay, stage.bound);
    if (stage.slack > 0)
      std::printf(", %.9g s more for nothing", stage.slack);
    if (stage.beside > 0)
      std::printf("; %lld bytes of the peak are there once a step",
                  static_cast<long long>(stage.beside));
    std::printf("\n");
  }
  std::printf("schedule %.9g s\n", figures.span);
  std::printf(
      "bound    %.9g s, %.4f %% below", figures.spanBound,
      share(std::max(figures.span - figures.spanBound, 0.0), figures.span));
  printRules(figures);
  std::printf("verified\n");
}

/// A certificate is an object of JSON, or has the name of one; anything else is
/// rows.
static int verifyFile(const Options &options) {
  std::string text, input;
  if (!readFile(options.input, text))
    return failTo("read", options.input);
  size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos)
    return failAt(options.input, text,
                  {0, "needs a certificate, or rows with a header "
                      "'id,lower,upper,size,offset', but the file is empty"});
  std::string_view name = options.input, ending = ".json";
  bool isNamed = name.size() >= ending.size() &&
                 name.substr(name.size() - ending.size()) == ending;
  if (text[begin] == '{' || isNamed) {
    if (options.capacity || !options.against.empty())
      return fail("a certificate has its own budget and buffers, so it does "
                  "not go with --capacity and --against");
    verify::CertificateFigures figures;
    if (auto fault = verify::verifyCertificate(text, figures))
      return failAt(options.input, text, *fault);
    if (figures.stages.empty())
      print(figures);
    else
      printPipeline(figures);
    return 0;
  }
  verify::PackingFigures figures;
  if (auto fault =
          verify::verifyPacking(text, options.alignment.value_or(1), figures))
    return failAt(options.input, text, *fault);
  if (!options.against.empty()) {
    if (!readFile(options.against, input))
      return failTo("read", options.against);
    if (auto fault = verify::compareRows(text, input))
      return failAt(options.input, text, *fault);
  }
  return report(stdout, figures.items, figures.peak, figures.bound, options,
                "verified");
}

/// `in`, or a message that there is nothing to be read.
static int solveFile(std::istream &in, const Options &options) {
  StepGraph graph;
  std::optional<TextError> error = readStep(in, graph);
  if (in.bad())
    return failTo("read", options.input);
  if (error)
    return failAt(options.input, tools::FileUse::Step, *error);
  tools::solveStep(graph, options.budgets, std::cout);
  return 0;
}

static int run(int argc, char **argv) {
  Options options;
  if (auto status = parseOptions(argc, argv, options))
    return *status;

  if (options.verify)
    return verifyFile(options);

  errno = 0;
  std::ifstream file;
  if (options.input != "-") {
    file.open(options.input);
    if (!file)
      return failTo("read", options.input);
  }
  std::istream &in = options.input == "-" ? std::cin : file;
  if (options.solve)
    return solveFile(in, options);
  PackingProblem problem;
  problem.alignment = options.alignment.value_or(1);
  std::optional<PackingSolution> solution;
  std::optional<TextError> error = readPacking(in, problem, solution);
  if (in.bad()) // A folder, for one.
    return failTo("read", options.input);
  if (error)
    return failAt(options.input, tools::FileUse::Rows, *error);
  if (auto error = check(problem))
    return fail("'" + options.input + "': " + *error);
  return pack(problem, options);
}

int main(int argc, char **argv) {
  int status = run(argc, argv);
  errno = 0;
  if (std::cout.flush() && std::fflush(stdout) == 0)
    return status;
  return failTo("write", "-");
}
