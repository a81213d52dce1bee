#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;

// A comment may say isa<nn::GeluOp>, and code may build one.
static void ask(Operation *op) {
  if (isa<nn::GeluOp>(op) || isa<arith::AddOp>(op))
    nn::AddOp::create(builder, op->getLoc());
  TypeSwitch<Operation *>(op)
      .Case([&](nn::AddOp add) { use(add); })
      .Case<nn::GeluOp,
            nn::AddOp>([](auto) {});
  if (op->getName().getStringRef() == "nn.gelu" || module == "mlp")
    return;
}

struct Small {
  int one, two;
  void three();
};
