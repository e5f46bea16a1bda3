#include <map>
#include <set>
#include <thread>
#include <unordered_map>

#include "fixture.h"

using test::config;
using test::mib;

namespace {

std::string last_error() { return hw_last_error(); }

uint64_t driver_used() {
    test::context probe(config(2 * mib));
    return probe.memory().driver_base_bytes;
}

// A small NTT: uses a lane, device memory and copies.
hw_status some_work(hw_context* c, uint32_t lg = 6) {
    std::vector<uint64_t> x(size_t(4) << lg);
    return hw_op_ntt(c, x.data(), lg, HW_ORDER_NR, 0);
}

} // namespace

TEST(library_says_what_it_is) {
    CHECK_EQUAL(hw_abi_version(), HW_ABI_VERSION);
    CHECK_EQUAL(std::string(hw_backend()), HW_TEST_BACKEND);
    CHECK(std::string(hw_build_info()).find("blst 0.3.17") != std::string::npos);
    CHECK_EQUAL(std::string(hw_status_name(HW_OUT_OF_DEVICE_MEMORY)), "out of device memory");
    CHECK_EQUAL(std::string(hw_status_name(-1)), "unknown status");
    CHECK_EQUAL(std::string(hw_status_name(99)), "unknown status");
}

TEST(devices_are_described) {
    uint32_t n = 0;
    CHECK_OK(hw_device_count(&n));
    CHECK(n >= 1);
    hw_device_info info{};
    CHECK_EQUAL(hw_device_describe(0, &info), HW_INVALID_ARGUMENT); // struct_bytes unset
    info.struct_bytes = sizeof info;
    CHECK_OK(hw_device_describe(0, &info));
    CHECK(info.total_bytes > 0);
    CHECK_EQUAL(hw_device_describe(int32_t(n), &info), HW_INVALID_ARGUMENT);
}

TEST(context_refuses_bad_settings) {
    struct {
        const char* name;
        void (*spoil)(hw_config&);
        hw_status want;
    } cases[] = {
        {"device", [](hw_config& c) { c.device = 99; }, HW_NO_DEVICE},
        {"negative device", [](hw_config& c) { c.device = -1; }, HW_NO_DEVICE},
        {"ring", [](hw_config& c) { c.ring_records = 1000; }, HW_INVALID_ARGUMENT},
        {"lanes", [](hw_config& c) { c.lanes = 1000; }, HW_INVALID_ARGUMENT},
        {"struct_bytes", [](hw_config& c) { c.struct_bytes = 0; }, HW_INVALID_ARGUMENT},
        {"arena", [](hw_config& c) { c.arena_bytes = uint64_t(1) << 60; }, HW_OUT_OF_DEVICE_MEMORY},
    };
    const uint64_t before = driver_used();
    for (auto& x : cases) {
        hw_config c = config();
        x.spoil(c);
        hw_context* context = nullptr;
        CHECK_EQUAL(hw_context_create(&c, &context), x.want);
        CHECK(!context);
        CHECK(!last_error().empty());
        CHECK(driver_used() <= before + mib); // nothing is left behind
    }
    CHECK_EQUAL(hw_context_create(nullptr, nullptr), HW_INVALID_ARGUMENT);
}

TEST(older_callers_structs_are_shorter) {
    hw_config c = config();
    c.fault_device_bytes = 1; // beyond what this caller knows
    c.struct_bytes = offsetof(hw_config, fault_device_bytes);
    test::context context(c);
    hw_memory_info info{};
    info.struct_bytes = offsetof(hw_memory_info, arena_bytes);
    info.arena_bytes = 12345;
    CHECK_OK(hw_context_memory(context, &info));
    CHECK(info.driver_total_bytes > 0);
    CHECK_EQUAL(info.arena_bytes, 12345u); // not written
}

