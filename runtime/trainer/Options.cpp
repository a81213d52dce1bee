//===- Options.cpp - The command line of a training binary ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "OtherSpelling.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/transport/Launcher.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <strings.h>

using namespace reprise::runtime;

namespace {

/// Where the value of an option goes, and so what it may be.
enum class Kind {
  Input,
  Inputs,
  Output,
  Text,
  Number,
  Seed,
  Real,
  Choice,
  Flag,
  Help
};

struct Target {
  Kind kind;
  union {
    const char *Options::*text;
    Paths Options::*paths;
    int64_t Options::*number;
    uint64_t Options::*seed;
    double Options::*real;
    void (*choose)(Options &options, int choice);
    bool Options::*flag;
  };

  constexpr Target(Kind kind, const char *Options::*member)
      : kind(kind), text(member) {}
  constexpr Target(Paths Options::*member)
      : kind(Kind::Inputs), paths(member) {}
  constexpr Target(int64_t Options::*member)
      : kind(Kind::Number), number(member) {}
  constexpr Target(uint64_t Options::*member)
      : kind(Kind::Seed), seed(member) {}
  constexpr Target(double Options::*member) : kind(Kind::Real), real(member) {}
  constexpr Target(void (*choose)(Options &, int))
      : kind(Kind::Choice), choose(choose) {}
  constexpr Target(bool Options::*member) : kind(Kind::Flag), flag(member) {}
};

/// One option: how it is shown, and where its value goes.
struct OptionInfo {
  const char *name;
  const char *value; ///< What the help calls the value; a choice is "a|b".
  Target target;
  const char *help;
  double lowest = 0, highest = 0; ///< Of numbers.
};

} // namespace

/// What a switch says; without a word it says the first.
static constexpr const char *kOn = "true", *kOff = "false";

/// More steps than anyone trains for.
static constexpr double kMany = double(INT64_C(1) << 40);

