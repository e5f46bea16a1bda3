#include <map>
#include <vector>

#include "check.h"
#include "core/arena.h"

using highwater::arena;

namespace {

constexpr uint64_t kib = 1024;
char* const base = reinterpret_cast<char*>(uint64_t(1) << 40); // never dereferenced

uint64_t offset(void* p) { return uint64_t(static_cast<char*>(p) - base); }

} // namespace

TEST(arena_rounds_to_its_alignment) {
    arena a(base, 10 * kib, 256);
    void* p = a.alloc(1, arena::none);
    void* q = a.alloc(257, arena::none);
    CHECK_EQUAL(offset(p) % 256, 0u);
    CHECK_EQUAL(offset(q) % 256, 0u);
    CHECK_EQUAL(a.used(), 256u + 512u);
    CHECK_EQUAL(a.free(q, arena::none), 512u);
    CHECK_EQUAL(a.peak(), 768u);
}

TEST(arena_refuses_what_does_not_fit) {
    arena a(base, 4 * kib, 256);
    CHECK(!a.alloc(4 * kib + 1, arena::none));
    CHECK(!a.alloc(UINT64_MAX, arena::none));
    CHECK(a.alloc(4 * kib, arena::none));
    CHECK(!a.alloc(1, arena::none));
    CHECK_EQUAL(a.largest(arena::none), 0u);
}

TEST(arena_without_memory) {
    arena a(base, 0, 256);
    CHECK(!a.alloc(0, arena::none));
    CHECK_EQUAL(a.largest(arena::none), 0u);
}

TEST(arena_knows_its_blocks) {
    arena a(base, 4 * kib, 256);
    void* p = a.alloc(512, arena::none);
    CHECK_EQUAL(a.free(base + 256, arena::none), 0u);
    CHECK_EQUAL(a.free(p, arena::none), 512u);
    CHECK_EQUAL(a.free(p, arena::none), 0u);
    CHECK_EQUAL(a.used(), 0u);
}

TEST(arena_keeps_a_lanes_blocks_until_it_settles) {
    arena a(base, 4 * kib, 256);
    void* p = a.alloc(4 * kib, 0);
    a.free(p, 0);
    CHECK_EQUAL(a.largest(1), 0u);
    CHECK_EQUAL(a.largest(arena::none), 0u);
    CHECK(!a.alloc(256, 1));
    void* again = a.alloc(2 * kib, 0); // the lane itself may use it at once
    CHECK(again == p);
    CHECK_EQUAL(a.largest(0), 2 * kib);
    CHECK_EQUAL(a.largest(1), 0u);
    CHECK(!a.alloc(256, 1));
    a.settle(0);
    CHECK_EQUAL(a.largest(1), 2 * kib);
    a.free(again, 0);
    a.settle(1); // another lane's settling frees nothing of this one's
    CHECK_EQUAL(a.largest(1), 2 * kib);
    a.settle(0);
    CHECK_EQUAL(a.largest(1), 4 * kib);
}

TEST(arena_leaves_others_the_rest_of_what_a_lane_uses_again) {
    arena a(base, 8 * kib, 256);
    void* p = a.alloc(kib, 0);
    a.free(p, 0); // waits; the 7 KiB behind it are free
    void* q = a.alloc(2 * kib, 0);
    CHECK(q == p);
    CHECK_EQUAL(a.largest(1), 6 * kib);
    CHECK(a.alloc(6 * kib, 1));
}

// Random use by three lanes against a model: blocks never overlap, no lane gets another's unsettled
// memory, and in the end all is one block.
TEST(arena_random_use) {
    constexpr uint64_t bytes = 64 * kib;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        test::random_source r(seed);
        arena a(base, bytes, 256);
        struct held {
            void* p;
            uint64_t bytes;
            uint32_t lane;
        };
        std::vector<held> live;
        // By granule: which lane must settle it.
        std::vector<uint32_t> unsettled(bytes / 256, arena::none);
        uint64_t used = 0;
        for (int step = 0; step < 400; step++) {
            uint32_t lane = uint32_t(r.below(3));
            uint64_t what = r.below(8);
            if (what < 4) {
                uint64_t n = 1 + r.below(6 * kib), rounded = (n + 255) / 256 * 256;
                void* p = a.alloc(n, lane);
                if (!p) {
                    CHECK(a.largest(lane) < rounded);
                    continue;
                }
                for (const held& h : live) {
                    CHECK(offset(p) + rounded <= offset(h.p) || offset(h.p) + h.bytes <= offset(p));
                }
                for (uint64_t g = offset(p) / 256; g < (offset(p) + rounded) / 256; g++) {
                    CHECK(unsettled[g] == arena::none || unsettled[g] == lane);
                    unsettled[g] = arena::none;
                }
                live.push_back({p, rounded, lane});
                used += rounded;
            } else if (what < 7 && !live.empty()) {
                size_t i = r.below(live.size());
                held h = live[i];
                live.erase(live.begin() + long(i));
                CHECK_EQUAL(a.free(h.p, h.lane), h.bytes);
                used -= h.bytes;
                for (uint64_t g = offset(h.p) / 256; g < (offset(h.p) + h.bytes) / 256; g++)
                    unsettled[g] = h.lane;
            } else {
                a.settle(lane);
                for (uint32_t& u : unsettled) u = u == lane ? arena::none : u;
            }
            CHECK_EQUAL(a.used(), used);
        }
        for (const held& h : live) a.free(h.p, h.lane);
        for (uint32_t lane = 0; lane < 3; lane++) a.settle(lane);
        CHECK_EQUAL(a.used(), 0u);
        CHECK_EQUAL(a.largest(arena::none), bytes);
    }
}
