//===- Board.cpp - The memory that embedded ranks share -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Board.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace reprise::runtime;

/// Not FUTEX_PRIVATE_FLAG: the word is shared between processes.
static long futex(std::atomic<uint32_t> &word, int operation, uint32_t value,
                  const timespec *time) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), operation,
                 value, time, nullptr, 0);
}

/// What stands before the lanes.
static size_t bytesBeforeLanes(int numRanks, bool hasChannels) {
  size_t ranks = size_t(numRanks);
  return sizeof(Board) + ranks * sizeof(RankState) +
         (hasChannels ? ranks * ranks * sizeof(Channel) : 0);
}

static size_t bytesFor(const RankSettings &settings, bool hasChannels) {
  size_t bytes = bytesBeforeLanes(settings.numRanks, hasChannels);
  for (int i = 0; hasChannels && i < settings.numLanes; ++i)
    bytes += LaneRoom::bytes(settings.lanes[i]);
  return bytes;
}

Board *Board::map(const RankSettings &settings, const void *context,
                  bool hasChannels, Error &error) {
  size_t bytes = bytesFor(settings, hasChannels);
  void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    error.set("cannot map %zu bytes for the channels of %d ranks: %s", bytes,
              settings.numRanks, strerror(errno));
    return nullptr;
  }
  Board *board = static_cast<Board *>(mapping);
  board->numRanks = settings.numRanks;
  board->settings = &settings;
  board->context = context;
  board->news = -1;
  return board;
}

void Board::unmap(bool hasChannels) {
  munmap(this, bytesFor(*settings, hasChannels));
}

LaneRoom *Board::findLane(int from, int to, int number, const Lane *&lane) {
  char *at = reinterpret_cast<char *>(this) +
             bytesBeforeLanes(numRanks, /*hasChannels=*/true);
  for (int i = 0; i < settings->numLanes; ++i) {
    lane = settings->lanes + i;
    if (lane->from == from && lane->to == to && lane->number == number)
      return reinterpret_cast<LaneRoom *>(at);
    at += LaneRoom::bytes(*lane);
  }
  return nullptr;
}

void Board::tellWatcher() {
  if (news >= 0)
    eventfd_write(news, 1);
}

void Board::ring(int rank) {
  RankState &state = ranks()[rank];
  state.bell.fetch_add(1, std::memory_order_seq_cst);
  if (state.isAsleep.load(std::memory_order_seq_cst))
    futex(state.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

bool Board::sleep(int rank, uint32_t bell) {
  RankState &state = ranks()[rank];
  const timespec second = {1, 0};
  state.isAsleep.store(1, std::memory_order_seq_cst);
  long code = futex(state.bell, FUTEX_WAIT, bell, &second);
  bool isOver = code != 0 && errno == ETIMEDOUT;
  state.isAsleep.store(0, std::memory_order_seq_cst);
  return isOver;
}

void Board::abort(int rank, int64_t step, const char *why) {
  uint32_t none = 0;
  if (hasReason.compare_exchange_strong(none, 1)) {
    reasonRank = rank;
    reasonStep = step;
    snprintf(reason, sizeof(reason), "%s", why);
    hasReason.store(2, std::memory_order_release);
  }
  for (int each = 0; each < numRanks; ++each)
    ring(each);
}

void Board::nameRank(int rank, char *text, size_t size) const {
  if (settings->name)
    settings->name(rank, text, size, context);
  else
    snprintf(text, size, "rank %d", rank);
}
