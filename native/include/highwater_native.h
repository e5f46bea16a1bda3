/* highwater_native.h: Groth16's heavy part over BLS12-381 on a device, and what it does to memory.
 *
 * Two libraries implement this header: libhighwater_native.so (CUDA) and its twin on the host,
 * libhighwater_native_cpu.so, whose "device" is host memory. A program loads either with dlopen and
 * asks hw_abi_version first.
 *
 * Conventions
 *
 *   Units      bytes and nanoseconds. Times are CLOCK_MONOTONIC, also those of work on the device.
 *
 *   Data       little-endian limbs in Montgomery form, as gnark-crypto and blst lay them out: fr 32
 *              bytes, fp 48, fp2 96, affine G1 96, affine G2 192. Infinity is all zero bytes.
 *              Values must be reduced; they are not checked.
 *
 *   Ownership  The caller owns every pointer it passes; the library reads or writes it only during
 *              the call. Handles are freed by their destroy function, the context last.
 *
 *   Threads    Every function may be called from any thread, several at a time, on one context; a
 *              call blocks its thread until the work is done. hw_ring_read has one caller at a
 *              time. Destroying a handle that another call uses is the caller's mistake.
 *
 *   Errors     A status; HW_OK is 0. hw_last_error() is this thread's message, good until its next
 *              call. No exception and no callback crosses this border. After any status but
 *              HW_DEVICE_LOST the context stays usable and the failed call holds no memory.
 *
 *   Structs    that a caller fills or passes for an answer begin with struct_bytes, set to
 *              sizeof: a field added at the end does not change HW_ABI_VERSION. Reserved fields
 *              are zero. hw_event and hw_msm_stats change with the version alone.
 */
#ifndef HIGHWATER_NATIVE_H
#define HIGHWATER_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HW_API __attribute__((visibility("default")))
#else
#define HW_API
#endif

#define HW_ABI_VERSION 1u

typedef int32_t hw_status;
enum {
    HW_OK = 0,
    HW_INVALID_ARGUMENT = 1,
    HW_NO_DRIVER = 2,            /* no driver, or older than the library needs */
    HW_NO_DEVICE = 3,            /* no device of that number, or too old for the library's code */
    HW_OUT_OF_DEVICE_MEMORY = 4, /* message: wanted, free, largest free block, size of the arena */
    HW_OUT_OF_HOST_MEMORY = 5,
    HW_OUT_OF_PINNED_MEMORY = 6, /* the pinned pool has no block of that size free */
    HW_DEVICE_ERROR = 7,         /* the device refused or failed an operation; the job is lost */
    HW_DEVICE_LOST = 8,          /* a sticky error: only destroying the context is left to do */
    HW_UNSUPPORTED = 9,          /* this library cannot do that (the twin has no sppark) */
    HW_INTERNAL = 10             /* a mistake in the library */
};

/* The version this library implements; a caller made for another must not go on. */
HW_API uint32_t hw_abi_version(void);
/* "cuda" or "cpu": which of the two libraries this is. */
HW_API const char* hw_backend(void);
/* Versions of the library's parts, one line. */
HW_API const char* hw_build_info(void);
/* A status in words. */
HW_API const char* hw_status_name(hw_status status);
/* This thread's last message; "" when its last call succeeded. */
HW_API const char* hw_last_error(void);

/* ---- Devices -------------------------------------------------------------------------------- */

typedef struct hw_device_info {
    uint32_t struct_bytes;
    int32_t device;
    char name[96];
    char uuid[48];        /* "GPU-…"; "" where unknown */
    uint64_t total_bytes; /* of the device's memory */
    uint64_t l2_bytes;
    uint32_t compute_major, compute_minor;
    uint32_t multiprocessors;
    uint32_t clock_mhz;      /* highest; 0 = unknown */
    uint32_t driver_version; /* 13000 = 13.0 */
    uint32_t runtime_version;
} hw_device_info;

HW_API hw_status hw_device_count(uint32_t* count);
HW_API hw_status hw_device_describe(int32_t device, hw_device_info* out);

/* ---- Context -------------------------------------------------------------------------------- */

typedef struct hw_context hw_context;

