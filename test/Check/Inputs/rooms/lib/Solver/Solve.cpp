#include "reprise/Solver/Problem.h"
#include "Space.h"
#include <vector>
#include "llvm/ADT/SmallVector.h"
#include "reprise/Support/Text.h"
#include <stdint.h>
