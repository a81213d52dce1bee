//===- Model.h - What a compiled model tells its runtime ----------*- C -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contract between the compiler, which writes these tables as constant
// data into the training binary, and the runtime, which executes them. Plain C
// with fixed-width fields, so that both sides lay it out alike. Every change
// raises REPRISE_ABI_VERSION.
//
// One step is: `numMicroBatches` times the `micro` schedule (forward, backward,
// gradients added up), then once the `update` schedule (norm, clipping,
// optimizer). Every buffer is a byte range of one arena whose size is known
// here; nothing is allocated later.
//
// Two more schedules only go forward and leave what outlives a step alone:
// `evaluate` (the loss of a batch, without dropout) and `sample` (the logits of
// one position of one text). They run between two steps, on the bytes of the
// step's activations.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_ABI_MODEL_H
#define REPRISE_ABI_MODEL_H

#include <stdint.h>

#define REPRISE_ABI_VERSION 21

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled kernel. Runs tasks `begin` up to `end`; the tasks of one launch
/// are independent and write disjoint bytes, so any partition over threads
/// gives the same bits.
///
/// \param buffers  addresses of the launch's buffers, inputs then outputs.
/// \param ids      the launch's op ids (streams of randomness), see Launch.
typedef void (*RepriseKernelFn)(void *const *buffers, const int64_t *ids,
                                int64_t begin, int64_t end);

/// What tensors are made of.
enum { REPRISE_F32 = 0, REPRISE_BF16 = 1 };

/// One tile of a product. With a packed A panel of `rows` rows ([k][rows]) and
/// a packed B panel of `cols` columns ([k][cols]), `sum` is for every element
/// of the tile the chain over p = 0 .. k-1, in order, of fma(A[p][r], B[p][j],
/// sum) from zero. The result is `alpha * sum`, or if `addToC` `c[r * ldc + j]
/// + alpha * sum`; plus `bias[j]` unless `bias` is null. Each step rounds. It
/// goes to c[r * ldc + j] or, if `rounded` is not null, to rounded[r *
/// ldRounded + j], as the nearest bf16, ties to even.
///
/// Panels are f32, or of a micro-kernel for bf16 pairs ([k][rows][2] and
/// [k][cols][2]) whose step is fma(A[p][r][1], B[p][j][1], sum), then the same
/// with [0], with zeros in place of denormal operands and sums.
///
/// A micro-kernel of AMX has panels of REPRISE_GEMM_AMX_DEPTH values of p at a
/// time, k a multiple of half as many pairs: B's of pairs, A's
/// [p / 32][rows][32]. Its step is of so many values, from one e of even p's
/// and one o of odd ones: each is a chain of fma from zero, in order, and then
/// sum = sum + (e + o), with zeros in place of denormal operands and results.
/// It is called with the processor's tile registers as `TileRegisters` sets
/// them. With `goesOn` a tile ends before alpha: its sums go to `sums`,
/// [rows][cols], and to nothing else. With `continues` they begin there and not
/// at zero. With `isPlain` C has the sums as they are, as it would with an
/// alpha of 1, and without `addToC`, `bias`, `rounded`, `streams` and
/// `squares`, which it comes without. It has form REPRISE_TILE_PACKED alone.
///
/// Meanwhile what the result takes the place of is fetched and, of `nextRows`
/// rows at `next`, `nextStride` bytes apart, two cache lines each, one row for
/// every `nextSteps` steps, a power of two from REPRISE_TILE_FETCH_STEPS on:
/// what will be needed next. Nothing is read there. (Of AMX `next` may be null
/// if there is nothing to fetch.)
///
/// With `streams` results go past the caches to memory and nothing is fetched
/// of what they take the place of: without `addToC`, `bias` and `rounded`
/// alone, and where c and rows of it begin at a multiple of 64 bytes. They are
/// in no order with other stores: who has called the last of such tiles puts a
/// fence behind them.
///
/// With `behind`, a tile of AMX that has ended with `goesOn`, what that tile
/// has left in its `sums`, times its alpha, goes to its C as with `streams`,
/// and the squares as below: some rows for each step, and all before this
/// tile's sums go anywhere. So memory takes lines while there is something to
/// compute, and nothing is fetched. k may be 0 then.
///
/// With `squares` a tile of AMX also writes the sum of the squares of its
/// result there: 64 chains of fma(x, x, sum) from zero, of even and of odd rows
/// for each column; then the halves of them are added up, numbers l and l + 32,
/// of those l and l + 16, and so on. (Not with `rounded`.)
///
/// Rows of the panel of B that comes next are packed meanwhile, so that what
/// one tile has fetched the next one packs: `aheadRows` of them, 0 or more, to
/// `ahead`, again one for every `nextSteps` steps, of which there are enough.
/// Each is made of one row of B, of pairs of two; these begin at `aheadSource`
/// and are `ldAhead` elements apart. (Not of AMX.)
///
/// The panel of A may not be packed, as `form` says: then it is in the same
/// words at `source`, in rows `ldSource` elements apart. The micro-kernel reads
/// it there, and neither `a` nor `packed` is used, or writes it to `packed`,
/// which is where `a` is. (It is said twice so that a compiler does not take
/// what it stores for what it loads, word by word.) k is a multiple of four
/// then, and not 0.
#define REPRISE_TILE_FETCH_STEPS 4
typedef struct RepriseTile {
  const void *a, *b;
  int64_t k;
  float *c; /* may be null if `rounded` is not and nothing is added to */
  int64_t ldc;
  uint16_t *rounded;
  int64_t ldRounded;
  const float *bias;
  float alpha;
  int32_t addToC;
  const void *next;
  int64_t nextStride, nextRows;
  const void *aheadSource;
  int64_t ldAhead, aheadRows;
  void *ahead;
  const void *source;
  int64_t ldSource;
  void *packed;
  int32_t form;              /* REPRISE_TILE_* */
  int32_t continues, goesOn; /* only of AMX */
  int32_t streams, nextSteps;
  int32_t isPlain; /* only of AMX */
  float *sums;     /* with `continues` or `goesOn` */
  float *squares;  /* only of AMX; null if they are not wanted */
  const struct RepriseTile *behind; /* only of AMX; null if there is none */
} RepriseTile;

