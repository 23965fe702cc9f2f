//===- parser.cpp
#include "bridge.h"
