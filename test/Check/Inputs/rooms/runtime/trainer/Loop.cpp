#include "reprise/ABI/Model.h"
#include "Pool.h"
#include <sys/mman.h>
#include "mlir/IR/Builders.h"
