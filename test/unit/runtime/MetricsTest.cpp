//===- MetricsTest.cpp - A run's numbers in files -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TrainingRun.h"

#include "runtime/base/Crc32c.h"
#include "runtime/base/Outliers.h"
#include "runtime/show/Metrics.h"

#include <filesystem>
#include <map>
#include <sstream>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

/// The CRC-32C a bit at a time, as the polynomial says.
uint32_t slowCrc(const std::string &bytes) {
  uint32_t crc = ~0u;
  for (unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8u; }

template <typename T>
T read(const std::string &bytes, size_t at) {
  T value;
  EXPECT_LE(at + sizeof(T), bytes.size());
  memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// A reader of protocol buffers that knows of varints, doubles, floats and
/// bytes, and nothing of what they mean: field number to raw values.
std::multimap<int, std::string> fields(const std::string &message) {
  std::multimap<int, std::string> result;
  size_t at = 0;
  auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      auto byte = static_cast<unsigned char>(message.at(at++));
      value |= uint64_t(byte & 0x7F) << shift;
      if (!(byte & 0x80))
        return value;
    }
  };
  while (at < message.size()) {
    uint64_t tag = varint();
    size_t length = 0;
    switch (tag & 7) {
    case 0:
      result.insert({int(tag >> 3), std::to_string(varint())});
      continue;
    case 1:
      length = 8;
      break;
    case 2:
      length = varint();
      break;
    case 5:
      length = 4;
      break;
    default:
      ADD_FAILURE() << "wire type " << (tag & 7);
      return result;
    }
    EXPECT_LE(at + length, message.size());
    result.insert({int(tag >> 3), message.substr(at, length)});
    at += length;
  }
  return result;
}

/// The payloads of an event file, whose frames must be right to the last byte.
std::vector<std::string> records(const std::string &bytes) {
  std::vector<std::string> result;
  size_t at = 0;
  while (at < bytes.size()) {
    auto length = read<uint64_t>(bytes, at);
    EXPECT_EQ(read<uint32_t>(bytes, at + 8),
              masked(slowCrc(bytes.substr(at, 8))));
    result.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(read<uint32_t>(bytes, at + 12 + length),
              masked(slowCrc(result.back())));
    at += 16 + length;
  }
  EXPECT_EQ(at, bytes.size());
  return result;
}

std::vector<std::string> lines(const std::string &text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    result.push_back(line);
  return result;
}

class MetricsOfRun : public Training {
protected:
  void TearDown() override {
    Training::TearDown();
    std::filesystem::remove_all(stem + ".d");
    remove(table.c_str());
  }
  const std::string folder = stem + ".d/a/b", table = stem + ".csv";
};

} // namespace

TEST(Crc32c, IsThatOfThePolynomial) {
  // From RFC 3720, appendix B.4, and TensorBoard's masked_crc.rs.
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8A9136AAu);
  std::string text = "\x1a\x11"
                     "CRC test, one two";
  EXPECT_EQ(masked(crc32c(text.data(), text.size())), 0x5794D08Au);
  for (size_t size : {0, 1, 7, 8, 9, 31, 100}) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i)
      bytes += char(37 * i + size);
    EXPECT_EQ(crc32c(bytes.data(), size), slowCrc(bytes)) << size;
    uint32_t first = crc32c(bytes.data(), size / 3);
    EXPECT_EQ(crc32c(bytes.data() + size / 3, size - size / 3, first),
              slowCrc(bytes))
        << size;
  }
}

TEST(Outliers, CountInStandardDeviations) {
  Outliers outliers;
  for (int i = 1; i < Outliers::kWindow; ++i)
    EXPECT_TRUE(std::isnan(outliers.add(i % 2 ? 1 : -1))) << i;
  EXPECT_NEAR(outliers.add(-1), -1, 1e-12);
  // Now 64 of each. The next takes the place of the first, a 1.
  double mean = (63.0 - 64.0 + 10) / 128;
  double variance = (127.0 + 100) / 128 - mean * mean;
  EXPECT_NEAR(outliers.add(10), (10 - mean) / std::sqrt(variance), 1e-12);
  Outliers alike;
  for (int i = 0; i < Outliers::kWindow; ++i)
    alike.add(3);
  EXPECT_EQ(alike.add(3), 0);
}

