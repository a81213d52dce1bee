//===- BlockTest.cpp - Barriers, copies, and what goes wrong ----*- C++ -*-===//
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

using namespace reprise::simulator;
using testing::HasSubstr;
using testing::StartsWith;

static const char kDeclarations[] = R"(
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
)";

static void setOptions(SimulatorLanding landing, SimulatorOrder order) {
  SimulatorOptions options = {landing, order, 17};
  simulatorSetOptions(&options);
}

static bool anyNaN(const std::vector<float> &values) {
  for (float value : values)
    if (std::isnan(value))
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Shared memory and barriers
//===----------------------------------------------------------------------===//

/// Reverses 128 numbers through dynamic shared memory that lies behind a static
/// variable, with or without the barrier that this takes.
static std::string reverseKernel(const std::string &name, bool barrier) {
  return "@first = internal addrspace(3) global [3 x float] undef, align 4\n"
         "@rest = external addrspace(3) global [0 x i8], align 128\n"
         "define ptx_kernel void @" +
         name + R"((ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr float, ptr addrspace(1) %in, i32 %t
  %x = load float, ptr addrspace(1) %p, align 4
  store float 0.0, ptr addrspace(3) @first, align 4
  %s = getelementptr float, ptr addrspace(3) @rest, i32 %t
  store float %x, ptr addrspace(3) %s, align 4
)" +
         (barrier
              ? "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
              : "") +
         R"(
  %r = sub i32 127, %t
  %from = getelementptr float, ptr addrspace(3) @rest, i32 %r
  %y = load float, ptr addrspace(3) %from, align 4
  %q = getelementptr float, ptr addrspace(1) %out, i32 %t
  store float %y, ptr addrspace(1) %q, align 4
  ret void
}
)" + kDeclarations;
}

TEST(Block, BarriersMakeWritesSeen) {
  ASSERT_EQ(load(reverseKernel("reverse", true)), "");
  ASSERT_EQ(load(reverseKernel("reverseWithoutBarrier", false)), "");
  std::vector<float> in(128), reversed(128);
  for (int i = 0; i < 128; ++i)
    in[i] = i, reversed[i] = 127 - i;
  Buffer<float> din(in);
  for (const SimulatorOptions &options : allOptions()) {
    SCOPED_TRACE(describe(options));
    simulatorSetOptions(&options);
    Buffer<float> out(128), wrong(128);
    ASSERT_EQ(launch("reverse", {2}, {128}, {din.data(), out.data()}, 512), "");
    EXPECT_EQ(out.values(), reversed);
    ASSERT_EQ(launch("reverseWithoutBarrier", {2}, {128},
                     {din.data(), wrong.data()}, 512),
              "");
    EXPECT_TRUE(anyNaN(wrong.values()));
  }
}

TEST(Block, NamedBarriersCountTheirThreads) {
  // The first warp waits for what the second writes; the third does not come.
  ASSERT_EQ(load(R"(
@x = internal addrspace(3) global [64 x float] undef, align 16
define ptx_kernel void @named(ptr addrspace(1) %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %w = lshr i32 %t, 5
  %l = and i32 %t, 31
  %s = getelementptr float, ptr addrspace(3) @x, i32 %l
  switch i32 %w, label %end [ i32 0, label %reader
                              i32 1, label %writer ]
writer:
  store float 2.0, ptr addrspace(3) %s, align 4
  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 3, i32 64)
  br label %end
reader:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 3, i32 64)
  %y = load float, ptr addrspace(3) %s, align 4
  %q = getelementptr float, ptr addrspace(1) %out, i32 %l
  store float %y, ptr addrspace(1) %q, align 4
  br label %end
end:
  ret void
}
declare void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32)
declare void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32, i32)
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
)"),
            "");
  for (const SimulatorOptions &options : allOptions()) {
    SCOPED_TRACE(describe(options));
    simulatorSetOptions(&options);
    Buffer<float> out(32);
    ASSERT_EQ(launch("named", {1}, {96}, {out.data()}), "");
    EXPECT_EQ(out.values(), std::vector<float>(32, 2.0f));
  }
}

