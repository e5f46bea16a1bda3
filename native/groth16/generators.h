#pragma once

#include <cstdint>

namespace highwater {

// The group's generator, affine, as in the standard (and in gnark-crypto and blst).
const void* generator(uint32_t group);

} // namespace highwater
