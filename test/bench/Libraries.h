//===- Libraries.h - GEMMs of others ----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// OpenBLAS and oneDNN, if they are installed: what they export is declared here
// as far as it is called, so that nothing is needed to build.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_BENCH_LIBRARIES_H
#define REPRISE_TEST_BENCH_LIBRARIES_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>

namespace reprise::bench {

/// C (+)= A B, row-major without gaps; A and B as they are stored.
struct Shape {
  const char *what;
  int64_t m, n, k;
  bool transposeA, transposeB, accumulate;

  int64_t lda() const { return transposeA ? m : k; }
  int64_t ldb() const { return transposeB ? k : n; }
};

/// Of all that a thread pool of OpenMP runs.
inline void setOpenMPThreads(int threads) {
  static auto *set = [] {
    void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (!symbol)
      if (void *omp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL))
        symbol = dlsym(omp, "omp_set_num_threads");
    return reinterpret_cast<void (*)(int)>(symbol);
  }();
  if (set)
    set(threads);
}

inline void *openLibrary(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return handle;
  return nullptr;
}

template <typename T>
void find(void *handle, const char *name, T &symbol) {
  symbol = handle ? reinterpret_cast<T>(dlsym(handle, name)) : nullptr;
}

class OpenBLAS {
public:
  OpenBLAS() : handle(openLibrary({"libopenblas.so.0", "libopenblas.so"})) {
    find(handle, "cblas_sgemm", sgemm);
    find(handle, "openblas_set_num_threads", setThreads);
  }
  explicit operator bool() const { return sgemm; }

  void describe() const {
    char *(*core)();
    find(handle, "openblas_get_corename", core);
    const char *chosen = getenv("OPENBLAS_CORETYPE");
    printf("OpenBLAS: kernels for %s (OPENBLAS_CORETYPE=%s)\n",
           core ? core() : "?", chosen ? chosen : "");
  }
  void run(const Shape &shape, int threads, const float *a, const float *b,
           float *c) const {
    constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
    if (setThreads)
      setThreads(threads);
    sgemm(kRowMajor, shape.transposeA ? kTransposed : kPlain,
          shape.transposeB ? kTransposed : kPlain, int(shape.m), int(shape.n),
          int(shape.k), 1.0f, a, int(shape.lda()), b, int(shape.ldb()),
          shape.accumulate ? 1.0f : 0.0f, c, int(shape.n));
  }

private:
  void *handle;
  void (*sgemm)(int, int, int, int, int, int, float, const float *, int,
                const float *, int, float, float *, int);
  void (*setThreads)(int);
};

/// Versions 2 and 3: in 2 a description of memory is a struct of the caller's,
/// in 3 an object. Either is passed on as a pointer.
class OneDNN {
public:
  enum Type { BF16 = 2, F32 = 3 };

  OneDNN()
      : handle(openLibrary({"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"})) {
    find(handle, "dnnl_sgemm", sgemm);
  }
  explicit operator bool() const { return sgemm; }

  void describe() const {
    struct Version {
      int major, minor, patch;
    };
    const Version *(*version)();
    find(handle, "dnnl_version", version);
    if (version)
      printf("oneDNN: %d.%d.%d\n", version()->major, version()->minor,
             version()->patch);
  }
  void run(const Shape &shape, int threads, const float *a, const float *b,
           float *c) const {
    setOpenMPThreads(threads);
    sgemm(shape.transposeA ? 'T' : 'N', shape.transposeB ? 'T' : 'N', shape.m,
          shape.n, shape.k, 1.0f, a, shape.lda(), b, shape.ldb(),
          shape.accumulate ? 1.0f : 0.0f, c, shape.n);
  }

  /// The primitive for a GEMM of bf16, whose C is bf16, or f32 if it is
  /// added to; nothing if the library has none.
  std::optional<std::function<void()>> createMatmul(const Shape &shape,
                                                    int threads, void *a,
                                                    void *b, void *c) const;

private:
  struct Argument {
    int what;
    void *memory;
  };
  /// Room for any struct of version 2.
  struct Room {
    alignas(64) char bytes[64 << 10];
  };
  /// Calls what a version may not have.
  template <typename... Args>
  bool call(const char *name, Args... args) const {
    int (*function)(Args...);
    find(handle, name, function);
    return function && function(args...) == 0;
  }
  void *createMemory(Room &room, int64_t rows, int64_t cols, int64_t rowStride,
                     int64_t colStride, Type type) const;

