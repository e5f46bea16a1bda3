// The heavy part of a proof: h = (a b - c) / Z by seven transforms, then the MSMs.
#pragma once

#include "groth16/srs.h"

namespace highwater {

// Puts what an MSM did on the lane's current operation.
void note(lane& on, const hw_msm_stats& stats);

void prove_start(context& of, const srs& key, const hw_assignment& assignment, hw_proof_parts& out);

} // namespace highwater