TEST_F(MetricsOfRun, EventFileHasEveryStep) {
  toy.model.modelFlops = 1e6;
  Outcome outcome = train({"--steps=3", "--tensorboard", folder,
                           "--log-interval=9", "--peak-flops=1e12"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::filesystem::path path =
      std::filesystem::directory_iterator(folder)->path();
  EXPECT_TRUE(std::regex_match(
      path.filename().string(),
      std::regex("events\\.out\\.tfevents\\.\\d{10}\\..+\\.\\d+\\.0")))
      << path;
  std::vector<std::string> events = records(readFile(path));
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(fields(events[0]).find(3)->second, "brain.Event:2");
  // A session begins with step 1.
  auto session = fields(events[1]);
  EXPECT_EQ(session.find(2)->second, "1");
  EXPECT_EQ(session.find(7)->second, "\x08\x01"); // status: START
  events.erase(events.begin());
  for (int step : {1, 2, 3}) {
    auto event = fields(events[size_t(step)]);
    double time = read<double>(event.find(1)->second, 0);
    EXPECT_GT(time, 1.7e9);
    EXPECT_EQ(event.find(2)->second, std::to_string(step));
    auto summary = fields(event.find(5)->second);
    std::map<std::string, float> values;
    for (auto &[number, value] : summary) {
      EXPECT_EQ(number, 1);
      auto scalar = fields(value);
      values[scalar.find(1)->second] = read<float>(scalar.find(2)->second, 0);
    }
    EXPECT_EQ(values.size(), 9u);
    if (step != 2) // 2 is not in the log.
      EXPECT_EQ(values["loss"], float(outcome.loss(step)));
    EXPECT_EQ(values["lr"], 0.05f);
    EXPECT_EQ(values["memory/planned_gib"], values["memory/actual_gib"]);
    EXPECT_TRUE(values.count("mfu") && values.count("tokens_per_sec"));
  }
}

// Thing i lies from i to i + 1, as often as its amount says; more of them than
// a record of curves has bytes.
TEST_F(MetricsOfRun, EventFileHasABucketForEachExpert) {
  std::vector<float> rows(300);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = i % 7 ? float(i * i % 31) : 0;
  {
    EventFile events;
    reprise::runtime::Error error;
    ASSERT_TRUE(events.open(folder.c_str(), error)) << error.text;
    ASSERT_TRUE(events.add(5, {"rows/layer3", rows.data(), 300}, error));
    ASSERT_TRUE(events.add(6, {"rows/layer3", rows.data(), 1}, error));
  }
  std::vector<std::string> events =
      records(readFile(std::filesystem::directory_iterator(folder)->path()));
  ASSERT_EQ(events.size(), 3u);
  for (size_t size : {size_t(300), size_t(1)}) {
    auto event = fields(events[size == 1 ? 2 : 1]);
    EXPECT_EQ(event.find(2)->second, size == 1 ? "6" : "5");
    auto value = fields(fields(event.find(5)->second).find(1)->second);
    EXPECT_EQ(value.find(1)->second, "rows/layer3");
    auto histogram = fields(value.find(5)->second);
    auto number = [&](int field, size_t at = 0) {
      return read<double>(histogram.find(field)->second, 8 * at);
    };
    // TensorBoard spreads a bucket to the end of the range.
    size_t first = 0, last = size;
    while (first < size && rows[first] == 0)
      ++first;
    while (last > first && rows[last - 1] == 0)
      --last;
    EXPECT_EQ(number(1), first < size ? double(first) : 0);
    EXPECT_EQ(number(2), first < size ? double(last) : double(size));
    ASSERT_EQ(histogram.find(6)->second.size(), 8 * size);
    ASSERT_EQ(histogram.find(7)->second.size(), 8 * size);
    double count = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(number(6, i), double(i + 1));
      EXPECT_EQ(number(7, i), double(rows[i]));
      double middle = double(i) + 0.5, row = double(rows[i]);
      count += row;
      sum += middle * row;
      squares += middle * middle * row;
    }
    EXPECT_EQ(number(3), count);
    EXPECT_NEAR(number(4), sum, 1e-9 * sum);
    EXPECT_NEAR(number(5), squares, 1e-9 * squares);
  }
}

/// The number behind a key of a line of JSON.
static double numberOf(const std::string &line, const std::string &key) {
  size_t at = line.find("\"" + key + "\":");
  EXPECT_NE(at, line.npos) << key << " in " << line;
  return at == line.npos ? NAN : atof(line.c_str() + at + key.size() + 3);
}

// All are functions of the time that a step took, which nobody knows here.
TEST_F(MetricsOfRun, RatesAreThoseOfTheStepsTime) {
  toy.model.modelFlops = 3e6;
  toy.model.replayFlops = 1e6;
  Outcome outcome = train({"--steps=5", "--peak-flops=1e9"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  double tokens = double(toy.model.numMicroBatches * toy.model.microBatchSize *
                         toy.model.seqLength);
  double total = 0;
  int step = 0;
  for (const std::string &line : lines(outcome.out)) {
    if (line.rfind("{\"step\":", 0) == 0) {
      double seconds = numberOf(line, "ms") * 1e-3;
      total += seconds;
      ++step;
      auto ratio = [&](const char *key, double expected) {
        EXPECT_NEAR(numberOf(line, key) / expected, 1, 3e-5) << key << line;
      };
      ratio("tokens_per_s", tokens / seconds);
      ratio("mfu", 3e6 / (1e9 * seconds));
      ratio("hfu", 4e6 / (1e9 * seconds));
      if (step < 5)
        ratio("seconds_left", (5 - step) * total / step);
      else
        EXPECT_EQ(numberOf(line, "seconds_left"), 0);
    }
    if (line.rfind("{\"event\":\"end\"", 0) == 0) {
      EXPECT_NEAR(numberOf(line, "seconds") / total, 1, 3e-5) << line;
      total = 0;
    }
  }
  EXPECT_EQ(step, 5);
  EXPECT_EQ(total, 0) << "needs a line for the end";
  // Without steps there is nothing to divide by.
  outcome = train({"--steps=0", "--profile"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("nan"), std::string::npos) << outcome.out;
}

// The most that was seen of a machine is kept, and no step is above it.
TEST_F(MetricsOfRun, ThePeakIsKeptBesideCheckpoints) {
  toy.model.modelFlops = 1e15; // A step that would take any machine longer.
  const std::string save = stem + ".d/save", file = save + "/machine.json";
  auto peakOf = [&](const std::vector<std::string> &args, int steps) {
    Outcome outcome = train(args);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    double peak = 0, last = 0;
    for (const std::string &line : lines(outcome.out)) {
      if (line.rfind("{\"event\":\"plan\"", 0) == 0)
        peak = numberOf(line, "peak_flops");
      if (line.rfind("{\"step\":", 0) == 0) {
        --steps;
        last = numberOf(line, "mfu");
        EXPECT_GT(last, 0);
        EXPECT_LE(last, 1);
      }
    }
    EXPECT_EQ(steps, 0);
    return peak;
  };
  double first = peakOf({"--steps=3", "--save", save}, 3);
  std::string text = readFile(file);
  EXPECT_EQ(text.find("{\n  \"machine\": \""), 0u) << text;
  double kept = numberOf(text, "peak_flops");
  EXPECT_GT(kept, 1e15); // That of the fastest step.
  EXPECT_GT(kept, first);
  EXPECT_NEAR(peakOf({"--steps=4", "--save", save, "--resume=auto"}, 1) / kept,
              1, 1e-5);
  // That of another machine, and what is no such file, do not count.
  for (const char *other :
       {"{\"machine\": \"x\", \"peak_flops\": 9e30}", "{", ""}) {
    std::filesystem::remove(file);
    std::ofstream(file) << other;
    EXPECT_LT(peakOf({"--steps=4", "--save", save, "--resume=auto"}, 0), 1e15);
  }
}

TEST_F(MetricsOfRun, TableGoesOn) {
  ASSERT_EQ(train({"--steps=2", "--csv", table}).status, 0);
  Outcome second = train({"--steps=1", "--csv", table});
  std::vector<std::string> rows = lines(readFile(table));
  ASSERT_EQ(rows.size(), 4u);
  auto commas = [](const std::string &row) {
    return std::count(row.begin(), row.end(), ',');
  };
  EXPECT_EQ(rows[0].rfind("step,loss,grad_norm,lr,ms,", 0), 0u) << rows[0];
  for (const std::string &row : rows)
    EXPECT_EQ(commas(row), 13) << row;
  EXPECT_EQ(rows[1].rfind("1,", 0), 0u) << rows[1];
  EXPECT_EQ(rows[2].rfind("2,", 0), 0u) << rows[2];
  EXPECT_EQ(rows[3].rfind("1,", 0), 0u) << rows[3];
  EXPECT_EQ(float(atof(rows[3].c_str() + 2)), float(second.loss(1)));
  ShowOptions options;
  options.csv = table.c_str();
  Metrics metrics(toy.model);
  reprise::runtime::Error error;
  ASSERT_TRUE(metrics.open(options, 6, error)) << error.text;
  ASSERT_TRUE(metrics.validation(7, 0.5f, error)) << error.text;
  std::string last = lines(readFile(table)).back();
  EXPECT_EQ(last, "7,,,,,,,,,,,,,0.5");
  EXPECT_EQ(commas(last), 13);
}

// It is in the step's row, as short or long as it may be.
TEST_F(MetricsOfRun, AValidationCompletesTheRowOfItsStep) {
  ShowOptions options;
  options.csv = table.c_str();
  reprise::runtime::Error error;
  StepReport report = {};
  report.loss = 2.5;
  {
    Metrics metrics(toy.model);
    ASSERT_TRUE(metrics.open(options, 0, error)) << error.text;
    ASSERT_TRUE(metrics.step(report, error));
    ASSERT_TRUE(metrics.validation(1, 0.123456789f, error));
    ASSERT_TRUE(metrics.validation(1, 0.5f, error));
    report.step = 1;
    ASSERT_TRUE(metrics.step(report, error));
    ASSERT_TRUE(metrics.validation(2, 3.25f, error)) << error.text;
  }
  auto ends = [](const std::string &row) { return row.substr(row.rfind(',')); };
  std::vector<std::string> rows = lines(readFile(table));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].rfind("1,2.5,", 0), 0u) << rows[1];
  EXPECT_EQ(ends(rows[1]), ",0.5");
  EXPECT_EQ(rows[2].rfind("2,2.5,", 0), 0u) << rows[2];
  EXPECT_EQ(ends(rows[2]), ",3.25");
  // A run that goes on and has nothing to do but this.
  {
    options.resume = "auto";
    Metrics metrics(toy.model);
    ASSERT_TRUE(metrics.open(options, 2, error)) << error.text;
    ASSERT_TRUE(metrics.validation(2, 4.0f, error)) << error.text;
  }
  rows = lines(readFile(table));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].rfind("2,2.5,", 0), 0u) << rows[2];
  EXPECT_EQ(ends(rows[2]), ",4");
  // Where nothing can be changed, the complete row comes last.
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  std::string name = "/dev/fd/" + std::to_string(pipes[1]);
  options.csv = name.c_str();
  {
    Metrics metrics(toy.model);
    ASSERT_TRUE(metrics.open(options, 1, error)) << error.text;
    ASSERT_TRUE(metrics.step(report, error));
    ASSERT_TRUE(metrics.validation(2, 0.75f, error)) << error.text;
  }
  close(pipes[1]);
  char text[2048];
  ssize_t size = ::read(pipes[0], text, sizeof(text));
  close(pipes[0]);
  rows = lines(std::string(text, size_t(std::max<ssize_t>(size, 0))));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1] + "0.75", rows[2]);
}

