// The NTT: sppark's kernels and schedule on our streams and memory. Orders and scaling are
// gnark-crypto's: Gentleman-Sande takes natural order to bit-reversed, Cooley-Tukey back; the
// coset's shift is 7.
#include <cub/cub.cuh>

#include <map>
#include <memory>
#include <mutex>

#include "core/mathematics.h"
#include "cuda/check.h"
#include "curve/field.hpp"
using highwater::fr_t;
#include <ntt/ntt.cuh>
#include "ntt/tables.h"

namespace highwater::ntt_tables {

namespace {

struct device_t {
    std::unique_ptr<gpu_t> gpu;
    std::unique_ptr<NTTParameters> forward, inverse;
};

struct all_t {
    std::mutex lock;
    std::map<int, device_t> devices;
    std::map<cudaStream_t, std::unique_ptr<stream_t>> streams;
    std::vector<cudaDeviceProp> properties;

    all_t() {
        int n = 0;
        if (cudaGetDeviceCount(&n) != cudaSuccess) n = 0;
        properties.resize(size_t(n));
        for (int i = 0; i < n; i++) (void)cudaGetDeviceProperties(&properties[i], i);
    }
};

all_t& all() {
    static all_t* a = new all_t; // outlives every context; the driver frees with the process
    return *a;
}

// The device's entry; its gpu is made at first sight.
device_t& entry(int device) {
    device_t& d = all().devices[device];
    if (!d.gpu)
        d.gpu = std::make_unique<gpu_t>(device, device, all().properties.at(size_t(device)));
    return d;
}

} // namespace

void open(int device) {
    try {
        {
            std::lock_guard<std::mutex> hold(all().lock);
            if (all().devices[device].forward) return;
            entry(device);
        }
        auto forward = std::make_unique<NTTParameters>(false, device);
        auto inverse = std::make_unique<NTTParameters>(true, device);
        inverse->sync();
        std::lock_guard<std::mutex> hold(all().lock);
        device_t& d = all().devices[device];
        if (!d.forward) d.forward = std::move(forward), d.inverse = std::move(inverse);
    } catch (const cuda_error& e) {
        throw failure(cuda::status_of(cudaError_t(-e.code())), e.what());
    }
}

cudaStream_t make_stream() {
    int device = 0;
    cuda::check(cudaGetDevice(&device), "ask for the device");
    try {
        auto s = std::make_unique<stream_t>(device);
        cudaStream_t handle = *s;
        std::lock_guard<std::mutex> hold(all().lock);
        all().streams[handle] = std::move(s);
        return handle;
    } catch (const cuda_error& e) {
        throw failure(cuda::status_of(cudaError_t(-e.code())), e.what());
    }
}

void destroy_stream(cudaStream_t handle) noexcept {
    std::lock_guard<std::mutex> hold(all().lock);
    all().streams.erase(handle);
}

static stream_t& stream_of(const lane& on) {
    std::lock_guard<std::mutex> hold(all().lock);
    return *all().streams.at(cuda::stream(on));
}

static const NTTParameters& parameters(int device, bool inverse) {
    std::lock_guard<std::mutex> hold(all().lock);
    device_t& d = all().devices.at(device);
    return inverse ? *d.inverse : *d.forward;
}

} // namespace highwater::ntt_tables

// What sppark's headers ask of util/all_gpus.cpp, for the devices that were opened.
const gpu_t& select_gpu(int id) {
    using namespace highwater::ntt_tables;
    if (id < 0) CUDA_OK(cudaGetDevice(&id));
    CUDA_OK(cudaSetDevice(id));
    std::lock_guard<std::mutex> hold(all().lock);
    return *entry(id).gpu;
}

const cudaDeviceProp& gpu_props(int id) {
    return highwater::ntt_tables::all().properties.at(size_t(id));
}

size_t ngpus() { return highwater::ntt_tables::all().properties.size(); }

