//===- reprise-compare-dumps.cpp - One run against another ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Usage: reprise-compare-dumps HAVE.safetensors WANT.safetensors
//                              [--tolerance=1e-5] [--norms]
//                              [--first-inputs]
//
// Compares what two programs that were compiled from one description wrote with
// --dump: loss, norm and gradients by their largest element, parameters and
// moments by their norm. What they were given has to be the same; with
// --first-inputs the first has only been given some of its micro-batches, as a
// rank of several has. With --norms
// gradients are compared by their norm: for bf16, of which single elements are
// rounding in any order of sums. With --tolerance=0 all bits are compared, also
// of what is as small as rounding, and the signs of zeros.
//
//===----------------------------------------------------------------------===//

#include "Dump.h"
#include "test/common/Words.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace reprise::test;
namespace cl = llvm::cl;

static cl::OptionCategory category("reprise-compare-dumps options");
static cl::opt<std::string> haveFile(cl::Positional, cl::Required,
                                     cl::desc("<dump>"), cl::cat(category));
static cl::opt<std::string> wantFile(cl::Positional, cl::Required,
                                     cl::desc("<dump>"), cl::cat(category));
static cl::opt<bool> byNorm("norms",
                            cl::desc("Compare gradients by their norm, too"),
                            cl::cat(category));
static cl::opt<double> tolerance("tolerance", cl::init(1e-5),
                                 cl::desc("Largest relative difference"),
                                 cl::cat(category));

static cl::opt<bool>
    firstInputs("first-inputs",
                cl::desc("The first has some inputs of the second"),
                cl::cat(category));

static std::string formatDouble(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g", number);
  return text;
}

static bool hasSameBits(const Tensor &have, const Tensor &want) {
  auto isSame = [](double a, double b) {
    return llvm::bit_cast<uint64_t>(a) == llvm::bit_cast<uint64_t>(b);
  };
  return llvm::equal(have.values, want.values, isSame);
}

/// Those `wanted` values of `all` that are of micro-batches of which one has
/// numbers: rng has four for each, and the last is the micro-batch's. With
/// micro-batches of another size, the first values.
static Tensor takeMicroBatches(const Tensor &all, int64_t wanted,
                               const Tensor &numbers,
                               const Tensor &allNumbers) {
  constexpr int64_t kWords = 4;
  Tensor some = all;
  const int64_t count = numbers.size() / kWords;
  const int64_t allCount = allNumbers.size() / kWords;
  const int64_t size = allCount ? all.size() / allCount : 0;
  if (count * size != wanted) {
    some.values.resize(wanted);
    return some;
  }
  some.values.clear();
  for (int64_t one = kWords - 1; one < numbers.size(); one += kWords)
    for (int64_t other = kWords - 1; other < allNumbers.size(); other += kWords)
      if (numbers.values[size_t(one)] == allNumbers.values[size_t(other)]) {
        auto from = all.values.begin() + other / kWords * size;
        some.values.insert(some.values.end(), from, from + size);
      }
  return some;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  readWords(argc, argv, category, "Compares two runs\n");
  auto fail = [](const llvm::Twine &message) {
    llvm::WithColor::error() << message << "\n";
    return 1;
  };
  llvm::Expected<llvm::StringMap<Tensor>> have = readDump(haveFile);
  if (!have)
    return fail(toString(have.takeError()));
  llvm::Expected<llvm::StringMap<Tensor>> want = readDump(wantFile);
  if (!want)
    return fail(toString(want.takeError()));
  if (have->size() != want->size())
    return fail("needs as many tensors, but got " + llvm::Twine(have->size()) +
                " and " + llvm::Twine(want->size()));
  if (!want->count("grad_norm") || (*want)["grad_norm"].size() != 1)
    return fail("needs a number 'grad_norm' in '" + wantFile +
                "', but it has "
                "none");
  Comparison comparison, inputs;
  std::vector<std::string> others; ///< of other bits
  double floor = 1e-3 * (*want)["grad_norm"].values.at(0);
  for (auto &entry : *want) {
    llvm::StringRef name = entry.first();
    const Tensor &other = (*have)[name];
    bool isNoise = getNorm(entry.second) < floor;
    bool isMade = name == "loss" || name == "grad_norm" ||
                  name.starts_with("measure/") ||
                  name.starts_with("gradient/") ||
                  name.starts_with("parameter/") || name.starts_with("moment");
    if (isMade && !hasSameBits(other, entry.second))
      others.push_back(name.str());
    if (name.starts_with("gradient/") && byNorm && !isNoise)
      comparison.addNorm(name, other, entry.second);
    else if (name.starts_with("gradient/"))
      comparison.add(name, other, entry.second, floor);
    else if (name == "loss" || name == "grad_norm" ||
             name.starts_with("measure/"))
      comparison.add(name, other, entry.second);
    else if (name.starts_with("parameter/") || name.starts_with("moment")) {
      // Adam turns any gradient into a step of the size of the learning rate,
      // also one that is rounding and nothing else.
      std::string gradient = ("gradient/" + name.split('/').second).str();
      bool isStep =
          want->count(gradient) && getNorm((*want)[gradient]) < 1e-3 * floor;
      if (!isStep && getNorm(entry.second) > 0)
        comparison.addNorm(name, other, entry.second);
    } else {
      Tensor given = entry.second;
      if (firstInputs && other.size() > 0 && other.size() < given.size())
        given = takeMicroBatches(given, other.size(), (*have)["rng"],
                                 (*want)["rng"]);
      inputs.add(name, other, given);
    }
  }
  if (inputs.worst > 0)
    return fail("needs the same inputs, but " + inputs.where + " differs" +
                (firstInputs ? ""
                             : "; --first-inputs compares those of the first "
                               "file's micro-batches, where it has some of "
                               "the second's"));
  llvm::outs() << "compared " << want->size()
               << " tensors: largest relative difference "
               << llvm::format("%.3g", comparison.worst) << " in "
               << comparison.where << "\n";
  if (comparison.worst > tolerance)
    return fail("needs differences of at most " + formatDouble(tolerance));
  if (tolerance == 0 && !others.empty())
    return fail("needs the same bits, but " + llvm::Twine(others.size()) +
                " tensors have others, '" + *llvm::min_element(others) +
                "' among them");
  return 0;
}
