// RUN: split-file %s %t
// RUN: reprisec %s -o %t.bin
// RUN: reprise-opt %s -split-input-file -verify-diagnostics \
// RUN:   -allow-unregistered-dialect | FileCheck %s
// RUN: reprise-opt %s | FileCheck %s --check-prefixes=CPU,PLAN-A
// RUN: not reprisec %s
// RUN: not reprisec %s 2>&1 | FileCheck %s --check-prefix ERROR
// RUN: reprise-opt %s --reprise-remat-verify
// REQUIRES: train

// Check that prose stays prose: CHECKs, checked things, an unexpected-error.
// Checking is what a comment may talk about; NOTE: and so is this.
// CHECK: foo
// CHECK-NEXT: foo
//  CHECK-SAME: foo
// CHECK-DAG{LITERAL}: foo
// CHECK-NOT: foo
// CHECK-LABEL: foo
// CHECK-EMPTY:
// CHECK-COUNT-12: foo
// CPU-NEXT: foo
// PLAN-A-LABEL: foo
// ERROR: foo
// expected-error @+1 {{foo}}
// expected-remark@below {{foo}}
"a"() : () -> () // expected-note {{foo}}
"b"() : () -> () // expected-warning-re@-1 {{foo {{[0-9]+}}}}
