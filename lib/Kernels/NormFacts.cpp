//===- NormFacts.cpp - Norms of gradients as launches ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "ScheduleBuilder.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Support/Borders.h"
#include "reprise/Support/Shares.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

namespace {
/// Builds what `norm`, in a schedule, becomes.
class NormFormer {
public:
  NormFormer(ScheduleBuilder &schedule, Operation *norm)
      : schedule(schedule), builder(schedule.getBuilder()),
        kernels(schedule.getKernels()), norm(norm) {}

  void form(GlobalNormOp op);
  void form(SharesNormOp op);
  void form(StagesNormOp op);

private:
  SmallVector<Value> formSquaresOfShares(ValueRange gradients, StringAttr axis);
  SmallVector<Value> formSquares(ValueRange gradients);
  SmallVector<Value> cutByGradient(Value blocks, ValueRange gradients);
  Value formRow(SmallVector<Value> values);
  Value formZeros(int64_t count);
  Value formSumOverRanks(Value row, StringAttr axis);
  Value formRoot(Value sums);
  Value formSums(StringRef name, ValueRange inputs, bool square);

  ScheduleBuilder &schedule;
  OpBuilder &builder;
  KernelTable &kernels;
  Operation *norm;
};
} // namespace

/// The sums of the blocks of `inputs`, or of their squares.
Value NormFormer::formSums(StringRef name, ValueRange inputs, bool square) {
  int64_t numBlocks = 0, numElements = 0;
  for (Type type : inputs.getTypes()) {
    int64_t size = cast<ShapedType>(type).getNumElements();
    numElements += size;
    numBlocks += llvm::divideCeil(size, rt::BlockSumsOp::kBlock);
  }
  auto sums = RankedTensorType::get({numBlocks}, builder.getF32Type());
  func::FuncOp kernel =
      kernels.getKernel((name + "_" + Twine(numBlocks)).str(),
                        builder.getFunctionType(inputs.getTypes(), sums),
                        [&](OpBuilder &body, ValueRange arguments) -> Value {
                          return rt::BlockSumsOp::create(
                              body, norm->getLoc(), sums, arguments, square);
                        });
  return schedule
      .formLaunch(kernel, inputs, (square ? 2 : 1) * numElements, norm)
      .getResult(0);
}

static int64_t countBlocks(Value value) {
  return llvm::divideCeil(cast<ShapedType>(value.getType()).getNumElements(),
                          rt::BlockSumsOp::kBlock);
}

/// Of a row that has the blocks of all gradients one behind the other, those of
/// each.
SmallVector<Value> NormFormer::cutByGradient(Value blocks,
                                             ValueRange gradients) {
  SmallVector<Value> values;
  int64_t first = 0;
  for (Value gradient : gradients) {
    auto type =
        RankedTensorType::get({countBlocks(gradient)}, builder.getF32Type());
    values.push_back(
        rt::ViewOp::create(builder, norm->getLoc(), type, blocks, first));
    first += type.getNumElements();
  }
  return values;
}

/// For each gradient a row that sums up to the sum of its squares. GEMMs
/// have made that of some beside them, for blocks of their own.
SmallVector<Value> NormFormer::formSquares(ValueRange gradients) {
  SmallVector<Value> plain, values(gradients.size());
  for (auto [value, gradient] : llvm::zip_equal(values, gradients)) {
    auto gemm = gradient.getDefiningOp<rt::GemmOp>();
    if (gemm && gemm.getEpilogue() == rt::Epilogue::SquaresOfC)
      value = gemm.getAuxiliary();
    else
      plain.push_back(gradient);
  }
  if (plain.empty())
    return values;
  Value blocks = formSums("sums_of_squares", plain, /*square=*/true);
  SmallVector<Value> rows = cutByGradient(blocks, plain);
  const Value *next = rows.begin();
  for (Value &value : values)
    if (!value)
      value = *next++;
  return values;
}

/// The sums of rows, one behind the other. A sum depends on its own row alone.
Value NormFormer::formRow(SmallVector<Value> values) {
  while (true) {
    Value sums = formSums("sums", values, /*square=*/false);
    bool isDone = cast<ShapedType>(sums.getType()).getNumElements() ==
                  int64_t(values.size());
    if (isDone)
      return sums;
    values = cutByGradient(sums, values);
  }
}

/// The norm is the root of the sum, over the gradients in order, of the sum of
/// the squares of each.
void NormFormer::form(GlobalNormOp op) {
  Value row = formRow(formSquares(op.getGradients()));
  op.getNorm().replaceAllUsesWith(formRoot(row));
}

