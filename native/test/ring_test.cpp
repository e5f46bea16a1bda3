#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"
#include "core/names.h"
#include "core/ring.h"

using highwater::ring;

namespace {

hw_event event_of(uint64_t id, uint64_t arg) {
    hw_event e{};
    e.id = id;
    e.arg = arg;
    e.bytes = id * 31 + arg; // a check sum: a torn record would miss it
    return e;
}

hw_ring_info described(const ring& r) {
    hw_ring_info info{};
    r.describe(info);
    return info;
}

} // namespace

TEST(ring_gives_back_what_was_put_in) {
    ring r(8);
    hw_event out[8];
    for (uint64_t lap = 0; lap < 5; lap++) {
        for (uint64_t i = 0; i < 6; i++) CHECK(r.push(event_of(lap, i)));
        CHECK_EQUAL(r.read(out, 4), 4u);
        CHECK_EQUAL(r.read(out + 4, 4), 2u);
        for (uint64_t i = 0; i < 6; i++) {
            CHECK_EQUAL(out[i].seq, lap * 6 + i);
            CHECK_EQUAL(out[i].id, lap);
            CHECK_EQUAL(out[i].arg, i);
        }
    }
    CHECK_EQUAL(described(r).dropped, 0u);
}

TEST(ring_counts_what_it_drops) {
    ring r(4);
    for (uint64_t i = 0; i < 7; i++) CHECK_EQUAL(r.push(event_of(i, 0)), i < 4);
    CHECK_EQUAL(described(r).dropped, 3u);
    CHECK_EQUAL(described(r).waiting, 4u);
    hw_event out[8];
    CHECK_EQUAL(r.read(out, 8), 4u);
    CHECK(r.push(event_of(9, 0)));
    CHECK_EQUAL(r.read(out, 8), 1u);
    CHECK_EQUAL(out[0].id, 9u);
    CHECK_EQUAL(out[0].seq, 4u); // loss leaves no gap in the order
    r.lose(5);
    CHECK_EQUAL(described(r).dropped, 8u);
    CHECK_EQUAL(described(r).written, 5u);
}

// Four producers and a consumer: nothing torn, each producer's records in its order, and what was
// read and what was dropped are all there was.
TEST(ring_with_many_producers) {
    constexpr int producers = 4;
    constexpr uint64_t each = 20000;
    ring r(256);
    std::atomic<int> running{producers};
    std::atomic<uint64_t> accepted{0};
    std::vector<std::thread> threads;
    for (int p = 0; p < producers; p++) {
        threads.emplace_back([&, p] {
            for (uint64_t i = 0; i < each; i++) accepted += r.push(event_of(uint64_t(p), i));
            running--;
        });
    }
    uint64_t read = 0, next[producers] = {};
    bool torn = false, disordered = false;
    hw_event out[64];
    for (;;) {
        bool last = running == 0;
        size_t n = r.read(out, 64);
        for (size_t i = 0; i < n; i++) {
            const hw_event& e = out[i];
            torn |= e.id >= producers || e.bytes != e.id * 31 + e.arg || e.seq != read + i;
            if (torn) break;
            disordered |= e.arg < next[e.id];
            next[e.id] = e.arg + 1;
        }
        read += n;
        if (!n && last) break;
        if (!n) std::this_thread::yield();
    }
    for (std::thread& t : threads) t.join();
    CHECK(!torn);
    CHECK(!disordered);
    CHECK_EQUAL(read, accepted.load());
    CHECK_EQUAL(read + described(r).dropped, producers * each);
}

TEST(names_keep_their_numbers) {
    uint16_t a = highwater::name_number("a name"), b = highwater::name_number("another");
    CHECK(a != b);
    char copy[] = "a name"; // by text, not by address
    CHECK_EQUAL(highwater::name_number(copy), a);
    memcpy(copy, "b name", sizeof copy);
    CHECK(highwater::name_number(copy) != a);
    CHECK_EQUAL(std::string(highwater::name_text(a)), "a name");
    CHECK(highwater::name_text(0xffff) == nullptr);
}
