// What recording costs a start: the same start on two contexts of one device, one that records and
// one that does not, turn by turn.
#pragma once

#include "library.h"
#include "report.h"

namespace bench {

struct overhead_spec {
    int device;
    uint32_t log_size;
    uint32_t pairs;
};

// Adds Overhead/recording=on and =off, whose repeats with the same number are a pair.
void overhead(const library& lib, const overhead_spec& spec, report& to);

} // namespace bench
