//===- CostTable.cpp - How fast a machine is --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Interfaces/CostTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace reprise;

static constexpr std::pair<llvm::StringLiteral, double CostTable::*> kRates[] =
    {{"product_flops_per_second", &CostTable::productFlopsPerSecond},
     {"product_bf16_flops_per_second", &CostTable::productBF16FlopsPerSecond},
     {"attention_flops_per_second", &CostTable::attentionFlopsPerSecond},
     {"attention_bf16_flops_per_second",
      &CostTable::attentionBF16FlopsPerSecond},
     {"pointwise_flops_per_second", &CostTable::pointwiseFlopsPerSecond},
     {"memory_bytes_per_second", &CostTable::memoryBytesPerSecond},
     {"seconds_per_launch", &CostTable::secondsPerLaunch},
     {"link_bytes_per_second", &CostTable::linkBytesPerSecond},
     {"seconds_per_message", &CostTable::secondsPerMessage},
     {"network_bytes_per_second", &CostTable::networkBytesPerSecond},
     {"network_seconds_per_message", &CostTable::networkSecondsPerMessage},
     {"ranks_per_machine", &CostTable::ranksPerMachine}};

void reprise::setExchange(Workload &load, llvm::StringRef axis, int64_t ranks,
                          int64_t bytes, bool hasWholeSums) {
  int64_t rounds = hasWholeSums ? 2 : 1;
  load.work = Work::Exchange;
  load.axis = axis.str();
  load.messages = rounds * (ranks - 1);
  load.sentBytes = rounds * (bytes - llvm::divideCeil(bytes, ranks));
}

void CostTable::addAxis(llvm::StringRef name, int64_t size, int64_t stride,
                        int64_t ranks) {
  double reach = double(size) * stride; // Groups lie within so many ranks.
  bool fits =
      reach <= ranksPerMachine &&
      (ranks <= ranksPerMachine || std::fmod(ranksPerMachine, reach) == 0);
  if (size > 1 && !fits)
    axesAcross.insert(name);
}

double CostTable::getSeconds(int64_t flops, int64_t bytes, Work work,
                             bool isBF16) const {
  double rate = pointwiseFlopsPerSecond;
  if (work == Work::Product)
    rate = isBF16 ? productBF16FlopsPerSecond : productFlopsPerSecond;
  else if (work == Work::Attention)
    rate = isBF16 ? attentionBF16FlopsPerSecond : attentionFlopsPerSecond;
  return secondsPerLaunch +
         std::max(flops / rate, bytes / memoryBytesPerSecond);
}

double CostTable::getSeconds(const Workload &load) const {
  auto known = measured.find(load.key);
  if (known != measured.end())
    return known->second;
  if (load.work == Work::Exchange) {
    bool isAcross = axesAcross.contains(load.axis);
    double rate = isAcross ? networkBytesPerSecond : linkBytesPerSecond;
    double message = isAcross ? networkSecondsPerMessage : secondsPerMessage;
    return load.messages * message + load.sentBytes / rate;
  }
  return getSeconds(load.flops, load.bytes, load.work, load.isBF16);
}

CostTable CostTable::getCPU() {
  CostTable table;
  table.machine = "two cores of an x86-64-v3 server";
  table.productFlopsPerSecond = 180e9;
  table.productBF16FlopsPerSecond = 180e9;
  table.attentionFlopsPerSecond = 60e9;
  table.attentionBF16FlopsPerSecond = 60e9;
  table.pointwiseFlopsPerSecond = 8e9;
  table.memoryBytesPerSecond = 30e9;
  table.secondsPerLaunch = 5e-6;
  table.linkBytesPerSecond = 2.5e9;
  table.secondsPerMessage = 10e-6;
  table.networkBytesPerSecond = 1.2e9;
  table.networkSecondsPerMessage = 30e-6;
  table.ranksPerMachine = 8;
  return table;
}

namespace {
/// What a vendor says of a GPU: dense FLOPs, and bytes of memory, per second;
/// what NCCL gets of its link to others of the machine; and the network of a
/// machine with an adapter for each. Sources in docs/report.md.
struct DataSheet {
  llvm::StringLiteral name, machine;
  double f32, bf16, memory, link, network;
};
} // namespace

static constexpr DataSheet kDataSheets[] = {
    {"a100", "an A100 (SXM, 80 GB), from its data sheet", 19.5e12, 312e12,
     2.039e12, 240e9, 25e9},
    {"h100", "an H100 (SXM), from its data sheet", 67e12, 989e12, 3.35e12,
     371e9, 50e9},
    {"h200", "an H200 (SXM), from its data sheet", 67e12, 989e12, 4.8e12, 371e9,
     50e9},
    {"b200", "a B200 (HGX), from its data sheet", 75e12, 2250e12, 7.7e12, 722e9,
     50e9},
};

