//===- ir.cpp
#include "bridge.h"