TEST(too_little_device_memory_names_the_sizes) {
    hw_config c = config(64 * mib);
    c.fault_device_bytes = 10 * mib;
    hw_context* context = nullptr;
    CHECK_EQUAL(hw_context_create(&c, &context), HW_OUT_OF_DEVICE_MEMORY);
    CHECK(last_error().find(std::to_string(64 * mib)) != std::string::npos);
    CHECK(last_error().find(std::to_string(10 * mib)) != std::string::npos);
}

// What the driver says was taken is what the ledger holds: context + arena, before and after work.
TEST(ledger_equals_the_driver) {
    test::context context;
    for (int i = 0; i < 3; i++) {
        hw_memory_info m = context.memory();
        CHECK_EQUAL(m.driver_known, 1u);
        const uint64_t driver = m.driver_used_bytes - m.driver_base_bytes,
                       ledger = m.context_bytes + m.arena_bytes;
        CHECK(driver <= ledger + ledger / 50 && ledger <= driver + driver / 50); // within 2 %
        CHECK_EQUAL(m.arena_used_bytes, 0u);
        CHECK_OK(some_work(context));
    }
    CHECK(context.memory().arena_peak_bytes > 0);
    CHECK_OK(hw_context_reset_peaks(context));
    CHECK_EQUAL(context.memory().arena_peak_bytes, 0u);
}

TEST(work_that_does_not_fit_fails_alone) {
    test::context context(config(2 * mib));
    CHECK_EQUAL(some_work(context, 20), HW_OUT_OF_DEVICE_MEMORY); // wants 32 MiB
    CHECK(last_error().find("wanted") != std::string::npos);
    CHECK(last_error().find("largest block") != std::string::npos);
    CHECK_EQUAL(context.memory().arena_used_bytes, 0u);
    CHECK_OK(some_work(context));
}

TEST(separate_blocks_are_accounted_for_in_the_arena) {
    const uint64_t before = driver_used();
    {
        hw_config c = config(2 * mib);
        c.flags = HW_CONFIG_SEPARATE_BLOCKS;
        test::context context(c);
        CHECK_OK(some_work(context));
        CHECK(context.memory().arena_peak_bytes > 0);
        CHECK_EQUAL(some_work(context, 20), HW_OUT_OF_DEVICE_MEMORY);
        CHECK_EQUAL(context.memory().arena_used_bytes, 0u);
    }
    CHECK(driver_used() <= before + mib); // the blocks went with their owners
}

// Each device operation in turn fails: the call says so, holds nothing, and the next one works.
TEST(injected_faults_fail_one_call) {
    for (uint64_t n = 1; n <= 3; n++) {
        hw_config c = config(4 * mib);
        c.fault_operation = n;
        test::context context(c);
        CHECK_EQUAL(some_work(context), HW_DEVICE_ERROR);
        CHECK(last_error().find("injected fault") != std::string::npos);
        CHECK_EQUAL(context.memory().arena_used_bytes, 0u);
        CHECK_OK(some_work(context));
        int open = 0;
        for (const hw_event& e : context.events()) {
            open += e.kind == HW_EVENT_OP_BEGIN || e.kind == HW_EVENT_KERNEL_BEGIN;
            open -= e.kind == HW_EVENT_OP_END || e.kind == HW_EVENT_KERNEL_END;
        }
        CHECK_EQUAL(open, 0); // what the fault cut short was ended
    }
}

