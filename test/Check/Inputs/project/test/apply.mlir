// RUN: reprise-opt %s --reprise-remat-apply | FileCheck %s
// CHECK: foo
// CHECK-NXT: foo