/// The root of the sum of `sums`, which is what `norm` makes.
Value NormFormer::formRoot(Value sums) {
  int64_t numBlocks = cast<ShapedType>(sums.getType()).getNumElements();
  Location loc = norm->getLoc();
  Type scalar = norm->getResult(0).getType();
  func::FuncOp root = kernels.getKernel(
      "root_of_sum_" + std::to_string(numBlocks),
      builder.getFunctionType(sums.getType(), scalar),
      [&](OpBuilder &body, ValueRange arguments) {
        LoopBuilder loops(body, loc);
        return loops.asShapeOf(buildRootOfSum(loops, arguments[0]), scalar);
      });
  return schedule.formLaunch(root, sums, numBlocks + 1, norm).getResult(0);
}

/// As `formSquares`, of gradients that ranks along `axis` have shares of. Each
/// block is in the share of one rank, and zero on all others: adding these up
/// changes no bit.
SmallVector<Value> NormFormer::formSquaresOfShares(ValueRange gradients,
                                                   StringAttr axis) {
  static_assert(rt::BlockSumsOp::kBlock == REPRISE_SHARE_BLOCK,
                "shares begin where blocks do");
  Value own = formSums("sums_of_squares", gradients, /*square=*/true);
  Value sums = formSumOverRanks(own, axis);
  return cutByGradient(sums, gradients);
}

/// As the norm of whole gradients.
void NormFormer::form(SharesNormOp op) {
  Value row = formRow(formSquaresOfShares(op.getGradients(), op.getAxisAttr()));
  op.getNorm().replaceAllUsesWith(formRoot(row));
}

Value NormFormer::formZeros(int64_t count) {
  auto type = RankedTensorType::get({count}, builder.getF32Type());
  func::FuncOp kernel = kernels.getKernel(
      "zeros_" + std::to_string(count), builder.getFunctionType({}, type),
      [&](OpBuilder &body, ValueRange) -> Value {
        return ConstantOp::create(body, norm->getLoc(), type,
                                  body.getF32FloatAttr(0));
      });
  return schedule.formLaunch(kernel, ValueRange(), /*flops=*/0, norm)
      .getResult(0);
}

/// As the norm of all gradients: a row has a place for each, zero where another
/// stage has it. Adding these rows up changes no bit.
void NormFormer::form(StagesNormOp op) {
  ArrayRef<int64_t> places = op.getPlaces();
  auto shares = op->getAttrOfType<StringAttr>(kSharesAttr);
  SmallVector<Value> squares =
      shares && !op.getGradients().empty()
          ? formSquaresOfShares(op.getGradients(), shares)
          : formSquares(op.getGradients());
  SmallVector<Value> parts;
  int64_t next = 0, count = op.getCount();
  for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    for (end = begin + 1; end < places.size();)
      if (places[end] != places[end - 1] + 1)
        break;
      else
        ++end;
    if (places[begin] > next)
      parts.push_back(formZeros(places[begin] - next));
    parts.push_back(formRow(
        SmallVector<Value>(ArrayRef(squares).slice(begin, end - begin))));
    next = places[end - 1] + 1;
  }
  if (next < count)
    parts.push_back(formZeros(count - next));
  auto type = RankedTensorType::get({count}, builder.getF32Type());
  Value row =
      parts.size() == 1
          ? parts.front()
          : rt::JoinOp::create(builder, op.getLoc(), type, parts).getOut();
  Value all = formSumOverRanks(row, op.getAxisAttr());
  op.getNorm().replaceAllUsesWith(formRoot(all));
}

/// The sum over the ranks along an axis of a row that `norm` makes.
Value NormFormer::formSumOverRanks(Value row, StringAttr axis) {
  auto sums = rt::CollectiveOp::create(
      builder, norm->getLoc(), row.getType(), rt::Collective::AllReduce, row,
      /*outputs=*/ValueRange(), /*workspace=*/Value(), axis,
      schedule.getAxisSize(axis), /*dim=*/0,
      /*members=*/DenseI64ArrayAttr());
  schedule.annotate(sums, norm, norm);
  return sums.getResults().front();
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

namespace {
/// A rank with shares of gradients has no GEMM that makes squares of one.
template <typename OpTy, bool readsThem>
struct Norm : ScheduleBody::ExternalModel<Norm<OpTy, readsThem>, OpTy> {
  void buildSchedule(Operation *op, ScheduleBuilder &schedule) const {
    NormFormer(schedule, op).form(cast<OpTy>(op));
  }
  bool readsSquares(Operation *) const { return readsThem; }
};
} // namespace

template <typename OpTy, bool readsSquares>
static void attach(MLIRContext &context) {
  OpTy::template attachInterface<Norm<OpTy, readsSquares>>(context);
}

void kernels::attachNormBodies(MLIRContext &context) {
  attach<GlobalNormOp, true>(context);
  attach<SharesNormOp, false>(context);
  attach<StagesNormOp, true>(context);
}
