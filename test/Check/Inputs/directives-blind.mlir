// RUN: reprise-opt %s -o %t
// RUN: reprisec %s > %t

// CHECK: foo
// expected-error {{foo}}
