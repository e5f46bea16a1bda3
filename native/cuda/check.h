// Checked calls of the CUDA runtime: an error becomes a failure that says what was called.
#pragma once

#include <string>

#include <cuda_runtime.h>

#include "core/failure.h"
#include "core/lane.h"

namespace highwater::cuda {

// Errors after which the driver refuses every further call on the device.
inline bool sticky(cudaError_t e) {
    switch (e) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorDevicesUnavailable:
        return true;
    default:
        return false;
    }
}

inline hw_status status_of(cudaError_t e) {
    if (sticky(e)) return HW_DEVICE_LOST;
    switch (e) {
    case cudaErrorMemoryAllocation:
        return HW_OUT_OF_DEVICE_MEMORY;
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorSystemDriverMismatch:
        return HW_NO_DRIVER;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorNoKernelImageForDevice:
        return HW_NO_DEVICE;
    default:
        return HW_DEVICE_ERROR;
    }
}

inline void check(cudaError_t e, const char* what) {
    if (e == cudaSuccess) return;
    (void)cudaGetLastError(); // a plain error is told once
    throw failure(status_of(e), std::string(what) + ": " + cudaGetErrorString(e));
}

inline cudaStream_t stream(rt::stream* s) { return reinterpret_cast<cudaStream_t>(s); }
inline cudaStream_t stream(const lane& on) { return stream(on.compute()); }

} // namespace highwater::cuda