// The rows that a run writes anew are no longer there, nor lost.
TEST_F(MetricsOfRun, ARunThatGoesOnSupersedesLaterRows) {
  ASSERT_EQ(train({"--steps=3", "--csv", table}).status, 0);
  const std::string other = readFile(table);
  ASSERT_EQ(train({"--steps=4", "--csv", table}).status, 0);
  std::vector<std::string> before = lines(readFile(table));
  ASSERT_EQ(before.size(), 8u);
  std::ofstream(table, std::ios::binary | std::ios::app) << "5,1.0";
  ShowOptions options;
  options.csv = table.c_str();
  options.resume = "auto";
  reprise::runtime::Error error;
  {
    Metrics metrics(toy.model);
    ASSERT_TRUE(metrics.open(options, 2, error)) << error.text;
    StepReport report = {};
    report.step = 2;
    report.loss = 7;
    ASSERT_TRUE(metrics.step(report, error));
  }
  const std::string text = readFile(table);
  EXPECT_EQ(text.rfind(other, 0), 0u); // Those of another run stay.
  std::vector<std::string> rows = lines(text);
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows[5], before[5]);
  EXPECT_EQ(rows[6].rfind("3,7,", 0), 0u) << rows[6];
  EXPECT_EQ(readFile(table + ".old"),
            before[6] + "\n" + before[7] + "\n5,1.0\n");
  // Nothing to supersede: it is as it was.
  const auto written = std::filesystem::last_write_time(table + ".old");
  {
    Metrics metrics(toy.model);
    ASSERT_TRUE(metrics.open(options, 3, error)) << error.text;
  }
  EXPECT_EQ(readFile(table), text);
  EXPECT_EQ(std::filesystem::last_write_time(table + ".old"), written);
  // A run that is not one that goes on leaves all rows.
  options.resume = nullptr;
  {
    Metrics metrics(toy.model);
    ASSERT_TRUE(metrics.open(options, 0, error)) << error.text;
  }
  EXPECT_EQ(readFile(table), text);
  remove((table + ".old").c_str());
}