enum {
  REPRISE_TILE_PACKED = 0,
  /* A row of the source is a column of the panel. */
  REPRISE_TILE_TRANSPOSES_A = 1, /* and becomes one at `packed` */
  REPRISE_TILE_READS_A = 2,      /* and is read where it is */
  /* A row of the source is a row of the panel, and becomes one at `packed`. */
  REPRISE_TILE_COPIES_A = 3
};

typedef void (*RepriseMicroKernelFn)(const RepriseTile *tile);

/// What a micro-kernel needs of the processor, each all that is above it too.
enum {
  REPRISE_ISA_V3 = 0, /* x86-64-v3, which all have */
  REPRISE_ISA_V4 = 1, /* x86-64-v4: AVX-512 */
  REPRISE_ISA_AVX512_BF16 = 2,
  REPRISE_ISA_AMX_BF16 = 3
};

typedef struct RepriseMicroKernel {
  RepriseMicroKernelFn fn;
  int32_t rows, cols; /* tile shape */
  uint32_t isa;       /* REPRISE_ISA_* */
  int32_t typeAB;     /* REPRISE_F32 or REPRISE_BF16 */
} RepriseMicroKernel;

/// A byte range of the arena.
typedef struct RepriseBuffer {
  int64_t offset, bytes;
} RepriseBuffer;

enum { REPRISE_LAUNCH_KERNEL = 0, REPRISE_LAUNCH_GEMM = 1 };

/// One entry of a schedule.
typedef struct RepriseLaunch {
  int32_t kind;                    /* REPRISE_LAUNCH_* */
  int32_t callee;                  /* index into `kernels` or `gemms` */
  int32_t firstBuffer, numBuffers; /* slice of `buffers` */
  int32_t firstId, numIds;         /* slice of `ids` */
  int64_t tasks;    /* kernels only: number of independent tasks */
  int64_t flops;    /* of this launch; for the report */
  const char *name; /* e.g. "layer3.mlp.u@replay" */
} RepriseLaunch;

