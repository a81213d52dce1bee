//===- OptionsTest.cpp - The command line ---------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/Options.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

using namespace reprise::runtime;

namespace {

struct Parsed {
  Options options;
  Error error;
  bool good;

  explicit Parsed(std::vector<const char *> args) {
    RepriseModel model = {};
    model.trainIters = model.decayIters = 200;
    model.seed = 1337;
    args.insert(args.begin(), "train");
    good = parseOptions(int(args.size()), const_cast<char **>(args.data()),
                        model, options, error);
  }
};

std::string refusal(std::vector<const char *> args) {
  Parsed parsed(args);
  EXPECT_FALSE(parsed.good);
  return parsed.error.text;
}

} // namespace

// A program of one rank has nobody to wait for.
TEST(Options, ATimeoutNeedsSeveralRanks) {
  EXPECT_EQ(refusal({"--data=x", "--timeout=5"}),
            "--timeout needs a program of several ranks, but this one is for "
            "one");
}

TEST(Options, DefaultsComeFromTheModel) {
  Parsed parsed({"--data", "x.txt"});
  ASSERT_TRUE(parsed.good) << parsed.error.text;
  ASSERT_EQ(parsed.options.data.size(), 1);
  EXPECT_STREQ(parsed.options.data[0], "x.txt");
  EXPECT_FALSE(parsed.options.dtype);
  EXPECT_EQ(parsed.options.steps, 200);
  EXPECT_EQ(parsed.options.seed, 1337u);
  EXPECT_GE(parsed.options.threads, 1);
  EXPECT_TRUE(parsed.options.shuffled);
  EXPECT_FALSE(parsed.options.json);
}

TEST(Options, ValuesFollowAfterASpaceOrAnEqualsSign) {
  Parsed parsed({"--data=x.txt", "--steps=3", "--threads", "2", "--seed=0",
                 "--log-format", "json", "--data_order=sequential",
                 "--log-interval=25", "--check-memory", "--profile", "--dump",
                 "d.safetensors"});
  ASSERT_TRUE(parsed.good) << parsed.error.text;
  EXPECT_EQ(parsed.options.steps, 3);
  EXPECT_EQ(parsed.options.threads, 2);
  EXPECT_EQ(parsed.options.seed, 0u);
  EXPECT_TRUE(parsed.options.json);
  EXPECT_EQ(parsed.options.logInterval, 25);
  EXPECT_FALSE(parsed.options.shuffled);
  EXPECT_TRUE(parsed.options.checkMemory);
  EXPECT_TRUE(parsed.options.profile);
  EXPECT_STREQ(parsed.options.dump, "d.safetensors");
}

TEST(Options, UnknownNamesGetTheNearestKnownOne) {
  EXPECT_EQ(refusal({"--dat", "x"}),
            "unknown option --dat; did you mean --data?");
  EXPECT_EQ(refusal({"--thread=2"}),
            "unknown option --thread; did you mean --threads?");
  EXPECT_EQ(refusal({"--frobnicate"}),
            "unknown option --frobnicate; --help lists all");
  // Names of other programs, and what is said when the program is compiled.
  EXPECT_EQ(refusal({"--max_steps=3"}),
            "unknown option --max-steps; did you mean --steps?");
  EXPECT_EQ(refusal({"--eval-iters", "3"}),
            "unknown option --eval-iters; did you mean --val-steps?");
  EXPECT_EQ(refusal({"--lr=1"}),
            "unknown option --lr: what it says is compiled into the program; "
            "it is an option of reprisec, or a key of the description");
  EXPECT_EQ(refusal({"-steps=3"}),
            "unknown option -steps=3; did you mean --steps=3?");
  EXPECT_EQ(refusal({"x.txt"}),
            "needs options such as --data FILE, but got 'x.txt'");
  EXPECT_NE(
      refusal({("--" + std::string(300, 'x')).c_str()}).find("unknown option"),
      std::string::npos);
}

