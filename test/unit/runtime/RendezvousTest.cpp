//===- RendezvousTest.cpp - Where ranks without MPI meet ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Rendezvous.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

using namespace reprise::runtime;

static std::string first(const char *list) {
  char name[64];
  firstNode(list, name, sizeof(name));
  return name;
}

TEST(Rendezvous, TheFirstNodeOfSlurmsList) {
  EXPECT_EQ(first("gpu1"), "gpu1");
  EXPECT_EQ(first("gpu1,gpu2"), "gpu1");
  EXPECT_EQ(first("node[03-04,7],gpu1"), "node03");
  EXPECT_EQ(first("node[7,9-12]"), "node7");
  EXPECT_EQ(first("rack[1-2]n[08,10]"), "rack1n08");
  EXPECT_EQ(first("a[1-2]-ib,b"), "a1-ib");
  EXPECT_EQ(first(""), "");
  EXPECT_EQ(first(std::string(99, 'x').c_str()), std::string(63, 'x'));
}

namespace {
/// The environment of a launcher, and of no other.
struct RendezvousOf : testing::Test {
  RendezvousOf() {
    for (const char *name :
         {"MASTER_ADDR", "MASTER_PORT", "SLURM_STEP_NODELIST", "SLURM_JOB_ID",
          "SLURM_STEP_ID"})
      unsetenv(name);
    launch.name = "srun";
    launch.variable = "SLURM_STEP_NUM_TASKS";
    launch.size = 2;
  }
  Launch launch;
  Meeting meeting;
  Error error;
};
} // namespace

TEST_F(RendezvousOf, SlurmMeetsAtItsFirstNode) {
  setenv("SLURM_STEP_NODELIST", "gpu[1-2]", 1);
  setenv("SLURM_JOB_ID", "17", 1);
  ASSERT_TRUE(findMeeting(launch, meeting, error)) << error.text;
  EXPECT_STREQ(meeting.host, "gpu1");
  EXPECT_GE(meeting.port, 20000);
  EXPECT_LT(meeting.port + Meeting::kPorts, 32768);
  Meeting other;
  ASSERT_TRUE(findMeeting(launch, other, error));
  EXPECT_EQ(other.port, meeting.port);
  EXPECT_EQ(other.run, meeting.run);
  setenv("SLURM_STEP_ID", "1", 1);
  ASSERT_TRUE(findMeeting(launch, other, error));
  EXPECT_NE(other.run, meeting.run);
}

TEST_F(RendezvousOf, APortThatIsSaidIsTheAgents) {
  setenv("SLURM_STEP_NODELIST", "gpu[1-2]", 1);
  setenv("MASTER_ADDR", "head", 1);
  setenv("MASTER_PORT", "29500", 1);
  ASSERT_TRUE(findMeeting(launch, meeting, error)) << error.text;
  EXPECT_STREQ(meeting.host, "head");
  EXPECT_EQ(meeting.port, 29501);
}

TEST_F(RendezvousOf, WhatIsNotSaidIsAskedFor) {
  EXPECT_FALSE(findMeeting(launch, meeting, error));
  EXPECT_STREQ(error.text,
               "srun has started 2 ranks (SLURM_STEP_NUM_TASKS), but does not "
               "say where they meet: needs MASTER_ADDR and MASTER_PORT");
  setenv("MASTER_ADDR", "head", 1);
  for (const char *port : {"", "0", "-1", "99999", "1x", "x"}) {
    setenv("MASTER_PORT", port, 1);
    EXPECT_FALSE(findMeeting(launch, meeting, error)) << port;
  }
}
