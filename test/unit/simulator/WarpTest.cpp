//===- WarpTest.cpp - Threads, shuffles, votes, matrices --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <functional>

using namespace reprise::simulator;

/// Runs `test` with every option.
static void forAllOptions(const std::function<void()> &test) {
  for (const SimulatorOptions &options : allOptions()) {
    SCOPED_TRACE(describe(options));
    simulatorSetOptions(&options);
    test();
  }
}

/// A kernel `name` whose thread writes %result (i32), from its number %t in the
/// block, to its place in the output.
static std::string kernelOfThreads(const std::string &name,
                                   const std::string &body) {
  return R"(
define ptx_kernel void @)" +
         name + R"((ptr addrspace(1) %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
)" + body +
         R"(
  %first = mul i32 %b, %n
  %i = add i32 %first, %t
  %at = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %result, ptr addrspace(1) %at, align 4
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
)";
}

TEST(Threads, EachRunsOnceInEveryOrder) {
  ASSERT_EQ(load(kernelOfThreads("places", R"(
  %y = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %product = mul i32 %b, 1000
  %sum = add i32 %product, %t
  %more = mul i32 %size, 1000000
  %result = add i32 %sum, %more)") +
                 "declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()\n"
                 "declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()\n"),
            "");
  forAllOptions([] {
    Buffer<uint32_t> out(5 * 70);
    ASSERT_EQ(launch("places", {5}, {70}, {out.data()}), "");
    std::vector<uint32_t> have = out.values();
    for (uint32_t i = 0; i < have.size(); ++i)
      ASSERT_EQ(have[i], 5000000 + i / 70 * 1000 + i % 70);
  });
}

TEST(Warp, ShufflesAsTheManualSays) {
  // A value that tells lanes apart, and segments of 8 lanes: mask of segments
  // 24 in bits 8 to 12, last lane 7 (or first lane 0) in the low bits.
  struct Case {
    const char *mode;
    int32_t other, clamp;
    std::function<int(int)> from;
  };
  const Case cases[] = {
      {"bfly", 5, 31, [](int l) { return l ^ 5; }},
      {"bfly", 12, 24 << 8 | 7,
       [](int l) { return (l ^ 12) <= (l | 7) ? l ^ 12 : l; }},
      {"idx", 3, 31, [](int) { return 3; }},
      {"idx", 3, 24 << 8 | 7, [](int l) { return (l & 24) | 3; }},
      {"up", 2, 0, [](int l) { return l < 2 ? l : l - 2; }},
      {"up", 2, 24 << 8, [](int l) { return l % 8 < 2 ? l : l - 2; }},
      {"down", 3, 31, [](int l) { return l > 28 ? l : l + 3; }},
      {"down", 3, 24 << 8 | 7, [](int l) { return l % 8 > 4 ? l : l + 3; }},
  };
  int number = 0;
  for (const Case &c : cases) {
    SCOPED_TRACE(std::string(c.mode) + " clamp " + std::to_string(c.clamp));
    std::string name = "shuffle" + std::to_string(number++);
    std::string op = std::string("@llvm.nvvm.shfl.sync.") + c.mode + ".i32";
    ASSERT_EQ(
        load(kernelOfThreads(name, "  %value = mul i32 %t, 3\n"
                                   "  %result = call i32 " +
                                       op + "(i32 -1, i32 %value, i32 " +
                                       std::to_string(c.other) + ", i32 " +
                                       std::to_string(c.clamp) + ")") +
             "declare i32 " + op + "(i32, i32, i32, i32)\n"),
        "");
    forAllOptions([&] {
      Buffer<uint32_t> out(64);
      ASSERT_EQ(launch(name.c_str(), {1}, {64}, {out.data()}), "");
      std::vector<uint32_t> have = out.values();
      for (int i = 0; i < 64; ++i)
        ASSERT_EQ(have[i], uint32_t(3 * (i / 32 * 32 + c.from(i % 32)))) << i;
    });
  }
}

