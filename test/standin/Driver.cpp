//===- Driver.cpp - A stand-in for libcuda.so.1 ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of the driver that the runtime opens. Memory on the device is
// poisoned, and every copy and fill has to lie within one allocation. What goes
// wrong in work that was begun stays: every later call returns it, as the real
// driver does after a bad access. The text goes to standard error. Refused is
// what the real one refuses: more shared memory than was asked for, and in a
// capture waiting, copies of memory that is not pinned, events of outside, and
// an end while other streams have something that the first does not wait for.
//
// Streams run side by side: while somebody waits for one that waits for other
// ranks, the others go on, and so do the branches of a graph. What is destroyed
// goes on up to its end, and memory is given back at the end of everything.
//
// The environment says what the machine is like:
//
//   REPRISE_SIMULATOR_KERNELS=FILE   the shared object of the kernels; several,
//                                    with commas, are those of as many equal
//                                    parts of the GPUs
//   REPRISE_SIMULATOR_LANDING=once   work is done when it is begun
//   REPRISE_STANDIN_CHIP=90          the chip, default 80
//   REPRISE_STANDIN_MULTIPROCESSORS=N   it has, default 108
//   REPRISE_STANDIN_IMAGES=ptx       takes no machine code, as a driver that is
//                                    older than the assembler
//   REPRISE_STANDIN_MEMORY=BYTES     what the GPU has, default 1 GiB
//   REPRISE_STANDIN_PAGE=BYTES       allocations take multiples of it, default
//                                    2 MiB
//   REPRISE_STANDIN_DEVICES=N        how many there are, default 1
//   CUDA_VISIBLE_DEVICES=NUMBER      one that is to be seen, as number 0
//   REPRISE_STANDIN_FAULT=KERNEL     every launch of this kernel goes wrong
//   REPRISE_STANDIN_REFUSE=NAME      launches of this kernel, or calls of this
//                                    function, find no room; streams do from
//                                    the second on
//   REPRISE_STANDIN_SUMS=none        GEMMs make no sums of their operands
//   REPRISE_STANDIN_STREAMS=ahead    work on all streams but the first is done
//                                    when it is begun
//   REPRISE_STANDIN_IMAGE=FILE       what an allocation holds when it is given
//                                    back
//   REPRISE_STANDIN_LOG=FILE         a line for each allocation, graph and end
//
//===----------------------------------------------------------------------===//

#include "StandIn.h"

#include "test/simulator/Simulator.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <unistd.h>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::standin;

static constexpr CudaResult kInvalidValue = 1, kInvalidHandle = 400,
                            kNoDevice = 100, kInvalidDevice = 101,
                            kInvalidImage = 200, kNotFound = 500,
                            kIllegalAddress = 700, kNoResources = 701,
                            kNotInCapture = 900, kInvalidCapture = 901,
                            kUnjoinedCapture = 904, kOutsideCapture = 905,
                            kCapturedEvent = 907;

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

namespace {
struct Task {
  std::string what;
  Poll poll;
};

/// What a stream has done while a graph was being made: tasks, and waits for
/// the first `place` tasks of another branch.
struct Step {
  Task task;
  int branch = -1;
  size_t place = 0;
};
using Branch = std::vector<Step>;

/// A graph; the first branch is that of the stream on which it began.
struct Graph {
  std::vector<Branch> branches;
  bool isSpoilt = false; ///< It will not be.
};

struct Stream {
  std::deque<Task> tasks;
  size_t done = 0, begun = 0; ///< Counted since it was created.
  bool isFirst = false, isRunning = false;
  std::shared_ptr<Graph> graph; ///< That is being made.
  int branch = 0;               ///< Of it.
};

/// What was begun on a stream before it was recorded; of a graph that is being
/// made, on a branch.
struct Event {
  Stream *stream = nullptr;
  size_t place = 0;
  std::shared_ptr<double> milliseconds; ///< When that was done.
  std::shared_ptr<Graph> graph;
  int branch = 0;
};

/// A graph that can run, on streams of its own but for the first branch.
struct GraphExec {
  std::vector<Branch> branches;
  std::vector<std::unique_ptr<Stream>> streams;
  Stream *launched = nullptr; ///< Where it has last begun,
  size_t end = 0;             ///< and the place behind it there.
};

struct Machine {
  std::map<CudaAddress, size_t> allocations;
  std::map<const char *, size_t> pinned;
  size_t used = 0;
  /// Whose functions were asked for, and the dynamic shared memory they may
  /// have.
  std::map<std::string, unsigned> kernels;
  CudaResult failure = 0;
  size_t streams = 0, graphs = 0, graphLaunches = 0, launches = 0;
  int device = 0; ///< The one whose context there is.
};
} // namespace

