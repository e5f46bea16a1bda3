// The driver's figures of a device's memory, from NVML where it is there. Unlike cudaMemGetInfo it
// needs no context, so that what a context takes can be measured.
#pragma once

#include "core/runtime.h"

namespace highwater::cuda {

// pci_bus_id as cudaDeviceGetPCIBusId writes it.
rt::memory nvml_memory(const char* pci_bus_id);

} // namespace highwater::cuda
