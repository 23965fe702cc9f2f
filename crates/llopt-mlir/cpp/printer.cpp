//===- printer.cpp
#include "bridge.h"