typedef struct hw_config {
    uint32_t struct_bytes;
    int32_t device;
    uint64_t arena_bytes;       /* device memory taken at creation; all else is cut from it. 0: nine
                                   tenths of what is free */
    uint64_t pinned_pool_bytes; /* pinned host memory taken at creation; 0: none */
    uint64_t msm_scratch_bytes; /* bound of one MSM's scratch, which then works in groups of
                                   windows; 0: arena is the bound */
    uint32_t lanes; /* calls that may use the device at once, each with its own streams; 0: 2. A
                       further one waits */
    uint32_t ring_records; /* power of two; 0: 65536 (4 MiB) */
    uint32_t flags;        /* HW_CONFIG_… */
    uint32_t reserved;
    /* For tests. Faults come through the same checks as the real ones. 0: none. */
    uint64_t fault_device_bytes; /* the device has only this much memory free at creation */
    uint64_t fault_operation;    /* the n-th copy or launch from then on fails, once */
} hw_config;

enum {
    HW_CONFIG_NO_EVENTS = 1u, /* nothing is written to the ring, and kernels carry no CUDA events:
                                 to measure what recording costs */
    HW_CONFIG_SEPARATE_BLOCKS = 2u /* each block of device memory is an allocation of the driver's,
                                      beside the arena that accounts for it: so that memory
                                      checkers see where blocks end, what was never written */
};

/* Creates the device's context, loads its code and the NTT's tables, takes arena and pinned pool.
 * What the driver took for all but the arena is recorded as one buffer of class "context", the
 * arena as "d_arena", the pool as "pinned_pool". Too little memory: HW_OUT_OF_DEVICE_MEMORY, and
 * nothing is left behind. */
HW_API hw_status hw_context_create(const hw_config* config, hw_context** out);
/* Waits for the device, frees everything, the ring too: read it before. NULL is fine. */
HW_API void hw_context_destroy(hw_context* context);

typedef struct hw_memory_info {
    uint32_t struct_bytes;
    uint32_t driver_known;      /* 1: the driver_… fields were read; 0: unknown */
    uint64_t driver_used_bytes; /* of the device, by all processes, as the driver (NVML) reports */
    uint64_t driver_base_bytes; /* the same, just before this context was created */
    uint64_t driver_total_bytes;
    uint64_t context_bytes; /* measured after creation: code, tables, streams, events, the driver's
                               own */
    uint64_t arena_bytes, arena_used_bytes, arena_peak_bytes, arena_largest_free_bytes;
    uint64_t pool_bytes, pool_used_bytes, pool_peak_bytes;
    uint64_t registered_bytes; /* host memory pinned by hw_host_register now */
    int64_t clock_error_ns;    /* bound of the error of device times against CLOCK_MONOTONIC; -1:
                                  unknown */
} hw_memory_info;

HW_API hw_status hw_context_memory(hw_context* context, hw_memory_info* out);
/* Starts arena_peak_bytes and pool_peak_bytes anew from what is in use. */
HW_API hw_status hw_context_reset_peaks(hw_context* context);
/* CLOCK_MONOTONIC now, by the library's reading. */
HW_API int64_t hw_clock_now_ns(void);

/* ---- Events --------------------------------------------------------------------------------- */

/* One record of the ring. ids are unique in a context, from 1. -1 = no job, no partition. */
typedef struct hw_event {
    uint64_t seq;    /* position in the ring's order, from 0, without gaps */
    int64_t time_ns; /* times of one buffer, lock or span rise, those of the ring need not */
    uint16_t kind;   /* HW_EVENT_… */
    uint16_t name;   /* hw_name: a buffer's class; what kernel, copy, operation, lock, attribute */
    int16_t device;  /* -1: host memory */
    uint16_t stream; /* lane * 2 (compute) or lane * 2 + 1 (copies); 0xffff: none */
    uint64_t id;     /* buffer; span of a kernel, copy or operation; request of a lock */
    uint64_t bytes;  /* of a buffer or copy; else 0 */
    int32_t job, partition;
    uint32_t thread; /* the kernel's tid of the caller */
    uint32_t reserved;
    uint64_t arg; /* alloc: parent buffer, 0 none; kernel, copy: its operation's id, 0 none;
                     attribute: value */
} hw_event;

