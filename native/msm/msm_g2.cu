#include "msm/driver.cuh"

#include "msm/msm.cuh"

namespace highwater::msm_detail {

void msm_g2(lane& on, const msm_input& in, void* out, hw_msm_stats* stats) {
    driver<g2>(on, in).run(out, stats);
}

} // namespace highwater::msm_detail
