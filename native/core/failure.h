// What goes wrong inside travels as an exception, and ends at the C border (api.cpp) as a status
// with a message.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "highwater_native.h"

namespace highwater {

class failure : public std::exception {
public:
    failure(hw_status status, std::string message)
        : status_(status), message_(std::move(message)) {}
    hw_status status() const { return status_; }
    const char* what() const noexcept override { return message_.c_str(); }

private:
    hw_status status_;
    std::string message_;
};

} // namespace highwater