TEST(Block, ABarrierThatNotAllReachIsADeadlock) {
  ASSERT_EQ(load(R"(
define ptx_kernel void @stuck() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp ult i32 %t, 32
  br i1 %first, label %a, label %b
a:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
b:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 1)
  ret void
}
)" + std::string(kDeclarations)),
            "");
  setOptions(SIMULATOR_LATE, SIMULATOR_ASCENDING);
  EXPECT_EQ(launch("stuck", {1, 2}, {64}, {}),
            "kernel 'stuck', block (0, 0, 0), thread (63, 0, 0): deadlock: of "
            "64 threads 0 have ended, and there wait 32 from thread (0, 0, 0) "
            "on in barrier 0, 32 from thread (32, 0, 0) on in barrier 1");
}

TEST(Block, HalfAWarpAtABarrierIsAnError) {
  ASSERT_EQ(load(R"(
define ptx_kernel void @half() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp ult i32 %t, 16
  br i1 %first, label %a, label %b
a:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
b:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}
)" + std::string(kDeclarations)),
            "");
  setOptions(SIMULATOR_LATE, SIMULATOR_ASCENDING);
  EXPECT_EQ(launch("half", {1}, {32}, {}),
            "kernel 'half', block (0, 0, 0), thread (16, 0, 0): divergent "
            "barrier: others of its warp wait at another one of the program");
}

//===----------------------------------------------------------------------===//
// cp.async
//===----------------------------------------------------------------------===//

/// Sums 4 tiles of 512 numbers that one warp copies in, tile i + 1 while tile i
/// is added up, in two buffers; every thread adds what another has copied.
static std::string pipelineKernel(const std::string &name, bool wait,
                                  bool secondBarrier) {
  return "@tiles = internal addrspace(3) global [256 x float] undef, align 16\n"
         "define ptx_kernel void @" +
         name + R"((ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %o = mul i32 %t, 4
  %g0 = getelementptr float, ptr addrspace(1) %in, i32 %o
  %s0 = getelementptr float, ptr addrspace(3) @tiles, i32 %o
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %s0, ptr addrspace(1) %g0)
  call void @llvm.nvvm.cp.async.commit.group()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %end ]
  %sum = phi float [ 0.0, %entry ], [ %sum4, %end ]
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %copy, label %commit
copy:
  %parity = and i32 %next, 1
  %bo = mul i32 %parity, 128
  %so = add i32 %bo, %o
  %s = getelementptr float, ptr addrspace(3) @tiles, i32 %so
  %go0 = mul i32 %next, 128
  %go = add i32 %go0, %o
  %g = getelementptr float, ptr addrspace(1) %in, i32 %go
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %s, ptr addrspace(1) %g)
  br label %commit
commit:
  call void @llvm.nvvm.cp.async.commit.group()
)" + (wait ? "  call void @llvm.nvvm.cp.async.wait.group(i32 1)\n" : "") +
         R"(
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %p2 = and i32 %i, 1
  %b2 = mul i32 %p2, 128
  %r = sub i32 124, %o
  %ro = add i32 %b2, %r
  %from = getelementptr float, ptr addrspace(3) @tiles, i32 %ro
  %v = load <4 x float>, ptr addrspace(3) %from, align 16
  %v0 = extractelement <4 x float> %v, i32 0
  %v1 = extractelement <4 x float> %v, i32 1
  %v2 = extractelement <4 x float> %v, i32 2
  %v3 = extractelement <4 x float> %v, i32 3
  %sum1 = fadd float %sum, %v0
  %sum2 = fadd float %sum1, %v1
  %sum3 = fadd float %sum2, %v2
  %sum4 = fadd float %sum3, %v3
)" +
         (secondBarrier
              ? "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
              : "") +
         R"(  br label %end
end:
  br i1 %more, label %loop, label %done
