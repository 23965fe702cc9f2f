//===- dialect.cpp
#include "bridge.h"