// TensorBoard drops what other files have of that step and of later ones.
TEST_F(MetricsOfRun, ARunThatGoesOnBeginsASession) {
  ShowOptions options;
  options.tensorboard = folder.c_str();
  reprise::runtime::Error error;
  Metrics metrics(toy.model);
  ASSERT_TRUE(metrics.open(options, 6, error)) << error.text;
  std::vector<std::string> events =
      records(readFile(std::filesystem::directory_iterator(folder)->path()));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(fields(events[1]).find(2)->second, "7");
  EXPECT_EQ(fields(events[1]).find(7)->second, "\x08\x01");
}

TEST_F(MetricsOfRun, OnlyATableOfItsOwnGoesOn) {
  std::ofstream(table) << "name,value\n1,2\n";
  Outcome outcome = train({"--steps=1", "--csv", table});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err.find("train: error: cannot append to '" + table +
                             "': its first line is 'name,value', but that of "
                             "this table 'step,loss,"),
            0u)
      << outcome.err;
  EXPECT_EQ(readFile(table), "name,value\n1,2\n");
  // A line that was cut off stays one.
  remove(table.c_str());
  ASSERT_EQ(train({"--steps=1", "--csv", table}).status, 0);
  std::string cut = readFile(table);
  cut.resize(cut.size() - 9);
  std::ofstream(table, std::ios::binary) << cut;
  ASSERT_EQ(train({"--steps=1", "--csv", table}).status, 0);
  EXPECT_EQ(readFile(table).rfind(cut + "\n1,", 0), 0u);
}