static constexpr OptionInfo kOptions[] = {
    {"data", "FILE...", &Options::data,
     "text, .bin, .idx or .npy to train on, or a 'PATTERN'; several may "
     "follow, and it may be repeated"},
    {"dtype", "u8|u16|u32|i32|i64",
     +[](Options &options, int choice) {
       constexpr TokenType kTypes[] = {TokenType::U8, TokenType::U16,
                                       TokenType::U32, TokenType::I32,
                                       TokenType::I64};
       options.dtype = kTypes[choice];
     },
     "the type of tokens in .bin files without a header"},
    {"tokenizer",
     "DIR|FILE",
     {Kind::Input, &Options::tokenizer},
     "turn text into tokens as this tokenizer.json says, or that in a folder"},
    {"steps", "N", &Options::steps,
     "train up to step N; 0 only reads and saves", 0, kMany},
    {"init-from",
     "DIR|FILE",
     {Kind::Input, &Options::initFrom},
     "start from published weights: safetensors, an index, or their folder"},
    {"save",
     "DIR",
     {Kind::Output, &Options::save},
     "write checkpoints to DIR, at the end and as often as --save-interval "
     "says"},
    {"save-interval", "N", &Options::saveInterval,
     "write a checkpoint after every Nth step, while training goes on: a run "
     "that is killed loses at most 2N steps, and with --save-from arena N",
     1, kMany},
    {"keep-last", "N", &Options::keepLast,
     "remove all but the last N checkpoints; not given: keep all", 2, kMany},
    {"save-from", "copy|arena",
     +[](Options &options, int choice) { options.saveFromCopy = choice == 0; },
     "copy: train on while a copy of the states is written; arena: write them "
     "between steps, without more memory (default: copy if it fits)"},
    {"resume",
     "DIR|auto",
     {Kind::Input, &Options::resume},
     "go on from a checkpoint, or the last one in DIR; auto: that in --save's "
     "folder, if it has one"},
    {"val-data", "FILE...", &Options::valData,
     "measure the loss of this data now and then, and at the end; as --data"},
    {"val-interval", "N", &Options::valInterval,
     "after every Nth step (default: a tenth of the steps)", 1, kMany},
    {"val-steps", "N", &Options::valSteps,
     "over its first N batches (default: 20), or all that there are", 1, kMany},
    {"sample", "N", &Options::sample,
     "let the model write N tokens now and then, and at the end", 1, 1 << 20},
    {"sample-interval", "N", &Options::sampleInterval,
     "after every Nth step (default: a tenth of the steps)", 1, kMany},
    {"prompt",
     "TEXT",
     {Kind::Text, &Options::prompt},
     "what it goes on from; token numbers if tokens are no text"},
    {"temperature", "X", &Options::temperature,
     "divide logits by X (default: 1); 0: the likeliest token always", 0, 1e6},
    {"top-k", "N", &Options::topK,
     "draw from the N likeliest tokens (default: all)", 1, 1 << 30},
    {"data-order", "shuffled|sequential",
     +[](Options &options, int choice) { options.shuffled = choice == 0; },
     "the order of the samples; shuffled: anew in each epoch"},
    {"log-format", "text|json",
     +[](Options &options, int choice) { options.json = choice == 1; },
     "json: one object a line, see below"},
    {"log-interval", "N", &Options::logInterval,
     "show every Nth step, and the first and the last", 1, kMany},
    {"tensorboard",
     "DIR",
     {Kind::Output, &Options::tensorboard},
     "write curves to a new event file in DIR"},
    {"csv",
     "FILE",
     {Kind::Output, &Options::csv},
     "append a line for each step to a table"},
    {"skip-loss-z", "X", &Options::skipLossZ,
     "leave out updates whose loss lies X standard deviations above the last "
     "128",
     0, 1e6},
    {"skip-grad-z", "X", &Options::skipGradZ,
     "the same for the norm of the gradients", 0, 1e6},
    {"peak-flops", "X", &Options::peakFlops,
     "FLOP/s that utilization is measured against; measured at each start if "
     "not given",
     1, 1e21},
    {"ranks", "N", &Options::ranks,
     "start N ranks on this machine, as many as the program is for", 1,
     1 << 16},
    {"timeout", "SECONDS", &Options::timeout,
     "end all ranks within this time if one falls silent (default: 10)", 1,
     kMany},
    {"threads", "N", &Options::threads,
     "use N threads in each rank; results do not depend on it", 1,
     ThreadPool::kMaxThreads},
    {"portable-bits", "", &Options::portableBits,
     "do without what has bits of its own in bf16: AMX, attention in pairs"},
    {"seed", "N", &Options::seed,
     "draw parameters, order and dropout from seed N"},
    {"device",
     "auto|cpu|cuda:N",
     {Kind::Text, &Options::device},
     "compute here; auto (default): on GPU 0 if there is one, else on the CPU"},
    {"no-cuda-graph", "", &Options::noCudaGraph,
     "begin each launch by itself and not as part of a CUDA graph"},
    {"cuda-sync", "", &Options::cudaSync,
     "wait for each launch, so that an error names it"},
    {"tf32", "", &Options::tf32,
     "round f32 to TF32 before it is multiplied, which is faster"},
    {"autotune", "", &Options::autotune,
     "try several algorithms for each GEMM at the start"},
    {"nccl-sums", "", &Options::ncclSums,
     "let NCCL sum f32 over all ranks in its own order: bits are not fixed"},
    {"nvtx", "", &Options::nvtx,
     "name each launch on the timeline of a profiler"},
    {"profile", "", &Options::profile,
     "at the end, show the time spent in each launch"},
    {"costs",
     "FILE",
     {Kind::Output, &Options::costs},
     "write how long each launch takes, for reprisec --cost-table"},
    {"trace",
     "FILE",
     {Kind::Output, &Options::trace},
     "write when each launch of the last step ran, in all ranks, for a "
     "timeline"},
    {"check-memory", "", &Options::checkMemory,
     "fill unused memory with NaN before each step and prove the plan"},
    {"dump",
     "FILE",
     {Kind::Output, &Options::dump},
     "write the last step's states and inputs as safetensors"},
    {"version", "", &Options::version,
     "show what this program was compiled from, and by whom"},
    {"describe", "", &Options::describe,
     "show all that it was compiled from, as JSON"},
    {"help",
     "[WORD]",
     {Kind::Help, &Options::help},
     "show this, or the options about WORD, as does -h"},
};

/// The Levenshtein distance of two names; long ones are cut.
static int editDistance(const char *a, const char *b) {
  constexpr int kLongest = 32;
  int m = std::min<int>(int(strlen(a)), kLongest);
  int n = std::min<int>(int(strlen(b)), kLongest);
  int row[kLongest + 1];
  for (int j = 0; j <= n; ++j)
    row[j] = j;
  for (int i = 1; i <= m; ++i) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= n; ++j) {
      int replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[n];
}

