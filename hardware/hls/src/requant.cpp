// SPDX-License-Identifier: Apache-2.0
// REQUANT: an element in REQUANT_CYCLES, so that LANES / REQUANT_CYCLES wide multipliers serve all lanes.
#include "vta_compute.h"

namespace openvta {

namespace {

constexpr uint32_t MANTISSA_BITS = 24;   // of a float32, the leading one included
constexpr uint32_t EXPONENT_BIAS = 127;
constexpr int32_t FAR = 1 << 20;         // beyond every clamp, whatever the zero point

// x / 2^amount to the nearest integer; ties up or to even. |x| + 2^(amount - 1) stays within 64 bits for amounts that matter.
int64_t rounded(int64_t x, uint32_t amount, bool even) {
#pragma HLS inline
    if (amount == 0) return x;
    if (amount > 63) return 0;
    const int64_t quotient = x >> amount;
    const uint64_t rest = static_cast<uint64_t>(x) & ((uint64_t{1} << amount) - 1), half = uint64_t{1} << (amount - 1);
    const bool up = even ? rest > half || (rest == half && (quotient & 1) != 0) : rest >= half;
    return quotient + (up ? 1 : 0);
}

uint64_t magnitude(int64_t x) {
#pragma HLS inline
    return x < 0 ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
}

// Significant bits of a number.
uint32_t length(uint32_t number) {
#pragma HLS inline
    const uint32_t a = number >> 16 != 0 ? 16 : 0;
    number >>= a;
    const uint32_t b = number >> 8 != 0 ? 8 : 0;
    number >>= b;
    const uint32_t c = number >> 4 != 0 ? 4 : 0;
    number >>= c;
    const uint32_t d = number >> 2 != 0 ? 2 : 0;
    number >>= d;
    return a + b + c + d + (number >> 1 != 0 ? 2 : number);
}

// x, whose magnitude has so many significant bits, rounded to MANTISSA_BITS of them, ties to even.
int64_t round_significant(int64_t x, uint32_t bits) {
#pragma HLS inline
    if (bits <= MANTISSA_BITS) return x;
    const uint32_t excess = bits - MANTISSA_BITS;
    return static_cast<int64_t>(static_cast<uint64_t>(rounded(x, excess, true)) << excess);
}

int64_t multiply(int64_t x, uint32_t m) {
#pragma HLS inline
    return static_cast<int64_t>(static_cast<wide_t>(static_cast<wide_t>(x) * static_cast<wide_t>(static_cast<int64_t>(m))));
}

// The onnxruntime rule: a float32 product, then to an integer, ties to even. Sign and infinities of the float are not looked at.
int64_t float32(int32_t x, uint32_t raw) {
#pragma HLS inline
    const uint32_t exponent = raw >> (MANTISSA_BITS - 1) & 255;
    if (exponent == 0 || x == 0) return 0;
    const uint32_t mantissa = 1u << (MANTISSA_BITS - 1) | (raw & ((1u << (MANTISSA_BITS - 1)) - 1));
    const uint32_t bits = length(static_cast<uint32_t>(magnitude(x)));
    const int64_t exact = multiply(round_significant(x, bits), mantissa);
    const uint32_t least = bits + MANTISSA_BITS - 1;  // the mantissa has its leading bit: the product's length, or one less
    const int64_t product = round_significant(exact, magnitude(exact) >> least != 0 ? least + 1 : least);
    const int32_t power = static_cast<int32_t>(exponent) - static_cast<int32_t>(EXPONENT_BIAS + MANTISSA_BITS - 1);
    if (power >= 0) return product < 0 ? -FAR : FAR;  // at least 2^23
    return rounded(product, static_cast<uint32_t>(-power), true);
}

int64_t tflite(int32_t x, uint32_t m, uint32_t shift, bool away) {
#pragma HLS inline
    const uint32_t left = shift < 31 ? 31 - shift : 0, right = shift > 31 ? shift - 31 : 0;
    const int32_t shifted = static_cast<int32_t>(static_cast<uint32_t>(x) << left);
    const int64_t high = (multiply(shifted, m) + (int64_t{1} << 30)) >> 31;
    if (right == 0) return high;
    return (high + (int64_t{1} << (right - 1)) - (away && high < 0 ? 1 : 0)) >> right;
}

int64_t scaled(RequantMode mode, int32_t x, uint32_t raw, uint32_t shift) {
#pragma HLS inline
    const uint32_t m = raw & 0x7fffffffu;
    switch (mode) {
        case RequantMode::HALF_UP:
            return rounded(multiply(x, m), shift, false);
        case RequantMode::HALF_EVEN:
            return rounded(multiply(x, m), shift, true);
        case RequantMode::TFLITE_DOUBLE:
            return tflite(x, m, shift, true);
        case RequantMode::TFLITE_RUY:
            return tflite(x, m, shift, false);
        case RequantMode::FLOAT32:
            return float32(x, raw);
        default:
            return multiply(x, m) >> shift;
    }
}

int32_t byte(uint32_t value, bool is_unsigned) {
#pragma HLS inline
    return is_unsigned ? static_cast<int32_t>(value) : static_cast<int32_t>(sign_extend(value, 8u));
}

// One lane: acc and its three parameter words to the clamped result.
int32_t requantize(RequantMode mode, bool is_unsigned, acc_t acc, acc_t bias, acc_t multiplier, acc_t packed) {
#pragma HLS inline
    const ParameterFields p = unpack_parameter(static_cast<uint32_t>(static_cast<int32_t>(packed)));
    const uint32_t x = static_cast<uint32_t>(static_cast<int32_t>(acc)) + static_cast<uint32_t>(static_cast<int32_t>(bias));
    const int64_t y = scaled(mode, static_cast<int32_t>(x), static_cast<uint32_t>(static_cast<int32_t>(multiplier)), p.shift) +
                      byte(p.zero_point, is_unsigned);
    const int64_t low = byte(p.low, is_unsigned), high = byte(p.high, is_unsigned);
    const int64_t limited = y < high ? y : high;
    return static_cast<int32_t>(limited > low ? limited : low);
}

}  // namespace

bool run_requant(const Command& command, acc_t acc_mem[ACC_DEPTH][LANES], out_t out_mem[ACC_DEPTH][LANES],
                 token_stream& alive, Report& report) {
    const RequantFields f = unpack_requant(command.word);
    const RequantMode mode = static_cast<RequantMode>(f.mode);
    const bool is_unsigned = f.unsigned_out != 0, clear = f.clear != 0, write = f.write_acc != 0;
    const uint32_t outer[3] = {f.data_factor_out, f.param_factor_out, 0};
    const uint32_t inner[3] = {f.data_factor_in, f.param_factor_in, 0};
    const uint64_t total = static_cast<uint64_t>(f.iter_out) * f.iter_in;
    Nest nest = nest_at_start(0);
    Recent recent;
#pragma HLS array_partition variable = recent.index complete
#pragma HLS array_partition variable = recent.value complete dim = 0
    forget(recent);
    acc_t parameters[PARAMETER_WORDS][LANES];
#pragma HLS array_partition variable = parameters complete dim = 0
    uint64_t held = ACC_DEPTH;  // where the parameters came from; nowhere yet
    bool fault = false;
    for (uint64_t n = 0; n < total && !fault; ++n) {
#pragma HLS pipeline II = REQUANT_CYCLES
#pragma HLS loop_tripcount min = 16 max = 65536
#pragma HLS dependence variable = acc_mem type = inter false
        const uint64_t data = f.data_base + nest.first, from = f.param_base + nest.second;
        fault = data >= ACC_DEPTH || from + PARAMETER_WORDS - 1 >= ACC_DEPTH;
        if (!fault) {
            if (from != held) {
                for (uint32_t k = 0; k < PARAMETER_WORDS; ++k) {
#pragma HLS unroll
                    acc_read(acc_mem, recent, static_cast<uint32_t>(from) + k, parameters[k]);
                }
                held = from;
            }
            const uint32_t at = static_cast<uint32_t>(data);
            acc_t value[LANES], next[LANES];
#pragma HLS array_partition variable = value complete
#pragma HLS array_partition variable = next complete
            acc_read(acc_mem, recent, at, value);
            for (uint32_t lane = 0; lane < LANES; ++lane) {
#pragma HLS unroll
                const int32_t result = requantize(mode, is_unsigned, value[lane], parameters[0][lane], parameters[1][lane],
                                                  parameters[2][lane]);
                out_mem[at][lane] = static_cast<out_t>(low_bits<OUT_BITS>(result));
                next[lane] = static_cast<acc_t>(clear ? 0 : result);
            }
            if (clear || write) acc_write(acc_mem, recent, at, next);
            advance(nest, 0, 1, f.iter_in, outer, inner);
            if (n % LIVE_EVERY == 0) live(alive);
        }
    }
    if (fault) {
        report = fault_of(Cause::INDEX_RANGE, command.index);
        return false;
    }
    report.counter = counter::REQUANT_VECTORS;
    report.amount = total;
    report.acc_writes = clear || write ? total : 0;
    return true;
}

}  // namespace openvta
