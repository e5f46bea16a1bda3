// prove_start on a made-up key of a size: random points, a share of the wires in A and B as in the
// label circuit, scalars dense or label-like.
#pragma once

#include <memory>

#include "library.h"
#include "report.h"

namespace bench {

struct prove_spec {
    uint32_t log_size;
    bool label;  // label-like scalars; else dense
    bool pinned; // vectors from the pool; else plain memory
    bool b_g2;   // the G2 MSM, too
    uint32_t repeats;
    bool profile; // tell the driver where the repeats begin and end: ncu --profile-from-start off
};

// Page-locked memory that the vectors of a start need.
inline uint64_t pool_for(uint32_t log_size) { return (uint64_t(32) << log_size) * 4 + (1 << 20); }

// One assignment and its key, which can be started again and again.
class start {
public:
    start(const library& lib, hw_context* context, const prove_spec& spec);
    ~start();
    // How long prove_start took, in nanoseconds.
    int64_t run(hw_proof_parts& parts);

private:
    struct state;
    std::unique_ptr<state> state_;
};

void prove(const library& lib, hw_context* context, const prove_spec& spec, report& to);

} // namespace bench