/// The option that `name` most resembles; null if it resembles none.
static const OptionInfo *nearest(const char *name) {
  const OptionInfo *best = nullptr;
  int least = std::max<int>(2, int(strlen(name)) / 3) + 1;
  for (const OptionInfo &info : kOptions) {
    int distance = editDistance(name, info.name);
    if (distance < least) {
      least = distance;
      best = &info;
    }
  }
  return best;
}

/// A whole number from `lowest` to `highest`.
static bool parseNumber(const OptionInfo &info, const char *text,
                        int64_t lowest, int64_t highest, int64_t &number,
                        Error &error) {
  char *end = nullptr;
  errno = 0;
  number = strtoll(text, &end, 10);
  bool whole = *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
  if (whole && number >= lowest && number <= highest)
    return true;
  int64_t other = whole ? -1 : respell(text);
  bool isMeant = other >= lowest && other <= highest && other >= 0;
  char hint[48] = "";
  if (isMeant)
    snprintf(hint, sizeof(hint), "; write %" PRId64, other);
  return error.set("--%s needs a whole number from %" PRId64 " to %" PRId64
                   ", but got '%s'%s",
                   info.name, lowest, highest, text, hint);
}

static bool parseReal(const OptionInfo &info, const char *text, double &number,
                      Error &error) {
  char *end = nullptr;
  number = strtod(text, &end);
  bool whole = ((*text >= '0' && *text <= '9') || *text == '.') && !*end;
  if (whole && number >= info.lowest && number <= info.highest)
    return true;
  return error.set("--%s needs a number from %g to %g, but got '%s'", info.name,
                   info.lowest, info.highest, text);
}

/// Which of the choices `text` is, from 0.
static bool parseChoice(const OptionInfo &info, const char *text, int &choice,
                        Error &error) {
  char all[128] = ""; // 'a', 'b' or 'c'
  int written = 0;
  const char *next = info.value;
  for (choice = 0; *next; ++choice) {
    size_t length = strcspn(next, "|");
    if (strlen(text) == length && !strncmp(text, next, length))
      return true;
    const char *between = choice == 0 ? "" : next[length] ? ", " : " or ";
    written += snprintf(all + written, sizeof(all) - size_t(written),
                        "%s'%.*s'", between, int(length), next);
    next += length + (next[length] == '|');
  }
  return error.set("--%s needs %s, but got '%s'", info.name, all, text);
}

/// Whether `value` can name a file or folder.
static bool checkPath(const OptionInfo &info, const char *value, Error &error) {
  if (!*value)
    return error.set("--%s needs a file name, but got ''", info.name);
  // A folder called so would be made, or looked for.
  if (!strncmp(value, "~/", 2))
    return error.set("--%s needs a path, but got '%s': a shell makes a home of "
                     "~ in a word of its own, as in --%s %s (a folder of that "
                     "name is ./~)",
                     info.name, value, info.name, value);
  if (strcmp(value, "-") != 0)
    return true;
  return error.set("--%s needs a file, but got '-': %s (a file of that name is "
                   "./-)",
                   info.name,
                   info.target.kind == Kind::Output
                       ? "standard output has the log"
                       : "standard input cannot be mapped");
}

static bool addPath(const OptionInfo &info, const char *value, Paths &paths,
                    Error &error) {
  if (paths.count == Paths::kMost)
    return error.set(
        "--%s takes up to %d files; a pattern in quotes stands for "
        "any number of them",
        info.name, Paths::kMost);
  paths.items[paths.count++] = value;
  return true;
}

/// Whether an option's name, value or help has the word; all are about none.
static bool isAbout(const OptionInfo &info, const char *word) {
  char name[64]; // With dashes, as names are.
  snprintf(name, sizeof(name), "%s", word);
  std::replace(name, name + strlen(name), '_', '-');
  return strcasestr(info.name, name) || strcasestr(info.value, word) ||
         strcasestr(info.help, word);
}

/// Whether there is help about the word.
static bool checkWord(const char *word, Error &error) {
  return std::any_of(
             std::begin(kOptions), std::end(kOptions),
             [&](const OptionInfo &info) { return isAbout(info, word); }) ||
         error.set("--help: no option is about '%s'; --help lists all", word);
}