TEST(Warp, PartsShuffleByThemselves) {
  // The upper half of the lanes adds up twice, the lower half once.
  ASSERT_EQ(load(kernelOfThreads("parts", R"(
  %upper = icmp uge i32 %t, 16
  br i1 %upper, label %high, label %low
high:
  %a = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 u0xFFFF0000, i32 %t, i32 1, i32 31)
  %b2 = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 u0xFFFF0000, i32 %a, i32 2, i32 31)
  br label %end
low:
  %c = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 u0x0000FFFF, i32 %t, i32 4, i32 31)
  br label %end
end:
  %result = phi i32 [ %b2, %high ], [ %c, %low ])") +
                 "declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, "
                 "i32)\n"),
            "");
  forAllOptions([] {
    Buffer<uint32_t> out(32);
    ASSERT_EQ(launch("parts", {1}, {32}, {out.data()}), "");
    std::vector<uint32_t> have = out.values();
    for (uint32_t i = 0; i < 32; ++i)
      ASSERT_EQ(have[i], i < 16 ? i ^ 4 : i ^ 3);
  });
}

TEST(Warp, VotesCountTheLanesOfTheMask) {
  ASSERT_EQ(load(kernelOfThreads("votes", R"(
  %yes = icmp ult i32 %t, 5
  %ballot = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %yes)
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %yes)
  %all = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 %yes)
  %anyBit = select i1 %any, i32 256, i32 0
  %allBit = select i1 %all, i32 512, i32 0
  %sum = add i32 %ballot, %anyBit
  %result = add i32 %sum, %allBit)") +
                 "declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)\n"
                 "declare i1 @llvm.nvvm.vote.any.sync(i32, i1)\n"
                 "declare i1 @llvm.nvvm.vote.all.sync(i32, i1)\n"),
            "");
  forAllOptions([] {
    Buffer<uint32_t> out(32);
    ASSERT_EQ(launch("votes", {1}, {32}, {out.data()}), "");
    for (uint32_t value : out.values())
      ASSERT_EQ(value, 31u + 256u);
  });
}

TEST(Warp, DivergenceIsAnErrorWithBothOperations) {
  ASSERT_EQ(load(kernelOfThreads("divergent", R"(
  %upper = icmp uge i32 %t, 16
  br i1 %upper, label %high, label %low
high:
  %a = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)
  br label %end
low:
  %c = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %t, i32 4, i32 31)
  br label %end
end:
  %result = phi i32 [ %a, %high ], [ %c, %low ])") +
                 "declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, "
                 "i32)\n"
                 "declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, "
                 "i32)\n"),
            "");
  SimulatorOptions options = {};
  simulatorSetOptions(&options);
  Buffer<uint32_t> out(32);
  EXPECT_EQ(launch("divergent", {1}, {32}, {out.data()}),
            "kernel 'divergent', block (0, 0, 0), thread (16, 0, 0): divergent "
            "warp: shfl.sync.bfly, where lane 0 waits in shfl.sync.idx");
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

static float fromBF16(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

// A is 16 x 16 and lies as it is; B is 16 x 8 and lies either transposed, as
// ldmatrix wants it, or as it is, for ldmatrix.trans.
static std::string productKernel(bool transposed) {
  std::string load = std::string("@llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.") +
                     (transposed ? "" : "trans.") + "b16.p3";
  std::string rowOfB = transposed ? R"(
  %rb0 = and i32 %t, 7
  %hb = lshr i32 %t, 3
  %hb1 = and i32 %hb, 1
  %cb = mul i32 %hb1, 8
  %ob0 = mul i32 %rb0, 16
  %ob = add i32 %ob0, %cb)"
                                  : R"(
  %rb0 = and i32 %t, 15
  %ob = mul i32 %rb0, 8)";
  return R"(
@a = internal addrspace(3) global [256 x bfloat] undef, align 16
@b = internal addrspace(3) global [128 x bfloat] undef, align 16
define ptx_kernel void @product)" +
         std::string(transposed ? "T" : "") +
         R"((ptr addrspace(1) %ga, ptr addrspace(1) %gb, ptr addrspace(1) %out) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %copyA
