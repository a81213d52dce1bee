//===- Intrinsics.cpp - What a thread of a warp does ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that kernels call in place of llvm.nvvm.* and of inline PTX;
// Intrinsics.def has their names. Pointers come without an address space,
// integers with at least 32 bits, and results of several values through a
// pointer that is the first argument.
//
//===----------------------------------------------------------------------===//

#include "Fibers.h"
#include <cmath>
#include <cstring>

using namespace reprise;
using namespace reprise::simulator;

SimulatorShared simulator::simulatorShared;

static uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

static float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// To the nearest, ties to even, as cvt.rn does.
static uint32_t roundToBF16(float value) {
  uint32_t bits = bitsOf(value);
  if (std::isnan(value))
    return 0x7FFF;
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

/// The floats of a pair of bf16, the low half first.
static float half(uint32_t pair, int which) {
  return floatOf(which ? pair & 0xFFFF0000u : pair << 16);
}

/// Fails unless `bytes` at `address` are the block's shared memory, aligned.
static void checkShared(const char *what, const void *address, unsigned bytes) {
  uint64_t offset = static_cast<const char *>(address) - simulatorShared.base;
  if (offset > simulatorShared.bytes || simulatorShared.bytes - offset < bytes)
    fail("%s of %u bytes at offset %lld of %llu bytes of shared memory", what,
         bytes, (long long)offset, (unsigned long long)simulatorShared.bytes);
  if (offset % bytes)
    fail("%s of %u bytes at offset %lld of shared memory, which is no "
         "multiple of it",
         what, bytes, (long long)offset);
}

extern "C" {

// Called by the checks that are in the kernels themselves.
void simulatorOutOfBounds(const void *address, uint64_t bytes) {
  fail("access of %llu bytes at offset %lld of %llu bytes of shared memory",
       (unsigned long long)bytes,
       (long long)(static_cast<const char *>(address) - simulatorShared.base),
       (unsigned long long)simulatorShared.bytes);
}
void simulatorMisaligned(const void *address, uint64_t alignment) {
  fail("access at %p, which is not aligned to %llu bytes", address,
       (unsigned long long)alignment);
}

/// LLVM's conversion to bf16 for processors without it: the result is in the
/// low half of the register that has a float.
float __truncsfbf2(float value) { return floatOf(roundToBF16(value)); }

//===----------------------------------------------------------------------===//
// Where a thread is
//===----------------------------------------------------------------------===//

#define AXES(name, value)                                                      \
  uint32_t simulator_read_ptx_sreg_##name##_x() { return value[0]; }           \
  uint32_t simulator_read_ptx_sreg_##name##_y() { return value[1]; }           \
  uint32_t simulator_read_ptx_sreg_##name##_z() { return value[2]; }
AXES(tid, block.fiber().thread)
AXES(ntid, block.size)
AXES(ctaid, block.index)
AXES(nctaid, block.grid)
#undef AXES
uint32_t simulator_read_ptx_sreg_laneid() { return block.lane(); }
uint32_t simulator_read_ptx_sreg_warpid() { return block.current / kWarp; }

//===----------------------------------------------------------------------===//
// Barriers and fences
//===----------------------------------------------------------------------===//

void simulator_barrier_cta_sync_aligned_all(uint32_t id, int place) {
  arriveAtBarrier(id, 0, false, place, true);
}
void simulator_barrier_cta_sync_aligned_count(uint32_t id, uint32_t count,
                                              int place) {
  arriveAtBarrier(id, count, false, place, true);
}
void simulator_barrier_cta_arrive_aligned_count(uint32_t id, uint32_t count,
                                                int place) {
  arriveAtBarrier(id, count, false, place, false);
}
void simulator_barrier_cta_sync_all(uint32_t id) {
  arriveAtBarrier(id, 0, false, -1, true);
}
void simulator_barrier_cta_sync_count(uint32_t id, uint32_t count) {
  arriveAtBarrier(id, count, false, -1, true);
}
uint32_t simulator_barrier_cta_red_and_aligned_all(uint32_t id, uint32_t yes,
                                                   int place) {
  arriveAtBarrier(id, 0, yes, place, true);
  return block.barriers[id].lastYes == block.barriers[id].lastArrived;
}
uint32_t simulator_barrier_cta_red_or_aligned_all(uint32_t id, uint32_t yes,
                                                  int place) {
  arriveAtBarrier(id, 0, yes, place, true);
  return block.barriers[id].lastYes != 0;
}
uint32_t simulator_barrier_cta_red_popc_aligned_all(uint32_t id, uint32_t yes,
                                                    int place) {
  arriveAtBarrier(id, 0, yes, place, true);
  return block.barriers[id].lastYes;
}

void simulator_membar_cta() {}
void simulator_membar_gl() {}
void simulator_bar_warp_sync(uint32_t mask) {
  meet("bar.warp.sync", mask, -1, [] {});
}

//===----------------------------------------------------------------------===//
// Shuffles and votes
//===----------------------------------------------------------------------===//

namespace {
enum Mode { Butterfly, Index, Up, Down };
struct Shuffled {
  uint32_t value;
  bool inRange;
};
} // namespace

/// As shfl.sync of the PTX manual: `clamp` has the last lane of a segment in
/// bits 0 to 4 and the mask of segments in bits 8 to 12.
static Shuffled shuffle(Mode mode, uint32_t mask, uint32_t value, int32_t other,
                        uint32_t clamp) {
  static const char *const names[] = {"shfl.sync.bfly", "shfl.sync.idx",
                                      "shfl.sync.up", "shfl.sync.down"};
  Warp &warp = block.warp();
  int32_t lane = block.lane(), bound = clamp & 31, segment = clamp >> 8 & 31;
  int32_t last = (lane & segment) | (bound & ~segment), first = lane & segment;
  int32_t from = lane;
  bool inRange = false;
  switch (mode) {
  case Butterfly:
    from = lane ^ (other & 31), inRange = from <= last;
    break;
  case Index:
    from = first | (other & 31 & ~segment), inRange = from <= last;
    break;
  case Up:
    from = lane - (other & 31), inRange = from >= last;
    break;
  case Down:
    from = lane + (other & 31), inRange = from <= last;
    break;
  }
  if (!inRange)
    from = lane;
  if (!(mask & warp.present & 1u << from))
    fail("%s reads lane %d, which takes no part (mask 0x%08x)", names[mode],
         from, mask & warp.present);
  warp.in[lane][0] = value, warp.in[lane][1] = from;
  meet(names[mode], mask, -1, [&] {
    for (uint32_t left = mask & warp.present; left; left &= left - 1) {
      unsigned i = __builtin_ctz(left);
      warp.out[i][0] = warp.in[warp.in[i][1]][0];
    }
  });
  return {warp.out[lane][0], inRange};
}

#define SHUFFLE(name, mode)                                                    \
  uint32_t simulator_shfl_sync_##name##_i32(uint32_t mask, uint32_t value,     \
                                            int32_t other, uint32_t clamp) {   \
    return shuffle(mode, mask, value, other, clamp).value;                     \
  }                                                                            \
  float simulator_shfl_sync_##name##_f32(uint32_t mask, float value,           \
                                         int32_t other, uint32_t clamp) {      \
    return floatOf(shuffle(mode, mask, bitsOf(value), other, clamp).value);    \
  }                                                                            \
  void simulator_shfl_sync_##name##_i32p(Shuffled *out, uint32_t mask,         \
                                         uint32_t value, int32_t other,        \
                                         uint32_t clamp) {                     \
    *out = shuffle(mode, mask, value, other, clamp);                           \
  }                                                                            \
  void simulator_shfl_sync_##name##_f32p(Shuffled *out, uint32_t mask,         \
                                         float value, int32_t other,           \
                                         uint32_t clamp) {                     \
    *out = shuffle(mode, mask, bitsOf(value), other, clamp);                   \
  }
