//===- TrainingTest.cpp - A small model, end to end -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TrainingRun.h"

#include "runtime/compute/Cpu.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <limits>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace reprise;
using namespace reprise::runtime::test;

// A uniform guess costs ln 128 = 4.85; the text has about 29 characters.
// Knowing the last one, a model needs less than their entropy.
TEST_F(Training, Learns) {
  Outcome outcome = train({});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NEAR(outcome.loss(1), 4.85, 0.1);
  EXPECT_LT(outcome.loss(40), 2.0);
  EXPECT_NE(outcome.out.find("{\"event\":\"plan\",\"model\":\"toy "
                             "\\\"bigram\\\"\""),
            std::string::npos);
  EXPECT_NE(outcome.out.find(",\"data\":[\"" + data +
                             "\"],\"files\":1,"
                             "\"tokens\":13800,"),
            std::string::npos);
  EXPECT_NE(outcome.out.find("{\"event\":\"end\",\"steps\":40"),
            std::string::npos);
}

TEST_F(Training, BitsDependOnNothingButSeedAndOrder) {
  Outcome first = train({"--steps=12", "--threads=1", "--dump", dump});
  ASSERT_EQ(first.status, 0) << first.err;
  std::string firstDump = readFile(dump);
  auto same = [&](std::vector<std::string> args) {
    args.insert(args.end(), {"--steps=12", "--dump", dump});
    Outcome other = train(args);
    EXPECT_EQ(other.status, 0) << other.err;
    EXPECT_TRUE(firstDump == readFile(dump));
    return other.steps() == first.steps();
  };
  EXPECT_TRUE(same({"--threads=1"}));
  EXPECT_TRUE(same({"--threads=2"}));
  EXPECT_TRUE(same({"--threads=3"}));
  EXPECT_TRUE(same({"--threads=2", "--check-memory"}));
  EXPECT_TRUE(same({"--threads=2", "--profile"}));
  toy.microKernels.pop_back(); // What an older processor would run.
  toy.finish();
  EXPECT_TRUE(same({"--threads=2"}));
  EXPECT_NE(train({"--steps=12", "--seed=2"}).steps(), first.steps());
  EXPECT_NE(train({"--steps=12", "--data-order=sequential"}).steps(),
            first.steps());
}

// The second version of a kernel runs where the processor has AVX-512, as its
// micro-kernels do, and only there; the others where it has AVX512_BF16 or AMX,
// unless bits are to be those of other processors.
TEST_F(Training, RunsTheVersionsOfKernelsForTheProcessor) {
  static std::atomic<int> narrow, wide, pairs, amx;
  narrow = wide = pairs = amx = 0;
  RepriseKernel &last = toy.kernels.back();
  ASSERT_EQ(last.fn, &adamw);
  last.fn = [](void *const *b, const int64_t *ids, int64_t begin, int64_t end) {
    ++narrow;
    adamw(b, ids, begin, end);
  };
  last.avx512Fn = [](void *const *b, const int64_t *ids, int64_t begin,
                     int64_t end) {
    ++wide;
    adamw(b, ids, begin, end);
  };
  ASSERT_EQ(train({"--steps=1"}).status, 0);
  EXPECT_EQ(wide > 0, runtime::cpuLevel() >= 4);
  EXPECT_EQ(narrow > 0, runtime::cpuLevel() < 4);
  EXPECT_EQ(runtime::chooseKernel(toy.kernels.front(), 6),
            toy.kernels.front().fn);
  last.amxFn = [](void *const *b, const int64_t *ids, int64_t begin,
                  int64_t end) {
    ++amx;
    adamw(b, ids, begin, end);
  };
  last.avx512BF16Fn = [](void *const *b, const int64_t *ids, int64_t begin,
                         int64_t end) {
    ++pairs;
    adamw(b, ids, begin, end);
  };
  const RepriseKernelFn ofLevels[] = {last.fn, last.avx512Fn, last.avx512BF16Fn,
                                      last.amxFn};
  for (int level : {3, 4, 5, 6}) {
    EXPECT_EQ(runtime::chooseKernel(last, level), ofLevels[level - 3]);
    EXPECT_EQ(runtime::chooseKernel(last, {level, /*hasPortableBits=*/true}),
              level == 3 ? last.fn : last.avx512Fn);
  }
  ASSERT_EQ(train({"--steps=1", "--portable-bits"}).status, 0);
  EXPECT_EQ(pairs + amx, 0);
  ASSERT_EQ(train({"--steps=1"}).status, 0);
  EXPECT_EQ(pairs > 0, runtime::cpuLevel() == 5);
  EXPECT_EQ(amx > 0, runtime::cpuLevel() == 6);
}

