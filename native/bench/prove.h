// prove_start on a made-up key of a size: random points, a share of the wires in A and B as in the
// label circuit, scalars dense or label-like.
#pragma once

#include "library.h"
#include "report.h"

namespace bench {

struct prove_spec {
    uint32_t log_size;
    bool label;  // label-like scalars; else dense
    bool pinned; // vectors from the pool; else plain memory
    bool b_g2;   // the G2 MSM, too
    uint32_t repeats;
};

void prove(const library& lib, hw_context* context, const prove_spec& spec, report& to);

} // namespace bench
