#include <stdint.h>
#include <vector>