enum {
    HW_EVENT_ALLOC = 1, /* recorded after success */
    HW_EVENT_FREE = 2,  /* recorded before the memory is given back */
    HW_EVENT_PIN = 3,   /* hw_host_register: id is the caller's buffer, or the library's own id */
    HW_EVENT_UNPIN = 4,
    HW_EVENT_COPY_BEGIN = 5, /* name: copy_h2d, copy_d2h, copy_d2d, memset */
    HW_EVENT_COPY_END = 6,
    HW_EVENT_KERNEL_BEGIN = 7,
    HW_EVENT_KERNEL_END = 8,
    HW_EVENT_OP_BEGIN = 9, /* some NTTs, an MSM …; in the ring once its time is known */
    HW_EVENT_OP_END = 10,
    HW_EVENT_ATTRIBUTE = 11, /* of operation id, between its begin and end; arg: value */
    HW_EVENT_LOCK_WAIT = 12, /* a caller asks for a lane */
    HW_EVENT_LOCK_ACQUIRE = 13,
    HW_EVENT_LOCK_RELEASE = 14
};

/* Copies up to `max` records that were not read yet to `out`, oldest first; `read` is how many.
 * Never blocks. */
HW_API hw_status hw_ring_read(hw_context* context, hw_event* out, size_t max, size_t* read);

typedef struct hw_ring_info {
    uint32_t struct_bytes;
    uint32_t capacity;
    uint64_t written;      /* records put in the ring since creation */
    uint64_t dropped;      /* records lost because it was full */
    uint64_t waiting;      /* written and not read */
    uint64_t peak_waiting; /* the most that ever waited, as hw_ring_read saw it */
} hw_ring_info;

HW_API hw_status hw_ring_describe(hw_context* context, hw_ring_info* out);
/* The text of a name's number, NULL beyond the last. A number keeps its text for the process's
 * life. */
HW_API const char* hw_name(uint16_t name);

/* ---- Pinned host memory --------------------------------------------------------------------- */

/* Cuts bytes (rounded up to 4 KiB) from the pinned pool; class_name labels it in the events ("a",
 * "aux" …). buffer_id is the id in the events. The memory is not zeroed. */
HW_API hw_status hw_host_alloc(hw_context* context, uint64_t bytes, const char* class_name,
                               int32_t job, int32_t partition, void** out, uint64_t* buffer_id);
HW_API hw_status hw_host_free(hw_context* context, void* pointer);
/* Pins the caller's memory (any address and length). It must stay mapped until unregistered. While
 * either runs, the driver stops other threads' launches on every device. */
HW_API hw_status hw_host_register(hw_context* context, void* pointer, uint64_t bytes,
                                  const char* class_name, int32_t job, int32_t partition,
                                  uint64_t* buffer_id);
HW_API hw_status hw_host_unregister(hw_context* context, void* pointer);

/* ---- Keys on the device --------------------------------------------------------------------- */

typedef struct hw_srs hw_srs;

typedef struct hw_srs_desc {
    uint32_t struct_bytes;
    uint32_t log_domain;          /* 1 to 26 */
    uint64_t wires, public_wires; /* wire 0 is the constant, then public ones */
    uint64_t a_points, b_points;  /* wires whose bit in infinity_a, infinity_b is 0 */
    const void* z;    /* G1, 2^log_domain - 1 points, bit-reversed order, as gnark's pk.G1.Z */
    const void* k;    /* G1, wires - public_wires */
    const void* a;    /* G1, a_points */
    const void* b_g1; /* G1, b_points */
    const void* b_g2; /* G2, b_points; NULL: b_g2 stays with the caller */
    const uint64_t* infinity_a; /* bit w % 64 of word w / 64 is set: wire w is not in the query */
    const uint64_t* infinity_b;
} hw_srs_desc;

/* Copies a key to the device, where it stays until destroyed; the host's copy may go. */
HW_API hw_status hw_srs_load(hw_context* context, const hw_srs_desc* desc, hw_srs** out);

/* As hw_srs_desc, but z, k, a, b_g1, b_g2 point to the scalars (fr) of the points: multiples of the
 * groups' generators. b_g2 may be NULL or equal b_g1. Where a pointer of `host` is not NULL the
 * points go there, too: that is how the caller keeps the key. */