typedef struct RepriseKernel {
  RepriseKernelFn fn; /* null where the target has kernels of its own */
  /// The same to the last bit for x86-64-v4 (AVX-512); null where `fn` is no
  /// slower there.
  RepriseKernelFn wideFn;
  /// The same tasks by AVX512_BF16, whose products are of pairs, to bits of its
  /// own; null if the kernel has no such version.
  RepriseKernelFn pairsFn;
  /// The same tasks by AMX_BF16, to the bits of its products, with AVX512_BF16
  /// beside it; null if the kernel has no such version. It is called with the
  /// processor's tile registers as `TileRegisters` sets them.
  RepriseKernelFn amxFn;
  const char *name;
} RepriseKernel;

/// C[i,j] (+)= alpha * sum_p A[i,p] * B[p,j] (+ bias[j]), for every index of
/// two batch dimensions. A is stored [m,k] with row stride lda, or [k,m] when
/// transposeA; B is [k,n], or [n,k] when transposeB; C is [m,n]. Strides count
/// elements. A and B are of `typeAB`, C of `typeC`: f32, or bf16 where A and B
/// are and `accumulate` is not set; bias is of `typeC`. Buffers of the launch,
/// in order: A, B, then bias if `bias`, then C, then what `epilogue` makes
/// beside C, if there is one, then the workspace.
///
/// With `packedB` the matrix that B is stored as, of `ldb` rows, is of bf16 and
/// lies in panels of REPRISE_PACKED_COLS columns, each of pairs of its rows:
/// [cols / 32][rows / 2][32][2]. Both its sizes are multiples of those numbers.
/// Panels of what is not transposed are those of micro-kernels for bf16 of as
/// many columns, AMX's among them.
///
/// Epilogues of REPRISE_TARGET_CUDA: the sums over p of A[i,p], [m], or of
/// B[p,j], [n], of `typeC`. Of REPRISE_TARGET_CPU: the sums of the squares of
/// C, which is f32, a number for each block of REPRISE_GEMM_SQUARES_ROWS rows
/// and REPRISE_GEMM_SQUARES_COLS columns, row by row: a chain of fma(x, x, sum)
/// from zero for each column, rows in order; then the halves of these are added
/// up, numbers j and j + 16, of those j and j + 8, and so on. A block at an
/// edge is as if there were zeros beyond it. Squares are of C as it is then:
/// with `accumulate` of the sum. Of bf16 denormal numbers are zeros here, too.
/// With AMX the first of the eight blocks of a whole tile has the sum of all of
/// its squares, as RepriseTile has it, and the others zero.
///
/// The order of summation is a property of (m,n,k) alone: for each block of
/// REPRISE_GEMM_KC values of p a chain of fma from zero, times alpha; these are
/// added in order to the old C when `accumulate`, otherwise to the first of
/// them; then bias is added. Each step rounds. (The old C comes first because C
/// itself holds the sum from block to block.)
///
/// Of bf16 blocks have REPRISE_GEMM_KC_BF16 values, and a chain has p + 1
/// before p, p even, the last of an odd block with a zero: the order of the
/// instruction vdpbf16ps. As it does, the whole product takes denormal numbers
/// for zeros and makes none. Sums are f32; a C of bf16 is rounded once, to
/// nearest even, at the end.
///
/// On a processor with AMX, products of bf16 have the order of its instruction
/// tdpbf16ps in place of that, and so other bits: in a block each 32 values of
/// p, the last with zeros behind them, are one step as RepriseTile has it. That
/// too is a property of (m,n,k) alone.
typedef struct RepriseGemm {
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  int64_t batch[2], strideA[2], strideB[2], strideC[2];
  float alpha;
  int32_t transposeA, transposeB, bias, accumulate;
  int32_t typeAB, typeC; /* REPRISE_F32 or REPRISE_BF16 */
  int32_t epilogue;      /* REPRISE_EPILOGUE_* */
  int32_t packedB, reserved;
} RepriseGemm;