// What is written is never what is read.
TEST_F(MetricsOfRun, OutputsAreNoInputs) {
  const std::string link = stem + ".link", step = folder + "/step-00000001";
  std::filesystem::create_directories(step);
  for (const char *name : {"/trainer.json", "/tokenizer.json"})
    std::ofstream(step + name) << "{}";
  std::ofstream(folder + "/model.safetensors") << "x";
  std::filesystem::create_hard_link(data, link);
  auto refusal = [&](std::vector<std::string> args) {
    args.push_back("--steps=1");
    Outcome outcome = train(args);
    EXPECT_EQ(outcome.status, 1);
    std::string text = outcome.err;
    for (size_t at; (at = text.find(stem)) != text.npos;)
      text.erase(at, stem.size());
    return text;
  };
  const std::string start = "train: error: ";
  EXPECT_EQ(refusal({"--csv", data}),
            start +
                "--csv '.txt' would write over what --data reads, '.txt'\n");
  EXPECT_EQ(refusal({"--dump", link}),
            start +
                "--dump '.link' would write over what --data reads, '.txt'\n");
  std::ofstream(dump) << "x";
  EXPECT_EQ(refusal({"--dump", dump, "--val-data", stem + ".safe*"}),
            start + "--dump '.safetensors' would write over what --val-data "
                    "reads, '.safetensors'\n");
  EXPECT_EQ(
      refusal({"--dump", folder + "/model.safetensors", "--init-from", folder}),
      start + "--dump '.d/a/b/model.safetensors' would write over what "
              "--init-from reads, '.d/a/b/model.safetensors'\n");
  EXPECT_EQ(refusal({"--dump", table, "--csv", table}),
            start + "--csv and --dump would both write '.csv'\n");
  for (const char *option : {"--csv", "--dump", "--tensorboard"})
    EXPECT_EQ(refusal({option, step + "/new/x"}),
              start + option +
                  " '.d/a/b/step-00000001/new/x' lies in the "
                  "checkpoint '.d/a/b/step-00000001', which must "
                  "stay as it was written\n");
  EXPECT_EQ(readFile(data), readFile(link));
  remove(link.c_str());
}