SHUFFLE(bfly, Butterfly)
SHUFFLE(idx, Index)
SHUFFLE(up, Up)
SHUFFLE(down, Down)
#undef SHUFFLE

/// Which lanes of `mask` came with a true predicate.
static uint32_t ballot(const char *name, uint32_t mask, uint32_t yes) {
  Warp &warp = block.warp();
  warp.in[block.lane()][0] = yes & 1;
  meet(name, mask, -1, [&] {
    uint32_t votes = 0;
    for (unsigned i = 0; i < kWarp; ++i)
      if (mask & warp.present & 1u << i)
        votes |= warp.in[i][0] << i;
    for (unsigned i = 0; i < kWarp; ++i)
      if (mask & 1u << i)
        warp.out[i][0] = votes;
  });
  return warp.out[block.lane()][0];
}

uint32_t simulator_vote_ballot_sync(uint32_t mask, uint32_t yes) {
  return ballot("vote.ballot.sync", mask, yes);
}
uint32_t simulator_vote_any_sync(uint32_t mask, uint32_t yes) {
  return ballot("vote.any.sync", mask, yes) != 0;
}
uint32_t simulator_vote_all_sync(uint32_t mask, uint32_t yes) {
  return ballot("vote.all.sync", mask, yes) == (mask & block.warp().present);
}
uint32_t simulator_vote_uni_sync(uint32_t mask, uint32_t yes) {
  uint32_t votes = ballot("vote.uni.sync", mask, yes);
  return votes == 0 || votes == (mask & block.warp().present);
}

