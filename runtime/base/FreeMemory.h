//===- FreeMemory.h - What a process may still take -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_FREEMEMORY_H
#define REPRISE_RUNTIME_BASE_FREEMEMORY_H

#include <cstdint>

namespace reprise::runtime {

/// What nobody limits.
inline constexpr int64_t kUnlimited = INT64_MAX;

/// The bytes of memory that this process can still touch before the system
/// ends it: what the machine has available, and what the control groups that it
/// is in leave, of version 1 and 2, each with all above it. Pages of files,
/// which the system takes back, count as free. `kUnlimited` if nobody says.
int64_t freeMemory();

/// The part of control groups. `groups` says which ones, as /proc/self/cgroup
/// does, and they are folders below `mount`, as in /sys/fs/cgroup. (A container
/// sees its own as the topmost, whatever its name outside is.)
int64_t freeInGroups(const char *groups, const char *mount);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_FREEMEMORY_H
