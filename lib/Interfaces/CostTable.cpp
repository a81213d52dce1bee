//===- CostTable.cpp - How fast a machine is --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Interfaces/CostTable.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace reprise;

static constexpr std::pair<llvm::StringLiteral, double CostTable::*> kRates[] =
    {{"product_flops_per_second", &CostTable::productFlopsPerSecond},
     {"attention_flops_per_second", &CostTable::attentionFlopsPerSecond},
     {"pointwise_flops_per_second", &CostTable::pointwiseFlopsPerSecond},
     {"memory_bytes_per_second", &CostTable::memoryBytesPerSecond},
     {"seconds_per_launch", &CostTable::secondsPerLaunch}};

double CostTable::getSeconds(int64_t flops, int64_t bytes, Work work) const {
  double rate = work == Work::Product     ? productFlopsPerSecond
                : work == Work::Attention ? attentionFlopsPerSecond
                                          : pointwiseFlopsPerSecond;
  return secondsPerLaunch +
         std::max(flops / rate, bytes / memoryBytesPerSecond);
}

CostTable CostTable::getCPU() {
  CostTable table;
  table.machine = "two cores of an x86-64-v3 server";
  table.productFlopsPerSecond = 180e9;
  table.attentionFlopsPerSecond = 60e9;
  table.pointwiseFlopsPerSecond = 8e9;
  table.memoryBytesPerSecond = 30e9;
  table.secondsPerLaunch = 5e-6;
  return table;
}

llvm::Expected<CostTable> CostTable::parse(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return value.takeError();
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return llvm::createStringError("needs a JSON object of rates");
  CostTable table = getCPU();
  for (const auto &[key, entry] : *object) {
    llvm::StringRef name = key;
    if (name == "machine") {
      std::optional<llvm::StringRef> machine = entry.getAsString();
      if (!machine)
        return llvm::createStringError("needs a text as 'machine'");
      table.machine = machine->str();
      continue;
    }
    auto rate = llvm::find_if(
        kRates, [&](const auto &known) { return known.first == name; });
    if (rate == std::end(kRates)) {
      std::string names = "machine";
      for (const auto &known : kRates)
        names += ", " + known.first.str();
      return llvm::createStringError("needs keys out of " + names +
                                     ", but got '" + name + "'");
    }
    std::optional<double> number = entry.getAsNumber();
    if (!number || !std::isfinite(*number) || *number <= 0)
      return llvm::createStringError("needs a number above 0 as '" + name +
                                     "'");
    table.*rate->second = *number;
  }
  return table;
}
