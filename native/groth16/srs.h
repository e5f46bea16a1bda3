// A key on the device: the points of the queries, and which wires the A and B queries hold.
// Read-only once made, so that any number of calls may use it at once.
#pragma once

#include <cstdint>

#include "core/context.h"

namespace highwater {

constexpr uint32_t max_log_domain = 26;
constexpr uint64_t fr_bytes = 32, g1_bytes = 96, g2_bytes = 192;

inline uint64_t point_bytes(uint32_t group) { return group == HW_G2 ? g2_bytes : g1_bytes; }

// Device memory that lives as long as the key.
class resident {
public:
    resident() = default;
    resident(context& of, uint64_t bytes, const char* cls) : of_(&of), bytes_(bytes) {
        data_ = of.alloc_resident(bytes, cls);
    }
    resident(resident&& other) noexcept { *this = std::move(other); }
    resident& operator=(resident&& other) noexcept {
        std::swap(of_, other.of_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~resident() {
        if (of_) of_->free_resident(data_);
    }
    void* data() const { return data_; }
    uint64_t bytes() const { return bytes_; }

private:
    context* of_ = nullptr;
    void* data_ = nullptr;
    uint64_t bytes_ = 0;
};

// One query: its points, and for A and B the wires they belong to (in their order).
struct query {
    uint32_t group = HW_G1;
    uint64_t points = 0;
    resident data;
};

class srs {
public:
    // Copies the key's points to the device.
    static std::unique_ptr<srs> load(context& of, const hw_srs_desc& desc);
    // Computes them there from their logarithms; host may be null, as may its fields.
    static std::unique_ptr<srs> setup(context& of, const hw_srs_desc& scalars,
                                      const hw_srs_host* host);

    context& of() const { return *of_; }
    uint64_t device_bytes() const;
    bool has_b_g2() const { return b_g2.data.data() != nullptr; }

    uint32_t log_domain = 0;
    uint64_t wires = 0, public_wires = 0;
    query z, k, a, b_g1, b_g2;
    resident wires_of_a, wires_of_b; // uint32 a point

private:
    srs(context& of, const hw_srs_desc& desc);
    void load_wires(lane& on, const hw_srs_desc& desc);

    context* of_;
};

} // namespace highwater
