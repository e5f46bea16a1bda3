#include "groth16/srs.h"

#include <cstring>
#include <vector>

#include "core/mathematics.h"
#include "groth16/generators.h"

namespace highwater {

namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw failure(HW_INVALID_ARGUMENT, "make key: " + what);
}

// The wires whose bit is clear, in order.
std::vector<uint32_t> present(const uint64_t* absent, uint64_t wires) {
    std::vector<uint32_t> at;
    for (uint64_t w = 0; w < wires; w++) {
        if (!(absent[w / 64] >> (w % 64) & 1)) at.push_back(uint32_t(w));
    }
    return at;
}

void check(const hw_srs_desc& d) {
    if (d.log_domain < 1 || d.log_domain > max_log_domain) refuse("log_domain is not in 1..26");
    if (d.wires == 0 || d.wires >> 32) refuse("wires is not in 1..2^32-1");
    if (d.public_wires > d.wires) refuse("more public wires than wires");
    if (d.a_points > d.wires || d.b_points > d.wires)
        refuse("a query has more points than there are wires");
    bool k = d.wires == d.public_wires || d.k, a = !d.a_points || d.a, b = !d.b_points || d.b_g1;
    if (!d.z || !k || !a || !b || !d.infinity_a || !d.infinity_b) refuse("a pointer is null");
}

uint64_t z_points(const hw_srs_desc& d) { return (uint64_t(1) << d.log_domain) - 1; }

// The queries of a key beside what a description says of them.
struct source {
    query* to;
    const void* from;
    uint32_t group;
    uint64_t points;
    void* host;
};
using sources = std::vector<source>;

sources sources_of(srs& s, const hw_srs_desc& d, const hw_srs_host* h) {
    hw_srs_host none{};
    if (!h) h = &none;
    sources all{{&s.z, d.z, HW_G1, z_points(d), h->z},
                {&s.k, d.k, HW_G1, d.wires - d.public_wires, h->k},
                {&s.a, d.a, HW_G1, d.a_points, h->a},
                {&s.b_g1, d.b_g1, HW_G1, d.b_points, h->b_g1}};
    if (d.b_g2) all.push_back({&s.b_g2, d.b_g2, HW_G2, d.b_points, h->b_g2});
    return all;
}

void allocate(context& of, const source& q) {
    q.to->group = q.group;
    q.to->points = q.points;
    q.to->data = resident(of, q.points * point_bytes(q.group), "d_srs");
}

} // namespace

srs::srs(context& of, const hw_srs_desc& d)
    : log_domain(d.log_domain), wires(d.wires), public_wires(d.public_wires), of_(&of) {}

void srs::load_wires(lane& on, const hw_srs_desc& d) {
    std::vector<uint32_t> a = present(d.infinity_a, d.wires), b = present(d.infinity_b, d.wires);
    if (a.size() != d.a_points || b.size() != d.b_points) {
        refuse("the masks leave " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
               " wires for " + std::to_string(d.a_points) + " points of A and " +
               std::to_string(d.b_points) + " of B");
    }
    wires_of_a = resident(*of_, a.size() * sizeof a[0], "d_srs");
    wires_of_b = resident(*of_, b.size() * sizeof b[0], "d_srs");
    on.h2d(on.copies(), wires_of_a.data(), a.data(), a.size() * sizeof a[0]);
    on.h2d(on.copies(), wires_of_b.data(), b.data(), b.size() * sizeof b[0]);
    on.sync();
}

std::unique_ptr<srs> srs::load(context& of, const hw_srs_desc& d) {
    check(d);
    std::unique_ptr<srs> s(new srs(of, d));
    call c(of, owner{});
    lane& on = c.on();
    s->load_wires(on, d);
    for (const source& q : sources_of(*s, d, nullptr)) {
        allocate(of, q);
        on.h2d(on.copies(), q.to->data.data(), q.from, q.points * point_bytes(q.group));
    }
    on.sync();
    return s;
}

std::unique_ptr<srs> srs::setup(context& of, const hw_srs_desc& d, const hw_srs_host* host) {
    check(d);
    std::unique_ptr<srs> s(new srs(of, d));
    call c(of, owner{});
    lane& on = c.on();
    s->load_wires(on, d);
    for (const source& q : sources_of(*s, d, host)) {
        allocate(of, q);
        on.begin_op("fixed base");
        on.attribute("points", q.points);
        auto scalars = on.alloc<char>(q.points * fr_bytes, "d_scratch");
        on.h2d(on.compute(), scalars, q.from, q.points * fr_bytes);
        fixed_base(on, q.group, generator(q.group), scalars, q.to->data.data(), q.points);
        if (q.host)
            on.d2h(on.compute(), q.host, q.to->data.data(), q.points * point_bytes(q.group));
        on.end_op();
        on.sync();
    }
    return s;
}

uint64_t srs::device_bytes() const {
    uint64_t bytes = wires_of_a.bytes() + wires_of_b.bytes();
    for (const query* q : {&z, &k, &a, &b_g1, &b_g2}) bytes += q->data.bytes();
    return bytes;
}

} // namespace highwater
