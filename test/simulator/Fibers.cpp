//===- Fibers.cpp - The threads of a running block --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fibers.h"
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>

using namespace reprise;
using namespace reprise::simulator;

Block simulator::block;
SimulatorCounts simulator::counts;

//===----------------------------------------------------------------------===//
// The switch
//===----------------------------------------------------------------------===//

/// Saves what a call must preserve on the stack, the stack in `*from`, and goes
/// on where `to` was saved.
extern "C" void simulatorSwitch(void **from, void *to);
asm(R"(
  .text
  .globl simulatorSwitch
  .type simulatorSwitch, @function
simulatorSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size simulatorSwitch, .-simulatorSwitch
)");

static constexpr size_t kStack = 128 << 10, kGuard = 4096;
static void *launcher; ///< the stack pointer of whoever called runBlock
static void (*entryPoint)();
static bool failed;
static char message[1024];

/// A stack for fiber `index`, with a page below that must not be touched. Kept
/// for later blocks.
static char *stackOf(unsigned index) {
  static char *stacks = nullptr;
  if (!stacks) {
    void *memory =
        mmap(nullptr, kMaxThreads * (kStack + kGuard), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return nullptr;
    stacks = static_cast<char *>(memory);
    for (unsigned i = 0; i < kMaxThreads; ++i)
      mprotect(stacks + i * (kStack + kGuard), kGuard, PROT_NONE);
  }
  return stacks + index * (kStack + kGuard) + kGuard;
}

[[noreturn]] static void leave() {
  static void *nowhere;
  simulatorSwitch(&nowhere, launcher);
  __builtin_unreachable();
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

const char *simulator::failure() { return message; }

const char *simulator::refuse(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return message;
}

/// Writes where the current thread is; returns the length.
static int describeThread() {
  const Fiber &f = block.fiber();
  return snprintf(message, sizeof message,
                  "kernel '%s', block (%u, %u, %u), thread (%u, %u, %u): ",
                  block.kernel, block.index[0], block.index[1], block.index[2],
                  f.thread[0], f.thread[1], f.thread[2]);
}

void simulator::fail(const char *format, ...) {
  int length = describeThread();
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message + length, sizeof message - length, format, arguments);
  va_end(arguments);
  failed = true;
  leave();
}

/// Nobody can run: says who waits for what, one thread for each thing.
[[noreturn]] static void failOfDeadlock() {
  char list[768] = "";
  size_t length = 0;
  unsigned named = 0;
  for (unsigned i = 0; i < block.threads && named < 4; ++i) {
    const Fiber &f = block.fibers[i];
    bool known = f.ended;
    for (unsigned k = 0; k < i && !known; ++k)
      known = block.fibers[k].waitsFor == f.waitsFor &&
              block.fibers[k].barrier == f.barrier && !block.fibers[k].ended;
    if (known)
      continue;
    unsigned count = 0;
    for (const Fiber &other : block.fibers)
      count += other.waitsFor == f.waitsFor && other.barrier == f.barrier;
    length +=
        snprintf(list + length, sizeof list - length,
                 "%s%u from thread (%u, %u, %u) on in %s", named ? ", " : "",
                 count, f.thread[0], f.thread[1], f.thread[2], f.waitsFor);
    if (f.barrier >= 0)
      length += snprintf(list + length, sizeof list - length, " %d", f.barrier);
    ++named;
  }
  fail("deadlock: of %u threads %u have ended, and there wait %s",
       block.threads, block.threads - block.alive, list);
}

/// Runs on a stack of its own, after a fault.
[[noreturn]] static void leaveAfterFault() { leave(); }

static void onFault(int, siginfo_t *info, void *context) {
  static char stack[4096] __attribute__((aligned(16)));
  int length = describeThread();
  snprintf(message + length, sizeof message - length,
           "touches %p, which is not its memory", info->si_addr);
  failed = true;
  auto *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  registers[REG_RIP] = reinterpret_cast<greg_t>(leaveAfterFault);
  registers[REG_RSP] = reinterpret_cast<greg_t>(stack + sizeof stack - 8);
}

namespace {
/// Faults are failures of the thread, while it lives.
class FaultGuard {
public:
  FaultGuard() {
    static char alternate[64 << 10];
    stack_t stack = {};
    stack.ss_sp = alternate, stack.ss_size = sizeof alternate;
    sigaltstack(&stack, &oldStack);
    struct sigaction action = {};
    action.sa_sigaction = onFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, &oldSegv);
    sigaction(SIGBUS, &action, &oldBus);
  }
  ~FaultGuard() {
    sigaction(SIGSEGV, &oldSegv, nullptr);
    sigaction(SIGBUS, &oldBus, nullptr);
    sigaltstack(&oldStack, nullptr);
  }

private:
  stack_t oldStack;
  struct sigaction oldSegv, oldBus;
};
} // namespace

