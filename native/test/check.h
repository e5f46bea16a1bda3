// A test is a function that registers itself; a failed check is told with its place and ends the
// test.
#pragma once

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

namespace test {

struct failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct registered {
    registered(const char* name, void (*run)());
};

// splitmix64: the same numbers everywhere.
class random_source {
public:
    explicit random_source(uint64_t seed) : state_(seed) {}
    uint64_t next() {
        uint64_t x = state_ += 0x9e3779b97f4a7c15ull;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        return x ^ (x >> 31);
    }
    uint64_t below(uint64_t n) { return next() % n; }

private:
    uint64_t state_;
};

[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
    std::ostringstream text;
    text << file << ":" << line << ": " << what;
    throw failed(text.str());
}

template <class A, class B>
void equal(const A& a, const B& b, const char* text, const char* file, int line) {
    if (a == b) return;
    std::ostringstream what;
    what << text << ": " << a << " and " << b;
    fail(file, line, what.str());
}

} // namespace test

#define TEST(name)                                                                                 \
    static void name();                                                                            \
    static const test::registered registered_##name(#name, name);                                  \
    static void name()
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) test::fail(__FILE__, __LINE__, #condition);                              \
    } while (0)
#define CHECK_EQUAL(a, b) test::equal((a), (b), #a " == " #b, __FILE__, __LINE__)
// A call of the C interface that must succeed.
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        if ((call) != HW_OK)                                                                       \
            test::fail(__FILE__, __LINE__, std::string(#call) + ": " + hw_last_error());           \
    } while (0)
