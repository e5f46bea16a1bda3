#include "msm/driver.cuh"

#include "msm/msm.cuh"

namespace highwater::msm_detail {

void msm_g1(lane& on, const msm_input& in, void* out, hw_msm_stats* stats) {
    driver<g1>(on, in).run(out, stats);
}

} // namespace highwater::msm_detail