//===----------------------------------------------------------------------===//
// The scheduler
//===----------------------------------------------------------------------===//

static uint32_t randomState = 1;

static uint32_t random(uint32_t bound) {
  randomState = randomState * 1664525u + 1013904223u;
  return uint64_t(randomState >> 8) * bound >> 24;
}

/// The ready lane that comes next after `lane`, cyclically.
static unsigned lowestFrom(uint32_t ready, unsigned lane) {
  uint32_t later = ready & (~0u << lane);
  return __builtin_ctz(later ? later : ready);
}

/// Which fiber runs next; the number of threads if none can. A warp goes on as
/// long as it can, as on the machine.
static unsigned choose() {
  unsigned numWarps = block.warps.size(), first = block.current / kWarp;
  if (options.order == SIMULATOR_SHUFFLED)
    first = random(numWarps);
  for (unsigned k = 0; k < numWarps; ++k) {
    bool down = options.order == SIMULATOR_DESCENDING;
    unsigned w = (first + (down ? numWarps - k : k)) % numWarps;
    uint32_t ready = block.warps[w].ready;
    if (!ready)
      continue;
    switch (options.order) {
    case SIMULATOR_ASCENDING:
      return w * kWarp + lowestFrom(ready, (block.current + 1) % kWarp);
    case SIMULATOR_DESCENDING:
      return w * kWarp + (kWarp - 1 - __builtin_clz(ready));
    case SIMULATOR_SHUFFLED:
      return w * kWarp + lowestFrom(ready, random(kWarp));
    }
  }
  return block.threads;
}

static void switchTo(unsigned next) {
  unsigned last = block.current;
  if (next == last)
    return;
  ++counts.switches;
  block.current = next;
  simulatorSwitch(&block.fibers[last].stackPointer,
                  block.fibers[next].stackPointer);
}

void simulator::waitFor(const char *what, int barrier) {
  Fiber &f = block.fiber();
  f.waitsFor = what, f.barrier = barrier;
  block.warp().ready &= ~(1u << block.lane());
  unsigned next = choose();
  if (next == block.threads)
    failOfDeadlock();
  switchTo(next);
}

void simulator::wake(unsigned index) {
  block.fibers[index].waitsFor = nullptr;
  block.warps[index / kWarp].ready |= 1u << index % kWarp;
}

static void releaseBarrier(unsigned id);

/// Warps of a group go on by themselves, but all begin the same MMAs.
static void checkGroupMmas() {
  for (unsigned w = 0; w < block.groupMmas.size() * kWarpGroup; ++w) {
    size_t begun = w < block.warps.size() ? block.warps[w].begun : 0;
    size_t all = block.groupMmas[w / kWarpGroup].size();
    if (begun != all)
      fail("wgmma needs four warps: warp %u has begun %zu MMAs, and others "
           "of its group %zu",
           w, begun, all);
  }
}

/// What a fiber begins with, on its own stack.
static void fiberMain() {
  entryPoint();
  Fiber &f = block.fiber();
  f.ended = true;
  Warp &warp = block.warp();
  warp.ready &= ~(1u << block.lane());
  warp.ended |= 1u << block.lane();
  for (const Meeting &meeting : warp.meetings)
    if (meeting.arrived && (meeting.mask >> block.lane() & 1))
      fail("ends while others of its warp wait for it in %s",
           meeting.operation);
  if (--block.alive == 0) {
    checkGroupMmas();
    leave();
  }
  for (unsigned id = 0; id < kBarriers; ++id) {
    const Barrier &barrier = block.barriers[id];
    if (barrier.arrived && !barrier.expected && barrier.arrived == block.alive)
      releaseBarrier(id);
  }
  unsigned next = choose();
  if (next == block.threads)
    failOfDeadlock();
  switchTo(next);
  __builtin_unreachable();
}

