#include "overlap.h"

bool launches_may_overlap = true;