done:
  %q = getelementptr float, ptr addrspace(1) %out, i32 %t
  store float %sum4, ptr addrspace(1) %q, align 4
  ret void
}
)" + kDeclarations;
}

TEST(Copies, MissingWaitsAndBarriersAreSeenInOneOfTheModes) {
  ASSERT_EQ(load(pipelineKernel("pipeline", true, true)), "");
  ASSERT_EQ(load(pipelineKernel("withoutWait", false, true)), "");
  ASSERT_EQ(load(pipelineKernel("withoutBarrier", true, false)), "");
  std::vector<float> in(512), want(32);
  for (int i = 0; i < 512; ++i)
    in[i] = i;
  for (int t = 0; t < 32; ++t)
    for (int tile = 0; tile < 4; ++tile)
      for (int k = 0; k < 4; ++k)
        want[t] += in[tile * 128 + 124 - 4 * t + k];
  Buffer<float> din(in);
  bool seen[2][2] = {}; // [landing][wait, barrier]
  for (const SimulatorOptions &options : allOptions()) {
    SCOPED_TRACE(describe(options));
    simulatorSetOptions(&options);
    auto run = [&](const char *kernel) {
      Buffer<float> out(32);
      EXPECT_EQ(launch(kernel, {1}, {32}, {din.data(), out.data()}), "");
      return out.values();
    };
    EXPECT_EQ(run("pipeline"), want);
    seen[options.landing][0] |= anyNaN(run("withoutWait"));
    seen[options.landing][1] |= run("withoutBarrier") != want;
  }
  EXPECT_TRUE(seen[SIMULATOR_LATE][0]);
  EXPECT_FALSE(seen[SIMULATOR_AT_ONCE][0]);
  EXPECT_TRUE(seen[SIMULATOR_AT_ONCE][1]);
}

TEST(Copies, FillWithZerosWhatTheyDoNotRead) {
  ASSERT_EQ(load(R"(
@x = internal addrspace(3) global [4 x float] undef, align 16
define ptx_kernel void @fill(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @llvm.nvvm.cp.async.cg.shared.global.16.s(ptr addrspace(3) @x, ptr addrspace(1) %in, i32 8)
  call void @llvm.nvvm.cp.async.wait.all()
  %v = load <4 x float>, ptr addrspace(3) @x, align 16
  store <4 x float> %v, ptr addrspace(1) %out, align 16
  ret void
}
declare void @llvm.nvvm.cp.async.cg.shared.global.16.s(ptr addrspace(3), ptr addrspace(1), i32)
declare void @llvm.nvvm.cp.async.wait.all()
)"),
            "");
  Buffer<float> in(std::vector<float>{1, 2, 3, 4}), out(4);
  for (const SimulatorOptions &options : allOptions()) {
    simulatorSetOptions(&options);
    ASSERT_EQ(launch("fill", {1}, {1}, {in.data(), out.data()}), "");
    EXPECT_EQ(out.values(), (std::vector<float>{1, 2, 0, 0}));
  }
}

//===----------------------------------------------------------------------===//
// Wrong accesses and wrong launches
//===----------------------------------------------------------------------===//

