// RUN: reprise-opt %s -verify-diagnostics | FileCheck %s
// RUN: reprise-opt %s | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: reprise-opt %s

// CHECK-LABEL: @fine
// CHECK-NEXT foo
// CHECK-NEXT : foo
// CHECK NEXT: foo
// CHECK-NEX: foo
// CHECK-LABEL foo
// CHECK-NOT foo
// CHECK-DAG-NEXT: foo
// CHECK-SAME{literal}: foo
// CHECK-SAME-LITERAL: foo
// CHECK-EMTPY:
// CHECK-NOTE: foo
// CHEC: foo
// CHECK_NEXT: foo
// expeted-error @+1 {{foo}}
func.func @f() // CHEKC: foo
// check-next: foo
// CHECK-COUNT: foo
// CPU_NEXT: foo
// GPU-NEXT: foo
// expected-eror@below {{foo}}
// expected-info {{foo}}
// expected-error {{foo}} and more
// expected-error foo
// RUN reprise-opt %s
// REQUIRE: train
// CHECKNEXT: foo