// The header's rules: length, padding, names in order, no gaps; and values that
// are known: tokens as they lie in the file, gains of the schedule.
TEST_F(Training, DumpIsASafetensorsFileOfTheLastStep) {
  Outcome outcome = train({"--steps=1", "--seed=21474836487", // 5 * 2^32 + 7
                           "--data-order=sequential", "--dump", dump});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::string file = readFile(dump);
  uint64_t length = 0;
  ASSERT_GT(file.size(), sizeof(length));
  memcpy(&length, file.data(), sizeof(length));
  EXPECT_EQ(length % 8, 0u);
  ASSERT_LT(8 + length, file.size());
  std::string header = file.substr(8, length), body = file.substr(8 + length);
  EXPECT_EQ(header.substr(0, 35), "{\"__metadata__\":{\"format\":\"pt\"},\"bi");
  EXPECT_NE(header.find("\"parameter/embedding\":{\"dtype\":\"F32\",\"shape\":"
                        "[128,24],"),
            std::string::npos);
  EXPECT_NE(header.find("\"moment2/bias\":{\"dtype\":\"F32\",\"shape\":[128],"),
            std::string::npos);

  std::regex entry("\"([^\"]+)\":\\{\"dtype\":\"([FI]32)\",\"shape\":\\[[0-9,]*"
                   "\\],\"data_offsets\":\\[([0-9]+),([0-9]+)\\]\\}");
  size_t next = 0;
  std::string lastType = "F32", lastName;
  auto bytesOf = [&](const std::string &name) {
    std::smatch match;
    std::regex_search(header, match,
                      std::regex("\"" + name + "\":[^}]*\\[([0-9]+),"));
    return body.data() + std::stoul(match[1]);
  };
  for (std::sregex_iterator i(header.begin(), header.end(), entry), end;
       i != end; ++i) {
    EXPECT_EQ(std::stoul((*i)[3]), next) << (*i)[1];
    next = std::stoul((*i)[4]);
    if ((*i)[2] == lastType)
      EXPECT_LT(lastName, (*i)[1].str());
    else
      EXPECT_EQ((*i)[2], "I32");
    lastType = (*i)[2], lastName = (*i)[1];
  }
  EXPECT_EQ(next, body.size());

  const std::string text = readFile(data);
  int32_t token;
  const char *tokens = bytesOf("tokens"), *targets = bytesOf("targets");
  for (int64_t i = 0; i < kTokens * kMicroBatches; ++i) {
    memcpy(&token, tokens + 4 * i, 4);
    ASSERT_EQ(token, text[size_t(i)]);
    memcpy(&token, targets + 4 * i, 4);
    ASSERT_EQ(token, text[size_t(i) + 1]);
  }
  int32_t rng[8];
  memcpy(rng, bytesOf("rng"), sizeof(rng));
  const int32_t expectedRng[] = {7, 5, 0, 0, 7, 5, 0, 1};
  EXPECT_EQ(0, memcmp(rng, expectedRng, sizeof(rng)));
  float value;
  memcpy(&value, bytesOf("lr"), 4);
  EXPECT_EQ(value, 0.05f);
  memcpy(&value, bytesOf("bias_correction2"), 4);
  EXPECT_EQ(value, float(1.0 - 0.99));
  // The first step starts from moments of zero, and its gradients' norm is the
  // one reported.
  double squares = 0;
  const std::pair<std::string, int64_t> parameters[] = {
      {"embedding", kVocab * kWidth},
      {"output", kVocab * kWidth},
      {"bias", kVocab}};
  for (auto &[name, count] : parameters) {
    const char *moments = bytesOf("moment1/" + name);
    const char *gradients = bytesOf("gradient/" + name);
    for (int64_t i = 0; i < count; ++i) {
      memcpy(&value, moments + 4 * i, 4);
      ASSERT_EQ(value, 0.0f);
      memcpy(&value, gradients + 4 * i, 4);
      squares += double(value) * double(value);
    }
  }
  memcpy(&value, bytesOf("grad_norm"), 4);
  EXPECT_NEAR(value, std::sqrt(squares), 1e-5);
}