//===----------------------------------------------------------------------===//
// cp.async
//===----------------------------------------------------------------------===//

static void land(const Copy &copy) {
  std::memcpy(copy.to, copy.from, copy.read);
  std::memset(copy.to + copy.read, 0, copy.size - copy.read);
}

/// Late, the destination is NaN until the copy lands: nobody may read it.
static void copyAsync(void *to, const void *from, unsigned size,
                      unsigned read) {
  checkShared("cp.async", to, size);
  if (reinterpret_cast<uintptr_t>(from) % size)
    fail("cp.async of %u bytes from %p, which is not aligned to them", size,
         from);
  if (read > size)
    fail("cp.async of %u bytes reads %u", size, read);
  ++counts.copies;
  Copy copy = {static_cast<char *>(to), static_cast<const char *>(from), size,
               read};
  if (options.landing == SIMULATOR_AT_ONCE)
    return land(copy);
  std::memset(to, 0xFF, size);
  block.fiber().copies.push_back(copy);
}

static void landUntil(Fiber &f, size_t end) {
  for (; f.landed < end; ++f.landed)
    land(f.copies[f.landed]);
}

#define COPY(name, size)                                                       \
  void simulator_cp_async_##name##_shared_global_##size(void *to,              \
                                                        const void *from) {    \
    copyAsync(to, from, size, size);                                           \
  }                                                                            \
  void simulator_cp_async_##name##_shared_global_##size##_s(                   \
      void *to, const void *from, uint32_t read) {                             \
    copyAsync(to, from, size, read);                                           \
  }
COPY(ca, 4)
COPY(ca, 8)
COPY(ca, 16)
COPY(cg, 16)
#undef COPY

