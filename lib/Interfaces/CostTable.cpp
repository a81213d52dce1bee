//===- CostTable.cpp - How fast a machine is --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Interfaces/CostTable.h"
#include "reprise/ABI/Machine.h"
#include "reprise/Support/RawJSON.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace reprise;

static constexpr std::pair<llvm::StringLiteral, double CostTable::*> kRates[] =
    {{"product_flops_per_second", &CostTable::gemmFlopsPerSecond},
     {"product_bf16_flops_per_second", &CostTable::gemmBF16FlopsPerSecond},
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

static void setSent(Workload &load, llvm::StringRef exchange,
                    llvm::StringRef axis, int64_t ranks, int64_t messages,
                    int64_t bytes) {
  load.work = Work::Exchange;
  load.exchange = exchange.str();
  load.axis = axis.str();
  load.ranks = ranks;
  load.messages = messages;
  load.sentBytes = bytes;
  load.key = (exchange + " of " + llvm::Twine(ranks) + " ranks sends " +
              llvm::Twine(bytes))
                 .str();
}

void reprise::setExchange(Workload &load, llvm::StringRef exchange,
                          llvm::StringRef axis, int64_t ranks, int64_t bytes,
                          bool hasWholeSums) {
  int64_t rounds = hasWholeSums ? 2 : 1;
  setSent(load, exchange, axis, ranks, rounds * (ranks - 1),
          rounds * (bytes - llvm::divideCeil(bytes, ranks)));
}

void reprise::setSend(Workload &load, llvm::StringRef axis, int64_t bytes) {
  setSent(load, "send", axis, /*ranks=*/2, /*messages=*/1, bytes);
}

static constexpr llvm::StringLiteral kAcross = " across machines";

std::string Link::getName() const {
  return exchange + " of " + std::to_string(ranks) + " ranks" +
         (isAcross ? kAcross.str() : "");
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
  if (work == Work::Gemm)
    rate = isBF16 ? gemmBF16FlopsPerSecond : gemmFlopsPerSecond;
  else if (work == Work::Attention)
    rate = isBF16 ? attentionBF16FlopsPerSecond : attentionFlopsPerSecond;
  return secondsPerLaunch +
         std::max(flops / rate, bytes / memoryBytesPerSecond);
}

const double *CostTable::findMeasured(const Workload &load) const {
  bool isAcross = load.work == Work::Exchange && axesAcross.contains(load.axis);
  auto known = isAcross ? measured.find(load.key + kAcross.str())
                        : measured.find(load.key);
  return known == measured.end() ? nullptr : &known->second;
}

const Link *CostTable::findLink(const Workload &load) const {
  bool isAcross = axesAcross.contains(load.axis);
  auto getRatio = [&](const Link &link) {
    double ratio = double(link.ranks) / double(load.ranks);
    return std::max(ratio, 1 / ratio);
  };
  const Link *nearest = nullptr;
  for (const Link &link : links)
    if (link.exchange == load.exchange && link.isAcross == isAcross &&
        (!nearest || getRatio(link) < getRatio(*nearest)))
      nearest = &link;
  return nearest;
}

double CostTable::getSeconds(const Workload &load) const {
  if (const double *seconds = findMeasured(load))
    return *seconds;
  if (load.work == Work::Exchange) {
    if (const Link *link = findLink(load))
      return load.messages * link->secondsPerMessage +
             load.sentBytes / link->bytesPerSecond;
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
  table.gemmFlopsPerSecond = 180e9;
  table.gemmBF16FlopsPerSecond = 180e9;
  table.attentionFlopsPerSecond = 60e9;
  table.attentionBF16FlopsPerSecond = 60e9;
  table.pointwiseFlopsPerSecond = 8e9;
  table.memoryBytesPerSecond = 30e9;
  table.secondsPerLaunch = 5e-6;
  table.linkBytesPerSecond = 2.5e9;
  table.secondsPerMessage = 10e-6;
  table.networkBytesPerSecond = 1.2e9;
  table.networkSecondsPerMessage = 30e-6;
  table.ranksPerMachine = REPRISE_RANKS_PER_MACHINE;
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
static constexpr double kGemmEfficiency = 0.62,
                        kAttentionEfficiency = 0.75 * kGemmEfficiency,
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
    table.gemmFlopsPerSecond = kGemmEfficiency * sheet.f32;
    table.gemmBF16FlopsPerSecond = kGemmEfficiency * sheet.bf16;
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

namespace {
/// Reads a table, and knows where its members are: the parser does not.
class TableReader {
public:
  explicit TableReader(llvm::StringRef text) : text(text) {}

  llvm::Expected<CostTable> read();

private:
  /// A member of the table, or of an object in it.
  struct Member {
    llvm::StringRef key;
    const llvm::json::Value &value;
    RawMember raw;
  };
  using Reader = llvm::function_ref<llvm::Error(const Member &)>;

  llvm::Error fail(const char *place, const llvm::Twine &message) const;
  llvm::Error readMembers(const llvm::json::Object &object,
                          llvm::StringRef text, Reader read) const;
  llvm::Expected<double> readNumber(const Member &member) const;
  llvm::Error readBase(const llvm::json::Object &object);
  llvm::Error readMember(const Member &member);
  llvm::Error readMeasured(const Member &member);
  llvm::Error readLink(const Member &member);
  llvm::Error readSeveral(const Member &member, llvm::StringRef what,
                          Reader read) const;

  llvm::StringRef text;
  CostTable table = CostTable::getCPU();
};
} // namespace

/// An error that begins with the line and column of `place`.
llvm::Error TableReader::fail(const char *place,
                              const llvm::Twine &message) const {
  llvm::StringRef before = text.take_front(place - text.begin());
  size_t line = before.count('\n') + 1;
  size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  return llvm::createStringError(llvm::Twine(line) + ":" + llvm::Twine(column) +
                                 ": " + message);
}

/// The members in the order of the text. Of two equal ones the object has the
/// second alone, so that nothing is read then. A key with escapes is not found
/// there.
llvm::Error TableReader::readMembers(const llvm::json::Object &object,
                                     llvm::StringRef text, Reader read) const {
  llvm::SmallVector<RawMember> members = findMembers(text);
  llvm::StringSet<> known;
  for (const RawMember &raw : members) {
    if (!known.insert(raw.key).second)
      return fail(raw.key.begin() - 1,
                  "needs '" + raw.key + "' once, but got it twice");
    if (!object.get(raw.key))
      return fail(raw.key.begin() - 1,
                  "needs keys without escapes, but got '" + raw.key + "'");
  }
  for (const RawMember &raw : members)
    if (llvm::Error error = read({raw.key, *object.get(raw.key), raw}))
      return error;
  return llvm::Error::success();
}

/// Rates between which all bytes and FLOPs of a model have times, and sums of
/// times have a value.
static constexpr double kLeastNumber = 1e-30, kMostNumber = 1e30;

llvm::Expected<double> TableReader::readNumber(const Member &member) const {
  std::optional<double> number = member.value.getAsNumber();
  if (!number || !(*number > 0))
    return fail(member.raw.value.begin(),
                "needs a number above 0 as '" + member.key + "'");
  if (*number < kLeastNumber || *number > kMostNumber)
    return fail(member.raw.value.begin(), "needs a number from 1e-30 to 1e30 "
                                          "as '" +
                                              member.key + "', but got " +
                                              member.raw.value);
  return *number;
}

/// The members of a member.
llvm::Error TableReader::readSeveral(const Member &member, llvm::StringRef what,
                                     Reader read) const {
  const llvm::json::Object *object = member.value.getAsObject();
  if (!object)
    return fail(member.raw.value.begin(),
                "needs an object of " + what + " as '" + member.key + "'");
  return readMembers(*object, member.raw.value, read);
}

llvm::Error TableReader::readMeasured(const Member &member) {
  llvm::Expected<double> seconds = readNumber(member);
  if (!seconds)
    return seconds.takeError();
  table.measured[member.key] = *seconds;
  return llvm::Error::success();
}

/// Exchanges that can have a link.
static constexpr llvm::StringLiteral kExchanges[] = {
    "all_reduce",    "all_gather",    "reduce_scatter",
    "reduce_shares", "gather_shares", "gather_offsets",
    "send_rows",     "return_rows",   "send"};

/// What a link's name says; none if it is no such name.
static std::optional<Link> parseLinkName(llvm::StringRef text) {
  llvm::StringRef name = text;
  Link link = {};
  link.isAcross = name.consume_back(kAcross);
  auto [exchange, ranks] = name.split(" of ");
  link.exchange = exchange.str();
  bool isNumber =
      ranks.consume_back(" ranks") && !ranks.getAsInteger(10, link.ranks);
  bool isKnown = llvm::is_contained(kExchanges, exchange);
  // One link has one name: "04 ranks" are none.
  if (!isKnown || !isNumber || link.ranks < 2 || link.getName() != text)
    return std::nullopt;
  return link;
}

llvm::Error TableReader::readLink(const Member &member) {
  std::optional<Link> link = parseLinkName(member.key);
  if (!link)
    return fail(member.raw.key.begin() - 1,
                "needs EXCHANGE of N ranks, or EXCHANGE of N ranks across "
                "machines, where N is at least 2 and EXCHANGE one of " +
                    llvm::join(llvm::ArrayRef(kExchanges), ", ") +
                    ", but got '" + member.key + "'");
  double *rates[] = {&link->secondsPerMessage, &link->bytesPerSecond};
  constexpr llvm::StringLiteral kNames[] = {"seconds_per_message",
                                            "bytes_per_second"};
  auto readRate = [&](const Member &rate) -> llvm::Error {
    const auto *name = llvm::find(kNames, rate.key);
    if (name == std::end(kNames))
      return fail(rate.raw.key.begin() - 1,
                  "needs " + llvm::join(llvm::ArrayRef(kNames), " and ") +
                      ", but got '" + rate.key + "'");
    llvm::Expected<double> number = readNumber(rate);
    if (!number)
      return number.takeError();
    *rates[name - kNames] = *number;
    return llvm::Error::success();
  };
  if (llvm::Error error = readSeveral(member, "two rates", readRate))
    return error;
  for (auto [rate, name] : llvm::zip(rates, kNames))
    if (*rate == 0)
      return fail(member.raw.value.begin(),
                  "needs '" + name + "' in '" + member.key + "'");
  table.links.push_back(*link);
  return llvm::Error::success();
}

/// The table that an object builds on.
llvm::Error TableReader::readBase(const llvm::json::Object &object) {
  return readMembers(object, text, [&](const Member &member) -> llvm::Error {
    if (member.key != "base")
      return llvm::Error::success();
    std::optional<llvm::StringRef> name = member.value.getAsString();
    std::optional<CostTable> base = name ? CostTable::get(*name) : std::nullopt;
    if (!base)
      return fail(member.raw.value.begin(),
                  "needs one of " + CostTable::getNames() + " as 'base'");
    table = std::move(*base);
    return llvm::Error::success();
  });
}

llvm::Error TableReader::readMember(const Member &member) {
  if (member.key == "base")
    return llvm::Error::success();
  if (member.key == "machine") {
    std::optional<llvm::StringRef> machine = member.value.getAsString();
    if (!machine)
      return fail(member.raw.value.begin(), "needs a text as 'machine'");
    table.machine = machine->str();
    return llvm::Error::success();
  }
  if (member.key == "measured")
    return readSeveral(member, "seconds",
                       [&](const Member &each) { return readMeasured(each); });
  if (member.key == "links")
    return readSeveral(member, "links",
                       [&](const Member &each) { return readLink(each); });
  const auto *rate = llvm::find_if(
      kRates, [&](const auto &known) { return known.first == member.key; });
  if (rate == std::end(kRates)) {
    std::string names = "base, machine, measured, links";
    for (const auto &known : kRates)
      names += ", " + known.first.str();
    return fail(member.raw.key.begin() - 1, "needs keys out of " + names +
                                                ", but got '" + member.key +
                                                "'");
  }
  llvm::Expected<double> number = readNumber(member);
  if (!number)
    return number.takeError();
  if (rate->second == &CostTable::ranksPerMachine &&
      *number != std::floor(*number))
    return fail(member.raw.value.begin(), "needs a whole number as '" +
                                              member.key + "', but got " +
                                              member.raw.value);
  table.*rate->second = *number;
  return llvm::Error::success();
}

/// What the parser says is `[line:column, byte=offset]: reason`.
static std::string placeFirst(std::string message) {
  auto [place, reason] = llvm::StringRef(message).split("]: ");
  if (reason.empty() || !place.consume_front("["))
    return message;
  return (place.split(',').first + ": " + reason).str();
}

llvm::Expected<CostTable> TableReader::read() {
  if (const char *bracket = findLevelTooMany(text))
    return fail(bracket, "needs at most " + llvm::Twine(kMostLevels) +
                             " levels of lists and objects");
  if (text.trim().empty())
    return fail(text.begin(), "the file is empty");
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return llvm::createStringError(
        placeFirst(llvm::toString(value.takeError())));
  if (OddNumber odd = findOddNumber(text); !odd.text.empty())
    return fail(odd.text.begin(),
                "'" + odd.text + "' is no number; " + odd.why);
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return fail(text.ltrim().begin(), "needs a JSON object of rates");
  if (llvm::Error error = readBase(*object))
    return error;
  if (llvm::Error error = readMembers(*object, text, [&](const Member &member) {
        return readMember(member);
      }))
    return error;
  return std::move(table);
}

llvm::Expected<CostTable> CostTable::parse(llvm::StringRef text) {
  return TableReader(text).read();
}
