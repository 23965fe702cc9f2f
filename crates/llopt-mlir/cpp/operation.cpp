//===- operation.cpp
#include "bridge.h"
