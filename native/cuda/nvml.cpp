#include "cuda/nvml.h"

#include <mutex>

#include <dlfcn.h>

namespace highwater::cuda {

namespace {

// Of nvml.h, version 2 of the interface; it has kept these since 2012.
using device_t = struct nvmlDevice_st*;
struct memory_t {
    unsigned long long total, free, used;
};

struct library {
    int (*init)() = nullptr;
    int (*by_bus)(const char*, device_t*) = nullptr;
    int (*memory)(device_t, memory_t*) = nullptr;
    bool usable = false;

    library() {
        void* so = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!so) return;
        load(so, "nvmlInit_v2", init);
        load(so, "nvmlDeviceGetHandleByPciBusId_v2", by_bus);
        load(so, "nvmlDeviceGetMemoryInfo", memory);
        usable = init && by_bus && memory && init() == 0;
    }
    template <class F> static void load(void* so, const char* name, F& f) {
        f = reinterpret_cast<F>(dlsym(so, name));
    }
};

} // namespace

rt::memory nvml_memory(const char* pci_bus_id) {
    static const library nvml; // loaded once, for the process's life
    device_t device;
    memory_t m;
    if (!nvml.usable || nvml.by_bus(pci_bus_id, &device) || nvml.memory(device, &m)) return {};
    return {true, m.used, m.total};
}

} // namespace highwater::cuda