namespace highwater {

namespace {

using cuda::check;

class kernels : NTT {
public:
    kernels(fr_t* x, uint32_t lg, stream_t& on, bool inverse)
        : x_(x), lg_(lg), inverse_(inverse), on_(on),
          tables_(ntt_tables::parameters(on.id(), inverse)) {}

    void reverse_order() { bit_rev(x_, x_, lg_, on_); }

    // x[i] *= g^i, or g^-i for an inverse.
    void distribute(bool bit_reversed) {
        const uint64_t n = uint64_t(1) << lg_;
        const unsigned threads = unsigned(std::min<uint64_t>(n, 256));
        LDE_distribute_powers<<<unsigned(n / threads), threads, 0, on_>>>(
            x_, lg_, 0u, bit_reversed, tables_.partial_group_gen_powers);
        check(cudaGetLastError(), "launch coset shift");
    }

    // The steps are sppark's: up to three passes of at most 2^10 points each.
    void to_reversed() {
        GS_launcher step{x_, int(lg_), inverse_, tables_, on_};
        const int lg = int(lg_);
        if (lg <= 10) {
            step.step(lg);
        } else if (lg <= 18) {
            step.step(lg / 2);
            step.step(lg / 2 + lg % 2);
        } else {
            step.step(lg / 3 + lg % 3);
            step.step(lg / 3);
            step.step(lg / 3);
        }
    }

    void to_natural() {
        CT_launcher step{x_, int(lg_), inverse_, tables_, on_};
        const int lg = int(lg_);
        if (lg <= 10) {
            step.step(lg);
        } else if (lg <= 18) {
            step.step(lg / 2 + lg % 2);
            step.step(lg / 2);
        } else {
            step.step(lg / 3);
            step.step(lg / 3);
            step.step(lg / 3 + lg % 3);
        }
    }

private:
    fr_t* x_;
    const uint32_t lg_;
    const bool inverse_;
    stream_t& on_;
    const NTTParameters& tables_;
};

template <class F> void translated(F f) {
    try {
        f();
    } catch (const cuda_error& e) {
        throw failure(cuda::status_of(cudaError_t(-e.code())), e.what());
    }
}

} // namespace

void ntt(lane& on, void* d_inout, uint32_t lg, uint32_t order, uint32_t flags) {
    if (lg == 0) return; // one element is its own transform
    const bool inverse = flags & HW_NTT_INVERSE, coset = flags & HW_NTT_COSET;
    const bool from_reversed = order == HW_ORDER_RN || order == HW_ORDER_RR;
    const bool to_reversed = order == HW_ORDER_NR || order == HW_ORDER_RR;
    translated([&] {
        span timed(on, inverse ? "intt" : "ntt");
        kernels k(static_cast<fr_t*>(d_inout), lg, ntt_tables::stream_of(on), inverse);
        if (coset && !inverse) k.distribute(from_reversed);
        // Then the other kind of input is there.
        if (from_reversed == to_reversed) k.reverse_order();
        if (to_reversed) k.to_reversed();
        else k.to_natural();
        if (coset && inverse) k.distribute(to_reversed);
    });
}

bool sppark_ntt(lane& on, void* d_inout, uint32_t lg, uint32_t order, uint32_t flags) {
    const NTT::InputOutputOrder orders[] = {NTT::InputOutputOrder::NN, NTT::InputOutputOrder::NR,
                                            NTT::InputOutputOrder::RN, NTT::InputOutputOrder::RR};
    translated([&] {
        span timed(on, "sppark_ntt");
        NTT::Base_dev_ptr(ntt_tables::stream_of(on), static_cast<fr_t*>(d_inout), lg, orders[order],
                          flags & HW_NTT_INVERSE ? NTT::Direction::inverse
                                                 : NTT::Direction::forward,
                          flags & HW_NTT_COSET ? NTT::Type::coset : NTT::Type::standard);
    });
    return true;
}

} // namespace highwater
