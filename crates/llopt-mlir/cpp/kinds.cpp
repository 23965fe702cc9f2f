//===- kinds.cpp
#include "bridge.h"
