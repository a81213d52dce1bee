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
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace reprise::runtime;

/// Not FUTEX_PRIVATE_FLAG: the word is shared between processes.
static long futex(std::atomic<uint32_t> &word, int operation, uint32_t value,
                  const timespec *time) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), operation,
                 value, time, nullptr, 0);
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

void Board::abort(int rank, const char *why) {
  uint32_t none = 0;
  if (hasReason.compare_exchange_strong(none, 1)) {
    reasonRank = rank;
    reasonStep = ranks()[rank].step.load(std::memory_order_relaxed);
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
