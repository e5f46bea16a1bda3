// The CUDA driver as the context sees it. rt::stream* is a cudaStream_t, rt::event* a cudaEvent_t.
#include "core/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/mman.h>

#include "cuda/check.h"
#include "cuda/nvml.h"
#include "ntt/tables.h"

namespace highwater::rt {

using namespace highwater::cuda;

namespace {

constexpr int least_major = 9; // the library holds code for compute capability 9.0
constexpr uint64_t huge_page = 2 << 20;

cudaEvent_t event_of(event* e) { return reinterpret_cast<cudaEvent_t>(e); }

// Loads all code when a context is made, not at a kernel's first launch, where it would stop the
// others.
void load_eagerly() { setenv("CUDA_MODULE_LOADING", "EAGER", 0); }

uint64_t huge_pages(uint64_t bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

} // namespace

const char* backend_name() { return "cuda"; }

std::string build_info() {
    int runtime = 0;
    (void)cudaRuntimeGetVersion(&runtime);
    return "highwater native, CUDA " + std::to_string(runtime / 1000) + "." +
           std::to_string(runtime % 1000 / 10) +
           ", sm_" HW_CUDA_ARCH_TEXT "; sppark " HW_SPPARK_VERSION ", blst " HW_BLST_VERSION
           "; host compiler " __VERSION__;
}

uint32_t device_count() {
    load_eagerly();
    int n = 0;
    cudaError_t e = cudaGetDeviceCount(&n);
    if (e == cudaErrorNoDevice) {
        (void)cudaGetLastError();
        return 0;
    }
    check(e, "count devices");
    return uint32_t(n);
}

void describe(int device, hw_device_info& out) {
    cudaDeviceProp p;
    check(cudaGetDeviceProperties(&p, device), "describe device");
    snprintf(out.name, sizeof out.name, "%.90s", p.name);
    const unsigned char* u = reinterpret_cast<const unsigned char*>(p.uuid.bytes);
    snprintf(out.uuid, sizeof out.uuid,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    out.total_bytes = p.totalGlobalMem;
    out.l2_bytes = uint64_t(p.l2CacheSize);
    out.compute_major = uint32_t(p.major);
    out.compute_minor = uint32_t(p.minor);
    out.multiprocessors = uint32_t(p.multiProcessorCount);
    int khz = 0, driver = 0, runtime = 0;
    if (cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, device) == cudaSuccess)
        out.clock_mhz = uint32_t(khz / 1000);
    check(cudaDriverGetVersion(&driver), "ask for the driver's version");
    check(cudaRuntimeGetVersion(&runtime), "ask for the runtime's version");
    out.driver_version = uint32_t(driver);
    out.runtime_version = uint32_t(runtime);
}

memory driver_memory(int device) {
    char bus[32];
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess) return {};
    return nvml_memory(bus);
}

void open(int device) {
    int major = 0;
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
          "ask for compute capability");
    if (major < least_major) {
        throw failure(HW_NO_DEVICE, "device " + std::to_string(device) +
                                        " has compute capability " + std::to_string(major) +
                                        ".x; this library needs 9.0");
    }
    use(device);
    check(cudaFree(nullptr), "create the device's context");
    ntt_tables::open(device);
}

void use(int device) { check(cudaSetDevice(device), "select device"); }

uint64_t free_bytes() {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "ask for free device memory");
    return free;
}

void* device_alloc(uint64_t bytes) {
    void* p = nullptr;
    cudaError_t e = cudaMalloc(&p, bytes);
    if (e == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        throw failure(HW_OUT_OF_DEVICE_MEMORY, "out of device memory: " + std::to_string(bytes) +
                                                   " bytes wanted, " +
                                                   std::to_string(free_bytes()) + " free");
    }
    check(e, "allocate device memory");
    return p;
}

void device_free(void* p) noexcept { (void)cudaFree(p); }

// mmap, huge pages, a first touch by all CPUs, then one registration: fifteen times faster than
// cudaHostAlloc (h200.md 2).
void* pinned_alloc(uint64_t bytes) {
    bytes = huge_pages(bytes);
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        throw failure(HW_OUT_OF_HOST_MEMORY, "map " + std::to_string(bytes) + " bytes to pin");
    (void)madvise(p, bytes, MADV_HUGEPAGE);
    const uint64_t pages = bytes / huge_page,
                   n = std::min<uint64_t>(pages, std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < n; t++) {
        threads.emplace_back([=] {
            char* from = static_cast<char*>(p) + pages * t / n * huge_page;
            memset(from, 0, (pages * (t + 1) / n - pages * t / n) * huge_page);
        });
    }
    for (std::thread& t : threads) t.join();
    cudaError_t e = cudaHostRegister(p, bytes, cudaHostRegisterPortable);
    if (e != cudaSuccess) munmap(p, bytes);
    check(e, "pin host memory");
    return p;
}

void pinned_free(void* p, uint64_t bytes) noexcept {
    (void)cudaHostUnregister(p);
    munmap(p, huge_pages(bytes));
}

void pin(void* p, uint64_t bytes) {
    check(cudaHostRegister(p, bytes, cudaHostRegisterPortable), "pin host memory");
}
void unpin(void* p) { check(cudaHostUnregister(p), "unpin host memory"); }

stream* make_stream() { return reinterpret_cast<stream*>(ntt_tables::make_stream()); }
void destroy(stream* s) noexcept {
    if (s) ntt_tables::destroy_stream(cuda::stream(s));
}

event* make_event() {
    cudaEvent_t e;
    check(cudaEventCreate(&e), "create event");
    return reinterpret_cast<event*>(e);
}
void destroy(event* e) noexcept {
    if (e) (void)cudaEventDestroy(event_of(e));
}

void record(event* e, stream* s) {
    check(cudaEventRecord(event_of(e), cuda::stream(s)), "record event");
}
void wait(stream* s, event* e) {
    check(cudaStreamWaitEvent(cuda::stream(s), event_of(e), 0), "wait for event");
}

int64_t elapsed_ns(event* from, event* to) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, event_of(from), event_of(to)), "read event");
    return int64_t(double(ms) * 1e6);
}

void h2d(stream* s, void* to, const void* from, uint64_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cuda::stream(s)),
          "copy to device");
}
void d2h(stream* s, void* to, const void* from, uint64_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, cuda::stream(s)),
          "copy from device");
}
void d2d(stream* s, void* to, const void* from, uint64_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda::stream(s)),
          "copy on device");
}
void zero(stream* s, void* to, uint64_t bytes) {
    check(cudaMemsetAsync(to, 0, bytes, cuda::stream(s)), "zero device memory");
}

void synchronise(stream* s) {
    check(cudaStreamSynchronize(cuda::stream(s)), "wait for the device");
}
void check_launch() { check(cudaGetLastError(), "launch kernel"); }

} // namespace highwater::rt