copyA:
  %i = phi i32 [ %t, %entry ], [ %in, %copyA ]
  %pa = getelementptr bfloat, ptr addrspace(1) %ga, i32 %i
  %va = load bfloat, ptr addrspace(1) %pa, align 2
  %sa = getelementptr bfloat, ptr addrspace(3) @a, i32 %i
  store bfloat %va, ptr addrspace(3) %sa, align 2
  %in = add i32 %i, 32
  %moreA = icmp ult i32 %in, 256
  br i1 %moreA, label %copyA, label %copyB
copyB:
  %j = phi i32 [ %t, %copyA ], [ %jn, %copyB ]
  %pb = getelementptr bfloat, ptr addrspace(1) %gb, i32 %j
  %vb = load bfloat, ptr addrspace(1) %pb, align 2
  %sb = getelementptr bfloat, ptr addrspace(3) @b, i32 %j
  store bfloat %vb, ptr addrspace(3) %sb, align 2
  %jn = add i32 %j, 32
  %moreB = icmp ult i32 %jn, 128
  br i1 %moreB, label %copyB, label %multiply
multiply:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %r0 = and i32 %t, 15
  %c0 = lshr i32 %t, 4
  %c1 = mul i32 %c0, 8
  %o0 = mul i32 %r0, 16
  %o1 = add i32 %o0, %c1
  %rowA = getelementptr bfloat, ptr addrspace(3) @a, i32 %o1
  %fa = call { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %rowA))" +
         rowOfB + R"(
  %rowB = getelementptr bfloat, ptr addrspace(3) @b, i32 %ob
  %fb = call { i32, i32 } )" +
         load + R"((ptr addrspace(3) %rowB)
  %a0 = extractvalue { i32, i32, i32, i32 } %fa, 0
  %a1 = extractvalue { i32, i32, i32, i32 } %fa, 1
  %a2 = extractvalue { i32, i32, i32, i32 } %fa, 2
  %a3 = extractvalue { i32, i32, i32, i32 } %fa, 3
  %b0 = extractvalue { i32, i32 } %fb, 0
  %b1 = extractvalue { i32, i32 } %fb, 1
  %d = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, float 1.0, float 1.0, float 1.0, float 1.0)
  %g = lshr i32 %t, 2
  %q = and i32 %t, 3
  %q2 = mul i32 %q, 2
  %g8 = mul i32 %g, 8
  %at0 = add i32 %g8, %q2
  %p0 = getelementptr float, ptr addrspace(1) %out, i32 %at0
  %p1 = getelementptr float, ptr addrspace(1) %p0, i32 1
  %p2 = getelementptr float, ptr addrspace(1) %p0, i32 64
  %p3 = getelementptr float, ptr addrspace(1) %p0, i32 65
  %d0 = extractvalue { float, float, float, float } %d, 0
  %d1 = extractvalue { float, float, float, float } %d, 1
  %d2 = extractvalue { float, float, float, float } %d, 2
  %d3 = extractvalue { float, float, float, float } %d, 3
  store float %d0, ptr addrspace(1) %p0, align 4
  store float %d1, ptr addrspace(1) %p1, align 4
  store float %d2, ptr addrspace(1) %p2, align 4
  store float %d3, ptr addrspace(1) %p3, align 4
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.bar.warp.sync(i32)
declare { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3))
declare { i32, i32 } )" +
         load + R"((ptr addrspace(3))
declare { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32, i32, i32, i32, i32, i32, float, float, float, float)
)";
}

