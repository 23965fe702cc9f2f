//===- tool.cpp
#include "bridge.h"