enum {
  REPRISE_EPILOGUE_NONE = 0,
  REPRISE_EPILOGUE_SUMS_OF_A = 1,
  REPRISE_EPILOGUE_SUMS_OF_B = 2,
  REPRISE_EPILOGUE_SQUARES_OF_C = 3
};

#define REPRISE_GEMM_KC 256
#define REPRISE_GEMM_NC 2048
#define REPRISE_GEMM_MC 264
/* Blocks of bf16 are deeper: most products then have one, whose sums never
   leave the registers. KC is even. */
#define REPRISE_GEMM_KC_BF16 1024
/* Panels are padded to these multiples of rows and columns; every
   micro-kernel's tile shape divides them. */
#define REPRISE_GEMM_ROW_ALIGN 24
#define REPRISE_GEMM_COL_ALIGN 32
/* The same of AMX, and values of p of a step. */
#define REPRISE_GEMM_AMX_ROW_ALIGN 32
#define REPRISE_GEMM_AMX_DEPTH 32
/* Columns of a panel of `packedB`, and what its rows are a multiple of. */
#define REPRISE_PACKED_COLS 32
#define REPRISE_PACKED_ROWS 32
/* Rows and columns of a block whose squares are summed: tiles of AVX-512 and
   AMX are made of whole ones. */
#define REPRISE_GEMM_SQUARES_ROWS 4
#define REPRISE_GEMM_SQUARES_COLS 32
/* At most this many entries of a batch are worked on at once. */
#define REPRISE_GEMM_SLOTS 64

