//===- Passes.td - Two passes ------------------------------*- tablegen -*-===//
//
// Short.
//
//===----------------------------------------------------------------------===//

def RematApply : Pass<"reprise-remat-apply", "::mlir::func::FuncOp">;
def RematLose : Pass<"reprise-remat-lose", "::mlir::func::FuncOp">;