TEST(Warp, MultipliesMatrices) {
  std::vector<uint16_t> a(256), b(128), bT(128);
  for (int i = 0; i < 256; ++i)
    a[i] = 0x3F80 + i; // different for each element, 1 and more
  for (int k = 0; k < 16; ++k)
    for (int n = 0; n < 8; ++n)
      bT[n * 16 + k] = b[k * 8 + n] = 0x3E00 + 5 * k + 90 * n;
  for (bool transposed : {false, true}) {
    ASSERT_EQ(load(productKernel(transposed)), "");
    forAllOptions([&] {
      Buffer<uint16_t> da(a), db(transposed ? bT : b);
      Buffer<float> out(128);
      ASSERT_EQ(launch(transposed ? "productT" : "product", {1}, {32},
                       {da.data(), db.data(), out.data()}),
                "");
      std::vector<float> have = out.values();
      for (int m = 0; m < 16; ++m)
        for (int n = 0; n < 8; ++n) {
          double want = 1;
          for (int k = 0; k < 16; ++k)
            want += double(fromBF16(a[m * 16 + k])) * fromBF16(b[k * 8 + n]);
          ASSERT_NEAR(have[m * 8 + n], want, 1e-5 * want) << m << ", " << n;
        }
    });
  }
}

TEST(Warp, ConvertsToBF16AsTheMachine) {
  ASSERT_EQ(load(R"(
define ptx_kernel void @convert(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr float, ptr addrspace(1) %in, i32 %t
  %x = load float, ptr addrspace(1) %p, align 4
  %y = fptrunc float %x to bfloat
  %bits = bitcast bfloat %y to i16
  %low = zext i16 %bits to i32
  %pair = call i32 asm "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f"(float %x, float 1.0)
  %high = and i32 %pair, u0xFFFF0000
  %both = or i32 %low, %high
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %both, ptr addrspace(1) %q, align 4
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
)"),
            "");
  // Ties go to even; what is greater than all numbers becomes infinite.
  const std::vector<float> in = {1.0f, 1.00390625f, 1.01171875f, 3.4e38f,
                                 -2.5f};
  const uint32_t want[] = {0x3F80, 0x3F80, 0x3F82, 0x7F80, 0xC020};
  Buffer<float> din(in);
  Buffer<uint32_t> out(5);
  ASSERT_EQ(launch("convert", {1}, {5}, {din.data(), out.data()}), "");
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(out.values()[i], want[i] << 16 | want[i]) << in[i];
}

//===----------------------------------------------------------------------===//
// MMAs of four warps
//===----------------------------------------------------------------------===//

/// A kernel whose threads multiply 64 rows of 16 ones by 8 columns of them, and
/// write the first of their sums.
/// \param matrix  makes %right, the description of the right factor, from that
///                of the left one, %left.
/// \param wait    makes %done, four numbers, of the results %p0 .. %p3.
static std::string groupKernel(const std::string &name,
                               const std::string &matrix,
                               const std::string &wait) {
  return kernelOfThreads(name, R"(
  %row = mul i32 %t, 64
  %begin = getelementptr i8, ptr addrspace(3) @tile, i32 %row
  store <32 x bfloat> splat (bfloat 1.0), ptr addrspace(3) %begin, align 64
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %address = ptrtoint ptr addrspace(3) @tile to i64
  %units = lshr i64 %address, 4
  %field = and i64 %units, 16383
  %left = or i64 %field, 4611686293305360384)" +
                                   matrix +
                                   R"(
  call void asm sideeffect "wgmma.fence.sync.aligned;", ""()
  %p = call { float, float, float, float } asm sideeffect "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, $4, $5, 0, 1, 1, 0, 0;", "=f,=f,=f,=f,l,l"(i64 %left, i64 %right)
  %p0 = extractvalue { float, float, float, float } %p, 0
  %p1 = extractvalue { float, float, float, float } %p, 1
  %p2 = extractvalue { float, float, float, float } %p, 2
  %p3 = extractvalue { float, float, float, float } %p, 3)" +
                                   wait + R"(
  %first0 = extractvalue { float, float, float, float } %done, 0
  %result = bitcast float %first0 to i32)") +
         "@tile = internal addrspace(3) global [8192 x i8] undef, align 1024\n"
         "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n";
}