static bool apply(const OptionInfo &info, const char *value, Options &options,
                  Error &error) {
  const Target &target = info.target;
  int64_t number = 0;
  int choice = 0;
  switch (target.kind) {
  case Kind::Input:
  case Kind::Output:
    options.*target.text = value;
    return checkPath(info, value, error);
  case Kind::Inputs:
    return checkPath(info, value, error) &&
           addPath(info, value, options.*target.paths, error);
  case Kind::Text:
    options.*target.text = value;
    return true;
  case Kind::Help:
    options.*target.text = value;
    return checkWord(value, error);
  case Kind::Number:
    return parseNumber(info, value, int64_t(info.lowest), int64_t(info.highest),
                       options.*target.number, error);
  case Kind::Seed:
    if (!parseNumber(info, value, 0, INT64_MAX, number, error))
      return false;
    options.*target.seed = uint64_t(number);
    return true;
  case Kind::Real:
    return parseReal(info, value, options.*target.real, error);
  case Kind::Choice:
    if (!parseChoice(info, value, choice, error))
      return false;
    target.choose(options, choice);
    return true;
  case Kind::Flag:
    options.*target.flag = !strcmp(value, kOn);
    return true;
  }
  return true;
}

/// Whether the options go together. Bit i of `given`: the i-th is there.
static bool checkTogether(const Options &options, uint64_t given,
                          Error &error) {
  for (const OptionInfo &info : kOptions) {
    auto isOneOf = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), info.name) != names.end();
    };
    if (!(given >> (&info - kOptions) & 1))
      continue;
    if (!options.valData.size() && isOneOf({"val-interval", "val-steps"}))
      return error.set("--%s needs --val-data FILE", info.name);
    if (!options.sample &&
        isOneOf({"sample-interval", "prompt", "temperature", "top-k"}))
      return error.set("--%s needs --sample N", info.name);
  }
  if (options.initFrom && options.resume)
    return error.set("needs --init-from or --resume, but got both: where "
                     "should the parameters come from?");
  const char *needsSave = options.saveInterval   ? "--save-interval"
                          : options.keepLast     ? "--keep-last"
                          : options.saveFromCopy ? "--save-from"
                          : options.resume && !strcmp(options.resume, "auto")
                              ? "--resume auto"
                              : nullptr;
  if (needsSave && !options.save)
    return error.set("%s needs --save DIR", needsSave);
  return true;
}

/// The threads of a rank, if nothing is said of them.
static int64_t defaultThreads(const RepriseModel &model) {
  return std::min<int64_t>(shareOfProcessors(findLaunch(), countRanks(model)),
                           ThreadPool::kMaxThreads);
}

/// Whether `--ranks` says what the program says.
static bool checkRanks(const Options &options, const RepriseModel &model,
                       Error &error) {
  int64_t ranks = countRanks(model);
  if (ranks == 1 && options.timeout > 0)
    return error.set("--timeout needs a program of several ranks, but this one "
                     "is for one");
  if (options.ranks == 0 || options.ranks == ranks)
    return true;
  if (ranks == 1)
    return error.set("--ranks %" PRId64 " needs a program that was compiled "
                     "for so many, but this one is for one: compile it with "
                     "--data-parallel-size=%" PRId64,
                     options.ranks, options.ranks);
  char mesh[128];
  describeMesh(model, mesh, sizeof(mesh));
  return error.set("--ranks needs the %" PRId64 " ranks that the program was "
                   "compiled for (%s), but got %" PRId64,
                   ranks, mesh, options.ranks);
}

/// Refuses a word that is no option. `before` is the option that it stands
/// behind, with `value`; null if there is none.
static bool refuseWord(const char *word, const OptionInfo *before,
                       const char *value, Error &error) {
  if (*word == '-') {
    char name[64];
    snprintf(name, sizeof(name), "%.*s", int(strcspn(word + 1, "=")), word + 1);
    for (const OptionInfo &info : kOptions)
      if (!strcmp(info.name, name))
        return error.set("unknown option %s; did you mean -%s?", word, word);
    return error.set("unknown option %s; --help lists all", word);
  }
  if (!before)
    return error.set("needs options such as --data FILE, but got '%s'", word);
  return error.set("needs options such as --data FILE, but got '%s' behind "
                   "--%s%s%s%s",
                   word, before->name, *value ? " " : "", value,
                   before->target.kind == Kind::Flag
                       ? ", which is true or false"
                       : ", which takes one word");
}

