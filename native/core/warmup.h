#pragma once

#include "core/lane.h"

namespace highwater {

// Runs each kind of kernel once on tiny inputs, so that what the driver takes at a kernel's first
// launch (stacks, mostly) is taken, and measured, before the first job. Leaves no records.
void warm_up(lane& on);

} // namespace highwater