TEST(Options, DataMayBeGivenAgain) {
  Parsed parsed({"--data=a", "--dtype=u32", "--data", "b"});
  ASSERT_TRUE(parsed.good) << parsed.error.text;
  ASSERT_EQ(parsed.options.data.size(), 2);
  EXPECT_STREQ(parsed.options.data[1], "b");
  EXPECT_EQ(parsed.options.dtype, TokenType::U32);
  EXPECT_EQ(Parsed({"--data=a", "--dtype=u16"}).options.dtype, TokenType::U16);
  EXPECT_EQ(Parsed({"--data=a", "--dtype=u8"}).options.dtype, TokenType::U8);
  EXPECT_EQ(Parsed({"--data=a", "--dtype=i64"}).options.dtype, TokenType::I64);
  EXPECT_EQ(refusal({"--data=a", "--dtype=f32"}),
            "--dtype needs 'u8', 'u16', 'u32', 'i32' or 'i64', but got 'f32'");
  // Lists, and what a shell makes of a pattern without quotes.
  Parsed list({"--data", "1.bin", "2.bin", "--val-data=3", "4", "--data", "5"});
  ASSERT_TRUE(list.good) << list.error.text;
  ASSERT_EQ(list.options.data.size(), 3);
  EXPECT_STREQ(list.options.data[1], "2.bin");
  EXPECT_STREQ(list.options.data[2], "5");
  ASSERT_EQ(list.options.valData.size(), 2);
  EXPECT_STREQ(list.options.valData[1], "4");
  EXPECT_EQ(refusal({"--data", "1.bin", ""}),
            "--data needs a file name, but got ''");
  EXPECT_EQ(refusal({"--data=a", "--steps", "3", "4"}),
            "needs options such as --data FILE, but got '4' behind --steps 3, "
            "which takes one word");
  EXPECT_EQ(refusal({"--tf32", "on"}),
            "needs options such as --data FILE, but got 'on' behind --tf32, "
            "which is true or false");
  EXPECT_EQ(refusal({"--data=a", "-O2"}),
            "unknown option -O2; --help lists all");
  EXPECT_EQ(refusal(std::vector<const char *>(65, "--data=a")),
            "--data takes up to 64 files; a pattern in quotes stands for any "
            "number of them");
}

TEST(Options, WeightsAndCheckpoints) {
  Parsed parsed({"--data=f", "--save=d", "--save-interval=5", "--keep-last=2",
                 "--resume", "auto", "--steps=0"});
  ASSERT_TRUE(parsed.good) << parsed.error.text;
  EXPECT_STREQ(parsed.options.save, "d");
  EXPECT_STREQ(parsed.options.resume, "auto");
  EXPECT_EQ(parsed.options.saveInterval, 5);
  EXPECT_EQ(parsed.options.keepLast, 2);
  EXPECT_EQ(parsed.options.steps, 0);
  EXPECT_STREQ(Parsed({"--data=f", "--init-from=w"}).options.initFrom, "w");
  EXPECT_TRUE(Parsed({"--data=f", "--resume=d"}).good);
  EXPECT_EQ(refusal({"--data=f", "--init-from=w", "--resume=d"}),
            "needs --init-from or --resume, but got both: where should the "
            "parameters come from?");
  EXPECT_EQ(refusal({"--data=f", "--save-interval=5"}),
            "--save-interval needs --save DIR");
  EXPECT_EQ(refusal({"--data=f", "--keep-last=5"}),
            "--keep-last needs --save DIR");
  EXPECT_EQ(refusal({"--data=f", "--resume=auto"}),
            "--resume auto needs --save DIR");
  EXPECT_EQ(Parsed({"--data=f", "--save=d", "--save-from=arena"})
                .options.saveFromCopy,
            false);
  EXPECT_EQ(refusal({"--data=f", "--save-from=arena"}),
            "--save-from needs --save DIR");
  EXPECT_EQ(refusal({"--data=f", "--save=d", "--keep-last=1"}),
            "--keep-last needs a whole number from 2 to 1099511627776, but got "
            "'1'");
}

