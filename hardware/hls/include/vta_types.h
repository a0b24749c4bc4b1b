// SPDX-License-Identifier: Apache-2.0
// Types of lanes and memory words. Two forms with the same values: exact widths (what is synthesized), and native C++
// integers (OPENVTA_NATIVE, simulation only) for whole networks. Every width comes from the generated header.
#ifndef OPENVTA_VTA_TYPES_H
#define OPENVTA_VTA_TYPES_H

#include "openvta_spec.hpp"

#include <ap_axi_sdata.h>
#include <ap_int.h>
#include <hls_stream.h>

namespace openvta {

constexpr uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Widths of the memory ports: an element, or a beat of the bus where an element is wider.
constexpr uint32_t INSN_WORD_BITS = smaller(8 * INSN_BYTES, AXI_DATA_BITS);
constexpr uint32_t UOP_WORD_BITS = smaller(8 * UOP_BYTES, AXI_DATA_BITS);
constexpr uint32_t INP_WORD_BITS = smaller(8 * INP_BYTES, AXI_DATA_BITS);
constexpr uint32_t WGT_WORD_BITS = smaller(8 * WGT_BYTES, AXI_DATA_BITS);
constexpr uint32_t ACC_WORD_BITS = smaller(8 * ACC8_BYTES, AXI_DATA_BITS);  // acc elements come as 8-bit lanes as well
constexpr uint32_t OUT_WORD_BITS = smaller(8 * OUT_BYTES, AXI_DATA_BITS);

constexpr uint32_t WGT_LANES = BLOCK * BLOCK;

#ifdef OPENVTA_NATIVE

typedef int32_t inp_t;  // factors are as wide as their sums: whole vectors of them are multiplied without conversion
typedef int32_t wgt_t;
typedef int32_t acc_t;
typedef int8_t out_t;
typedef int32_t dot_t;
typedef int64_t wide_t;

template <unsigned BITS>
struct memory_word {
    uint8_t byte[BITS / 8];
};

// Lane `at` of a word, lanes of WIDTH bits, lane 0 lowest: its bits as an unsigned number.
template <unsigned WIDTH, unsigned BITS>
inline uint32_t get_lane(const memory_word<BITS>& word, uint32_t at) {
    if (WIDTH == 32) {
        return static_cast<uint32_t>(word.byte[4 * at]) | static_cast<uint32_t>(word.byte[4 * at + 1]) << 8 |
               static_cast<uint32_t>(word.byte[4 * at + 2]) << 16 | static_cast<uint32_t>(word.byte[4 * at + 3]) << 24;
    }
    if (WIDTH == 8) return word.byte[at];
    return (word.byte[at * WIDTH / 8] >> (at * WIDTH % 8)) & ((1u << (WIDTH % 32)) - 1u);
}

template <unsigned WIDTH, unsigned BITS>
inline void set_lane(memory_word<BITS>& word, uint32_t at, uint32_t value) {
    if (WIDTH == 8) {
        word.byte[at] = static_cast<uint8_t>(value);
        return;
    }
    const uint32_t shift = at * WIDTH % 8, mask = ((1u << (WIDTH % 32)) - 1u) << shift;
    const uint32_t kept = word.byte[at * WIDTH / 8] & ~mask;
    word.byte[at * WIDTH / 8] = static_cast<uint8_t>(kept | ((value << shift) & mask));
}

// The low WIDTH bits as a signed number.
template <unsigned WIDTH>
inline int32_t low_bits(int64_t value) {
    return static_cast<int32_t>(sign_extend(static_cast<uint64_t>(value), WIDTH));
}

#else

typedef ap_int<INP_BITS> inp_t;
typedef ap_int<WGT_BITS> wgt_t;
typedef ap_int<ACC_BITS> acc_t;
typedef ap_int<OUT_BITS> out_t;
typedef ap_int<32> dot_t;
typedef ap_int<64> wide_t;

template <unsigned BITS>
using memory_word = ap_uint<BITS>;

template <unsigned WIDTH, int BITS>
inline uint32_t get_lane(const ap_uint<BITS>& word, uint32_t at) {
#pragma HLS inline
    const ap_uint<WIDTH> lane = word.range(WIDTH * at + WIDTH - 1, WIDTH * at);
    return static_cast<uint32_t>(lane);
}

template <unsigned WIDTH, int BITS>
inline void set_lane(ap_uint<BITS>& word, uint32_t at, uint32_t value) {
#pragma HLS inline
    word.range(WIDTH * at + WIDTH - 1, WIDTH * at) = ap_uint<WIDTH>(value);
}

template <unsigned WIDTH>
inline int32_t low_bits(wide_t value) {
#pragma HLS inline
    return static_cast<int32_t>(ap_int<WIDTH>(value));
}

#endif

typedef memory_word<INSN_WORD_BITS> insn_word_t;
typedef memory_word<UOP_WORD_BITS> uop_word_t;
typedef memory_word<INP_WORD_BITS> inp_word_t;
typedef memory_word<WGT_WORD_BITS> wgt_word_t;
typedef memory_word<ACC_WORD_BITS> acc_word_t;
typedef memory_word<OUT_WORD_BITS> out_word_t;

static_assert(sizeof(insn_word_t) == INSN_WORD_BITS / 8 && sizeof(wgt_word_t) == WGT_WORD_BITS / 8 &&
                  sizeof(acc_word_t) == ACC_WORD_BITS / 8 && sizeof(out_word_t) == OUT_WORD_BITS / 8 &&
                  sizeof(inp_word_t) == INP_WORD_BITS / 8 && sizeof(uop_word_t) == UOP_WORD_BITS / 8,
              "a memory word is as large as its bits: the kernel reads device memory in place");

}  // namespace openvta

#endif  // OPENVTA_VTA_TYPES_H