typedef struct hw_srs_host {
    uint32_t struct_bytes;
    uint32_t reserved;
    void *z, *k, *a, *b_g1, *b_g2;
} hw_srs_host;

HW_API hw_status hw_srs_setup(hw_context* context, const hw_srs_desc* scalars,
                              const hw_srs_host* host, hw_srs** out);
HW_API uint64_t hw_srs_device_bytes(const hw_srs* srs);
HW_API void hw_srs_destroy(hw_srs* srs);

/* ---- Proving -------------------------------------------------------------------------------- */

/* What an MSM did. Unknown or not applicable: 0. */
typedef struct hw_msm_stats {
    uint64_t points; /* handed in */
    uint64_t digits; /* non-zero ones, over all windows: what additions there are */
    uint64_t pairs;  /* batch-affine additions done */
    uint64_t xyzz;   /* XYZZ additions done in buckets */
    uint64_t scratch_bytes;
    uint32_t window_bits, windows, groups, rounds;
    int64_t begin_ns, end_ns;
} hw_msm_stats;

enum {
    HW_MSM_H = 0,
    HW_MSM_L = 1,
    HW_MSM_A = 2,
    HW_MSM_B_G1 = 3,
    HW_MSM_B_G2 = 4,
    HW_MSM_COUNT = 5
};

/* One partition. a, b, c have `constraints` elements; the rest of the domain is taken as zero. w
 * has the key's `wires`. Memory that is pinned (from hw_host_alloc, or registered) is copied while
 * the device computes; other memory works, slower. */
typedef struct hw_assignment {
    uint32_t struct_bytes;
    uint32_t flags; /* HW_PROVE_… */
    const void *a, *b, *c;
    const void* w;
    uint64_t constraints; /* at most 2^log_domain */
    int32_t job, partition;
} hw_assignment;

enum {
    HW_PROVE_B_G2 = 1u /* also the G2 MSM; the key must hold b_g2 */
};

typedef struct hw_proof_parts {
    uint32_t struct_bytes;
    uint32_t has_b_g2;
    uint8_t h[96], l[96], a[96], b_g1[96]; /* affine; <z, h>, <k, w[public:]>, <a, w>, <b, w> */
    uint8_t b_g2[192];
    hw_msm_stats msm[HW_MSM_COUNT];
    /* Of the call: lane got, last byte up, h known, result known. */
    int64_t begin_ns, upload_end_ns, ntt_end_ns, end_ns;
    uint64_t device_peak_bytes; /* the most this call held of the arena, the key not counted */
} hw_proof_parts;

/* Seven NTTs with the pointwise step, then the MSMs h, l, a, b_g1 and, if asked for, b_g2. When it
 * returns a, b, c and w are no longer read. Blinding and assembly are the caller's. */
HW_API hw_status hw_prove_start(hw_context* context, hw_srs* srs, const hw_assignment* assignment,
                                hw_proof_parts* out);

/* ---- Single operations, for tests and benchmarks -------------------------------------------- */

enum { HW_FIELD_FR = 0, HW_FIELD_FP = 1, HW_FIELD_FP2 = 2 };
enum {
    HW_FIELD_ADD = 0,
    HW_FIELD_SUB = 1,
    HW_FIELD_MUL = 2,
    HW_FIELD_SQR = 3,
    HW_FIELD_NEG = 4,
    HW_FIELD_INV = 5, /* of 0: 0 */
    HW_FIELD_FROM_MONT = 6,
    HW_FIELD_TO_MONT = 7 /* not of fp2 */
};
/* out[i] = a[i] op b[i] on the device; b may be NULL where the operation takes one operand. */
HW_API hw_status hw_op_field(hw_context* context, uint32_t field, uint32_t operation, const void* a,
                             const void* b, void* out, uint64_t n);

enum { HW_G1 = 1, HW_G2 = 2 };
enum { HW_POINT_ADD = 0, HW_POINT_SUB = 1, HW_POINT_DOUBLE = 2, HW_POINT_NEG = 3 };
/* out[i] = a[i] op b[i], affine in and out. */
HW_API hw_status hw_op_point(hw_context* context, uint32_t group, uint32_t operation, const void* a,
                             const void* b, void* out, uint64_t n);

