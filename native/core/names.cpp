#include "core/names.h"

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace highwater {
namespace {

constexpr size_t max_names = 4096; // a caller that makes up classes cannot fill memory

struct table {
    std::mutex lock;
    std::deque<std::string> texts{"?"}; // a deque: texts keep their addresses
    std::unordered_map<std::string, uint16_t> numbers;
};

table& names() {
    static table* all = new table; // never destroyed: threads may record during exit
    return *all;
}

} // namespace

uint16_t name_number(const char* text) {
    table& t = names();
    std::lock_guard<std::mutex> hold(t.lock);
    auto found = t.numbers.find(text);
    if (found != t.numbers.end()) return found->second;
    if (t.texts.size() >= max_names) return 0;
    t.texts.emplace_back(text);
    return t.numbers.emplace(text, uint16_t(t.texts.size() - 1)).first->second;
}

const char* name_text(uint16_t number) {
    table& t = names();
    std::lock_guard<std::mutex> hold(t.lock);
    return number < t.texts.size() ? t.texts[number].c_str() : nullptr;
}

} // namespace highwater
