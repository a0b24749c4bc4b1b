// SPDX-License-Identifier: Apache-2.0
// Addresses in device memory, and the rows of LOAD and STORE.
#ifndef OPENVTA_VTA_BUS_H
#define OPENVTA_VTA_BUS_H

#include "vta_channels.h"

// What memory answers to an access: the first address of an error response, in `first`, or false. The tools' bus masters keep
// responses to themselves, so in hardware no error is ever seen here; our simulation asks its memory.
#ifndef HLS_SIM_MEMORY_ERROR
#define HLS_SIM_MEMORY_ERROR(address, bytes, write, first) false
#endif

namespace openvta {

// Whether a range of bytes lies in the window and memory answers there; its offset, or the first address without an answer.
struct Span {
    bool ok;
    uint64_t offset;
    uint64_t outside;
};

inline Span inside(Window window, uint64_t address, uint64_t bytes, bool write) {
#pragma HLS inline
    Span s;
    s.offset = address - window.base;
    const bool starts = s.offset < window.bytes;
    s.ok = starts && bytes <= window.bytes - s.offset;
    s.outside = starts ? window.base + window.bytes : address;
    uint64_t first = 0;
    if (HLS_SIM_MEMORY_ERROR(address, s.ok || !starts ? bytes : window.bytes - s.offset, write, first)) {
        s.ok = false;
        s.outside = first;
    }
    (void)write;
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
