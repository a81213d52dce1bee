//===- AttentionBackward.cpp - Causal attention, backward -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackward.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

void BackwardEmitter::emitHead(Value head) {
  keys = keyHeadAt(head);
  auto forBlocks = [&](Value end, function_ref<void(Value)> body) {
    code.loop(code.i64(0), end, tile.block, body);
  };
  Value length = code.i64(tile.length);
  Value lastHead = code.sub(code.mul(kernel.end, tile.group()), code.i64(1));
  if (hasAllSums() && !beginsOnDiagonal())
    forBlocks(length, [&](Value first) {
      tile.fillZero(tile.keyHeads, sumsOf(tile.keyHeads, dkeys, first));
      tile.fillZero(tile.valueHeads, sumsOf(tile.valueHeads, dvalues, first));
    });
  forGroup(head, [&](Value isFirst) {
    if (!tile.hasPairs)
      return code.loop(
          code.i64(0), length, together * tile.block,
          [&](Value query) { emitBlocks(query, lastHead, isFirst); });
    forBlocks(length, [&](Value block) {
      loadQueries(block);
      makeQueryRows();
      walkKeys(block, Gradients::All,
               nextOfHead(block, block, block, lastHead));
      writeQueries(block);
    });
  });
  if (hasAllSums())
    forBlocks(length, [&](Value first) { writeKeys(first); });
}

/// The blocks of queries from `query` on that go over keys together, in f32.
void BackwardEmitter::emitBlocks(Value query, Value lastHead,
                                 Value isFirstHead) {
  Value zero = code.i64(0);
  auto forBlocks = [&](Value begin, function_ref<void(Value)> body) {
    code.loop(begin, code.i64(together), 1, [&](Value index) {
      select(index);
      body(code.add(query, code.mul(index, tile.block)));
    });
  };
  forBlocks(zero, [&](Value block) {
    loadQueries(block);
    tile.fillZero(tile.queryHeads, one.dqueries);
  });
  Value last = code.add(query, (together - 1) * tile.block);
  code.loop(zero, code.add(last, 1), tile.block, [&](Value first) {
    loadKeys(first);
    // No queries before these have seen keys from the first of them on.
    if (!hasAllSums())
      loadSumsOfKeys(first,
                     arith::AndIOp::create(
                         code, isFirstHead,
                         arith::CmpIOp::create(code, arith::CmpIPredicate::sge,
                                               first, query)));
    forBlocks(tile.firstToSee(query, first), [&](Value block) {
      Next next = nextOfHead(query, block, first, lastHead);
      Value ahead = code.sub(block, first);
      emitTile(block, first, ahead, Gradients::All, next);
      addToKeys(first, ahead, next);
      addToQueries(ahead);
    });
    if (!hasAllSums())
      writeKeys(first);
  });
  forBlocks(zero, [&](Value block) { writeQueries(block); });
}

void BackwardEmitter::walkKeys(Value query, Gradients of, const Next &next) {
  auto emit = [&](Value first, Value ahead, const Next &next,
                  function_ref<void(Value)> meanwhile) {
    tile.makeRows(tile.keyHeads, keyElements, keyRows);
    emitTile(query, first, ahead, of, next, meanwhile);
    if (of == Gradients::All)
      addToKeys(first, ahead, next);
    addToQueries(ahead, /*isNew=*/isEqual(first, code.i64(0)));
  };
  Value zero = code.i64(0);
  loadKeys(zero);
  if (tile.blocks() > 1)
    code.loop(zero, query, tile.block, [&](Value first) {
      // Elements have been used by then.
      emit(first, /*ahead=*/{}, {}, [&](Value row) {
        Value after = code.add(first, tile.block);
        tile.gatherTwo(tile.keyHeads, keys.key, after, row, keyElements, {});
        tile.gatherTwo(tile.valueHeads, keys.value, after, row, valueElements,
                       {});
      });
    });
  emit(query, /*ahead=*/zero, next, {});
}