/// What is left of a data sheet where kernels run.
static constexpr double kProductEfficiency = 0.62,
                        kAttentionEfficiency = 0.75 * kProductEfficiency,
                        kPointwiseEfficiency = 0.25, kMemoryEfficiency = 0.8;
/// From one kernel of a graph to the next.
static constexpr double kSecondsPerKernel = 1e-6;
/// Of NCCL: a hop over NVLink, and over the network.
static constexpr double kSecondsPerHop = 3.4e-6, kSecondsPerNetworkHop = 14e-6;
/// GPUs that have links to each other.
static constexpr double kGpusPerMachine = 8;

std::optional<CostTable> CostTable::get(llvm::StringRef name) {
  if (name == "cpu")
    return getCPU();
  for (const DataSheet &sheet : kDataSheets) {
    if (sheet.name != name)
      continue;
    CostTable table;
    table.machine = sheet.machine.str();
    table.productFlopsPerSecond = kProductEfficiency * sheet.f32;
    table.productBF16FlopsPerSecond = kProductEfficiency * sheet.bf16;
    table.attentionFlopsPerSecond = kAttentionEfficiency * sheet.f32;
    table.attentionBF16FlopsPerSecond = kAttentionEfficiency * sheet.bf16;
    table.pointwiseFlopsPerSecond = kPointwiseEfficiency * sheet.f32;
    table.memoryBytesPerSecond = kMemoryEfficiency * sheet.memory;
    table.secondsPerLaunch = kSecondsPerKernel;
    table.linkBytesPerSecond = sheet.link;
    table.secondsPerMessage = kSecondsPerHop;
    table.networkBytesPerSecond = sheet.network;
    table.networkSecondsPerMessage = kSecondsPerNetworkHop;
    table.ranksPerMachine = kGpusPerMachine;
    return table;
  }
  return std::nullopt;
}

std::string CostTable::getNames() {
  std::string names = "cpu";
  for (const DataSheet &sheet : kDataSheets)
    names += (&sheet == std::end(kDataSheets) - 1 ? " and " : ", ") +
             sheet.name.str();
  return names;
}

/// A number above 0, or what is wrong with `value` as `name`.
static llvm::Expected<double> readNumber(const llvm::json::Value &value,
                                         llvm::StringRef name) {
  std::optional<double> number = value.getAsNumber();
  if (!number || !std::isfinite(*number) || *number <= 0)
    return llvm::createStringError("needs a number above 0 as '" + name + "'");
  return *number;
}

static llvm::Error readMeasured(const llvm::json::Value &value,
                                CostTable &table) {
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return llvm::createStringError("needs an object of seconds as 'measured'");
  for (const auto &[key, entry] : *object) {
    llvm::Expected<double> seconds = readNumber(entry, key);
    if (!seconds)
      return seconds.takeError();
    table.measured[llvm::StringRef(key)] = *seconds;
  }
  return llvm::Error::success();
}

/// The table that an object builds on.
static llvm::Expected<CostTable> readBase(const llvm::json::Object &object) {
  const llvm::json::Value *base = object.get("base");
  if (!base)
    return CostTable::getCPU();
  std::optional<llvm::StringRef> name = base->getAsString();
  std::optional<CostTable> table = name ? CostTable::get(*name) : std::nullopt;
  if (!table)
    return llvm::createStringError("needs one of " + CostTable::getNames() +
                                   " as 'base'");
  return *table;
}

llvm::Expected<CostTable> CostTable::parse(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return value.takeError();
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return llvm::createStringError("needs a JSON object of rates");
  llvm::Expected<CostTable> table = readBase(*object);
  if (!table)
    return table;
  for (const auto &[key, entry] : *object) {
    llvm::StringRef name = key;
    if (name == "base")
      continue;
    if (name == "machine") {
      std::optional<llvm::StringRef> machine = entry.getAsString();
      if (!machine)
        return llvm::createStringError("needs a text as 'machine'");
      table->machine = machine->str();
      continue;
    }
    if (name == "measured") {
      if (llvm::Error error = readMeasured(entry, *table))
        return error;
      continue;
    }
    auto rate = llvm::find_if(
        kRates, [&](const auto &known) { return known.first == name; });
    if (rate == std::end(kRates)) {
      std::string names = "base, machine, measured";
      for (const auto &known : kRates)
        names += ", " + known.first.str();
      return llvm::createStringError("needs keys out of " + names +
                                     ", but got '" + name + "'");
    }
    llvm::Expected<double> number = readNumber(entry, name);
    if (!number)
      return number.takeError();
    (*table).*rate->second = *number;
  }
  return table;
}
