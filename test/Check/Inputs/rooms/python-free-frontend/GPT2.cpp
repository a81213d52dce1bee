#include "reprise/Dialect/NN/NN.h"
#include "reprise/Dialect/RT/RT.h"
