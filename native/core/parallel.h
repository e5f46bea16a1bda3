// Host loops on all CPUs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace highwater {

// Runs f(begin, end, part) on even parts of 0 .. n, one a CPU; f must not throw. Returns the parts.
template <class F> unsigned parallel(uint64_t n, F f) {
    constexpr uint64_t least = 1 << 12; // below this a thread costs more than it does
    const uint64_t cpus = std::max(1u, std::thread::hardware_concurrency());
    const unsigned parts = unsigned(std::clamp<uint64_t>(n / least, 1, cpus));
    std::vector<std::thread> threads;
    for (unsigned part = 1; part < parts; part++) {
        threads.emplace_back([=] { f(n * part / parts, n * (part + 1) / parts, part); });
    }
    f(0, n / parts, 0u);
    for (std::thread& t : threads) t.join();
    return parts;
}
inline unsigned most_parts() { return std::max(1u, std::thread::hardware_concurrency()); }

} // namespace highwater