static std::string commit() {
  return "\n  call void asm sideeffect \"wgmma.commit_group.sync.aligned;\", "
         "\"\"()";
}

static std::string waitFor(int pending) {
  return "\n  %done = call { float, float, float, float } asm sideeffect "
         "\"wgmma.wait_group.sync.aligned " +
         std::to_string(pending) +
         ";\", \"=f,=f,=f,=f,0,1,2,3\"(float %p0, float %p1, float %p2, float "
         "%p3)";
}

static const char kSameMatrix[] = "\n  %right = or i64 %left, 0";

/// %right is a row further on where bit `bit` of the number of the thread is
/// set.
static std::string otherMatrix(int bit) {
  return "\n  %wide = zext i32 %t to i64\n  %bit = lshr i64 %wide, " +
         std::to_string(bit) +
         "\n  %odd = and i64 %bit, 1\n  %rows = mul i64 %odd, 8\n"
         "  %right = add i64 %left, %rows";
}

/// Launches the kernel with `threads` threads: the error, or nothing.
static std::string runGroup(const std::string &name, const std::string &text,
                            uint32_t threads = 128) {
  std::string error = load(text);
  if (!error.empty())
    return error;
  Buffer<uint32_t> out(threads);
  error = launch(name.c_str(), {1}, {threads}, {out.data()});
  for (uint32_t value : out.values())
    if (error.empty())
      EXPECT_EQ(value, 0x41800000u); // 16
  return error;
}

TEST(WarpGroup, MultipliesMatrices) {
  std::string text = groupKernel("ones", kSameMatrix, commit() + waitFor(0));
  forAllOptions([&] { EXPECT_EQ(runGroup("ones", text), ""); });
}

TEST(WarpGroup, NumbersAreWaitedFor) {
  using testing::HasSubstr;
  SimulatorOptions options = {};
  simulatorSetOptions(&options);
  // Read as they come from the MMA.
  EXPECT_THAT(load(groupKernel("early", kSameMatrix,
                               "\n  %early = fadd float %p0, %p1" + commit() +
                                   waitFor(0))),
              HasSubstr("a result of wgmma.mma_async is used before "
                        "wgmma.wait_group:   %early = fadd"));
  EXPECT_EQ(load(groupKernel("whole", kSameMatrix,
                             "\n  %done = select i1 true, { float, float, "
                             "float, float } %p, { float, float, float, float "
                             "} zeroinitializer" +
                                 commit())),
            "a result of wgmma.mma_async is used as a whole");
  // Waits for another group, or for none.
  EXPECT_THAT(runGroup("other", groupKernel("other", kSameMatrix,
                                            commit() + waitFor(1))),
              HasSubstr("wgmma.wait_group 1 does not wait for numbers that go "
                        "through it: they are of group 0, and 1 have ended"));
  EXPECT_THAT(runGroup("none", groupKernel("none", kSameMatrix, waitFor(0))),
              HasSubstr("wgmma.wait_group 0 does not wait for numbers that go "
                        "through it: they are of group 0, and 0 have ended"));
  EXPECT_EQ(runGroup("before", groupKernel("before", kSameMatrix,
                                           commit() + commit() + waitFor(1))),
            "");
}

TEST(WarpGroup, FourWarpsBeginTheSameMmas) {
  using testing::HasSubstr;
  SimulatorOptions options = {};
  simulatorSetOptions(&options);
  std::string rest = commit() + waitFor(0);
  EXPECT_THAT(
      runGroup("lanes", groupKernel("lanes", otherMatrix(0), rest)),
      HasSubstr("wgmma of matrices that lane 1 describes in another way "
                "than lane 0"));
  EXPECT_THAT(
      runGroup("warps", groupKernel("warps", otherMatrix(5), rest)),
      testing::EndsWith(" begins another MMA than others of its group"));
  EXPECT_THAT(runGroup("three", groupKernel("three", kSameMatrix, rest), 96),
              HasSubstr("wgmma needs four warps: warp 3 has begun 0 MMAs, and "
                        "others of its group 1"));
}