/// Finds an option by its name, which may have underscores for dashes.
static const OptionInfo *findOption(const char *arg, size_t length,
                                    Error &error) {
  char name[64];
  snprintf(name, sizeof(name), "%.*s", int(length), arg);
  std::replace(name, name + strlen(name), '_', '-');
  for (const OptionInfo &info : kOptions)
    if (!strcmp(info.name, name))
      return &info;
  const OtherName *other = findOtherName(name);
  const OptionInfo *similar = other ? nullptr : nearest(name);
  if (other && !other->option)
    error.set("unknown option --%s: what it says is compiled into the program; "
              "it is an option of reprisec, or a key of the description",
              name);
  else if (other)
    error.set("unknown option --%s; did you mean --%s?", name, other->option);
  else if (similar)
    error.set("unknown option --%s; did you mean --%s?", name, similar->name);
  else
    error.set("unknown option --%s; --help lists all", name);
  return nullptr;
}

/// Whether `word` is an option, maybe with its value.
static bool isOption(const char *word) {
  Error none;
  return !strncmp(word, "--", 2) && word[2] &&
         findOption(word + 2, strcspn(word + 2, "="), none);
}

/// Whether the word behind an option may be its value; null is the end.
static bool checkValue(const OptionInfo &info, const char *word, Error &error) {
  if (!word)
    return error.set("--%s needs a value: %s", info.name, info.value);
  return !isOption(word) ||
         error.set("--%s needs a value: %s, but the next word is the option %s",
                   info.name, info.value, word);
}

/// The word of a switch that `text` is, in whatever case; null if it is none.
static const char *findTruth(const char *text) {
  for (const char *word : {kOn, kOff})
    if (text && !strcasecmp(text, word))
      return word;
  return nullptr;
}

/// The value of the option that word `i` is: what follows `=`, or the next
/// word, which `i` is then. Null is an error.
static const char *readValue(const OptionInfo &info, int argc, char **argv,
                             int &i, Error &error) {
  const char *equals = strchr(argv[i], '=');
  const char *value = equals         ? equals + 1
                      : i + 1 < argc ? argv[i + 1]
                                     : nullptr;
  if (info.target.kind == Kind::Flag) {
    const char *truth = findTruth(value);
    if (equals && !truth)
      error.set("--%s needs no value, %s or %s, but got '%s'", info.name, kOn,
                kOff, value);
    i += truth && !equals;
    return truth || equals ? truth : kOn;
  }
  if (info.target.kind == Kind::Help && !equals) {
    bool isWord = value && *value != '-';
    i += isWord;
    return isWord ? value : "";
  }
  if (!equals && !checkValue(info, value, error))
    return nullptr;
  i += !equals;
  return value;
}

/// Whether both values of the option mean the same. The first one is valid, so
/// that a number is one.
static bool isSame(const OptionInfo &info, const char *first,
                   const char *value) {
  switch (info.target.kind) {
  case Kind::Number:
  case Kind::Seed:
    return strtoll(first, nullptr, 10) == strtoll(value, nullptr, 10);
  case Kind::Real:
    return strtod(first, nullptr) == strtod(value, nullptr);
  default:
    return !strcmp(first, value);
  }
}

/// Whether an option may be given again, after `first`, with `value`: to say
/// the same says nothing new.
static bool checkRepeat(const OptionInfo &info, const char *first,
                        const char *value, Error &error) {
  return info.target.kind == Kind::Inputs || isSame(info, first, value) ||
         error.set("--%s is given twice, with '%s' and '%s': which one is "
                   "meant?",
                   info.name, first, value);
}

bool reprise::runtime::parseOptions(int argc, char **argv,
                                    const RepriseModel &model, Options &options,
                                    Error &error) {
  options.steps = model.trainIters;
  options.seed = uint64_t(model.seed);
  options.threads = defaultThreads(model);
  static_assert(std::size(kOptions) <= 64, "each has a bit");
  uint64_t given = 0;
  const char *values[std::size(kOptions)];
  const OptionInfo *before = nullptr;
  const char *shown = "";
  for (int i = 1; i < argc; ++i) {
    const char *arg = strcmp(argv[i], "-h") ? argv[i] : "--help";
    // Several files may follow, as a shell makes them of a pattern.
    bool goesOn = before && before->target.kind == Kind::Inputs && *arg != '-';
    if (goesOn) {
      if (!apply(*before, arg, options, error))
        return false;
      continue;
    }
    if (strncmp(arg, "--", 2) != 0 || !arg[2])
      return refuseWord(arg, before, shown, error);
    const char *equals = strchr(arg, '=');
    size_t length = equals ? size_t(equals - arg - 2) : strlen(arg + 2);
    const OptionInfo *info = findOption(arg + 2, length, error);
    if (!info)
      return false;
    const char *value = readValue(*info, argc, argv, i, error);
    if (!value)
      return false;
    uint64_t bit = uint64_t(1) << (info - kOptions);
    if (given & bit &&
        !checkRepeat(*info, values[info - kOptions], value, error))
      return false;
    given |= bit;
    values[info - kOptions] = value;
    before = info;
    shown = info->target.kind == Kind::Flag ? "" : value;
    if (!apply(*info, value, options, error))
      return false;
  }
  bool isQuestion = options.help || options.version || options.describe;
  if (!options.data.size() && options.steps > 0 && !isQuestion)
    return error.set("--data FILE is missing: what to train on");
  options.autoFolder = options.save;
  return checkTogether(options, given, error) &&
         checkRanks(options, model, error);
}