TEST(null_pointers_are_refused) {
    size_t n;
    hw_event e;
    CHECK_EQUAL(hw_ring_read(nullptr, &e, 1, &n), HW_INVALID_ARGUMENT);
    CHECK_EQUAL(hw_op_ntt(nullptr, nullptr, 1, 0, 0), HW_INVALID_ARGUMENT);
    CHECK_EQUAL(hw_prove_start(nullptr, nullptr, nullptr, nullptr), HW_INVALID_ARGUMENT);
    CHECK_EQUAL(hw_srs_load(nullptr, nullptr, nullptr), HW_INVALID_ARGUMENT);
    CHECK_EQUAL(hw_host_free(nullptr, nullptr), HW_INVALID_ARGUMENT);
    hw_context_destroy(nullptr);
    hw_srs_destroy(nullptr);
    test::context context(config(2 * mib));
    CHECK_EQUAL(hw_op_ntt(context, nullptr, 1, 0, 0), HW_INVALID_ARGUMENT);
    CHECK_EQUAL(hw_op_msm(context, HW_G1, nullptr, nullptr, 1, nullptr, &e, nullptr),
                HW_INVALID_ARGUMENT);
    CHECK_EQUAL(hw_op_msm(context, 7, nullptr, nullptr, 0, nullptr, &e, nullptr),
                HW_INVALID_ARGUMENT);
    CHECK_EQUAL(hw_op_field(context, HW_FIELD_FP2, HW_FIELD_TO_MONT, &e, &e, &e, 1),
                HW_INVALID_ARGUMENT);
    CHECK(!last_error().empty());
    CHECK_OK(some_work(context));
    CHECK(last_error().empty()); // a success clears the message
}

TEST(pinned_pool) {
    test::context context;
    std::vector<void*> blocks;
    uint64_t id = 0;
    void* p = nullptr;
    hw_status status;
    while ((status = hw_host_alloc(context, 100000, "a", 3, 1, &p, &id)) == HW_OK)
        blocks.push_back(p);
    CHECK_EQUAL(status, HW_OUT_OF_PINNED_MEMORY);
    CHECK(last_error().find("pool of 1048576 bytes") != std::string::npos);
    CHECK_EQUAL(blocks.size(), mib / 102400);
    CHECK_EQUAL(context.memory().pool_used_bytes, blocks.size() * 102400);
    for (void* b : blocks) CHECK_OK(hw_host_free(context, b));
    CHECK_EQUAL(hw_host_free(context, blocks[0]), HW_INVALID_ARGUMENT);
    CHECK_EQUAL(context.memory().pool_used_bytes, 0u);
    CHECK_OK(hw_host_alloc(context, mib, "a", -1, -1, &p, nullptr)); // in one piece again
    CHECK_OK(hw_host_free(context, p));
}

TEST(registered_memory) {
    test::context context;
    std::vector<char> memory(10000);
    uint64_t id = 0;
    CHECK_OK(hw_host_register(context, memory.data(), memory.size(), "aux", 2, 0, &id));
    CHECK_EQUAL(context.memory().registered_bytes, memory.size());
    CHECK_EQUAL(hw_host_register(context, memory.data(), 1, "aux", 2, 0, nullptr),
                HW_INVALID_ARGUMENT);
    CHECK_OK(hw_host_unregister(context, memory.data()));
    CHECK_EQUAL(hw_host_unregister(context, memory.data()), HW_INVALID_ARGUMENT);
    std::vector<uint16_t> kinds;
    for (const hw_event& e : context.events()) {
        if (e.id != id) continue;
        kinds.push_back(e.kind);
        CHECK_EQUAL(std::string(hw_name(e.name)), "aux");
        CHECK_EQUAL(e.bytes, memory.size());
        CHECK_EQUAL(e.job, 2);
        CHECK_EQUAL(e.device, -1);
    }
    CHECK(kinds == std::vector<uint16_t>({HW_EVENT_PIN, HW_EVENT_UNPIN}));
}

TEST(recording_off_writes_nothing) {
    hw_config c = config();
    c.flags = HW_CONFIG_NO_EVENTS;
    test::context context(c);
    CHECK_OK(some_work(context));
    CHECK(context.events().empty());
}

TEST(full_ring_drops_and_goes_on) {
    hw_config c = config();
    c.ring_records = 16;
    test::context context(c);
    for (int i = 0; i < 4; i++) CHECK_OK(some_work(context));
    hw_ring_info info{};
    info.struct_bytes = sizeof info;
    CHECK_OK(hw_ring_describe(context, &info));
    CHECK_EQUAL(info.waiting, 16u);
    CHECK(info.dropped > 0);
    CHECK_EQUAL(context.events().size(), 16u);
}

