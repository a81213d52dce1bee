// RUN: reprise-opt %s -verify-diagnostics -split-input-file

func.func @slots(%r: tensor<8x2xf32>) {
  // expected-error @+1 {{needs at most as many slots as experts, but got 3 slots and 2 experts}}
  %ids = nn.choose_experts %r : (tensor<8x2xf32>) -> tensor<8x3xi32>
  return
}

// -----

func.func @weights(%r: tensor<8x4xf32>, %ids: tensor<7x2xi32>) {
  // expected-error @+1 {{'nn.expert_weights' op}}
  %w = nn.expert_weights %r, %ids : (tensor<8x4xf32>, tensor<7x2xi32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @order(%ids: tensor<8x2xi32>) {
  // expected-error @+1 {{needs 'order' to have a row for each of the 16 ids, but got 'tensor<15xi32>'}}
  %o, %i, %e = nn.sort_rows %ids : (tensor<8x2xi32>) -> (tensor<15xi32>, tensor<8x2xi32>, tensor<5xi32>)
  return
}

// -----

func.func @offsets(%ids: tensor<8x2xi32>) {
  // expected-error @+1 {{needs 'offsets' to be [E + 1] with an expert at least, but got 'tensor<1xi32>'}}
  %o, %i, %e = nn.sort_rows %ids : (tensor<8x2xi32>) -> (tensor<16xi32>, tensor<8x2xi32>, tensor<1xi32>)
  return
}

// -----

func.func @capacity(%ids: tensor<8x2xi32>) {
  // expected-error @+1 {{needs 'order' to have 13 rows for 16 ids, 4 experts and a capacity of 3, but got 'tensor<12xi32>'}}
  %o, %i, %e = nn.sort_rows %ids capacity 3 : (tensor<8x2xi32>) -> (tensor<12xi32>, tensor<8x2xi32>, tensor<5xi32>)
  return
}

// -----

// No more rows than ids, and the one of nobody.
func.func @large_capacity(%ids: tensor<8x2xi32>) {
  // expected-error @+1 {{needs 'order' to have 17 rows for 16 ids, 4 experts and a capacity of 4611686018427387904, but got 'tensor<16xi32>'}}
  %o, %i, %e = nn.sort_rows %ids capacity 4611686018427387904 : (tensor<8x2xi32>) -> (tensor<16xi32>, tensor<8x2xi32>, tensor<5xi32>)
  return
}

// -----

func.func @no_capacity(%ids: tensor<8x2xi32>) {
  // expected-error @+1 {{needs a 'capacity' of at least 1, but got 0}}
  %o, %i, %e = nn.sort_rows %ids capacity 0 : (tensor<8x2xi32>) -> (tensor<1xi32>, tensor<8x2xi32>, tensor<5xi32>)
  return
}

// -----

func.func @weights_alone(%ids: tensor<8x2xi32>, %w: tensor<8x2xf32>) {
  // expected-error @+1 {{needs 'weights' of the shape of 'ids', and a 'capacity', but got 'tensor<8x2xf32>' and no capacity}}
  %o, %i, %e = nn.sort_rows %ids by %w : (tensor<8x2xi32>, tensor<8x2xf32>) -> (tensor<16xi32>, tensor<8x2xi32>, tensor<5xi32>)
  return
}

// -----

func.func @permute_further(%w: tensor<8x2xf32>, %order: tensor<18xi32>, %inverse: tensor<8x2xi32>) {
  // expected-error @+1 {{needs one of 'order' and 'inverse' to have one dimension and at most one element more than the other, but got}}
  %p = nn.permute %w, %order, %inverse : (tensor<8x2xf32>, tensor<18xi32>, tensor<8x2xi32>) -> tensor<18xf32>
  return
}

// -----

func.func @permute(%w: tensor<8x2xf32>, %order: tensor<16xi32>, %inverse: tensor<8x2xi32>) {
  // expected-error @+1 {{needs 'out' of the shape of 'order', and 'input' of that of 'inverse', but got}}
  %p = nn.permute %w, %order, %inverse : (tensor<8x2xf32>, tensor<16xi32>, tensor<8x2xi32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @dispatch(%x: tensor<8x4xf32>, %order: tensor<18xi32>, %inverse: tensor<8x2xi32>) {
  // expected-error @+1 {{needs 'order' to be [R] and 'inverse' of R - 1 elements or more, but got}}
  %p = nn.dispatch %x, %order, %inverse : (tensor<8x4xf32>, tensor<18xi32>, tensor<8x2xi32>) -> tensor<18x4xf32>
  return
}

// -----

func.func @groups(%x: tensor<16x4xf32>, %w: tensor<3x5x4xf32>, %offsets: tensor<3xi32>) {
  // expected-error @+1 {{needs 'offsets' to be [E + 1] with E = 3, but got 'tensor<3xi32>'}}
  %y = nn.grouped_linear %x, %w, %offsets : (tensor<16x4xf32>, tensor<3x5x4xf32>, tensor<3xi32>) -> tensor<16x5xf32>
  return
}

// -----

func.func @columns(%x: tensor<16x4xf32>, %w: tensor<3x5x6xf32>, %offsets: tensor<4xi32>) {
  // expected-error @+1 {{'nn.grouped_linear' op}}
  %y = nn.grouped_linear %x, %w, %offsets : (tensor<16x4xf32>, tensor<3x5x6xf32>, tensor<4xi32>) -> tensor<16x5xf32>
  return
}

// -----

func.func @weight_of_rows(%g: tensor<16x4xf32>, %w: tensor<15xf32>) {
  // expected-error @+1 {{'nn.weighted_swiglu' op}}
  %y = nn.weighted_swiglu %g, %g, %w : (tensor<16x4xf32>, tensor<16x4xf32>, tensor<15xf32>) -> tensor<16x4xf32>
  return
}

// -----

func.func @gate(%x: tensor<2x8x2xf32>) {
  // expected-error @+1 {{'nn.gate_weight' op needs 'input' to be [..., 1], but got 'tensor<2x8x2xf32>'}}
  %w = nn.gate_weight %x : (tensor<2x8x2xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @rows(%o: tensor<5xi32>) {
  // expected-error @+1 {{'nn.count_rows' op needs 'offsets' to be [E + 1] with E = 5, but got 'tensor<5xi32>'}}
  %n = nn.count_rows %o : (tensor<5xi32>) -> tensor<5xf32>
  return
}

// -----

func.func @no_rows() {
  // expected-error @+1 {{'nn.count_rows' op needs 'offsets' of one layer at least, and 'rows' to be [E], but got 0 and 'tensor<5xf32>'}}
  %n = "nn.count_rows"() : () -> tensor<5xf32>
  return
}

// -----

func.func @expected(%r: tensor<2x8x4xf32>, %n: tensor<5xf32>) {
  // expected-error @+1 {{'nn.expected_rows' op}}
  %l = nn.expected_rows %r, %n : (tensor<2x8x4xf32>, tensor<5xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @shares_c1(%n: tensor<2x5xf32>) {
  // expected-error @+1 {{'nn.row_shares' op needs 'rows' to be [E], but got 'tensor<2x5xf32>'}}
  %s = nn.row_shares %n : tensor<2x5xf32>
  return
}

// -----

func.func @logsumexp_c1(%r: tensor<2x8x4xf32>) {
  // expected-error @+1 {{'nn.row_logsumexp' op needs 'lse' to be}}
  %s = nn.row_logsumexp %r : (tensor<2x8x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @probabilities_c1(%r: tensor<2x8x4xf32>, %s: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.sum_probabilities' op needs 'out' to be [E] with E = 4 from 'logits', but got 5}}
  %p = nn.sum_probabilities %r, %s : (tensor<2x8x4xf32>, tensor<2x8xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @loss_c1(%n: tensor<4xf32>, %p: tensor<5xf32>) {
  // expected-error @+1 {{'nn.balance_loss' op needs 'sums' to be [E] with E = 4 from 'rows', but got 5}}
  %l = nn.balance_loss %n, %p by 1.0 : (tensor<4xf32>, tensor<5xf32>) -> tensor<f32>
  return
}

// -----

func.func @loss_c2(%n: tensor<4xf32>) {
  // expected-error @+1 {{'nn.balance_loss' op needs a finite 'factor', but got +Inf}}
  %l = nn.balance_loss %n, %n by 0x7F800000 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @loss_backward_c1(%n: tensor<2x4xf32>, %l: tensor<f32>) {
  // expected-error @+1 {{'nn.balance_loss_backward' op needs 'rows' to be [E], but got 'tensor<2x4xf32>'}}
  %d = nn.balance_loss_backward %n, %l by 1.0 : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @bias(%r: tensor<8x12xf32>, %b: tensor<11xf32>) {
  // expected-error @+1 {{'nn.choose_experts' op needs 'bias' to be [E] with E = 12 from 'logits', but got 11}}
  %ids = nn.choose_experts %r bias %b : (tensor<8x12xf32>, tensor<11xf32>) -> tensor<8x2xi32>
  return
}

// -----

func.func @unequal(%r: tensor<8x12xf32>) {
  // expected-error @+1 {{needs groups of equal size, but got 5 of 12 experts}}
  %ids = nn.choose_experts %r groups 5 keep 2 : (tensor<8x12xf32>) -> tensor<8x2xi32>
  return
}

// -----

func.func @alone(%r: tensor<8x12xf32>) {
  // expected-error @+1 {{needs 'groups' and 'keep' together, and 'by_two' only with them}}
  %ids = nn.choose_experts %r groups 3 : (tensor<8x12xf32>) -> tensor<8x2xi32>
  return
}

// -----

func.func @by_two(%r: tensor<8x12xf32>) {
  // expected-error @+1 {{needs 'groups' and 'keep' together, and 'by_two' only with them}}
  %ids = nn.choose_experts %r by_two : (tensor<8x12xf32>) -> tensor<8x2xi32>
  return
}

// -----

func.func @kept(%r: tensor<8x12xf32>) {
  // expected-error @+1 {{needs to keep from 1 to all 3 groups, but got 4}}
  %ids = nn.choose_experts %r groups 3 keep 4 : (tensor<8x12xf32>) -> tensor<8x2xi32>
  return
}

// -----

func.func @full_groups(%r: tensor<8x12xf32>) {
  // expected-error @+1 {{needs at most as many slots as experts of the groups that are kept, but got 5 slots and 1 groups of 4}}
  %ids = nn.choose_experts %r groups 3 keep 1 : (tensor<8x12xf32>) -> tensor<8x5xi32>
  return
}

// -----

func.func @single(%r: tensor<8x12xf32>) {
  // expected-error @+1 {{needs groups of 2 experts at least with 'by_two', but got 1}}
  %ids = nn.choose_experts %r groups 12 keep 2 by_two : (tensor<8x12xf32>) -> tensor<8x2xi32>
  return
}

// -----

func.func @scale(%r: tensor<8x4xf32>, %ids: tensor<8x2xi32>) {
  // expected-error @+1 {{needs a finite 'scale' above 0, but got -2}}
  %w = nn.expert_weights %r, %ids sigmoid scale -2.0 : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @rows_of_sequences(%r: tensor<2x8x4xf32>, %n: tensor<3x4xf32>) {
  // expected-error @+1 {{needs 'logits' of three dimensions, the first 3, for rows of each sequence, but got 'tensor<2x8x4xf32>'}}
  %l = nn.expected_rows %r, %n : (tensor<2x8x4xf32>, tensor<3x4xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @choices_of_sequences(%i: tensor<8x2xi32>) {
  // expected-error @+1 {{needs 'ids' of three dimensions, the first 8, for rows of each sequence, but got 'tensor<8x2xi32>'}}
  %n = nn.count_choices %i : (tensor<8x2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @squares(%r: tensor<2x8x4xf32>) {
  // expected-error @+1 {{'nn.squared_logsumexp' op}}
  %z = nn.squared_logsumexp %r : (tensor<2x8x4xf32>) -> tensor<2x7xf32>
  return
}

// -----

func.func @rate(%b: tensor<4xf32>, %n: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error @+1 {{needs a finite 'rate' of at least 0, but got -1}}
  %c = nn.balance_bias %b, %n, %s rate -1.0 : tensor<4xf32>, tensor<f32>
  return
}