TEST(Options, WrongValuesAreNamed) {
  for (const char *wrong : {"x", "-3", "1.5", "", " 7", "99x"})
    EXPECT_EQ(refusal({"--data=f", "--steps", wrong}),
              "--steps needs a whole number from 0 to 1099511627776, but "
              "got '" +
                  std::string(wrong) + "'");
  // A number in another spelling: how it is written.
  for (auto [wrong, write] : std::vector<std::pair<const char *, const char *>>{
           {"1e3", "1000"},
           {"1_000", "1000"},
           {"1,000,000", "1000000"},
           {"+7", "7"},
           {"2.0", "2"}})
    EXPECT_EQ(
        refusal({"--data=f", "--steps", wrong}),
        "--steps needs a whole number from 0 to 1099511627776, but got '" +
            std::string(wrong) + "'; write " + write);
  EXPECT_EQ(refusal({"--data=f", "--threads=1e9"}),
            "--threads needs a whole number from 1 to 512, but got '1e9'");
  EXPECT_EQ(refusal({"--data=f", "--threads=9999"}),
            "--threads needs a whole number from 1 to 512, but got '9999'");
  for (const char *large :
       {"9223372036854775808", "18446744073709551615", "99999999999999999999"})
    EXPECT_EQ(refusal({"--data=f", "--seed", large}),
              "--seed needs a whole number from 0 to 9223372036854775807, but "
              "got '" +
                  std::string(large) + "'");
  EXPECT_EQ(refusal({"--data=f", "--log-interval=0"}),
            "--log-interval needs a whole number from 1 to 1099511627776, but "
            "got '0'");
  EXPECT_EQ(refusal({"--data=f", "--log-format=xml"}),
            "--log-format needs 'text' or 'json', but got 'xml'");
  EXPECT_EQ(refusal({"--data=f", "--data-order=shuffle"}),
            "--data-order needs 'shuffled' or 'sequential', but got 'shuffle'");
  EXPECT_EQ(refusal({"--data=f", "--profile=yes"}),
            "--profile needs no value, true or false, but got 'yes'");
  EXPECT_EQ(refusal({"--data=f", "--steps"}), "--steps needs a value: N");
  EXPECT_EQ(refusal({"--data="}), "--data needs a file name, but got ''");
  EXPECT_EQ(refusal({"--data=-"}),
            "--data needs a file, but got '-': standard input cannot be mapped "
            "(a file of that name is ./-)");
  EXPECT_EQ(refusal({"--data=f", "--save=~/runs"}),
            "--save needs a path, but got '~/runs': a shell makes a home of ~ "
            "in a word of its own, as in --save ~/runs (a folder of that name "
            "is ./~)");
  EXPECT_TRUE(Parsed({"--data=./~/f", "--save=a/~b"}).good);
  EXPECT_EQ(refusal({"--data=f", "--dump", "-"}),
            "--dump needs a file, but got '-': standard output has the log (a "
            "file of that name is ./-)");
}

TEST(Options, WhatHasNoEffectIsRefused) {
  for (const char *option :
       {"--prompt", "--temperature", "--top-k", "--sample-interval"})
    EXPECT_EQ(refusal({"--data=f", option, "1"}),
              std::string(option) + " needs --sample N");
  for (const char *option : {"--val-steps", "--val-interval"})
    EXPECT_EQ(refusal({"--data=f", option, "1"}),
              std::string(option) + " needs --val-data FILE");
  EXPECT_TRUE(Parsed({"--data=f", "--sample=3", "--temperature=1",
                      "--val-data=g", "--val-steps=1"})
                  .good);
  EXPECT_EQ(refusal({"--data=f", "--seed=1", "--seed", "2"}),
            "--seed is given twice, with '1' and '2': which one is meant?");
  EXPECT_EQ(refusal({"--data=f", "--log_format=json", "--log-format=text"}),
            "--log-format is given twice, with 'json' and 'text': which one "
            "is meant?");
  EXPECT_EQ(refusal({"--data=f", "--tf32", "--tf32=false"}),
            "--tf32 is given twice, with 'true' and 'false': which one is "
            "meant?");
}

