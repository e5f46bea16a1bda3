// Times one operation on inputs that live on the device, and checks its result.
#pragma once

#include "core/context.h"

namespace highwater {

void bench(context& of, const hw_bench_spec& spec, hw_bench_result& out);

} // namespace highwater
