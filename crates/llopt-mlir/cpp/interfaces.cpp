//===- interfaces.cpp
#include "bridge.h"
