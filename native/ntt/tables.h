// sppark's tables and streams, one set a device: made when a device is opened, immutable from then
// on, gone with the process. sppark's own util/all_gpus.cpp would make them on every device it
// sees.
#pragma once

#include <cuda_runtime.h>

namespace highwater::ntt_tables {

// The current device must be `device`.
void open(int device);
// A stream of the current device, of sppark's class, for its launchers.
cudaStream_t make_stream();
void destroy_stream(cudaStream_t s) noexcept;

} // namespace highwater::ntt_tables