/// Prints the words of `text` from column `indent` on, where the line is, in 80
/// columns.
static void printWrapped(const char *text, int indent) {
  constexpr int kWidth = 80;
  int used = indent;
  while (*text) {
    int length = int(strcspn(text, " "));
    if (used > indent && used + 1 + length > kWidth) {
      printf("\n%*s", indent, "");
      used = indent;
    }
    used += printf("%s%.*s", used > indent ? " " : "", length, text);
    text += length + (text[length] == ' ');
  }
  printf("\n");
}

/// An option, its help, and what counts if it is not given: -1 if the help says
/// that, or nothing does.
static void printOption(const OptionInfo &info, int64_t unless) {
  constexpr int kIndent = 28;
  char left[64], help[256];
  int used = snprintf(left, sizeof(left), "  --%s%s%s", info.name,
                      *info.value ? " " : "", info.value);
  snprintf(help, sizeof(help), unless < 0 ? "%s" : "%s (default: %" PRId64 ")",
           info.help, unless);
  printf("%s", left);
  if (used + 2 > kIndent)
    printf("\n%*s", kIndent, "");
  else
    printf("%*s", kIndent - used, "");
  printWrapped(help, kIndent);
}

static void printOptions(const RepriseModel &model, const char *word) {
  for (const OptionInfo &info : kOptions)
    if (isAbout(info, word))
      printOption(info, !strcmp(info.name, "steps")     ? model.trainIters
                        : !strcmp(info.name, "threads") ? defaultThreads(model)
                        : !strcmp(info.name, "seed")    ? model.seed
                                                        : -1);
}

void reprise::runtime::printHelp(const char *program, const RepriseModel &model,
                                 const char *word) {
  if (*word) {
    printf("Options about '%s' (--help lists all):\n", word);
    return printOptions(model, word);
  }
  printf("Trains %s (recompute plan: %s).\n\nUsage: %s --data FILE "
         "[options]\n\nExamples:\n",
         model.name, model.plan, program);
  printf("  %s --data corpus.txt --steps 200\n", program);
  printf("  %s --data corpus.txt --save run --save-interval 100 --resume auto"
         "\n",
         program);
  printf("  %s --data 'shards/*.bin' --val-data val.bin --csv curves.csv\n",
         program);
  if (int64_t ranks = countRanks(model); ranks > 1)
    printf("  mpirun -n %" PRId64 " %s --data corpus.txt\n", ranks, program);
  printf("\n");
  printWrapped("A value stands behind its option as --name value or as "
               "--name=value, that of a switch may be true or false. Names may "
               "have underscores for dashes.",
               0);
  printf("\nOptions:\n");
  printOptions(model, "");
  printf("\n");
  printWrapped("With --log-format json, standard output has one object a line. "
               "Each step has the keys step (from 1), loss, grad_norm, lr, ms, "
               "tokens_per_s, mfu, hfu, loss_z, grad_norm_z, skipped, "
               "high_water_bytes, planned_bytes and seconds_left; floats have "
               "all their digits. Other lines have the key \"event\": plan, "
               "note, weights, resumed, saving, saved, validation, sample, "
               "interrupted, profile, memory, ranks and end.",
               0);
  printf("\n");
  printWrapped("Ctrl-C, SIGTERM and SIGHUP finish the step, save it if there "
               "is --save, and end with status 4; Ctrl-C again ends at once, "
               "without saving. SIGUSR1 saves and goes on.",
               0);
  printf("\n");
  printWrapped("Status 0: all steps are done; 1: training failed; 2: a wrong "
               "option; 3: the machine lacks what --device asks for; 4: a "
               "signal ended the run early.",
               0);
}
