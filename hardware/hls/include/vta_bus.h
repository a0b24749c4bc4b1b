// SPDX-License-Identifier: Apache-2.0
// Addresses in device memory, and the rows of LOAD and STORE.
#ifndef OPENVTA_VTA_BUS_H
#define OPENVTA_VTA_BUS_H

#include "vta_channels.h"

namespace openvta {

// Whether a range of bytes lies in the window; its offset there, or the first address outside.
struct Span {
    bool ok;
    uint64_t offset;
    uint64_t outside;
};

inline Span inside(Window window, uint64_t address, uint64_t bytes) {
#pragma HLS inline
    Span s;
    s.offset = address - window.base;
    const bool starts = s.offset < window.bytes;
    s.ok = starts && bytes <= window.bytes - s.offset;
    s.outside = starts ? window.base + window.bytes : address;
    return s;
}

// A bus fault of a unit.
inline Report bus_fault(Cause cause, uint32_t index, uint32_t channel, uint64_t address) {
#pragma HLS inline
    Report r = fault_of(cause, index);
    r.channel = channel;
    r.address = address;
    return r;
}

}  // namespace openvta

#endif  // OPENVTA_VTA_BUS_H
