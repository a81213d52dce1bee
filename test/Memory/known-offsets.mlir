// RUN: reprise-opt %s -split-input-file --reprise-plan-memory --reprise-verify-plan | FileCheck %s

// Known offsets, which a like schedule has for the buffers of this one, are taken
// as they are: without them %a would lie lowest. They are gone when memory is
// planned.

// CHECK-LABEL: module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 64, peak = 128, bound = 128,
//       CHECK: func.func @step() {
//   CHECK-NOT:   rt.known_offsets
//       CHECK:   %[[A:.*]] = rt.buffer at <device, 128>
//  CHECK-NEXT:   rt.launch @k(%{{.*}}) to(%[[A]])
//  CHECK-NEXT:   %[[B:.*]] = rt.buffer at <device, 64>
//  CHECK-NEXT:   rt.launch @k(%[[A]]) to(%[[B]])
//  CHECK-NEXT:   %[[C:.*]] = rt.buffer at <device, 128>
//  CHECK-NEXT:   rt.launch @k(%[[B]]) to(%[[C]])
//   CHECK-NOT:   rt.known_offsets
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @k(%w) {rt.known_offsets = array<i64: 64, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @k(%a) {rt.known_offsets = array<i64: 0, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  %c = rt.launch @k(%b) {rt.known_offsets = array<i64: 64, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// A GEMM's workspace has an offset, too. %b has none, and gets what %x leaves.

// CHECK-LABEL: module attributes
//       CHECK: func.func @step() {
//       CHECK:   %[[A:.*]] = rt.buffer at <device, 2048> : memref<8x8xf32>
//  CHECK-NEXT:   %[[WORKSPACE:.*]] = rt.buffer at <device, 0> : memref<448xf32>
//  CHECK-NEXT:   rt.gemm {{.*}} to(%[[A]]) workspace(%[[WORKSPACE]])
//  CHECK-NEXT:   %[[B:.*]] = rt.buffer at <device, 1792> : memref<8x8xf32>
//  CHECK-NEXT:   rt.launch @k(%[[A]]) to(%[[B]])
func.func private @k(tensor<8x8xf32>) -> tensor<8x8xf32> attributes {rt.kernel}
func.func private @start() -> tensor<8x8xf32> attributes {rt.kernel}
func.func @step() {
  %x = rt.launch @start() {rt.known_offsets = array<i64: 1792, -1>} : () -> tensor<8x8xf32>
  %a = rt.gemm %x, %x m 8 n 8 k 8 lda 8 ldb 8 ldc 8 {rt.known_offsets = array<i64: 2048, 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = rt.launch @k(%a) {rt.known_offsets = array<i64: -1, -1>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

// %b may take the bytes of %a, and does not where it is known to lie elsewhere.
// %c does where %b's offset is not known.

// CHECK-LABEL: module attributes
//       CHECK: func.func @step() {
//       CHECK:   %[[A:.*]] = rt.buffer at <device, 64>
//  CHECK-NEXT:   rt.launch @k(%{{.*}}) to(%[[A]])
//  CHECK-NEXT:   %[[B:.*]] = rt.buffer at <device, 128>
//  CHECK-NEXT:   rt.launch @over(%[[A]]) to(%[[B]])
//  CHECK-NEXT:   %[[C:.*]] = rt.buffer at <device, 128>
//  CHECK-NEXT:   rt.launch @over(%[[B]]) to(%[[C]])
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func private @over(tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @k(%w) {rt.known_offsets = array<i64: 0, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @over(%a) {rt.known_offsets = array<i64: 64, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  %c = rt.launch @over(%b) {rt.known_offsets = array<i64: -1, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// %a and %b, alive together, cannot both have their known offsets: these are left
// aside, and so are those that break the alignment.

// CHECK-LABEL: module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 64, peak = 128, bound = 128,
//       CHECK: func.func @step() {
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @k(%w) {rt.known_offsets = array<i64: 128, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @k(%a) {rt.known_offsets = array<i64: 128, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// CHECK-LABEL: module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 64, peak = 128, bound = 128,
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @k(%w) {rt.known_offsets = array<i64: 32, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @k(%a) {rt.known_offsets = array<i64: 128, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// Where %c does not fit between %a and %b, what packing by itself comes to is
// taken: 192 bytes, and not 256.

// CHECK-LABEL: module attributes {rt.plan = #rt.plan<[<device, bytes = 256, least = 256, begin = 64, peak = 192, bound = 192,
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func private @sum(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @k(%w) {rt.known_offsets = array<i64: 0, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @k(%a) {rt.known_offsets = array<i64: 64, -1>} : (tensor<16xf32>) -> tensor<16xf32>
  %c = rt.launch @sum(%a, %b) {rt.known_offsets = array<i64: -1, -1>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return
}
