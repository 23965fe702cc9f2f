//===- rewrite.cpp
#include "bridge.h"
