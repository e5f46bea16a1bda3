/* Touches fresh memory with all threads at once, and says what the kernel counted.
 *
 *   faults MODE MIB THREADS ROUNDS
 *
 * MODE is how fresh memory is got: small (4 KiB pages), huge (MADV_HUGEPAGE), populate (small pages,
 * faulted in by one MADV_POPULATE_WRITE before the threads start), or double (small pages, each
 * thread's part grown by doubling with a copy). In each of ROUNDS rounds every thread fills its part
 * of MIB mebibytes; one round in ten gets fresh memory, the others use one region again and again.
 *
 * The main thread reads the process's counters before and after each round, while no other thread
 * runs, so that a round's faults are exactly its own. Lines on stdout, times in CLOCK_MONOTONIC ns:
 *
 *   sample TIME MINFLT MAJFLT USER_US SYSTEM_US RSS_BYTES
 *   stage NAME ROUND THREAD BEGIN END CPU_NS
 *   region ROUND BYTES
 *   done MODE ok|unsupported
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { max_threads = 64 };

static size_t part_bytes; /* of one thread */
static int threads, round_now, doubling;
static char *region; /* of this round; NULL where each thread grows its own */
static pthread_barrier_t begin_round, end_round;

static struct { int64_t begin, end, cpu; } run[max_threads];

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sample(void)
{
    struct rusage r;
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%*s %ld", &pages) != 1)
        pages = 0;
    if (f != NULL)
        fclose(f);
    getrusage(RUSAGE_SELF, &r);
    printf("sample %lld %ld %ld %lld %lld %lld\n", (long long)clock_ns(CLOCK_MONOTONIC),
           r.ru_minflt, r.ru_majflt,
           (long long)r.ru_utime.tv_sec * 1000000 + r.ru_utime.tv_usec,
           (long long)r.ru_stime.tv_sec * 1000000 + r.ru_stime.tv_usec,
           (long long)pages * sysconf(_SC_PAGESIZE));
}

static char *map(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return p;
}

/* grow fills a vector that doubles from 1 MiB to the thread's part, copying each time. */
static void grow(int value)
{
    size_t have = 1 << 20;
    char *p = map(have);
    madvise(p, have, MADV_NOHUGEPAGE);
    memset(p, value, have);
    while (have < part_bytes) {
        char *q = map(2 * have);
        madvise(q, 2 * have, MADV_NOHUGEPAGE);
        memcpy(q, p, have);
        memset(q + have, value, have);
        munmap(p, have);
        p = q;
        have *= 2;
    }
    munmap(p, have);
}

static void *work(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (;;) {
        pthread_barrier_wait(&begin_round);
        if (round_now < 0)
            return NULL;
        run[me].begin = clock_ns(CLOCK_MONOTONIC);
        int64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        if (region != NULL)
            memset(region + (size_t)me * part_bytes, round_now & 0x7f, part_bytes);
        else
            grow(round_now & 0x7f);
        run[me].cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
        run[me].end = clock_ns(CLOCK_MONOTONIC);
        pthread_barrier_wait(&end_round);
    }
}

static void one_round(void)
{
    sample();
    pthread_barrier_wait(&begin_round);
    pthread_barrier_wait(&end_round);
    sample();
    for (int i = 0; i < threads; i++)
        printf("stage synthesis %d %d %lld %lld %lld\n", round_now, i, (long long)run[i].begin,
               (long long)run[i].end, (long long)run[i].cpu);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: faults small|huge|populate|double MIB THREADS ROUNDS\n");
        return 2;
    }
    const char *mode = argv[1], *ok = "ok";
    int rounds = atoi(argv[4]);
    threads = atoi(argv[3]);
    if (threads < 1 || threads > max_threads || atoi(argv[2]) < threads || rounds < 1)
        return 2;
    part_bytes = ((size_t)atoi(argv[2]) << 20) / threads >> 21 << 21;
    size_t bytes = part_bytes * threads;
    doubling = strcmp(mode, "double") == 0;
    pthread_barrier_init(&begin_round, NULL, threads + 1);
    pthread_barrier_init(&end_round, NULL, threads + 1);
    pthread_t id[max_threads];
    for (intptr_t i = 0; i < threads; i++)
        pthread_create(&id[i], NULL, work, (void *)i);

    char *old = map(bytes);
    madvise(old, bytes, MADV_NOHUGEPAGE);
    memset(old, 1, bytes);
    for (round_now = 0; round_now < rounds; round_now++) {
        region = old;
        if (round_now % 10 != 9) {
            one_round();
            continue;
        }
        char *fresh = NULL;
        if (!doubling) {
            fresh = map(bytes + (2 << 20));
            region = (char *)(((uintptr_t)fresh + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
            if (madvise(region, bytes,
                        strcmp(mode, "huge") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0 &&
                strcmp(mode, "huge") == 0)
                ok = "unsupported";
        } else {
            region = NULL;
        }
        printf("region %d %zu\n", round_now, bytes);
        if (strcmp(mode, "populate") == 0) {
            sample();
            int64_t begin = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
            if (madvise(region, bytes, MADV_POPULATE_WRITE) != 0)
                ok = "unsupported";
            printf("stage populate %d 0 %lld %lld %lld\n", round_now, (long long)begin,
                   (long long)clock_ns(CLOCK_MONOTONIC),
                   (long long)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu));
        }
        one_round();
        if (fresh != NULL)
            munmap(fresh, bytes + (2 << 20));
        sample();
    }
    round_now = -1;
    pthread_barrier_wait(&begin_round);
    for (int i = 0; i < threads; i++)
        pthread_join(id[i], NULL);
    printf("done %s %s\n", mode, ok);
    return 0;
}