TEST_F(MetricsOfRun, PlacesThatCannotBeWritten) {
  Outcome outcome = train({"--csv", "/nowhere/t.csv"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("cannot write '/nowhere/t.csv': No such file or "
                             "directory"),
            std::string::npos)
      << outcome.err;
  outcome = train({"--tensorboard", data + "/x"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("Not a directory"), std::string::npos)
      << outcome.err;
  outcome = train({"--steps=1", "--csv", "/dev/full"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("cannot write '/dev/full': No space left"),
            std::string::npos)
      << outcome.err;
}

TEST_F(MetricsOfRun, UpdatesThatStandOutAreLeftOut) {
  // With a limit that every loss above the mean exceeds, steps after the first
  // 128 are left out as soon as one is; without one, none.
  auto skipped = [](const Outcome &outcome) {
    std::vector<int> steps;
    for (const std::string &line : lines(outcome.out))
      if (int step = 0; line.find("\"skipped\":true") != std::string::npos &&
                        sscanf(line.c_str(), "{\"step\":%d", &step) == 1)
        steps.push_back(step);
    return steps;
  };
  Outcome free = train({"--steps=140"});
  EXPECT_TRUE(skipped(free).empty());
  Outcome guarded =
      train({"--steps=140", "--skip-grad-z=0.001", "--dump", dump});
  std::vector<int> steps = skipped(guarded);
  ASSERT_FALSE(steps.empty());
  EXPECT_GE(steps[0], 128);
  // Up to there both are the same, and a step that is left out changes nothing:
  // its gradients are gone in the next one.
  std::vector<std::string> a = lines(free.steps()), b = lines(guarded.steps());
  for (int i = 0; i < steps[0]; ++i)
    EXPECT_EQ(a[size_t(i)], b[size_t(i)]);
  EXPECT_NE(a[size_t(steps[0])], b[size_t(steps[0])]);
  auto norm = [](const std::string &line) {
    return atof(line.c_str() + line.find("\"grad_norm\":") + 12);
  };
  size_t next = size_t(steps[0]);
  EXPECT_NEAR(norm(b[next]) / norm(a[next]), 1, 0.1) << a[next] << b[next];
}

TEST_F(MetricsOfRun, EndComparesThePlanWithPagesInUse) {
  Outcome outcome = train({"--steps=1"});
  std::smatch match;
  std::regex line("\\{\"event\":\"memory\",\"categories\":\\{\"parameters and "
                  "optimizer\":\\{\"planned_bytes\":(\\d+),\"resident_bytes\":"
                  "(\\d+)\\}.*\"process_bytes\":(\\d+)\\}");
  ASSERT_TRUE(std::regex_search(outcome.out, match, line)) << outcome.out;
  EXPECT_EQ(match[1], match[2]);
  EXPECT_GT(atoll(match[3].str().c_str()), toy.model.arenaBytes);
}