namespace {

// What must hold of any context's events, read in the ring's order.
void check_events(const std::vector<hw_event>& events, uint32_t lanes) {
    std::unordered_map<uint64_t, hw_event> buffers, spans, ops;
    std::unordered_map<uint64_t, int> locks; // 1 waits, 2 holds
    uint32_t held = 0;
    uint64_t seq = events.empty() ? 0 : events[0].seq;
    for (const hw_event& e : events) {
        CHECK_EQUAL(e.seq, seq++);
        CHECK(e.time_ns > 0);
        switch (e.kind) {
        case HW_EVENT_ALLOC:
            CHECK(buffers.emplace(e.id, e).second);
            CHECK(e.bytes > 0);
            break;
        case HW_EVENT_FREE:
            CHECK_EQUAL(buffers.at(e.id).bytes, e.bytes);
            CHECK(buffers.at(e.id).time_ns <= e.time_ns);
            buffers.erase(e.id);
            break;
        case HW_EVENT_OP_BEGIN:
            CHECK(ops.emplace(e.id, e).second);
            break;
        case HW_EVENT_OP_END:
            CHECK(ops.at(e.id).time_ns <= e.time_ns);
            ops.erase(e.id);
            break;
        case HW_EVENT_ATTRIBUTE:
            CHECK(ops.count(e.id));
            break;
        case HW_EVENT_KERNEL_BEGIN:
        case HW_EVENT_COPY_BEGIN:
            CHECK(spans.emplace(e.id, e).second);
            if (e.arg) CHECK(ops.count(e.arg)); // its operation has begun
            break;
        case HW_EVENT_KERNEL_END:
        case HW_EVENT_COPY_END:
            CHECK(spans.at(e.id).time_ns <= e.time_ns);
            CHECK_EQUAL(spans.at(e.id).kind + 1, e.kind);
            CHECK_EQUAL(spans.at(e.id).bytes, e.bytes);
            spans.erase(e.id);
            break;
        case HW_EVENT_LOCK_WAIT:
            CHECK(locks.emplace(e.id, 1).second);
            break;
        case HW_EVENT_LOCK_ACQUIRE:
            CHECK_EQUAL(locks.at(e.id)++, 1);
            CHECK(++held <= lanes);
            break;
        case HW_EVENT_LOCK_RELEASE:
            CHECK_EQUAL(locks.at(e.id), 2);
            locks.erase(e.id);
            held--;
            break;
        default:
            CHECK(false);
        }
    }
    CHECK(spans.empty());
    CHECK(ops.empty());
    CHECK(locks.empty());
    // Only what belongs to the context lives on.
    for (auto& [id, e] : buffers) {
        std::string name = hw_name(e.name);
        CHECK(name == "context" || name == "d_arena" || name == "pinned_pool" ||
              name == "pinned_staging");
    }
}

} // namespace

// Many threads on two lanes: events stay whole, the arena comes back whole.
TEST(many_threads_share_the_lanes) {
    hw_config c = config();
    c.lanes = 2;
    test::context context(c);
    std::vector<std::thread> threads;
    std::vector<hw_status> statuses(6, HW_INTERNAL);
    for (size_t t = 0; t < statuses.size(); t++) {
        threads.emplace_back([&, t] {
            hw_status worst = HW_OK;
            for (int i = 0; i < 10; i++) {
                hw_status s = some_work(context, 4 + uint32_t(t));
                if (s != HW_OK) worst = s;
            }
            statuses[t] = worst;
        });
    }
    for (std::thread& t : threads) t.join();
    for (hw_status s : statuses) CHECK_EQUAL(s, HW_OK);
    check_events(context.events(), 2);
    hw_memory_info m = context.memory();
    CHECK_EQUAL(m.arena_used_bytes, 0u);
    CHECK_EQUAL(m.arena_largest_free_bytes, m.arena_bytes);
    CHECK(m.clock_error_ns >= 0);
}
