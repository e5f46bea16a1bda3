// The end of an MSM, on the host: sums with the power of two that each is to be taken times.
#pragma once

#include <vector>

#include "curve/group.hpp"

namespace highwater::msm_detail {

template <class G> class combiner {
    using jacobian = jacobian_t<field_of<G>>;
    std::vector<typename G::xyzz> outputs_; // infinity where nothing was put
    int used_ = 0;

public:
    explicit combiner(int size) : outputs_(size) { reset(); }
    void reset() {
        xyzz_of<G> none;
        none.inf();
        for (auto& o : outputs_) {
            o = {};
            store_xyzz<G>(o, none);
        }
        used_ = 0;
    }
    void put(int p, const typename G::xyzz& output) {
        outputs_[p] = output;
        used_ = std::max(used_, p + 1);
    }
    // Adds the sum of 2^p output p.
    void add_to(jacobian& total) const {
        jacobian sum;
        memset(static_cast<void*>(&sum), 0, sizeof sum);
        for (int p = used_; p-- > 0;) {
            sum.dbl();
            xyzz_of<G> output = load_xyzz<G>(outputs_[p]);
            if (!output.is_inf()) sum.add(jacobian(output));
        }
        total.add(sum);
    }
};

} // namespace highwater::msm_detail
