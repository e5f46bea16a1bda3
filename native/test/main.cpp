// Runs all tests, or those whose names contain an argument. With -v each is told as it ends.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "check.h"

namespace {

struct entry {
    const char* name;
    void (*run)();
};

std::vector<entry>& all() {
    static std::vector<entry> tests;
    return tests;
}

bool wanted(const char* name, int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
        if (strstr(name, argv[i])) return true;
    }
    return argc == 1;
}

} // namespace

test::registered::registered(const char* name, void (*run)()) { all().push_back({name, run}); }

int main(int argc, char** argv) {
    const bool verbose = argc > 1 && !strcmp(argv[1], "-v");
    if (verbose) argc--, argv++;
    int passed = 0, failed = 0;
    for (const entry& e : all()) {
        if (!wanted(e.name, argc, argv)) continue;
        const auto began = std::chrono::steady_clock::now();
        try {
            e.run();
            passed++;
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
            if (verbose) printf("ok %s %.2f s\n", e.name, took.count());
        } catch (const std::exception& x) {
            printf("FAIL %s: %s\n", e.name, x.what());
            failed++;
        }
        fflush(stdout);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