TEST(Options, ToSayTheSameAgainSaysNothingNew) {
  Parsed again({"--data=f", "--seed=7", "--seed", "7", "--tf32", "--tf32=true",
                "--log-format=json", "--log-format", "json"});
  EXPECT_TRUE(again.good) << again.error.text;
  EXPECT_EQ(again.options.seed, 7u);
  EXPECT_TRUE(again.options.tf32);
  EXPECT_TRUE(again.options.json);
  Parsed number({"--data=f", "--steps=1", "--steps", "01", "--sample=3",
                 "--temperature=1", "--temperature=1.0", "--seed=07",
                 "--seed=7"});
  EXPECT_TRUE(number.good) << number.error.text;
  EXPECT_EQ(number.options.steps, 1);
  EXPECT_EQ(refusal({"--data=f", "--steps=1", "--steps=1x"}),
            "--steps needs a whole number from 0 to 1099511627776, but got "
            "'1x'");
  // These differ by less than a double has digits for.
  EXPECT_EQ(refusal({"--data=f", "--seed=9007199254740993",
                     "--seed=9007199254740992"}),
            "--seed is given twice, with '9007199254740993' and "
            "'9007199254740992': which one is meant?");
}

TEST(Options, SwitchesAreTrueOrFalse) {
  Parsed on({"--check-memory=True", "--tf32", "true", "--data=f"});
  EXPECT_TRUE(on.good) << on.error.text;
  EXPECT_TRUE(on.options.checkMemory);
  EXPECT_TRUE(on.options.tf32);
  Parsed off({"--check-memory=false", "--tf32", "false", "--data=f"});
  EXPECT_TRUE(off.good) << off.error.text;
  EXPECT_FALSE(off.options.checkMemory);
  EXPECT_FALSE(off.options.tf32);
}

TEST(Options, DataIsNeededUnlessOnlyHelpIsAskedFor) {
  EXPECT_EQ(refusal({}), "--data FILE is missing: what to train on");
  EXPECT_TRUE(Parsed({"--help"}).options.help);
  EXPECT_TRUE(Parsed({"-h"}).options.help);
  EXPECT_TRUE(Parsed({"--version"}).good);
}

TEST(Options, HelpMayBeAboutAWord) {
  auto help = [](std::vector<const char *> args) {
    Parsed parsed(args);
    EXPECT_TRUE(parsed.good) << parsed.error.text;
    testing::internal::CaptureStdout();
    printHelp("train", RepriseModel(), parsed.options.help);
    fflush(stdout);
    return testing::internal::GetCapturedStdout();
  };
  const std::string loss = help({"--help", "Val_"});
  EXPECT_EQ(loss.find("Options about 'Val_' (--help lists all):\n"
                      "  --val-data FILE...        measure the loss"),
            0u)
      << loss;
  EXPECT_NE(loss.find("--val-steps"), loss.npos);
  EXPECT_EQ(loss.find("--seed"), loss.npos);
  EXPECT_EQ(help({"-h", "val_"}).size(), help({"--help=val_"}).size());
  EXPECT_NE(help({"--help", "--seed=1"}).find("--seed N"), loss.npos);
  EXPECT_EQ(refusal({"--help", "optimizer"}),
            "--help: no option is about 'optimizer'; --help lists all");
  EXPECT_EQ(refusal({"--help", "data", "seed"}),
            "needs options such as --data FILE, but got 'seed' behind --help "
            "data, which takes one word");
}