static inline int64_t repriseRoundUp(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

static inline int64_t repriseGemmKC(const RepriseGemm *g) {
  return g->typeAB == REPRISE_BF16 ? REPRISE_GEMM_KC_BF16 : REPRISE_GEMM_KC;
}

/// Blocks of C in a row of blocks, for REPRISE_EPILOGUE_SQUARES_OF_C, and in
/// all.
static inline int64_t repriseGemmSquaresOfRow(const RepriseGemm *g) {
  return repriseRoundUp(g->n, REPRISE_GEMM_SQUARES_COLS) /
         REPRISE_GEMM_SQUARES_COLS;
}
static inline int64_t repriseGemmSquares(const RepriseGemm *g) {
  return repriseRoundUp(g->m, REPRISE_GEMM_SQUARES_ROWS) /
         REPRISE_GEMM_SQUARES_ROWS * repriseGemmSquaresOfRow(g);
}

/// The most rows of a panel. Those of bf16 have whole pairs, and room for f32:
/// not every processor multiplies bf16.
static inline int64_t repriseGemmPanelRows(const RepriseGemm *g) {
  int64_t k = g->k < repriseGemmKC(g) ? g->k : repriseGemmKC(g);
  return g->typeAB == REPRISE_BF16 ? (k + 1) / 2 * 2 : k;
}

/// Columns of a block, whole panels.
static inline int64_t repriseGemmPanelCols(const RepriseGemm *g) {
  int64_t n = g->n < REPRISE_GEMM_NC ? g->n : REPRISE_GEMM_NC;
  return repriseRoundUp(n, REPRISE_GEMM_COL_ALIGN);
}

/// Elements of the packed panels of A of one entry, whole cache lines.
static inline int64_t repriseGemmPanelsOfA(const RepriseGemm *g) {
  int64_t m = g->m < REPRISE_GEMM_MC ? g->m : REPRISE_GEMM_MC;
  return repriseRoundUp(
      repriseGemmPanelRows(g) * repriseRoundUp(m, REPRISE_GEMM_ROW_ALIGN), 16);
}

/// Elements of the packed panels of B of one entry.
static inline int64_t repriseGemmPanelsOfB(const RepriseGemm *g) {
  return repriseGemmPanelRows(g) * repriseGemmPanelCols(g);
}

/// Elements of the f32 sums that a C of bf16 needs from block to block: all
/// rows of a block of columns.
static inline int64_t repriseGemmSums(const RepriseGemm *g) {
  return g->typeC == REPRISE_BF16 && g->k > repriseGemmKC(g)
             ? g->m * repriseGemmPanelCols(g)
             : 0;
}

/// Bytes of workspace a product needs on the CPU: sums, packed panels of A, and
/// packed panels of B, for one entry of the batch, or for up to
/// REPRISE_GEMM_SLOTS entries side by side.
static inline int64_t repriseGemmWorkspaceBytes(const RepriseGemm *g) {
  int64_t slots = g->batch[0] * g->batch[1];
  if (slots > REPRISE_GEMM_SLOTS)
    slots = REPRISE_GEMM_SLOTS;
  return slots * 4 *
         (repriseGemmSums(g) + repriseGemmPanelsOfA(g) +
          repriseGemmPanelsOfB(g));
}

/// REPRISE_INIT_NONE is that of gradients which a step makes from nothing: what
/// is there before `micro` has run may be anything, and is often something
/// else.
enum {
  REPRISE_INIT_ZEROS = 0,
  REPRISE_INIT_ONES = 1,
  REPRISE_INIT_NORMAL = 2,
  REPRISE_INIT_NONE = 3
};
enum {
  REPRISE_STATE_PARAMETER = 0,
  REPRISE_STATE_GRADIENT = 1,
  REPRISE_STATE_MOMENT1 = 2,
  REPRISE_STATE_MOMENT2 = 3,
  REPRISE_STATE_WORKING = 4 /* the parameter, rounded to bf16 */
};

/// A tensor that lives from step to step. A parameter is block `part` of
/// `parts` equal blocks, along the last dimension, of the published tensor
/// `hubName`; its other states go by its own name. A working copy is what the
/// schedules read of a parameter; the runtime rounds the parameter to it
/// (nearest, ties to even) whenever it writes the parameter itself, and the
/// update schedule writes both.
typedef struct RepriseState {
  const char *name;    /* logical name of the parameter it belongs to */
  const char *hubName; /* `name`, if it is published under that */
  int32_t kind;        /* REPRISE_STATE_* */
  int32_t init;        /* REPRISE_INIT_* */
  float initStd;       /* of REPRISE_INIT_NORMAL */
  int32_t part, parts; /* 0 of 1: the whole tensor */
  int32_t rank;
  int32_t elementType; /* REPRISE_BF16 for a working copy, else REPRISE_F32 */
  int32_t reserved;
  int64_t shape[4];     /* row-major */
  RepriseBuffer buffer; /* zeros behind what `shape` needs */
} RepriseState;

/// The table of a rotary position embedding, f32 [length, width]: row t has
/// scale * cos(t * f) for each of the `width / 2` frequencies f, then
/// scale * sin(t * f). Written by the runtime at start, read by every step.
typedef struct RepriseRotary {
  RepriseBuffer buffer;
  int64_t length, width;
  const float *frequencies;
  float scale;
  int32_t reserved;
} RepriseRotary;

/// A line of the plan that is shown at start. The bytes of all categories add
/// up to the arena.
typedef struct RepriseCategory {
  const char *name;
  int64_t bytes;
  RepriseBuffer places[2]; /* where they are; one of them may be empty */
} RepriseCategory;

enum { REPRISE_TARGET_CPU = 0, REPRISE_TARGET_CUDA = 1 };

/// Machine code for one chip. With `archSpecific` it runs on that very chip,
/// otherwise on later ones of the same `smMajor` too.
typedef struct RepriseCubin {
  int32_t smMajor, smMinor, archSpecific, reserved;
  const void *data;
  int64_t bytes;
} RepriseCubin;

/// How a kernel is launched. Its one parameter is a struct, by value, of the
/// addresses of its buffers and then its ids, eight bytes each.
typedef struct RepriseCudaKernel {
  const char *name;
  int32_t grid[3], block[3];
  int32_t numBuffers, numIds;
  int64_t sharedBytes; /* dynamic */
} RepriseCudaKernel;

/// The kernels of a model for GPUs: as PTX, which the driver compiles for any
/// later chip, and as machine code for some.
typedef struct RepriseCudaModule {
  const char *ptx; /* text with a zero behind it */
  int64_t ptxBytes;
  const RepriseCubin *cubins;
  const RepriseCudaKernel *kernels; /* as many as the model's `kernels` */
  int32_t numCubins;
  int32_t ptxMajor, ptxMinor; /* the lowest chip that the PTX is for */
  int32_t reserved;
  int64_t globalBytes; /* of device memory that the code brings to work in */
} RepriseCudaModule;

enum { REPRISE_LR_CONSTANT = 0, REPRISE_LR_LINEAR = 1, REPRISE_LR_COSINE = 2 };

typedef struct RepriseModel {
  uint32_t abiVersion;
  int32_t numMicroBatches;
  const char *name; /* e.g. "gpt2 12x768" */
  const char *plan; /* e.g. "none" or "selective core_attn,mlp" */
  /* Hugging Face's: the family, e.g. "llama", and the text of the config.json
     that belongs beside saved weights; "" if the compiler does not know. */
  const char *modelType, *configJson;
  /* Who compiled it, e.g. "reprisec 0.1.0, LLVM 22.1.8"; and the section
     `train` of the description, an object of JSON, "" if it is not known. */
  const char *compiler, *trainJson;
  int64_t microBatchSize, seqLength, vocabSize;

  /* The arena is as long as its last buffer needs, rounded up to the alignment
     of the plan, a power of two. */
  int64_t arenaBytes, arenaAlignment;
  /* What all of the program may take, which the plan was made for; 0 if nobody
     has said. */
  int64_t budgetBytes;
  int32_t numCategories, numStates, numKernels, numGemms, numMicroKernels;
  int32_t numMicro, numUpdate;    /* launches in the two schedules */
  int32_t numEvaluate, numSample; /* 0 if there is none */
  int32_t numRotaries;
  const RepriseCategory *categories;
  const RepriseState *states;
  const RepriseRotary *rotaries;
  const RepriseKernel *kernels;
  const RepriseGemm *gemms;
  const RepriseMicroKernel *microKernels;
  const RepriseLaunch *micro, *update, *evaluate, *sample;
  const RepriseBuffer *buffers;
  const int64_t *ids;

  /* Inputs the runtime writes. tokens and targets: i32 [microBatchSize,
     seqLength], before each micro-batch. rng: i32 x 4 (seed low, seed high,
     step from 0, micro-batch), likewise. lr, biasCorrection1 (1 - beta1^t) and
     biasCorrection2 (t = step from 1): f32, once a step before `update`. */
  RepriseBuffer tokens, targets, rng, lr, biasCorrection1, biasCorrection2;
  /* Outputs it reads: f32 scalars. loss is the mean over the micro-batches, and
     set back to zero by the runtime before the next step. A gradient that a
     step adds to is zero before the first one; `update` sets it back, and so
     does the runtime when it leaves `update` out. */
  RepriseBuffer loss, gradNorm;
  /* Of `evaluate`, which reads tokens and targets: the mean loss, f32. Of
     `sample`: a text i32 [seqLength] and a position in it, i32; and what comes
     out, the logits f32 [vocabSize]. */
  RepriseBuffer evalLoss, sampleTokens, position, logits;
  /* Of REPRISE_TARGET_CUDA, otherwise empty. tokens, targets and rng lie within
     the S bytes before it. It has places of S bytes, laid out as these, for the
     inputs of further micro-batches: M - 1 that run with the first, and then M
     that come next. M divides numMicroBatches. */
  RepriseBuffer batches;

  /* Schedule of the learning rate and other defaults of the description. */
  double learningRate, minLearningRate, beta1, beta2;
  int64_t warmupIters, trainIters, seed;
  int32_t lrDecayStyle; /* REPRISE_LR_* */
  int32_t target;       /* REPRISE_TARGET_* */

  double modelFlops; /* of one step, all micro-batches, no replay */
  double replayFlops;

  /* Of REPRISE_TARGET_CUDA, where `kernels` have no `fn`; otherwise null. */
  const RepriseCudaModule *cuda;
} RepriseModel;

/// The runtime's entry point; the compiled object's `main` calls it. The models
/// are the same one, compiled for several targets.
int repriseMain(int argc, char **argv, const RepriseModel *const *models,
                int32_t numModels);

#ifdef __cplusplus
}
#endif
#endif /* REPRISE_ABI_MODEL_H */