TEST(Failures, NameTheThreadAndTheBytes) {
  ASSERT_EQ(load(R"(
@x = internal addrspace(3) global [8 x float] undef, align 16
@y = internal addrspace(3) global [16 x float] undef, align 16
define ptx_kernel void @outside(ptr addrspace(1) %out) "nvvm.reqntid"="32,1,1" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %s = getelementptr float, ptr addrspace(3) @x, i32 %t
  store float 1.0, ptr addrspace(3) %s, align 4
  ret void
}
define ptx_kernel void @misaligned(ptr addrspace(1) %out) {
  %p = getelementptr i8, ptr addrspace(1) %out, i32 8
  store <4 x float> zeroinitializer, ptr addrspace(1) %p, align 16
  ret void
}
define ptx_kernel void @beyond(ptr addrspace(1) %out) {
  %p = getelementptr i8, ptr addrspace(1) %out, i32 256
  store float 1.0, ptr addrspace(1) %p, align 4
  ret void
}
define ptx_kernel void @other() {
  store float 1.0, ptr addrspace(3) @y, align 4
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
)"),
            "");
  setOptions(SIMULATOR_LATE, SIMULATOR_ASCENDING);
  Buffer<float> out(64);
  // What only another kernel has is not there.
  EXPECT_EQ(launch("outside", {1}, {32}, {out.data()}),
            "kernel 'outside', block (0, 0, 0), thread (8, 0, 0): access of 4 "
            "bytes at offset 32 of 32 bytes of shared memory");
  EXPECT_THAT(launch("misaligned", {1}, {1}, {out.data()}),
              HasSubstr("which is not aligned to 16 bytes"));
  EXPECT_THAT(launch("beyond", {2}, {1}, {out.data()}),
              StartsWith("kernel 'beyond', block (0, 0, 0), thread (0, 0, 0): "
                         "touches 0x"));
  // And the next launch is as good as ever.
  EXPECT_EQ(launch("outside", {1}, {16}, {out.data()}),
            "kernel 'outside': needs blocks of 32 threads along axis 0, but "
            "got 16");
  EXPECT_EQ(launch("nowhere", {1}, {16}, {out.data()}),
            "there is no kernel 'nowhere'");
  EXPECT_EQ(launch("misaligned", {1}, {2048}, {out.data()}),
            "kernel 'misaligned': a block needs 1 to 1024 threads, at most 64 "
            "of them along axis 2, but got 2048 x 1 x 1");
  EXPECT_EQ(launch("misaligned", {1}, {1}, {}),
            "kernel 'misaligned': needs 8 bytes of parameters, but got 0");
}

TEST(Failures, OfParametersByValue) {
  ASSERT_EQ(load(R"(
define ptx_kernel void @byValue(ptr byval({ [2 x ptr], [1 x i64] }) align 8 "nvvm.grid_constant" %args) {
  %from = load ptr, ptr %args, align 8
  %second = getelementptr i8, ptr %args, i32 8
  %to = load ptr, ptr %second, align 8
  %third = getelementptr i8, ptr %args, i32 16
  %id = load i64, ptr %third, align 8
  %x = load i64, ptr %from, align 8
  %y = add i64 %x, %id
  store i64 %y, ptr %to, align 8
  ret void
}
)"),
            "");
  Buffer<int64_t> from(std::vector<int64_t>{40}), to(1);
  ASSERT_EQ(launch("byValue", {1}, {1},
                   {from.data(), to.data(), reinterpret_cast<void *>(2)}),
            "");
  EXPECT_EQ(to.values()[0], 42);
}

TEST(Lowering, NamesWhatTheSimulatorDoesNotHave) {
  EXPECT_EQ(load("define ptx_kernel void @k() {\n"
                 "  call void @llvm.nvvm.nanosleep(i32 1)\n  ret void\n}\n"
                 "declare void @llvm.nvvm.nanosleep(i32)\n"),
            "the simulator has no llvm.nvvm.nanosleep");
  EXPECT_EQ(load("define ptx_kernel void @k() {\n"
                 "  call void @__nv_expf()\n  ret void\n}\n"
                 "declare void @__nv_expf()\n"),
            "'__nv_expf' is called and nowhere defined");
  EXPECT_EQ(load("define ptx_kernel void @k() {\n"
                 "  call void asm \"trap;\", \"\"()\n  ret void\n}\n"),
            "the simulator does not know the inline PTX \"trap;\"");
  EXPECT_EQ(load("define ptx_kernel void @k(float %x) {\n"
                 "  %y = call float asm \"ex2.approx.f32 $0, $0;\", \"=f,f\""
                 "(float %x)\n  ret void\n}\n"),
            "the simulator needs the operands $0$1 in order, but got the "
            "inline PTX \"ex2.approx.f32 $0, $0;\"");
  EXPECT_EQ(load("define void @k() {\n  ret void\n}\n"),
            "there is no kernel: no function is ptx_kernel");
}