void simulator_cp_async_commit_group() {
  Fiber &f = block.fiber();
  f.groupEnds.push_back(f.copies.size());
}
void simulator_cp_async_wait_group(uint32_t pending) {
  Fiber &f = block.fiber();
  for (; f.groupEnds.size() - f.landedGroups > pending; ++f.landedGroups)
    landUntil(f, f.groupEnds[f.landedGroups]);
}
void simulator_cp_async_wait_all() {
  Fiber &f = block.fiber();
  landUntil(f, f.copies.size());
  f.landedGroups = f.groupEnds.size();
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// Matrix m has its rows at the addresses of lanes 8 m .. 8 m + 7; lane l gets
/// elements 2 (l % 4) and the next of row l / 4, or if transposed of column.
static void loadMatrices(uint32_t *out, const void *row, unsigned matrices,
                         bool transposed, int place) {
  static const char *const names[] = {"ldmatrix", "ldmatrix.trans"};
  Warp &warp = block.warp();
  unsigned lane = block.lane();
  if (lane < 8 * matrices)
    checkShared(names[transposed], row, 16);
  std::memcpy(warp.in[lane], &row, sizeof row);
  meet(names[transposed], ~0u, place, [&] {
    ++counts.matrixOps;
    for (unsigned m = 0; m < matrices; ++m) {
      const uint16_t *rows[8];
      for (unsigned r = 0; r < 8; ++r)
        std::memcpy(&rows[r], warp.in[8 * m + r], sizeof rows[r]);
      for (unsigned i = 0; i < kWarp; ++i) {
        unsigned a = i / 4, b = i % 4 * 2;
        uint16_t low = transposed ? rows[b][a] : rows[a][b];
        uint16_t high = transposed ? rows[b + 1][a] : rows[a][b + 1];
        warp.out[i][m] = low | uint32_t(high) << 16;
      }
    }
  });
  for (unsigned m = 0; m < matrices; ++m)
    out[m] = warp.out[lane][m];
}

uint32_t simulator_ldmatrix_sync_aligned_m8n8_x1_b16_p3(const void *row,
                                                        int place) {
  uint32_t out;
  loadMatrices(&out, row, 1, false, place);
  return out;
}
uint32_t simulator_ldmatrix_sync_aligned_m8n8_x1_trans_b16_p3(const void *row,
                                                              int place) {
  uint32_t out;
  loadMatrices(&out, row, 1, true, place);
  return out;
}
void simulator_ldmatrix_sync_aligned_m8n8_x2_b16_p3(uint32_t *out,
                                                    const void *row,
                                                    int place) {
  loadMatrices(out, row, 2, false, place);
}
void simulator_ldmatrix_sync_aligned_m8n8_x2_trans_b16_p3(uint32_t *out,
                                                          const void *row,
                                                          int place) {
  loadMatrices(out, row, 2, true, place);
}
void simulator_ldmatrix_sync_aligned_m8n8_x4_b16_p3(uint32_t *out,
                                                    const void *row,
                                                    int place) {
  loadMatrices(out, row, 4, false, place);
}
void simulator_ldmatrix_sync_aligned_m8n8_x4_trans_b16_p3(uint32_t *out,
                                                          const void *row,
                                                          int place) {
  loadMatrices(out, row, 4, true, place);
}

/// D = A B + C with A 16 x 16, B 16 x 8. In f32, products added in ascending
/// order; the machine's own order and rounding inside differ.
void simulator_mma_m16n8k16_row_col_bf16(float *out, uint32_t a0, uint32_t a1,
                                         uint32_t a2, uint32_t a3, uint32_t b0,
                                         uint32_t b1, float c0, float c1,
                                         float c2, float c3, int place) {
  Warp &warp = block.warp();
  unsigned lane = block.lane();
  const uint32_t in[10] = {a0, a1,         a2,         a3,         b0,
                           b1, bitsOf(c0), bitsOf(c1), bitsOf(c2), bitsOf(c3)};
  std::memcpy(warp.in[lane], in, sizeof in);
  meet("mma.sync.m16n8k16", ~0u, place, [&] {
    ++counts.matrixOps;
    float a[16][16], b[16][8], d[16][8];
    for (unsigned i = 0; i < kWarp; ++i) {
      const uint32_t *f = warp.in[i];
      unsigned g = i / 4, t = i % 4 * 2;
      for (int h = 0; h < 2; ++h) {
        a[g][t + h] = half(f[0], h), a[g + 8][t + h] = half(f[1], h);
        a[g][t + 8 + h] = half(f[2], h), a[g + 8][t + 8 + h] = half(f[3], h);
        b[t + h][g] = half(f[4], h), b[t + 8 + h][g] = half(f[5], h);
        d[g][t + h] = floatOf(f[6 + h]), d[g + 8][t + h] = floatOf(f[8 + h]);
      }
    }
    for (int m = 0; m < 16; ++m)
      for (int k = 0; k < 16; ++k)
        for (int n = 0; n < 8; ++n)
          d[m][n] += a[m][k] * b[k][n];
    for (unsigned i = 0; i < kWarp; ++i) {
      unsigned g = i / 4, t = i % 4 * 2;
      for (int h = 0; h < 2; ++h) {
        warp.out[i][h] = bitsOf(d[g][t + h]);
        warp.out[i][2 + h] = bitsOf(d[g + 8][t + h]);
      }
    }
  });
  std::memcpy(out, warp.out[lane], 4 * sizeof(float));
}

//===----------------------------------------------------------------------===//
// MMAs of four warps
//===----------------------------------------------------------------------===//

/// Fences and waits, which all threads of a warp come to.
static void pass(const char *operation, int place) {
  meet(operation, ~0u, place, [] {});
}
void simulator_ptx_fence_proxy_async_shared__cta(int) {}
void simulator_ptx_wgmma_fence_sync_aligned(int place) {
  pass("wgmma.fence", place);
}
void simulator_ptx_wgmma_commit_group_sync_aligned(int place) {
  meet("wgmma.commit_group", ~0u, place, [] { ++block.warp().groupsEnded; });
}
void simulator_ptx_wgmma_wait_group_sync_aligned(int place) {
  pass("wgmma.wait_group", place);
}
/// Before a wait for all groups but `pending`: numbers of the MMA at the
/// place `mma` go through it.
void simulator_wgmma_finish(int mma, uint32_t pending) {
  const Warp &warp = block.warp();
  if (warp.groupOf[mma] + pending >= warp.groupsEnded)
    fail("wgmma.wait_group %u does not wait for numbers that go through it: "
         "they are of group %u, and %u have ended",
         pending, warp.groupOf[mma], warp.groupsEnded);
}

/// The warp begins an MMA. Its lanes describe the same matrices, and so do
/// the other warps of its group.
static void beginGroupMma(int place) {
  Warp &warp = block.warp();
  GroupMma mma = {place, 0, 0};
  for (unsigned i = 0; i < kWarp; ++i) {
    auto [a, b] = warp.matrices[i];
    if (i == 0)
      mma.a = a, mma.b = b;
    else if (a != mma.a || b != mma.b)
      fail("wgmma of matrices that lane %u describes in another way than "
           "lane 0",
           i);
  }
  unsigned w = block.current / kWarp;
  auto &mmas = block.groupMmas[w / kWarpGroup];
  if (warp.begun == mmas.size()) {
    mmas.push_back(mma);
  } else {
    const GroupMma &other = mmas[warp.begun];
    if (other.place != place || other.a != mma.a || other.b != mma.b)
      fail("wgmma needs four warps: warp %u begins another MMA than others "
           "of its group",
           w);
  }
  ++warp.begun;
  if (warp.groupOf.size() <= size_t(place))
    warp.groupOf.resize(place + 1);
  warp.groupOf[place] = warp.groupsEnded;
}

/// A number of a panel of 64 columns that `matrix` describes as in the PTX
/// manual, with vectors that change places within 128 bytes: those are bits 4
/// to 6 of an address, and their row bits 7 to 9.
static float numberAt(uint64_t matrix, unsigned row, unsigned column) {
  constexpr uint64_t kWindow = 1 << 18;
  if (matrix >> 62 != 1 || (matrix >> 49 & 7) != 0)
    fail("wgmma of a matrix that is described as 0x%016llx: its vectors do not "
         "change places within 128 bytes",
         (unsigned long long)matrix);
  uint64_t groups = (matrix >> 32 & 0x3FFF) << 4;
  uint64_t address =
      ((matrix & 0x3FFF) << 4) + row / 8 * groups + row % 8 * 128 + column * 2;
  address ^= (address >> 7 & 7) << 4;
  auto base = reinterpret_cast<uintptr_t>(simulatorShared.base);
  const char *at = simulatorShared.base + (address - base) % kWindow;
  checkShared("wgmma", at, 2);
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return floatOf(uint32_t(bits) << 16);
}

/// The 16 rows of this warp: sums += a b, once `fill` has read a. What lanes
/// have is where mma.sync has it, for 8 columns after the other.
static void multiplyByGroup(float *sums, unsigned columns, bool byTerms,
                            uint64_t b, int place,
                            void (*fill)(float (&a)[16][16], uint64_t matrix),
                            uint64_t matrix) {
  Warp &warp = block.warp();
  warp.sums[block.lane()] = sums;
  warp.matrices[block.lane()][0] = matrix, warp.matrices[block.lane()][1] = b;
  meet("wgmma.mma_async", ~0u, place, [&] {
    ++counts.matrixOps;
    beginGroupMma(place);
    float a[16][16];
    fill(a, matrix);
    for (unsigned n = 0; n < columns; ++n)
      for (unsigned k = 0; k < 16; ++k) {
        float term = byTerms ? numberAt(b, k, n) : numberAt(b, n, k);
        for (unsigned m = 0; m < 16; ++m)
          warp.sums[m % 8 * 4 + n % 8 / 2][n / 8 * 4 + m / 8 * 2 + n % 2] +=
              a[m][k] * term;
      }
  });
}

static void readShared(float (&a)[16][16], uint64_t matrix) {
  unsigned first = block.current / kWarp % kWarpGroup * 16;
  for (unsigned m = 0; m < 16; ++m)
    for (unsigned k = 0; k < 16; ++k)
      a[m][k] = numberAt(matrix, first + m, k);
}

static void readRegisters(float (&a)[16][16], uint64_t) {
  for (unsigned m = 0; m < 16; ++m)
    for (unsigned k = 0; k < 16; ++k)
      a[m][k] = half(block.warp().in[m % 8 * 4 + k % 8 / 2][m / 8 + k / 8 * 2],
                     k % 2);
}

void simulator_wgmma_shared(float *sums, uint32_t columns, uint32_t byTerms,
                            uint64_t a, uint64_t b, int place) {
  multiplyByGroup(sums, columns, byTerms, b, place, readShared, a);
}

void simulator_wgmma_registers(float *sums, uint32_t columns, uint32_t byTerms,
                               uint32_t a0, uint32_t a1, uint32_t a2,
                               uint32_t a3, uint64_t b, int place) {
  const uint32_t in[4] = {a0, a1, a2, a3};
  std::memcpy(block.warp().in[block.lane()], in, sizeof in);
  multiplyByGroup(sums, columns, byTerms, b, place, readRegisters, 0);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

#define UNARY(intrinsic, ptx, expression)                                      \
  float simulator_##intrinsic(float x) { return expression; }                  \
  float simulator_ptx_##ptx(float x) { return expression; }
UNARY(ex2_approx_f32, ex2_approx_f32, std::exp2(x))
UNARY(ex2_approx_ftz_f32, ex2_approx_ftz_f32, flushed(std::exp2(flushed(x))))
UNARY(lg2_approx_f, lg2_approx_f32, std::log2(x))
UNARY(lg2_approx_ftz_f, lg2_approx_ftz_f32, std::log2(flushed(x)))
UNARY(rcp_rn_f, rcp_rn_f32, 1 / x)
UNARY(rcp_approx_ftz_f, rcp_approx_ftz_f32, flushed(1 / flushed(x)))
UNARY(rsqrt_approx_f, rsqrt_approx_f32, 1 / std::sqrt(x))
UNARY(rsqrt_approx_ftz_f, rsqrt_approx_ftz_f32, 1 / std::sqrt(flushed(x)))
UNARY(sqrt_rn_f, sqrt_rn_f32, std::sqrt(x))
UNARY(sqrt_approx_f, sqrt_approx_f32, std::sqrt(x))
#undef UNARY
float simulator_ptx_rcp_approx_f32(float x) { return 1 / x; }
float simulator_ptx_tanh_approx_f32(float x) { return std::tanh(x); }
float simulator_div_full(float a, float b) { return a / b; }
float simulator_div_rn_f(float a, float b) { return a / b; }
float simulator_div_approx_f(float a, float b) { return a / b; }
float simulator_ptx_div_full_f32(float a, float b) { return a / b; }
float simulator_fma_rn_f(float a, float b, float c) {
  return std::fma(a, b, c);
}
float simulator_fmax_f(float a, float b) { return std::fmax(a, b); }
float simulator_fmin_f(float a, float b) { return std::fmin(a, b); }
uint32_t simulator_f2bf16_rn(float x) { return roundToBF16(x); }
uint32_t simulator_ptx_cvt_rn_bf16_f32(float x) { return roundToBF16(x); }
/// The first argument is the high half.
uint32_t simulator_ff2bf16x2_rn(float high, float low) {
  return roundToBF16(high) << 16 | roundToBF16(low);
}
uint32_t simulator_ptx_cvt_rn_bf16x2_f32(float high, float low) {
  return simulator_ff2bf16x2_rn(high, low);
}

} // extern "C"
