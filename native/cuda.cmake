# The CUDA library. nvcc compiles each .cu on its own (no relocatable device code), so that they build side by
# side; the runtime is static: a host needs the driver alone.
set(CMAKE_CUDA_ARCHITECTURES ${HW_CUDA_ARCH})
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(HW_CUDA_FLAGS "-O3" CACHE STRING "nvcc's flags of optimisation")
separate_arguments(cuda_flags UNIX_COMMAND "${HW_CUDA_FLAGS}")

get_filename_component(toolkit ${CMAKE_CUDA_COMPILER} DIRECTORY)
get_filename_component(toolkit ${toolkit} DIRECTORY)
find_path(cuda_include cuda_runtime.h HINTS ${toolkit}/include ${toolkit}/targets/x86_64-linux/include REQUIRED NO_DEFAULT_PATH)
find_path(cccl_include cub/cub.cuh HINTS ${cuda_include}/cccl ${cuda_include} REQUIRED NO_DEFAULT_PATH)

file(GLOB cuda_sources CONFIGURE_DEPENDS cuda/*.cu ntt/*.cu field/*.cu msm/*.cu setup/*.cu)
file(GLOB cuda_host_sources CONFIGURE_DEPENDS cuda/*.cpp msm/*.cpp setup/*.cpp)
option(HW_SPPARK_MSM "Compile sppark's own MSM, for benchmarks" ON)
list(APPEND cuda_sources $<IF:$<BOOL:${HW_SPPARK_MSM}>,sppark/msm.cu,sppark/none.cpp>)
add_library(device OBJECT ${cuda_sources} ${cuda_host_sources})
target_link_libraries(device PUBLIC settings)
target_include_directories(device SYSTEM PRIVATE ${cccl_include})
target_include_directories(device SYSTEM PRIVATE ${cuda_include})
target_compile_options(device PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${cuda_flags}
  -Xcompiler=-fvisibility=hidden,-Wno-subobject-linkage --diag-suppress=20012,20208 --expt-relaxed-constexpr>)

add_library(highwater_native SHARED $<TARGET_OBJECTS:blst>)
target_link_libraries(highwater_native PRIVATE shared device ${CMAKE_DL_LIBS})
set_target_properties(highwater_native PROPERTIES LINKER_LANGUAGE CUDA)
target_link_options(highwater_native PRIVATE -s)
target_link_options(highwater_native PRIVATE ${link_options})

# The tests that ask the C interface alone: run where there is a device.
if(HW_TESTS)
  file(GLOB device_tests CONFIGURE_DEPENDS test/*.cpp)
  list(FILTER device_tests EXCLUDE REGEX "/(arena|ring|msm)_test.cpp$")
  add_executable(highwater_native_device_test ${device_tests} $<TARGET_OBJECTS:blst>)
  target_link_libraries(highwater_native_device_test PRIVATE settings highwater_native)
  target_compile_definitions(highwater_native_device_test PRIVATE HW_TEST_BACKEND="cuda")
  set_target_properties(highwater_native_device_test PROPERTIES BUILD_RPATH "$ORIGIN" LINKER_LANGUAGE CXX)
  target_link_options(highwater_native_device_test PRIVATE -static-libstdc++ -static-libgcc)
endif()
