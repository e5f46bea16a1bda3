// The device's driver, as the context needs it: implemented by native/cuda/runtime.cu over CUDA,
// and by native/cpu/runtime.cpp over host memory. Everything throws failure.
#pragma once

#include <cstdint>
#include <string>

#include "core/failure.h"

namespace highwater::rt {

struct stream;
struct event;

const char* backend_name();
std::string build_info();

uint32_t device_count();
void describe(int device, hw_device_info& out);

// What the driver says of the device's memory, all processes together. It needs no context.
struct memory {
    bool known;
    uint64_t used, total;
};
memory driver_memory(int device);

// Makes the device's context, loads the code, builds the NTT's tables; once a process and device,
// more calls count. close undoes nothing that another open holds; the driver's context stays.
void open(int device);
// Makes the device current for this thread.
void use(int device);
// Bytes that device_alloc could give now.
uint64_t free_bytes();

void* device_alloc(uint64_t bytes);
void device_free(void* p) noexcept;

// Pinned host memory: huge pages, touched by several threads, then pinned at once; zeroed.
void* pinned_alloc(uint64_t bytes);
void pinned_free(void* p, uint64_t bytes) noexcept;
void pin(void* p, uint64_t bytes);
void unpin(void* p);

stream* make_stream();
void destroy(stream* s) noexcept;
event* make_event();
void destroy(event* e) noexcept;

void record(event* e, stream* s);
void wait(stream* s, event* e);
// Of two events that have happened.
int64_t elapsed_ns(event* from, event* to);

void h2d(stream* s, void* to, const void* from, uint64_t bytes);
void d2h(stream* s, void* to, const void* from, uint64_t bytes);
void d2d(stream* s, void* to, const void* from, uint64_t bytes);
void zero(stream* s, void* to, uint64_t bytes);

// Waits for the stream's work; throws what it failed with.
void synchronise(stream* s);
// Throws what the last launches failed with.
void check_launch();

} // namespace highwater::rt
