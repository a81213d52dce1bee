#include "reprise/Codegen/Common/Common.h"
#include "reprise/Codegen/CUDA/PTX.h"
  #  include "reprise/Dialect/NN/NN.h" // why
