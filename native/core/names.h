// Numbers for the words in events: classes of buffers, names of kernels, operations, attributes. A
// word keeps its number for the process's life; there are few of them, all literals of this library
// or classes that a caller chose.
#pragma once

#include <cstdint>

namespace highwater {

// The word's number; 0 ("?") once the table is full.
uint16_t name_number(const char* text);
// The number's word; nullptr beyond the last.
const char* name_text(uint16_t number);

} // namespace highwater
