// A device library that is nothing but its interface, for the loader's tests: -DVERSION is what it says it
// implements, -DSTATUS what its calls end with, -DCOUNT how many devices it has, -DHOLLOW leaves all but the
// version out. The loader looks functions up by name, so those that no test calls need no types.
#include <stdint.h>

#ifndef VERSION
#define VERSION 1
#endif
#ifndef STATUS
#define STATUS 0
#endif
#ifndef COUNT
#define COUNT 1
#endif

uint32_t hw_abi_version(void) { return VERSION; }

#ifndef HOLLOW
const char *hw_backend(void) { return "fake"; }
const char *hw_build_info(void) { return "fake 1.0"; }
const char *hw_last_error(void) { return "as the test wants it"; }
const char *hw_name(uint16_t name) { return name == 1 ? "one" : 0; }
int32_t hw_device_count(uint32_t *count) { *count = COUNT; return STATUS; }

#define FAILS(name) \
    int32_t hw_##name(void) { return STATUS; }
FAILS(device_describe) FAILS(context_create) FAILS(context_destroy) FAILS(context_memory)
FAILS(context_reset_peaks) FAILS(clock_now_ns) FAILS(ring_read) FAILS(ring_describe) FAILS(host_alloc)
FAILS(host_free) FAILS(host_register) FAILS(host_unregister) FAILS(srs_load) FAILS(srs_setup)
FAILS(srs_device_bytes) FAILS(srs_destroy) FAILS(prove_start) FAILS(op_field) FAILS(op_point)
FAILS(op_ntt) FAILS(op_msm) FAILS(op_fixed_base) FAILS(op_quotient) FAILS(bench)
#endif