  void *handle;
  int (*sgemm)(char, char, int64_t, int64_t, int64_t, float, const float *,
               int64_t, const float *, int64_t, float, float *, int64_t);
};

inline void *OneDNN::createMemory(Room &room, int64_t rows, int64_t cols,
                                  int64_t rowStride, int64_t colStride,
                                  Type type) const {
  int64_t dims[12] = {rows, cols}, strides[12] = {rowStride, colStride};
  void *object = nullptr;
  if (call("dnnl_memory_desc_create_with_strides", &object, 2, &dims[0],
           int(type), &strides[0]))
    return object;
  return call("dnnl_memory_desc_init_by_strides", &room, 2, &dims[0], int(type),
              &strides[0])
             ? &room
             : nullptr;
}

inline std::optional<std::function<void()>>
OneDNN::createMatmul(const Shape &shape, int threads, void *a, void *b,
                     void *c) const {
  constexpr int kCpu = 1, kInOrder = 1, kSource = 1, kTarget = 17,
                kWeights = 33;
  setOpenMPThreads(threads);
  auto rooms = std::make_unique<Room[]>(4);
  void *source = createMemory(rooms[0], shape.m, shape.k,
                              shape.transposeA ? 1 : shape.lda(),
                              shape.transposeA ? shape.lda() : 1, BF16);
  void *weights = createMemory(rooms[1], shape.k, shape.n,
                               shape.transposeB ? 1 : shape.ldb(),
                               shape.transposeB ? shape.ldb() : 1, BF16);
  void *target = createMemory(rooms[2], shape.m, shape.n, shape.n, 1,
                              shape.accumulate ? F32 : BF16);
  void *engine = nullptr, *stream = nullptr, *attributes = nullptr,
       *after = nullptr, *description = nullptr, *primitive = nullptr;
  void *none = nullptr;
  bool good = source && weights && target &&
              call("dnnl_engine_create", &engine, kCpu, size_t(0)) &&
              call("dnnl_stream_create", &stream, engine, kInOrder) &&
              call("dnnl_primitive_attr_create", &attributes) &&
              call("dnnl_post_ops_create", &after);
  void (*version3)();
  find(handle, "dnnl_matmul_primitive_desc_create", version3);
  if (good && shape.accumulate)
    good = (version3 ? call("dnnl_post_ops_append_sum", after, 1.0f, 0, 0)
                     : call("dnnl_post_ops_append_sum", after, 1.0f)) &&
           call("dnnl_primitive_attr_set_post_ops", attributes, after);
  if (good && version3)
    good = call("dnnl_matmul_primitive_desc_create", &description, engine,
                source, weights, none, target, attributes);
  else if (good)
    good = call("dnnl_matmul_desc_init", &rooms[3], source, weights, none,
                target) &&
           call("dnnl_primitive_desc_create", &description, &rooms[3],
                attributes, engine, none);
  Argument arguments[] = {
      {kSource, nullptr}, {kWeights, nullptr}, {kTarget, nullptr}};
  good = good && call("dnnl_primitive_create", &primitive, description) &&
         call("dnnl_memory_create", &arguments[0].memory, source, engine, a) &&
         call("dnnl_memory_create", &arguments[1].memory, weights, engine, b) &&
         call("dnnl_memory_create", &arguments[2].memory, target, engine, c);
  if (!good)
    return std::nullopt;
  int (*execute)(void *, void *, int, const Argument *);
  int (*wait)(void *);
  find(handle, "dnnl_primitive_execute", execute);
  find(handle, "dnnl_stream_wait", wait);
  return [=] {
    setOpenMPThreads(threads);
    execute(primitive, stream, 3, arguments);
    wait(stream);
  };
}

} // namespace reprise::bench

#endif // REPRISE_TEST_BENCH_LIBRARIES_H