void BackwardEmitter::emitKeys(Value head, Value first) {
  keys = keyHeadAt(head);
  loadKeys(first);
  if (!beginsOnDiagonal())
    fillSumsOfKeys();
  auto add = [&](Value block, Value ahead, const Next &next,
                 function_ref<void(Value)> meanwhile) {
    makeQueryRows();
    emitTile(block, first, ahead, Gradients::OfKeys, next, meanwhile);
    addToKeys(first, ahead, next);
  };
  forGroup(head, [&](Value) {
    if (tile.hasPairs) {
      loadQueries(first);
      add(first, /*ahead=*/code.i64(0), {}, {});
      Value second = code.add(first, tile.block);
      tile.gatherQueries(queries.query, second, one.queryElements);
      tile.gather(tile.outHeads, queries.dout, second, one.doutElements);
      return code.loop(second, code.i64(tile.length), tile.block,
                       [&](Value block) {
                         prepareQueries(block);
                         add(block, /*ahead=*/{}, {}, [&](Value row) {
                           Value after = code.add(block, tile.block);
                           tile.gatherTwo(tile.queryHeads, queries.query, after,
                                          row, one.queryElements, {});
                           tile.gatherTwo(tile.outHeads, queries.dout, after,
                                          row, one.doutElements, {});
                         });
                       });
    }
    code.loop(first, code.i64(tile.length), tile.block, [&](Value block) {
      loadQueries(block);
      Value after = code.add(block, tile.block);
      Next next;
      next.dprobs = {{tile.queryHeads, queries.query, after},
                     {tile.outHeads, queries.dout, after}};
      next.dvalues = {{tile.outHeads, queries.out, after}};
      add(block, code.sub(block, first), next, {});
    });
  });
  writeKeys(first);
}

void BackwardEmitter::emitQueries(Value head, Value block) {
  keys = keyHeadAt(keyHeadOf(head));
  queries = queryHeadAt(head);
  loadQueries(block);
  if (tile.hasPairs) {
    walkKeys(block, Gradients::OfQueries, {});
  } else {
    tile.fillZero(tile.queryHeads, one.dqueries);
    code.loop(code.i64(0), code.add(block, 1), tile.block, [&](Value first) {
      loadKeys(first);
      Value ahead = code.sub(block, first);
      emitTile(block, first, ahead, Gradients::OfQueries,
               {nextKeys(first), {}, {}, {}});
      addToQueries(ahead);
    });
  }
  writeQueries(block);
}

void BackwardEmitter::emit(Value task) {
  if (isWhole())
    return emitHead(task);
  auto split = [&](Value number, function_ref<void(Value, Value)> emit) {
    Value blocks = code.i64(tile.blocks());
    Value block = arith::RemSIOp::create(code, number, blocks);
    emit(arith::DivSIOp::create(code, number, blocks),
         code.mul(block, tile.block));
  };
  Value isOfKeys = arith::CmpIOp::create(code, arith::CmpIPredicate::slt, task,
                                         code.i64(keyTasks()));
  code.when(
      isOfKeys,
      [&] {
        split(task, [&](Value head, Value first) { emitKeys(head, first); });
      },
      [&] {
        split(code.sub(task, code.i64(keyTasks())),
              [&](Value head, Value block) { emitQueries(head, block); });
      });
}

LogicalResult codegen::emitAttentionBackward(Code &code,
                                             rt::AttentionBackwardOp op,
                                             Kernel &kernel) {
  if (failed(verifyHeadWidth(op, op.getQuery(), op.getOut(), op.getHeads())))
    return failure();
  BackwardEmitter backward(code, op, kernel);
  kernel.function->setAttr(rt::kTasksAttr,
                           code.getI64IntegerAttr(backward.tasks()));
  kernel.tasks(code, [&](Value task) { backward.emit(task); });
  return success();
}
