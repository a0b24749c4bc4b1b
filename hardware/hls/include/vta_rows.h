// SPDX-License-Identifier: Apache-2.0
// LOAD: rows of elements in device memory become a padded rectangle of consecutive scratchpad elements.
// Throughput: an element in as many cycles as it has memory words, an element of padding a cycle; rows follow each other.
#ifndef OPENVTA_VTA_ROWS_H
#define OPENVTA_VTA_ROWS_H

#include "vta_unit.h"

namespace openvta {

// What a padded lane of LANE_BITS bits holds.
template <unsigned LANE_BITS>
inline int32_t fill_value(const LoadFields& f) {
#pragma HLS inline
    const uint32_t raw = f.pad_value_high << 6 | f.pad_value_low;
    if (f.pad_min != 0) return static_cast<int32_t>(sign_extend(1ull << (LANE_BITS - 1), LANE_BITS));
    if (f.memory_id == static_cast<uint32_t>(MemId::ACC_UINT8)) return static_cast<int32_t>(raw);
    const int64_t value = sign_extend(raw, 8u);
    return LANE_BITS < 8 ? static_cast<int32_t>(sign_extend(raw, LANE_BITS)) : static_cast<int32_t>(value);
}

// One element from memory: COUNT lanes of WIDTH bits, in rows of ROW lanes; the scratchpad holds them column by column, which is
// only a matter of wires (ROW = COUNT keeps their order).
template <unsigned WIDTH, unsigned COUNT, unsigned ROW, unsigned WORD_BITS, class LANE>
inline void read_element(const memory_word<WORD_BITS>* memory, uint64_t at, bool is_unsigned, LANE lanes[COUNT]) {
    constexpr uint32_t per_word = WORD_BITS / WIDTH;
    constexpr uint32_t words = COUNT / per_word;
    for (uint32_t n = 0; n < words; ++n) {
#pragma HLS pipeline II = 1
        const memory_word<WORD_BITS> word = memory[at + n];
        for (uint32_t k = 0; k < per_word; ++k) {
#pragma HLS unroll
            const uint32_t bits = get_lane<WIDTH>(word, k);
            const int32_t value =
                is_unsigned ? static_cast<int32_t>(bits) : static_cast<int32_t>(sign_extend(bits, WIDTH));
            const uint32_t lane = n * per_word + k;
            lanes[lane % ROW * (COUNT / ROW) + lane / ROW] = static_cast<LANE>(value);
        }
    }
}

// Load a rectangle; false (and the fault in `report`) where an index or an address is out of range.
// WIDTH: bits of a lane in memory; LANE_BITS: bits of a lane in the scratchpad.
template <unsigned WIDTH, unsigned LANE_BITS, unsigned COUNT, unsigned ROW, unsigned DEPTH, unsigned WORD_BITS, class LANE>
bool load_rows(const LoadFields& f, const Command& command, const memory_word<WORD_BITS>* memory, Window window,
               uint32_t channel, LANE mem[DEPTH][COUNT], token_stream& alive, Report& report) {
    constexpr uint64_t element_bytes = WIDTH * COUNT / 8;
    constexpr uint64_t element_words = 8 * element_bytes / WORD_BITS;
    const bool is_unsigned = f.memory_id == static_cast<uint32_t>(MemId::ACC_UINT8);
    const uint32_t height = f.y_pad_0 + f.y_size + f.y_pad_1;
    const uint32_t width = f.x_pad_0 + f.x_size + f.x_pad_1;
    if (f.sram_base + static_cast<uint64_t>(height) * width > DEPTH) {
        report = fault_of(Cause::INDEX_RANGE, command.index);
        return false;
    }
    const int32_t fill = fill_value<LANE_BITS>(f);
    const uint64_t row_bytes = f.x_size * element_bytes;
    uint64_t address = command.base + f.dram_base * element_bytes;
    uint32_t at = f.sram_base;
    for (uint32_t y = 0; y < height; ++y) {
#pragma HLS loop_tripcount min = 1 max = 64
        const bool row = y >= f.y_pad_0 && y < f.y_pad_0 + f.y_size;
        uint64_t word = 0;
        if (row) {
            const Span span = inside(window, address, row_bytes, false);
            if (!span.ok) {
                report = bus_fault(Cause::BUS_READ, command.index, channel, span.outside);
                return false;
            }
            word = span.offset / (WORD_BITS / 8);
            address += f.x_stride * element_bytes;
        }
        for (uint32_t x = 0; x < width; ++x) {
#pragma HLS pipeline II = 1
#pragma HLS loop_tripcount min = 1 max = 64
            if (row && x >= f.x_pad_0 && x < f.x_pad_0 + f.x_size) {
                read_element<WIDTH, COUNT, ROW, WORD_BITS>(memory, word, is_unsigned, mem[at]);
                word += element_words;
            } else {
                for (uint32_t lane = 0; lane < COUNT; ++lane) {
#pragma HLS unroll
                    mem[at][lane] = static_cast<LANE>(fill);
                }
            }
            at += 1;
        }
        live(alive);
    }
    report.amount = f.y_size * row_bytes;
    return true;
}

}  // namespace openvta

#endif  // OPENVTA_VTA_ROWS_H