static Machine machine;

/// All streams, also those of graphs. (It outlives what is destroyed late.)
static std::vector<Stream *> &allStreams() {
  static auto *streams = new std::vector<Stream *>;
  return *streams;
}

/// Those that were destroyed while they ran. (Never destroyed itself.)
static auto &endingGraphs = *new std::vector<GraphExec *>;

static void forget(Stream &stream) {
  auto &all = allStreams();
  all.erase(std::remove(all.begin(), all.end(), &stream), all.end());
}

static size_t number(const char *variable, size_t otherwise) {
  const char *text = getenv(variable);
  return text ? size_t(strtoull(text, nullptr, 10)) : otherwise;
}

static bool isRefused(const std::string &name) {
  const char *refused = getenv("REPRISE_STANDIN_REFUSE");
  return refused && name == refused;
}

static bool says(const char *variable, const char *word) {
  const char *text = getenv(variable);
  return text && !strcmp(text, word);
}

static bool isAtOnce(const Stream &stream) {
  return says("REPRISE_SIMULATOR_LANDING", "once") ||
         (!stream.isFirst && says("REPRISE_STANDIN_STREAMS", "ahead"));
}

template <typename... Args>
static void note(const char *format, Args... args) {
  const char *path = getenv("REPRISE_STANDIN_LOG");
  FILE *file = path ? fopen(path, "ae") : nullptr;
  if (!file)
    return;
  fprintf(file, format, args...);
  fclose(file);
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

/// Whether it is done.
static bool perform(const Task &task) {
  if (machine.failure)
    return true;
  std::optional<std::string> wrong = task.poll();
  if (!wrong || wrong->empty())
    return wrong.has_value();
  fprintf(stderr, "stand-in: %s: %s\n", task.what.c_str(), wrong->c_str());
  machine.failure = kIllegalAddress;
  return true;
}

/// Does what was begun on `stream` up to `place`, as far as it waits for
/// nobody; whether that is all.
static bool advanceSome(Stream &stream, size_t place) {
  if (stream.isRunning) // One that waits for itself, by others.
    return stream.done >= place;
  stream.isRunning = true;
  while (stream.done < place && !stream.tasks.empty() &&
         perform(stream.tasks.front())) {
    stream.tasks.pop_front();
    ++stream.done;
  }
  stream.isRunning = false;
  return stream.done >= place || stream.tasks.empty();
}

static bool isBusy(const Stream *stream) { return !stream->tasks.empty(); }

static bool isRunning(const GraphExec &graph) {
  const auto &all = allStreams();
  auto isBusySide = [](const auto &side) { return isBusy(side.get()); };
  return (std::count(all.begin(), all.end(), graph.launched) > 0 &&
          graph.launched->done < graph.end) ||
         std::any_of(graph.streams.begin(), graph.streams.end(), isBusySide);
}

static void destroyEnded() {
  auto isOver = [](GraphExec *graph) {
    if (isRunning(*graph))
      return false;
    for (auto &side : graph->streams)
      forget(*side);
    delete graph;
    return true;
  };
  auto &all = endingGraphs;
  all.erase(std::remove_if(all.begin(), all.end(), isOver), all.end());
}

/// Lets all streams go on that wait for nobody.
static void advanceAll() {
  for (Stream *stream : allStreams())
    advanceSome(*stream, stream->begun);
  destroyEnded();
}

/// Does what was begun on `stream` up to `place`, or lets others go on while
/// that waits; whether that is all.
static bool advanceOrOthers(Stream &stream, size_t place) {
  if (advanceSome(stream, place))
    return true;
  advanceAll();
  return advanceSome(stream, place);
}

/// Does all of it.
static void advance(Stream &stream, size_t place) {
  while (!advanceOrOthers(stream, place))
    usleep(50);
}

static Stream &streamOf(CudaStream stream) {
  return *reinterpret_cast<Stream *>(stream);
}

static void begin(Stream &stream, Task task) {
  if (stream.graph) {
    stream.graph->branches[size_t(stream.branch)].push_back(
        {std::move(task), -1, 0});
    return;
  }
  stream.tasks.push_back(std::move(task));
  ++stream.begun;
  for (Stream *each : allStreams())
    if (isAtOnce(*each))
      advanceSome(*each, each->begun);
}

void reprise::standin::enqueue(CudaStream stream, const std::string &what,
                               Work work) {
  begin(streamOf(stream),
        {what, [work = std::move(work)] { return std::optional(work()); }});
}

void reprise::standin::enqueuePoll(CudaStream stream, const std::string &what,
                                   Poll poll) {
  begin(streamOf(stream), {what, std::move(poll)});
}

void reprise::standin::goOn() { advanceAll(); }

int reprise::standin::multiprocessors() {
  return int(number("REPRISE_STANDIN_MULTIPROCESSORS", 108));
}

int reprise::standin::deviceNumber() { return machine.device; }

void reprise::standin::takeMemory(long bytes) {
  machine.used = size_t(long(machine.used) + bytes);
}

void reprise::standin::note(const std::string &line) {
  ::note("%s\n", line.c_str());
}

bool reprise::standin::isAllocated(CudaAddress address, size_t bytes) {
  auto after = machine.allocations.upper_bound(address);
  if (after == machine.allocations.begin())
    return false;
  auto [begin, size] = *std::prev(after);
  return address - begin <= size && bytes <= size - (address - begin);
}

std::string reprise::standin::checkAllocated(const char *what,
                                             const void *address,
                                             size_t bytes) {
  if (isAllocated(reinterpret_cast<CudaAddress>(address), bytes))
    return "";
  char text[128];
  snprintf(text, sizeof(text), "%s of %zu bytes at %p is not on the device",
           what, bytes, address);
  return text;
}

static char *pointer(CudaAddress address) {
  return reinterpret_cast<char *>(address);
}

/// Spoils the graph that is being made of `stream`, if there is one.
static bool spoilCapture(CudaStream stream) {
  if (Graph *graph = streamOf(stream).graph.get())
    graph->isSpoilt = true;
  return streamOf(stream).graph != nullptr;
}

static bool isPinned(const void *memory, size_t bytes) {
  auto *from = static_cast<const char *>(memory);
  auto after = machine.pinned.upper_bound(from);
  if (after == machine.pinned.begin())
    return false;
  auto [begin, size] = *std::prev(after);
  return size_t(from - begin) + bytes <= size;
}

static std::pair<const std::string, unsigned> &kernelOf(CudaFunction function) {
  return *reinterpret_cast<std::pair<const std::string, unsigned> *>(function);
}

//===----------------------------------------------------------------------===//
// The driver's functions
//===----------------------------------------------------------------------===//

extern "C" {

CudaResult cuInit(unsigned) {
  return number("REPRISE_STANDIN_DEVICES", 1) ? 0 : kNoDevice;
}

CudaResult cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}

CudaResult cuGetErrorName(CudaResult code, const char **name) {
  static const std::map<CudaResult, const char *> names = {
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kCudaOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kNoDevice, "CUDA_ERROR_NO_DEVICE"},
      {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
      {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
      {kNotFound, "CUDA_ERROR_NOT_FOUND"},
      {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {kNoResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
      {kNotInCapture, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
      {kCudaNotReady, "CUDA_ERROR_NOT_READY"},
      {kInvalidCapture, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
      {kUnjoinedCapture, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
      {kOutsideCapture, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
      {kCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT"}};
  auto found = names.find(code);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kInvalidValue : 0;
}

CudaResult cuGetErrorString(CudaResult code, const char **text) {
  *text = code == kIllegalAddress ? "an illegal memory access was encountered"
          : code == kNoDevice     ? "no CUDA-capable device is detected"
                                  : "see its name";
  return 0;
}

CudaResult cuDeviceGetCount(int *count) {
  *count = getenv("CUDA_VISIBLE_DEVICES")
               ? 1
               : int(number("REPRISE_STANDIN_DEVICES", 1));
  return 0;
}

CudaResult cuDeviceGet(CudaDeviceNumber *device, int ordinal) {
  *device = int(number("CUDA_VISIBLE_DEVICES", size_t(ordinal)));
  return 0;
}

CudaResult cuDeviceGetName(char *name, int length, CudaDeviceNumber device) {
  snprintf(name, size_t(length), "stand-in %d", device);
  return 0;
}

CudaResult cuDeviceGetAttribute(int *value, int attribute, CudaDeviceNumber) {
  int chip = int(number("REPRISE_STANDIN_CHIP", 80));
  *value = attribute == kCudaMajor             ? chip / 10
           : attribute == kCudaMinor           ? chip % 10
           : attribute == kCudaMultiprocessors ? multiprocessors()
                                               : 1;
  return 0;
}

CudaResult cuDevicePrimaryCtxRetain(CudaContext *context,
                                    CudaDeviceNumber device) {
  machine.device = device;
  *context = reinterpret_cast<CudaContext>(&machine);
  return 0;
}

CudaResult cuDevicePrimaryCtxRelease_v2(CudaDeviceNumber) {
  note("end: %zu bytes allocated, %zu of the host, %zu launches, %zu graphs "
       "replayed %zu times\n",
       machine.used, machine.pinned.size(), machine.launches, machine.graphs,
       machine.graphLaunches);
  return 0;
}

CudaResult cuCtxSetCurrent(CudaContext) { return 0; }

CudaResult cuMemGetInfo_v2(size_t *free, size_t *total) {
  *total = number("REPRISE_STANDIN_MEMORY", size_t(1) << 30);
  *free = *total - std::min(*total, machine.used);
  return machine.failure;
}

/// What an allocation takes: whole pages, as a driver's are.
static size_t takenBy(size_t bytes) {
  size_t page = number("REPRISE_STANDIN_PAGE", size_t(2) << 20);
  return (bytes + page - 1) / page * page;
}

CudaResult cuMemAlloc_v2(CudaAddress *address, size_t bytes) {
  size_t free = 0, total = 0;
  cuMemGetInfo_v2(&free, &total);
  void *memory = takenBy(bytes) <= free ? simulatorAllocate(bytes) : nullptr;
  if (!memory)
    return kCudaOutOfMemory;
  *address = reinterpret_cast<CudaAddress>(memory);
  machine.allocations[*address] = bytes;
  machine.used += takenBy(bytes);
  note("allocation: %zu bytes\n", bytes);
  return 0;
}

/// Waits for all that was begun on any stream.
static void finishAll() {
  const auto &all = allStreams();
  for (advanceAll(); std::any_of(all.begin(), all.end(), isBusy); advanceAll())
    usleep(50);
}

CudaResult cuMemFree_v2(CudaAddress address) {
  auto found = machine.allocations.find(address);
  if (found == machine.allocations.end())
    return kInvalidValue;
  finishAll();
  if (const char *path = getenv("REPRISE_STANDIN_IMAGE"))
    if (FILE *file = fopen(path, "wb")) {
      fwrite(pointer(address), 1, found->second, file);
      fclose(file);
    }
  machine.used -= takenBy(found->second);
  machine.allocations.erase(found);
  simulatorFree(pointer(address));
  return 0;
}

CudaResult cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  if (isRefused(__func__))
    return kCudaOutOfMemory;
  *memory = calloc(1, bytes);
  machine.pinned[static_cast<char *>(*memory)] = bytes;
  return *memory ? 0 : kCudaOutOfMemory;
}

CudaResult cuMemFreeHost(void *memory) {
  machine.pinned.erase(static_cast<char *>(memory));
  free(memory);
  return 0;
}

CudaResult cuMemcpyHtoDAsync_v2(CudaAddress to, const void *from, size_t bytes,
                                CudaStream stream) {
  // What is not pinned is taken now; what is, when its turn comes.
  auto staged = std::make_shared<std::vector<char>>();
  bool isStaged = !isPinned(from, bytes);
  if (isStaged && spoilCapture(stream))
    return kNotInCapture;
  if (isStaged)
    staged->assign(static_cast<const char *>(from),
                   static_cast<const char *>(from) + bytes);
  enqueue(stream, "copy to the device", [=] {
    std::string wrong = checkAllocated("target", pointer(to), bytes);
    if (wrong.empty())
      memcpy(pointer(to), isStaged ? staged->data() : from, bytes);
    return wrong;
  });
  return machine.failure;
}

CudaResult cuMemcpyDtoHAsync_v2(void *to, CudaAddress from, size_t bytes,
                                CudaStream stream) {
  if (!isPinned(to, bytes) && spoilCapture(stream))
    return kNotInCapture;
  enqueue(stream, "copy from the device", [=] {
    std::string wrong = checkAllocated("source", pointer(from), bytes);
    if (wrong.empty())
      memcpy(to, pointer(from), bytes);
    return wrong;
  });
  if (!isPinned(to, bytes))
    advance(streamOf(stream), streamOf(stream).begun);
  return machine.failure;
}

CudaResult cuMemcpyDtoDAsync_v2(CudaAddress to, CudaAddress from, size_t bytes,
                                CudaStream stream) {
  enqueue(stream, "copy on the device", [=] {
    std::string wrong = checkAllocated("source", pointer(from), bytes);
    if (wrong.empty())
      wrong = checkAllocated("target", pointer(to), bytes);
    if (wrong.empty())
      memmove(pointer(to), pointer(from), bytes);
    return wrong;
  });
  return machine.failure;
}

CudaResult cuMemsetD8Async(CudaAddress to, unsigned char byte, size_t count,
                           CudaStream stream) {
  enqueue(stream, "fill", [=] {
    std::string wrong = checkAllocated("target", pointer(to), count);
    if (wrong.empty())
      memset(pointer(to), byte, count);
    return wrong;
  });
  return machine.failure;
}

CudaResult cuMemsetD32Async(CudaAddress to, unsigned word, size_t count,
                            CudaStream stream) {
  if (to % sizeof(word) != 0)
    return kInvalidValue;
  enqueue(stream, "fill", [=] {
    std::string wrong =
        checkAllocated("target", pointer(to), count * sizeof(word));
    if (wrong.empty())
      std::fill_n(reinterpret_cast<unsigned *>(pointer(to)), count, word);
    return wrong;
  });
  return machine.failure;
}

/// Of several in REPRISE_SIMULATOR_KERNELS, the one for this GPU.
static std::string kernelsOfDevice() {
  const char *text = getenv("REPRISE_SIMULATOR_KERNELS");
  std::vector<std::string> paths(1);
  for (; text && *text; ++text)
    if (*text == ',')
      paths.emplace_back();
    else
      paths.back() += *text;
  size_t devices = number("REPRISE_STANDIN_DEVICES", 1);
  return paths[std::min(size_t(machine.device) * paths.size() / devices,
                        paths.size() - 1)];
}

CudaResult cuModuleLoadDataEx(CudaModule *module, const void *image,
                              unsigned numOptions, int *options,
                              void **values) {
  auto fail = [&](const std::string &why) {
    for (unsigned i = 0; i < numOptions; ++i)
      if (options[i] == kCudaJitErrorLog)
        strncpy(static_cast<char *>(values[i]), why.c_str(), 400);
    return kInvalidImage;
  };
  auto *text = static_cast<const char *>(image);
  bool isMachineCode = !memcmp(text, "\177ELF", 4);
  if (!isMachineCode && !strstr(text, ".version"))
    return fail("neither machine code nor PTX");
  const char *images = getenv("REPRISE_STANDIN_IMAGES");
  if (isMachineCode && images && !strcmp(images, "ptx"))
    return fail("machine code of a newer assembler");
  std::string path = kernelsOfDevice();
  if (path.empty())
    return fail("REPRISE_SIMULATOR_KERNELS names no shared object");
  if (const char *wrong = simulatorLoad(path.c_str()))
    return fail(wrong);
  *module = reinterpret_cast<CudaModule>(&machine.kernels);
  note("module: %s\n", isMachineCode ? "machine code" : "PTX");
  return 0;
}

CudaResult cuModuleUnload(CudaModule) { return machine.failure; }

CudaResult cuModuleGetFunction(CudaFunction *function, CudaModule,
                               const char *name) {
  if (!simulatorHas(name))
    return kNotFound;
  constexpr unsigned usual = 48 << 10;
  auto place = machine.kernels.insert({name, usual}).first;
  *function = reinterpret_cast<CudaFunction>(&*place);
  return 0;
}

CudaResult cuFuncSetAttribute(CudaFunction function, int attribute, int value) {
  unsigned chip = unsigned(number("REPRISE_STANDIN_CHIP", 80));
  unsigned most = chip == 80                ? 163
                  : chip / 10 == 8          ? 99
                  : chip < 120 && chip > 89 ? 227
                                            : 99;
  if (attribute != kCudaMaxDynamicSharedBytes || value < 0 ||
      unsigned(value) > most << 10)
    return kInvalidValue;
  kernelOf(function).second = unsigned(value);
  return 0;
}

CudaResult cuLaunchKernel(CudaFunction function, unsigned gridX, unsigned gridY,
                          unsigned gridZ, unsigned blockX, unsigned blockY,
                          unsigned blockZ, unsigned sharedBytes,
                          CudaStream stream, void **, void **extra) {
  const void *from = nullptr;
  size_t bytes = 0;
  for (; *extra != kCudaLaunchEnd; extra += 2)
    if (*extra == kCudaLaunchBuffer)
      from = extra[1];
    else
      bytes = *static_cast<size_t *>(extra[1]);
  const auto &[name, mostShared] = kernelOf(function);
  if (sharedBytes > mostShared)
    return kInvalidValue;
  if (isRefused(name))
    return kNoResources;
  std::vector<char> parameters(static_cast<const char *>(from),
                               static_cast<const char *>(from) + bytes);
  const char *fault = getenv("REPRISE_STANDIN_FAULT");
  bool isFaulty = fault && name == fault;
  enqueue(stream, "kernel " + name, [=, name = name]() -> std::string {
    ++machine.launches;
    if (isFaulty)
      return "goes wrong, as it is told";
    const uint32_t grid[] = {gridX, gridY, gridZ},
                   block[] = {blockX, blockY, blockZ};
    const char *wrong = simulatorLaunch(name.c_str(), grid, block, sharedBytes,
                                        parameters.data(), parameters.size());
    return wrong ? wrong : "";
  });
  return machine.failure;
}

CudaResult cuStreamCreate(CudaStream *stream, unsigned) {
  // The first stream is the one on which everything runs.
  if (isRefused(machine.streams == 0 ? "first cuStreamCreate" : __func__))
    return kCudaOutOfMemory;
  auto *created = new Stream;
  created->isFirst = machine.streams++ == 0;
  allStreams().push_back(created);
  *stream = reinterpret_cast<CudaStream>(created);
  return 0;
}

CudaResult cuStreamDestroy_v2(CudaStream stream) {
  if (advanceOrOthers(streamOf(stream), streamOf(stream).begun)) {
    forget(streamOf(stream)); // Otherwise it goes on.
    delete &streamOf(stream);
  }
  return machine.failure;
}

CudaResult cuStreamSynchronize(CudaStream stream) {
  if (spoilCapture(stream))
    return kNotInCapture;
  advance(streamOf(stream), streamOf(stream).begun);
  return machine.failure;
}

CudaResult cuEventCreate(CudaEvent *event, unsigned) {
  *event = reinterpret_cast<CudaEvent>(new Event);
  return 0;
}

CudaResult cuEventDestroy_v2(CudaEvent event) {
  delete reinterpret_cast<Event *>(event);
  return 0;
}

CudaResult cuEventRecord(CudaEvent event, CudaStream stream) {
  Stream &own = streamOf(stream);
  Event &recorded = *reinterpret_cast<Event *>(event);
  if (own.graph) {
    recorded = {nullptr, own.graph->branches[size_t(own.branch)].size(),
                nullptr, own.graph, own.branch};
    return machine.failure;
  }
  auto when = std::make_shared<double>(-1);
  enqueue(stream, "event", [when] {
    *when = std::chrono::duration<double, std::milli>(
                std::chrono::steady_clock::now().time_since_epoch())
                .count();
    return std::string();
  });
  recorded = {&own, own.begun, when, nullptr, 0};
  return machine.failure;
}

/// Lets `stream` wait within a graph that is being made, in which it takes part
/// from then on.
static CudaResult waitInGraph(Stream &stream, const Event &before) {
  if (!before.graph) {
    stream.graph->isSpoilt = true;
    return kOutsideCapture;
  }
  bool isBeingMade = before.graph->branches.size() > 0;
  if (!isBeingMade || (stream.graph && stream.graph != before.graph))
    return kOutsideCapture;
  if (!stream.graph) {
    stream.graph = before.graph;
    stream.branch = int(before.graph->branches.size());
    stream.graph->branches.emplace_back();
  }
  if (stream.branch != before.branch)
    stream.graph->branches[size_t(stream.branch)].push_back(
        {{}, before.branch, before.place});
  return machine.failure;
}

CudaResult cuStreamWaitEvent(CudaStream stream, CudaEvent event, unsigned) {
  Event before = *reinterpret_cast<Event *>(event);
  bool isRecorded = before.stream || before.graph;
  if (isRecorded && (streamOf(stream).graph || before.graph))
    return waitInGraph(streamOf(stream), before);
  enqueuePoll(stream, "wait", [before]() -> std::optional<std::string> {
    if (before.stream && !advanceSome(*before.stream, before.place))
      return std::nullopt;
    return std::string();
  });
  return machine.failure;
}

CudaResult cuStreamQuery(CudaStream stream) {
  if (spoilCapture(stream))
    return kNotInCapture;
  bool isDone = advanceOrOthers(streamOf(stream), streamOf(stream).begun);
  return isDone || machine.failure ? machine.failure : kCudaNotReady;
}

CudaResult cuEventQuery(CudaEvent event) {
  Event before = *reinterpret_cast<Event *>(event);
  if (before.graph)
    return kCapturedEvent;
  bool isDone = !before.stream || advanceOrOthers(*before.stream, before.place);
  return isDone || machine.failure ? machine.failure : kCudaNotReady;
}

CudaResult cuEventSynchronize(CudaEvent event) {
  Event before = *reinterpret_cast<Event *>(event);
  if (before.graph)
    return kCapturedEvent;
  if (before.stream)
    advance(*before.stream, before.place);
  return machine.failure;
}

CudaResult cuEventElapsedTime(float *milliseconds, CudaEvent begin,
                              CudaEvent end) {
  if (machine.failure)
    return machine.failure;
  auto &from = *reinterpret_cast<Event *>(begin),
       &to = *reinterpret_cast<Event *>(end);
  if (!from.milliseconds || !to.milliseconds)
    return kInvalidHandle;
  if (*from.milliseconds < 0 || *to.milliseconds < 0)
    return kCudaNotReady;
  *milliseconds = float(*to.milliseconds - *from.milliseconds);
  return 0;
}

CudaResult cuStreamBeginCapture_v2(CudaStream stream, int) {
  if (streamOf(stream).graph)
    return kInvalidCapture;
  streamOf(stream).graph = std::make_shared<Graph>();
  streamOf(stream).graph->branches.emplace_back();
  streamOf(stream).branch = 0;
  return 0;
}

/// Whether the first branch waits, at its end, for all that others have.
static bool areJoined(const Graph &graph) {
  std::vector<size_t> reached(graph.branches.size());
  reached[0] = graph.branches[0].size();
  for (bool isMore = true; isMore;) {
    isMore = false;
    for (size_t i = 0; i < reached.size(); ++i)
      for (size_t at = 0; at < reached[i]; ++at) {
        const Step &step = graph.branches[i][at];
        if (step.branch < 0 || reached[size_t(step.branch)] >= step.place)
          continue;
        reached[size_t(step.branch)] = step.place;
        isMore = true;
      }
  }
  for (size_t i = 0; i < reached.size(); ++i)
    if (reached[i] != graph.branches[i].size())
      return false;
  return true;
}

CudaResult cuStreamEndCapture(CudaStream stream, CudaGraph *graph) {
  std::shared_ptr<Graph> made = streamOf(stream).graph;
  *graph = nullptr;
  if (!made || streamOf(stream).branch != 0)
    return kInvalidCapture;
  for (Stream *each : allStreams())
    if (each->graph == made)
      each->graph = nullptr;
  bool isWhole = areJoined(*made);
  if (!made->isSpoilt && isWhole)
    *graph = reinterpret_cast<CudaGraph>(
        new std::vector<Branch>(std::move(made->branches)));
  made->branches.clear(); // Events of it are of no use any more.
  return *graph ? 0 : isWhole ? kInvalidCapture : kUnjoinedCapture;
}

CudaResult cuGraphInstantiateWithFlags(CudaGraphExec *exec, CudaGraph graph,
                                       unsigned long long) {
  if (isRefused(__func__))
    return kCudaOutOfMemory;
  auto *made = new GraphExec;
  made->branches = *reinterpret_cast<std::vector<Branch> *>(graph);
  for (size_t i = 1; i < made->branches.size(); ++i) {
    made->streams.push_back(std::make_unique<Stream>());
    allStreams().push_back(made->streams.back().get());
  }
  *exec = reinterpret_cast<CudaGraphExec>(made);
  ++machine.graphs;
  return 0;
}

CudaResult cuGraphLaunch(CudaGraphExec exec, CudaStream stream) {
  ++machine.graphLaunches;
  GraphExec &graph = *reinterpret_cast<GraphExec *>(exec);
  auto lanes = std::make_shared<std::vector<std::pair<Stream *, size_t>>>();
  lanes->push_back({&streamOf(stream), streamOf(stream).begun});
  auto waitFor = [lanes](int branch, size_t place) -> Poll {
    return [=]() -> std::optional<std::string> {
      auto [other, begun] = (*lanes)[size_t(branch)];
      if (!advanceSome(*other, begun + place))
        return std::nullopt;
      return std::string();
    };
  };
  for (auto &side : graph.streams) {
    side->tasks.push_back({"begin of a graph", waitFor(0, 0)});
    lanes->push_back({side.get(), ++side->begun});
  }
  // What a branch waits for is there before it begins.
  for (size_t i = graph.branches.size(); i-- > 0;)
    for (const Step &step : graph.branches[i]) {
      Stream &own = *(*lanes)[i].first;
      own.tasks.push_back(step.branch < 0
                              ? step.task
                              : Task{"wait", waitFor(step.branch, step.place)});
      ++own.begun;
    }
  graph.launched = &streamOf(stream);
  graph.end = streamOf(stream).begun;
  for (Stream *each : allStreams())
    if (isAtOnce(*each))
      advanceSome(*each, each->begun);
  return machine.failure;
}

CudaResult cuGraphExecDestroy(CudaGraphExec exec) {
  endingGraphs.push_back(reinterpret_cast<GraphExec *>(exec));
  destroyEnded();
  return 0;
}

CudaResult cuGraphDestroy(CudaGraph graph) {
  delete reinterpret_cast<std::vector<Branch> *>(graph);
  return 0;
}

} // extern "C"
