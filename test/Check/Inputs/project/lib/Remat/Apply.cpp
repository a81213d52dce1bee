#include "reprise/Kernels/Passes.h"
int  apply();

