#include "overhead.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "prove.h"

namespace bench {

namespace {

// A context with room for one start of a size.
class device_context {
public:
    device_context(const library& lib, const overhead_spec& spec, uint32_t flags) : lib_(lib) {
        hw_config c{};
        c.struct_bytes = sizeof c;
        c.device = spec.device;
        c.arena_bytes = std::max<uint64_t>(256 << 20, uint64_t(4096) << spec.log_size);
        c.pinned_pool_bytes = pool_for(spec.log_size);
        c.flags = flags;
        lib.must(lib.hw_context_create(&c, &handle_), "create context");
    }
    ~device_context() { lib_.hw_context_destroy(handle_); }
    device_context(const device_context&) = delete;
    device_context& operator=(const device_context&) = delete;
    operator hw_context*() const { return handle_; } // NOLINT

private:
    const library& lib_;
    hw_context* handle_ = nullptr;
};

// Reads the ring every millisecond, as the Go program does, which then also journals the events.
class reader {
public:
    reader(const library& lib, hw_context* context)
        : thread_([this, &lib, context] {
              while (!done_) {
                  read_ += lib.take_events(context).size();
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
              }
              read_ += lib.take_events(context).size();
          }) {}
    uint64_t stop() {
        done_ = true;
        if (thread_.joinable()) thread_.join();
        return read_;
    }
    ~reader() { stop(); }

private:
    std::atomic<bool> done_{false};
    uint64_t read_ = 0;
    std::thread thread_; // begins when all else is there
};

} // namespace

void overhead(const library& lib, const overhead_spec& spec, report& to) {
    const device_context on(lib, spec, 0), off(lib, spec, HW_CONFIG_NO_EVENTS);
    const prove_spec one{spec.log_size, false, true, true, 1, false};
    start recorded(lib, on, one), silent(lib, off, one);
    const std::string size = "/log=" + std::to_string(spec.log_size);
    result with{"Overhead/recording=on" + size, {}, {}},
        without{"Overhead/recording=off" + size, {}, {}};
    hw_proof_parts parts{};
    recorded.run(parts); // warm-ups
    silent.run(parts);
    lib.take_events(on);
    reader events(lib, on);
    for (uint32_t i = 0; i < spec.pairs; i++) {
        if (i % 2 == 0) with.ns.push_back(recorded.run(parts));
        without.ns.push_back(silent.run(parts));
        if (i % 2 == 1) with.ns.push_back(recorded.run(parts));
    }
    with.values.emplace_back("events", double(events.stop()));
    hw_ring_info ring{};
    ring.struct_bytes = sizeof ring;
    lib.must(lib.hw_ring_describe(on, &ring), "describe ring");
    with.values.emplace_back("dropped", double(ring.dropped));
    to.add(with);
    to.add(without);
}

} // namespace bench
