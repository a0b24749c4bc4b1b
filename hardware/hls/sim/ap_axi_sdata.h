// SPDX-License-Identifier: Apache-2.0
// AXI4-Stream beats with side-band signals, as the vendors' header of this name declares them (the unsigned form only).
#ifndef AP_AXI_SDATA_H
#define AP_AXI_SDATA_H

#include <ap_int.h>

// Data and side-bands of one beat: D bits of data, U of TUSER, I of TID, T of TDEST.
template <int D, int U, int I, int T>
struct ap_axiu {
    ap_uint<D> data;
    ap_uint<(D + 7) / 8> keep;
    ap_uint<(D + 7) / 8> strb;
    ap_uint<U> user;
    ap_uint<1> last;
    ap_uint<I> id;
    ap_uint<T> dest;
};

#endif  // AP_AXI_SDATA_H