bool simulator::runBlock(void (*entry)()) {
  entryPoint = entry;
  failed = false;
  ++counts.blocks;
  randomState = options.seed ^ (block.index[0] * 2654435761u) ^
                block.index[1] << 16 ^ block.index[2] << 24;
  unsigned n = block.threads = block.size[0] * block.size[1] * block.size[2];
  block.alive = n;
  block.fibers.resize(n);
  block.warps.resize((n + kWarp - 1) / kWarp);
  for (Barrier &barrier : block.barriers)
    barrier = Barrier();
  for (unsigned w = 0; w < block.warps.size(); ++w) {
    Warp &warp = block.warps[w];
    unsigned lanes = n - w * kWarp < kWarp ? n - w * kWarp : kWarp;
    warp.present = warp.ready = ~0u >> (kWarp - lanes);
    warp.ended = 0, warp.place = -1;
    warp.meetings.clear();
    warp.groupsEnded = 0, warp.begun = 0;
    warp.groupOf.clear();
  }
  block.groupMmas.assign((block.warps.size() + kWarpGroup - 1) / kWarpGroup,
                         {});
  for (unsigned i = 0; i < n; ++i) {
    Fiber &f = block.fibers[i];
    f.thread[0] = i % block.size[0];
    f.thread[1] = i / block.size[0] % block.size[1];
    f.thread[2] = i / block.size[0] / block.size[1];
    f.waitsFor = nullptr, f.barrier = -1, f.ended = false;
    f.copies.clear(), f.groupEnds.clear();
    f.landed = f.landedGroups = 0;
    char *stack = stackOf(i);
    if (!stack) {
      refuse("there is no memory for the stacks of %u threads", n);
      return false;
    }
    // As simulatorSwitch leaves a stack: six registers, where to go on, and
    // what would be the caller of that.
    void **top = reinterpret_cast<void **>(stack + kStack) - 8;
    std::memset(top, 0, 8 * sizeof(void *));
    top[6] = reinterpret_cast<void *>(fiberMain);
    f.stackPointer = top;
  }
  FaultGuard guard;
  block.current = kWarp - 1; // the first lane of the first warp is next
  unsigned first = choose();
  block.current = first;
  simulatorSwitch(&launcher, block.fibers[first].stackPointer);
  return !failed;
}

//===----------------------------------------------------------------------===//
// Coming together
//===----------------------------------------------------------------------===//

Meeting *simulator::arrive(const char *operation, uint32_t mask, int place) {
  Warp &warp = block.warp();
  uint32_t self = 1u << block.lane();
  ++counts.warpOps;
  if (!(mask & self))
    fail("%s has the mask 0x%08x, without its own lane %u", operation, mask,
         block.lane());
  mask &= warp.present;
  if (uint32_t gone = mask & warp.ended)
    fail("%s waits for lane %u of its warp, which has ended", operation,
         __builtin_ctz(gone));
  Meeting *meeting = nullptr;
  for (Meeting &other : warp.meetings)
    if (other.mask == mask && other.arrived)
      meeting = &other;
  for (Meeting &other : warp.meetings)
    if (!meeting && !other.arrived)
      meeting = &other;
  if (!meeting) {
    warp.meetings.emplace_back();
    meeting = &warp.meetings.back();
  }
  if (!meeting->arrived)
    *meeting = {mask, 0, operation, place};
  if (strcmp(meeting->operation, operation) != 0)
    fail("divergent warp: %s, where lane %u waits in %s", operation,
         __builtin_ctz(meeting->arrived), meeting->operation);
  if (meeting->place != place)
    fail("divergent warp: %s at another place than that of lane %u", operation,
         __builtin_ctz(meeting->arrived));
  meeting->arrived |= self;
  return meeting->arrived == mask ? meeting : nullptr;
}

void simulator::disperse(Meeting *meeting) {
  unsigned first = block.current / kWarp * kWarp;
  for (uint32_t left = meeting->arrived & ~(1u << block.lane()); left;
       left &= left - 1)
    wake(first + __builtin_ctz(left));
  meeting->arrived = 0;
}

static void releaseBarrier(unsigned id) {
  Barrier &barrier = block.barriers[id];
  barrier.lastYes = barrier.yes, barrier.lastArrived = barrier.arrived;
  barrier.arrived = barrier.expected = barrier.yes = 0;
  for (unsigned i = 0; i < block.threads; ++i)
    if (block.fibers[i].waitsFor && block.fibers[i].barrier == int(id)) {
      wake(i);
      block.warps[i / kWarp].place = -1;
    }
}

void simulator::arriveAtBarrier(unsigned id, unsigned expected, bool predicate,
                                int place, bool stay) {
  ++counts.barriers;
  if (id >= kBarriers)
    fail("there is no barrier %u, only %u", id, kBarriers);
  if (expected % kWarp)
    fail("barrier %u is for %u threads, which is no multiple of %u", id,
         expected, kWarp);
  Barrier &barrier = block.barriers[id];
  if (barrier.arrived == 0)
    barrier.expected = expected;
  else if (barrier.expected != expected)
    fail("barrier %u is for %u threads here and for %u elsewhere", id, expected,
         barrier.expected);
  if (stay && place >= 0) {
    Warp &warp = block.warp();
    if (warp.place >= 0 && warp.place != place)
      fail("divergent barrier: others of its warp wait at another one of the "
           "program");
    warp.place = place;
  }
  barrier.yes += predicate;
  if (++barrier.arrived == (expected ? expected : block.alive)) {
    block.warp().place = -1;
    return releaseBarrier(id);
  }
  if (stay)
    waitFor("barrier", id);
}