// A link stays what it is; so does whatever is no file, and that is said before
// the training and not after it.
TEST_F(Training, DumpReplacesPlainFilesOnly) {
  const std::string file = stem + ".file", link = stem + ".link";
  auto refusal = [&](const std::string &path) {
    Outcome outcome = train({"--steps=2", "--dump", path});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  ASSERT_EQ(symlink(file.c_str(), link.c_str()), 0);
  EXPECT_EQ(refusal(link), "train: error: cannot write '" + link +
                               "': it is a symbolic link that leads nowhere\n");
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  for (const std::string &path : {file, link})
    EXPECT_EQ(refusal(path), "train: error: cannot write '" + path +
                                 "': it is a pipe, not a plain file\n");
  EXPECT_EQ(refusal(testing::TempDir()),
            "train: error: cannot write '" + testing::TempDir() +
                "': it is a folder, not a plain file\n");
  EXPECT_TRUE(std::filesystem::is_fifo(file));
  EXPECT_EQ(refusal(stem + ".none/file"), "train: error: cannot write '" +
                                              stem +
                                              ".none/file': No such "
                                              "file or directory\n");

  std::filesystem::remove(file);
  std::ofstream(file) << "old";
  EXPECT_EQ(train({"--steps=2", "--dump", link}).status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(train({"--steps=2", "--dump", dump}).status, 0);
  EXPECT_TRUE(readFile(file) == readFile(dump));
  std::filesystem::remove(file);
  std::filesystem::remove(link);
}

// The limit stands for a disk that is full.
TEST_F(Training, ADumpThatFindsNoRoomLeavesTheOldFileAlone) {
  std::ofstream(dump) << "old";
  rlimit before = {}, small = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = {8192, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Outcome outcome = train({"--steps=1", "--dump", dump});
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err,
            "train: error: cannot write '" + dump + "': File too large\n");
  EXPECT_EQ(readFile(dump), "old");
  EXPECT_FALSE(std::filesystem::exists(dump + ".partial"));
}

TEST_F(Training, HighWaterMarkIsThePlan) {
  Outcome outcome = train({"--steps=2", "--check-memory"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::string bytes = std::to_string(toy.model.arenaBytes);
  EXPECT_NE(outcome.out.find("\"planned_bytes\":" + bytes +
                             ",\"high_water_bytes\":" + bytes +
                             ",\"written_bytes\":" + bytes + "}"),
            std::string::npos)
      << outcome.out;
}

// A gradient that a step is said to make from nothing is filled as activations
// are. This one is added to, which shows.
TEST_F(Training, GradientsThatAreNotThereAreFilled) {
  std::vector<RepriseState> states(toy.model.states,
                                   toy.model.states + toy.model.numStates);
  toy.model.states = states.data();
  states[5].init = REPRISE_INIT_NONE;
  ASSERT_EQ(states[5].kind, REPRISE_STATE_GRADIENT);
  EXPECT_EQ(train({"--steps=2"}).status, 0);
  Outcome outcome = train({"--steps=2", "--check-memory"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("the gradient norm of step 1 is "),
            std::string::npos)
      << outcome.err;
}

TEST_F(Training, APlanThatIsTooLargeIsFound) {
  toy.model.arenaBytes += 64;
  Outcome outcome = train({"--steps=1", "--check-memory"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("--check-memory needs the plan of " +
                             std::to_string(toy.model.arenaBytes)),
            std::string::npos)
      << outcome.err;
}

TEST_F(Training, TextHasThePlanAndALineAStep) {
  Outcome outcome = run({"--data", data, "--steps=3", "--profile"}, toy.model);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char *part :
       {"model    toy \"bigram\", 6,272 parameters, recompute: none",
        "step     2 x 3 x 21 = 126 tokens", "  activations ",
        "step 3/3  loss 4.", "  lr 5.000e-02  ", " tokens/s  ", " left\n",
        "\n  the plan ", "\n  whole program ", "done: 3 steps", "\nembed ",
        "\nadamw "})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n"
                                                         << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Training, ALossThatIsNoNumberStopsTheRun) {
  toy.model.learningRate = 1e38;
  Outcome outcome = train({"--steps=9"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("train: error: the loss of step 2 is "),
            std::string::npos)
      << outcome.err;
}

TEST_F(Training, AnInterruptEndsTheRunAfterItsStep) {
  toy.addLaunch(
      toy.update, "signal",
      [](void *const *, const int64_t *, int64_t, int64_t) { raise(SIGTERM); },
      1, {});
  toy.finish();
  Outcome outcome = train({});
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_EQ(outcome.err.find("interrupted: "), 0u) << outcome.err;
  EXPECT_NE(outcome.err.find("step 1; Ctrl-C again ends at once\n"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.out.find("{\"step\":1,"), std::string::npos);
  EXPECT_EQ(outcome.out.find("{\"step\":2,"), std::string::npos);
  EXPECT_NE(outcome.out.find("{\"event\":\"interrupted\",\"steps\":1}"),
            std::string::npos);
}

TEST_F(Training, ATokenOutsideTheVocabularyIsFoundBeforeTheFirstStep) {
  std::ofstream(data, std::ios::binary | std::ios::app)
      << std::string(500, '\xff');
  // No step of this run would come to it.
  Outcome outcome = train({"--data-order=sequential", "--steps=2"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            data + ":301:1: error: byte 13800 is the token 255, but the "
                   "model's vocabulary has 128 tokens, 0 to 127\n");
}

TEST_F(Training, RefusalsHaveTheirStatus) {
  EXPECT_EQ(run({"--stepz=3"}, toy.model).err,
            "train: error: unknown option --stepz; did you mean --steps?\n");
  EXPECT_EQ(run({"--stepz=3"}, toy.model).status, 2);
  EXPECT_EQ(run({"--data", "/no/such"}, toy.model).status, 1);
  EXPECT_EQ(train({"--steps=1", "--dump=/no/such/dump"}).status, 1);
  for (const char *name : {"--help", "-h"}) {
    Outcome help = run({name}, toy.model);
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.out.find("--data FILE"), std::string::npos);
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 80u) << line;
  }
  Outcome version = run({"--version"}, toy.model);
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out.find("Reprise "), 0u) << version.out;
  EXPECT_NE(version.out.find("\ncompiled by a test; "), std::string::npos);
}

/// Of rows that are no cosines and sines.
static const RepriseRotary kRotary = {{0, 96}, 8, 3, nullptr, 1.0f, 0};

TEST_F(Training, DamagedModelsAreRefused) {
  auto refusal = [&](auto damage) {
    ToyModel damaged;
    damage(damaged);
    Outcome outcome = run({"--data", data, "--steps=1"}, damaged.model);
    EXPECT_EQ(outcome.status, 1);
    return outcome.err;
  };
  EXPECT_EQ(refusal([](ToyModel &toy) { toy.model.abiVersion += 1; }),
            "train: error: the model was compiled for version " +
                std::to_string(REPRISE_ABI_VERSION + 1) +
                " of the interface, but this runtime has version " +
                std::to_string(REPRISE_ABI_VERSION) + "; compile it again\n");
  EXPECT_NE(refusal([](ToyModel &toy) { toy.model.arenaBytes -= 64; })
                .find("damaged model: gradNorm needs at least 4 bytes in the "
                      "arena of "),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) { toy.model.gemms = nullptr; })
                .find("damaged model: gemms needs the address of 0 or more "
                      "rows, but has 3 rows and no address"),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) { toy.schedules[1].numLaunches = -1; })
                .find("damaged model: update needs the address of 0 or more "
                      "rows, but has -1 rows and an address"),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) { toy.model.batches = {-64, 64}; })
                .find("damaged model: batches needs at least 0 bytes in the "
                      "arena of "),
            std::string::npos);
  std::vector<RepriseState> states;
  EXPECT_NE(refusal([&](ToyModel &toy) {
              states.assign(toy.model.states,
                            toy.model.states + toy.model.numStates);
              states[1].elementType = REPRISE_BF16;
              toy.model.states = states.data();
            }).find("damaged model: embedding needs to be f32, but has type 1"),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) {
              toy.model.numRotaries = 1;
              toy.model.rotaries = &kRotary;
            })
                .find("damaged model: rotary table 0 needs rows of pairs, but "
                      "got 8 rows of 3"),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) {
              toy.model.evaluate = 0;
              toy.model.evalLoss = {toy.model.arenaBytes, 4};
            })
                .find("damaged model: evalLoss needs at least 4 bytes in the "
                      "arena of "),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) {
              toy.model.sample = 0;
              toy.model.sampleTokens = {0, kLength * 4 - 1};
            })
                .find("damaged model: sampleTokens needs at least 84 bytes in "
                      "the arena of "),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) {
              toy.model.sample = 0;
              toy.model.sampleTokens = {0, kLength * 4};
              toy.model.position = {0, 4};
              toy.model.logits = {0, kVocab * 4 - 4};
            })
                .find("damaged model: logits needs at least 512 bytes in the "
                      "arena of "),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) {
              toy.micro[0].callee = 98;
            }).find("damaged model: launch embed names kind 0, callee 98 of"),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) {
              toy.model.evaluate = 2;
              toy.model.evalLoss = {0, 4};
            }).find("damaged model: goes forward by schedule 2 of 2"),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) { toy.program[1].microBatch = 0; })
                .find("damaged model: entry 1 of a step has schedule 0 of 2, "
                      "and micro-batch 0 behind 1 others"),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) {
              toy.program[2].schedule = 2;
            }).find("damaged model: entry 2 of a step has schedule 2 of 2"),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) { --toy.model.numEntries; })
                .find("damaged model: a step needs to begin with the first of "
                      "2 micro-batches and to end with an update, but has 2 "
                      "entries with 2 micro-batches"),
            std::string::npos);
  for (int32_t groups : {0, 3})
    EXPECT_NE(
        refusal([&](ToyModel &toy) { toy.model.reductionGroups = groups; })
            .find("damaged model: 2 micro-batches of a rank cannot be in " +
                  std::to_string(groups) + " groups"),
        std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) {
              toy.micro[0].callee = 99;
            }).find("damaged model: launch embed names kind 0, callee 99 of"),
            std::string::npos);
  // Its bias becomes C, and C what an epilogue makes beside that.
  RepriseGemm gemm;
  auto refusalOf = [&](int32_t epilogue, int64_t size) {
    return refusal([&](ToyModel &toy) {
      gemm = toy.model.gemms[0];
      gemm.bias = 0, gemm.epilogue = epilogue;
      gemm.m = gemm.n = size;
      toy.model.gemms = &gemm;
    });
  };
  EXPECT_NE(refusalOf(REPRISE_EPILOGUE_SUMS_OF_A, 1)
                .find("damaged model: GEMM logits has epilogue 1, which its "
                      "target does not have"),
            std::string::npos);
  EXPECT_NE(refusalOf(REPRISE_EPILOGUE_SQUARES_OF_C, 1 << 14)
                .find("damaged model: logits needs at least 8388608 bytes in "
                      "the arena of "),
            std::string::npos);
  EXPECT_NE(refusal([&](ToyModel &toy) {
              gemm = toy.model.gemms[0];
              gemm.bias = 0, gemm.epilogue = REPRISE_EPILOGUE_SQUARES_OF_C;
              gemm.typeC = REPRISE_BF16;
              toy.model.gemms = &gemm;
            })
                .find("damaged model: GEMM logits needs one C of f32 without "
                      "a bias for its squares"),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) {
              toy.model.numMicroKernels = 0;
            }).find("none of the 0 micro-kernels"),
            std::string::npos);
  EXPECT_NE(refusal([](ToyModel &toy) {
              toy.model.arenaBytes = INT64_C(1) << 60;
            }).find("the plan needs 1152921504606846976 bytes of memory"),
            std::string::npos);
}

// A training program must run where no C++ library is installed: whatever the
// archive leaves to others is C.
TEST(Archive, NeedsNothingOfTheCxxLibrary) {
  FILE *pipe = popen(REPRISE_NM " -u " REPRISE_RUNTIME_ARCHIVE, "r");
  ASSERT_NE(pipe, nullptr);
  char line[512];
  int symbols = 0;
  while (fgets(line, sizeof(line), pipe)) {
    std::string text = line;
    size_t at = text.find(" U ");
    if (at == std::string::npos)
      continue;
    ++symbols;
    std::string name = text.substr(at + 3);
    bool own = name.find("7reprise7runtime") != std::string::npos;
    EXPECT_TRUE(own || (name.rfind("_Z", 0) && name.rfind("__cxa", 0) &&
                        name.rfind("__gxx", 0)))
        << name;
  }
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_GT(symbols, 20);
}
