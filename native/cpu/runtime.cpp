// The twin's driver: two devices whose memory is host memory. Work is done when it is enqueued, so
// that streams hold nothing and events are times.
#include "core/runtime.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

#include <sys/mman.h>

#include "core/ring.h"

namespace highwater::rt {

struct stream {
    void* memory; // a stream takes device memory, as the driver's do
};
struct event {
    int64_t ns = 0;
};

namespace {

constexpr int devices = 2;
// Address space: pages come when they are touched.
constexpr uint64_t device_bytes = uint64_t(4) << 30;
constexpr uint64_t context_bytes = uint64_t(1) << 20; // what opening a device takes, once
constexpr uint64_t stream_bytes = uint64_t(64) << 10;

struct device_t {
    std::atomic<uint64_t> used{0};
    void* context = nullptr;
};

struct driver {
    device_t device[devices];
    std::mutex lock;
    struct block {
        uint64_t bytes;
        int device;
    };
    std::unordered_map<void*, block> blocks;
};

driver& the() {
    static driver* d = new driver; // outlives every context
    return *d;
}

thread_local int current = 0;

void* map(uint64_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    return p;
}

} // namespace

const char* backend_name() { return "cpu"; }

std::string build_info() {
    return "highwater native, twin on the CPU; sppark " HW_SPPARK_VERSION ", blst " HW_BLST_VERSION
           "; compiler " __VERSION__;
}

uint32_t device_count() { return devices; }

void describe(int device, hw_device_info& out) {
    snprintf(out.name, sizeof out.name, "CPU twin %d", device);
    out.total_bytes = device_bytes;
    out.multiprocessors = 1;
}

memory driver_memory(int device) { return {true, the().device[device].used.load(), device_bytes}; }

void open(int device) {
    use(device);
    driver& d = the();
    {
        std::lock_guard<std::mutex> hold(d.lock);
        if (d.device[device].context) return;
    }
    void* taken = device_alloc(context_bytes);
    std::lock_guard<std::mutex> hold(d.lock);
    d.device[device].context = taken;
}

void use(int device) { current = device; }

uint64_t free_bytes() { return device_bytes - the().device[current].used.load(); }

void* device_alloc(uint64_t bytes) {
    driver& d = the();
    std::lock_guard<std::mutex> hold(d.lock);
    if (bytes > free_bytes()) {
        throw failure(HW_OUT_OF_DEVICE_MEMORY, "out of device memory: " + std::to_string(bytes) +
                                                   " bytes wanted, " +
                                                   std::to_string(free_bytes()) + " free");
    }
    void* p = map(bytes);
    d.blocks[p] = {bytes, current};
    d.device[current].used += bytes;
    return p;
}

void device_free(void* p) noexcept {
    driver& d = the();
    std::lock_guard<std::mutex> hold(d.lock);
    auto it = d.blocks.find(p);
    if (it == d.blocks.end()) return;
    munmap(p, it->second.bytes);
    d.device[it->second.device].used -= it->second.bytes;
    d.blocks.erase(it);
}

void* pinned_alloc(uint64_t bytes) { return map(bytes); }
void pinned_free(void* p, uint64_t bytes) noexcept { munmap(p, bytes); }
void pin(void*, uint64_t) {}
void unpin(void*) {}

stream* make_stream() { return new stream{device_alloc(stream_bytes)}; }
void destroy(stream* s) noexcept {
    if (s) device_free(s->memory);
    delete s;
}
event* make_event() { return new event; }
void destroy(event* e) noexcept { delete e; }

void record(event* e, stream*) { e->ns = clock_ns(); }
void wait(stream*, event*) {}
int64_t elapsed_ns(event* from, event* to) { return to->ns - from->ns; }

void h2d(stream*, void* to, const void* from, uint64_t bytes) { memcpy(to, from, bytes); }
void d2h(stream*, void* to, const void* from, uint64_t bytes) { memcpy(to, from, bytes); }
void d2d(stream*, void* to, const void* from, uint64_t bytes) { memmove(to, from, bytes); }
void zero(stream*, void* to, uint64_t bytes) { memset(to, 0, bytes); }

void synchronise(stream*) {}
void check_launch() {}

} // namespace highwater::rt
