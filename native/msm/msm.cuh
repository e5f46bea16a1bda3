// The two instances of the driver, each compiled on its own.
#pragma once

#include "core/mathematics.h"

namespace highwater::msm_detail {

void msm_g1(lane& on, const msm_input& in, void* out, hw_msm_stats* stats);
void msm_g2(lane& on, const msm_input& in, void* out, hw_msm_stats* stats);

} // namespace highwater::msm_detail
