# lit's settings. lit is written in Python and so is this file. The only others
# are about PyTorch, bench/pytorch_step.py and gpu/pytorch_baseline.py, and
# gpu/run, for machines that have Python and nothing of ours, with gpu/predict,
# which reads its results.
import ctypes
import os
import subprocess
import lit.formats
import lit.util

config.name = "Reprise"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit", "bench", "gpu"]
config.test_source_root = os.path.join(config.reprise_source_dir, "test")
config.test_exec_root = os.path.join(config.reprise_binary_dir, "test")

# Our tools first, then FileCheck, not, count and split-file of this LLVM.
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.reprise_binary_dir, "bin"), config.llvm_tools_dir,
     config.environment["PATH"]])
config.environment["FILECHECK_OPTS"] = \
    "-enable-var-scope --allow-unused-prefixes=false"

# Memory that is freed is overwritten at once, so that what reads it still fails
# in every run, not in one of a hundred.
config.environment["MALLOC_PERTURB_"] = "165"
config.environment["GLIBC_TUNABLES"] = "glibc.malloc.tcache_count=0"

# Every test is a test of parser and printer too: what reprise-opt reads goes
# out as text and as bytecode and must come back equal, before any pass runs.
# REPRISE_VERIFY_ROUNDTRIP=0 leaves that out.
opt = "reprise-opt"
if os.environ.get("REPRISE_VERIFY_ROUNDTRIP", "1") != "0":
    opt += " --verify-roundtrip"
config.substitutions += [
    (r"(?<![\w/.-])reprise-opt(?![\w/.-])", opt),
    ("%source", config.reprise_source_dir),
    ("%build", config.reprise_binary_dir),
    ("%cmake", config.cmake),
    # How another project is configured.
    # Half of the code, for tests that compile many programs and look at what
    # these train: for this processor alone, and none for validation and text.
    ("%lean", "--cpu=native --inference=off"),
    ("%outside", "-G %s -DCMAKE_C_COMPILER=%s -DCMAKE_CXX_COMPILER=%s" % (
        config.generator, config.c_compiler, config.cxx_compiler)),
    ("%examples", os.path.join(config.reprise_source_dir,
                               "python-free-frontend", "examples")),
    ("%utils", os.path.join(config.reprise_source_dir, "utils")),
    ("%gpu", os.path.join(config.reprise_source_dir, "test", "gpu")),
    ("%standins", os.path.join(config.reprise_binary_dir, "test", "standin")),
    ("%bench", "env REPRISE_BUILD_DIR=%s %s" % (
        config.reprise_binary_dir,
        os.path.join(config.reprise_source_dir, "test", "bench", "run"))),
    ("%printed", "env REPRISE_BUILD_DIR=%s %s" % (
        config.reprise_binary_dir,
        os.path.join(config.reprise_source_dir, "utils", "printed"))),
]

# `REQUIRES: ptxas` marks the tests that assemble: it is found as the compiler
# finds it.
places = [os.environ["PATH"]]
for name in ("CUDA_PATH", "CUDA_HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
        places.insert(0, os.path.join(os.environ[name], "bin"))
if lit.util.which("ptxas", os.pathsep.join(places)):
    config.available_features.add("ptxas")

# `REQUIRES: avx512` marks the tests that run code for x86-64-v4.
with open("/proc/cpuinfo") as info:
    flags = info.read().split()
if all("avx512" + part in flags for part in ("f", "bw", "cd", "dq", "vl")):
    config.available_features.add("avx512")
# `REQUIRES: amx` marks those that need the tile registers.
if all(flag in flags for flag in ("amx_tile", "amx_bf16", "avx512_bf16", "avx512vl")):
    # The permission that the runtime asks for: ARCH_REQ_XCOMP_PERM, tile data.
    if ctypes.CDLL(None).syscall(158, 0x1023, 18) == 0:
        config.available_features.add("amx")

# `REQUIRES: memory-groups` marks those that run programs in a memory control
# group of their own, which one must be allowed to make.
if subprocess.run(
        ["sh", os.path.join(config.test_source_root, "Integration", "Inputs",
                            "in-group.sh"), str(1 << 30), "true"],
        capture_output=True).returncode == 0:
    config.available_features.add("memory-groups")

# `REQUIRES: networks` marks those that run in a network of their own, which one
# must be allowed to make.
if subprocess.run(
        ["unshare", "-n", "sh",
         os.path.join(config.test_source_root, "Integration", "Inputs",
                      "in-network.sh"), "true"],
        capture_output=True).returncode == 0:
    config.available_features.add("networks")

# `REQUIRES: mpi` marks those that run ranks under mpirun, %openmpi and %mpich.
# Both bind to the loopback interface alone, and leave files, if any, in the
# folder that TMPDIR names.
if all(lit.util.which(name, os.environ["PATH"])
       for name in ("mpirun.openmpi", "mpirun.mpich")):
    config.available_features.add("mpi")
config.substitutions += [
    ("%openmpi", "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
     " OMPI_MCA_btl_vader_backing_directory=%t/shm mpirun.openmpi --oversubscribe"
     " --mca btl self,vader --mca oob_tcp_if_include lo"),
    ("%mpich", "env UCX_POSIX_DIR=%t/shm UCX_TLS=self,sm mpirun.mpich -iface lo"),
]

# `REQUIRES: nvim` marks those that ask the editor.
if lit.util.which("nvim", os.environ["PATH"]):
    config.available_features.add("nvim")

# `REQUIRES: train` marks the tests that train a model: seconds, not
# milliseconds. `lit --param quick=1` leaves them out.
if not lit_config.params.get("quick"):
    config.available_features.add("train")