enum { HW_NTT_INVERSE = 1u, HW_NTT_COSET = 2u };
/* Orders of input and output: natural or bit-reversed. */
enum { HW_ORDER_NN = 0, HW_ORDER_NR = 1, HW_ORDER_RN = 2, HW_ORDER_RR = 3 };
/* Transforms 2^log_size elements of host memory in place. The coset's shift is 7; an inverse scales
 * by 1/n, and undoes the shift of the result. log_size 0 to 26. */
HW_API hw_status hw_op_ntt(hw_context* context, void* inout, uint32_t log_size, uint32_t order,
                           uint32_t flags);

enum { HW_MSM_AUTO = 0, HW_MSM_XYZZ = 1, HW_MSM_AFFINE = 2 };
typedef struct hw_msm_options {
    uint32_t struct_bytes;
    uint32_t path;        /* HW_MSM_AUTO … */
    uint32_t window_bits; /* 4 to 24; 0: by the cost model */
    uint32_t reserved;
    uint64_t scratch_bytes; /* 0: the context's bound */
} hw_msm_options;
/* out = sum of scalars[i] * points[i], affine. options and stats may be NULL. */
HW_API hw_status hw_op_msm(hw_context* context, uint32_t group, const void* points,
                           const void* scalars, uint64_t n, const hw_msm_options* options,
                           void* out, hw_msm_stats* stats);

/* out[i] = scalars[i] * base, affine, n of them. */
HW_API hw_status hw_op_fixed_base(hw_context* context, uint32_t group, const void* base,
                                  const void* scalars, void* out, uint64_t n);

/* The pointwise step of h: a[i] = (a[i] b[i] - c[i]) / (7^n - 1), n = 2^log_size. For tests. */
HW_API hw_status hw_op_quotient(hw_context* context, void* a, const void* b, const void* c,
                                uint32_t log_size);

/* ---- Benchmarks ----------------------------------------------------------------------------- */

enum {
    HW_BENCH_NTT = 0,        /* resident, by order and flags */
    HW_BENCH_MSM = 1,        /* resident points and scalars; result on the host */
    HW_BENCH_SPPARK_NTT = 2, /* sppark's own entry, for comparison: HW_UNSUPPORTED on the twin */
    HW_BENCH_SPPARK_MSM = 3, /* G1 only */
    HW_BENCH_UPLOAD = 4,     /* pinned host to device, 32 * 2^log_size bytes */
    HW_BENCH_FIXED_BASE = 5
};
enum {
    HW_SCALARS_UNIFORM = 0,
    HW_SCALARS_LABEL =
        1, /* as of a SHA-256 circuit: 0 68.4 %, 1 17.6 %, 2-3 12.7 %, -1 1 %, full 0.3 % */
    HW_SCALARS_ONE_VALUE = 2 /* one dense value for all */
};
enum { HW_BENCH_MAX_REPEATS = 64 };

typedef struct hw_bench_spec {
    uint32_t struct_bytes;
    uint32_t what; /* HW_BENCH_… */
    uint32_t log_size;
    uint32_t group;        /* HW_G1, HW_G2 */
    uint32_t profile;      /* HW_SCALARS_… */
    uint32_t order, flags; /* of an NTT */
    uint32_t warmups, repeats;
    uint32_t path, window_bits; /* of an MSM, as hw_msm_options */
    uint64_t seed;
} hw_bench_spec;

typedef struct hw_bench_result {
    uint32_t struct_bytes;
    uint32_t repeats;
    int64_t ns[HW_BENCH_MAX_REPEATS]; /* wall clock of each repeat, synchronised */
    uint64_t
        checked; /* 1: the result was compared with what is known of the inputs, and is right */
    hw_msm_stats msm; /* of the last repeat */
} hw_bench_result;

/* Makes inputs on the device from the seed (points with known logarithms), warms up, repeats. A
 * wrong result is HW_INTERNAL. */
HW_API hw_status hw_bench(hw_context* context, const hw_bench_spec* spec, hw_bench_result* out);

#ifdef __cplusplus
}
#endif

#endif
