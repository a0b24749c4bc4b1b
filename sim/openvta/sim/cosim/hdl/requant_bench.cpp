// SPDX-License-Identifier: Apache-2.0
// The requantizer lane in RTL against the written rule in 128-bit integers, by the hundred million.
//   requant_bench file IN OUT            every point of IN (7 little-endian words: mode, unsigned, acc, word 0 to 2, unused);
//                                        OUT gets two words a point: the RTL's result and the rule's, both as int32
//   requant_bench random SEED COUNT IN   COUNT points drawn here, both compared; the first KEPT of them are written to IN
// One more argument, a hexadecimal number: bits of the product that are inverted in the RTL on purpose.
// The last line printed is "points mismatches"; lines before it show the first mismatches.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {

typedef __int128 Wide;

struct Point {
    uint32_t mode, isUnsigned, acc, word0, word1, word2, unused;
};

constexpr int kLatency = LATENCY;
constexpr uint32_t kModes[] = {MODE_HALF_UP, MODE_HALF_EVEN, MODE_TFLITE_DOUBLE, MODE_TFLITE_RUY, MODE_FLOAT32, MODE_FLOOR};
constexpr uint64_t kKept = 120000;
constexpr uint64_t kBlock = 5000;
constexpr int kShown = 8;

// The rule: y of a mode, then zero point and clamp. ---------------------------------------------------------------

int bitLength(Wide value) {
    int bits = 0;
    for (Wide rest = value < 0 ? -value : value; rest != 0; rest >>= 1) ++bits;
    return bits;
}

Wide floorShift(Wide value, int amount) { return amount >= 120 ? (value < 0 ? -1 : 0) : value >> amount; }

/** value / 2^amount to the nearest integer; in the middle between two the even one. */
Wide nearestEven(Wide value, int amount) {
    if (amount == 0) return value;
    if (amount > 120) return 0;
    Wide low = floorShift(value, amount);
    Wide rest = value - (low << amount), half = static_cast<Wide>(1) << (amount - 1);
    if (rest > half || (rest == half && (low & 1))) ++low;
    return low;
}

Wide significant(Wide value, int bits) {
    int excess = bitLength(value) - bits;
    return excess <= 0 ? value : nearestEven(value, excess) << excess;
}

Wide scaled(uint32_t mode, int32_t x, uint32_t multiplier, int t) {
    Wide product = static_cast<Wide>(x) * static_cast<Wide>(multiplier & 0x7FFFFFFFu);
    switch (mode) {
        case MODE_HALF_UP: return t == 0 ? product : floorShift(product + (static_cast<Wide>(1) << (t - 1)), t);
        case MODE_HALF_EVEN: return nearestEven(product, t);
        case MODE_FLOOR: return floorShift(product, t);
        case MODE_TFLITE_DOUBLE:
        case MODE_TFLITE_RUY: {
            int left = t < 31 ? 31 - t : 0, right = t > 31 ? t - 31 : 0;
            int32_t moved = static_cast<int32_t>(static_cast<uint32_t>(x) << left);
            Wide high = (static_cast<Wide>(moved) * (multiplier & 0x7FFFFFFFu) + (static_cast<Wide>(1) << 30)) >> 31;
            if (right == 0) return high;
            Wide nudge = mode == MODE_TFLITE_DOUBLE && high < 0 ? 1 : 0;
            return (high + (static_cast<Wide>(1) << (right - 1)) - nudge) >> right;
        }
        case MODE_FLOAT32: {
            int exponent = multiplier >> 23 & 255;
            if (exponent == 0) return 0;
            Wide value = significant(x, 24) * static_cast<Wide>((1u << 23) | (multiplier & 0x7FFFFFu));
            value = significant(value, 24);
            int power = exponent - 127 - 23;
            // Beyond 2^60 the clamp decides: keep the sign.
            if (power > 0) return bitLength(value) + power > 60 ? (value > 0 ? 1 : value < 0 ? -1 : 0) * (static_cast<Wide>(1) << 60) : value << power;
            return nearestEven(value, -power);
        }
    }
    std::fprintf(stderr, "requant_bench: mode %u\n", mode);
    std::exit(2);
}

int32_t byteOf(uint32_t word, int position, bool isUnsigned) {
    uint32_t raw = word >> position & 255;
    return isUnsigned || raw < 128 ? static_cast<int32_t>(raw) : static_cast<int32_t>(raw) - 256;
}

int32_t rule(const Point& p) {
    int32_t x = static_cast<int32_t>(p.acc + p.word0);
    Wide y = scaled(p.mode, x, p.word1, static_cast<int>(p.word2 & 63)) + byteOf(p.word2, 8, p.isUnsigned);
    int32_t low = byteOf(p.word2, 16, p.isUnsigned), high = byteOf(p.word2, 24, p.isUnsigned);
    int32_t upper = y > high ? high : static_cast<int32_t>(y < -100000 ? -100000 : y);
    return upper < low ? low : upper;
}

// The RTL. ---------------------------------------------------------------------------------------------------------

struct Bench {
    std::unique_ptr<VerilatedContext> context{new VerilatedContext};
    std::unique_ptr<Vtop> top;

    explicit Bench(uint64_t upset) {
        top.reset(new Vtop{context.get(), "requant_bench"});
        top->upset = upset;
        top->reset = 1;
        for (int k = 0; k < 4; ++k) step();
        top->reset = 0;
    }
    void step() {
        top->clock = 0;
        top->eval();
        top->clock = 1;
        top->eval();
    }
    /** Results of points that share mode and signedness, one a cycle. */
    void run(const Point* points, uint64_t count, int32_t* results) {
        top->mode = points[0].mode;
        top->unsigned_out = points[0].isUnsigned;
        for (uint64_t k = 0; k < count + kLatency; ++k) {
            const Point& p = points[k < count ? k : count - 1];
            top->acc = p.acc, top->word0 = p.word0, top->word1 = p.word1, top->word2 = p.word2;
            step();
            // After this edge the point of kLatency - 1 cycles ago is in the last stage.
            if (k + 1 >= static_cast<uint64_t>(kLatency) && k + 1 - kLatency < count)
                results[k + 1 - kLatency] = static_cast<int32_t>(top->result << 23) >> 23;
        }
    }
};

struct Draw {
    uint64_t state;
    uint64_t next() {
        state += 0x9E3779B97F4A7C15ull;
        uint64_t z = state;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ z >> 27) * 0x94D049BB133111EBull;
        return z ^ z >> 31;
    }
    uint32_t below(uint32_t most) { return static_cast<uint32_t>((next() >> 32) * most >> 32); }
    /** A word of any length, near a power of two, or with zeros at its end. */
    uint32_t word(int bits) {
        uint64_t r = next();
        uint32_t value = static_cast<uint32_t>(r) >> (32 - bits);
        switch (r >> 60 & 7) {
            case 0: value >>= r >> 40 & 31; break;
            case 1: value = (1u << (r >> 40) % bits) + static_cast<uint32_t>(r >> 34 & 7) - 3; break;
            case 2: value = value >> (r >> 40 & 15) << (r >> 40 & 15); break;
            case 3: value &= 0xFFFFFFFFu << (r >> 40) % bits; break;
            default: break;
        }
        return bits == 32 ? value : value & ((1u << bits) - 1);
    }
    /** Half of the points are scaled so that their result is near the range of 8 bits. */
    Point point(uint32_t mode, uint32_t isUnsigned) {
        Point p{mode, isUnsigned, 0, 0, 0, 0, 0};
        uint32_t x = word(32);
        if (next() & 1) x = 0u - x;
        p.word0 = next() & 3 ? word(32) : 0;
        p.acc = x - p.word0;
        p.word1 = word(31) | (next() & 7 ? 0 : 1u << 31);
        uint32_t t = below(64);
        uint64_t r = next();
        if (r & 1) {
            int size = bitLength(static_cast<int32_t>(x));
            int want = size + bitLength(p.word1 & 0x7FFFFFFFu) - 9 + static_cast<int>(r >> 8 & 7);
            t = static_cast<uint32_t>(want < 0 ? 0 : want > 63 ? 63 : want);
            int exponent = 127 + 8 - size - static_cast<int>(r >> 16 & 7) + 3;
            p.word1 = mode == MODE_FLOAT32 ? (p.word1 & 0x807FFFFFu) | static_cast<uint32_t>(exponent) << 23 : p.word1;
        }
        uint32_t zero = r >> 24 & 3 ? static_cast<uint32_t>(r >> 32 & 255) : 0;
        uint32_t low = isUnsigned ? 0 : 128, high = isUnsigned ? 255 : 127;
        if ((r >> 26 & 3) == 0) low = r >> 40 & 255, high = r >> 48 & 255;
        p.word2 = t | (static_cast<uint32_t>(r >> 56) & 3) << 6 | zero << 8 | low << 16 | high << 24;
        return p;
    }
};

uint64_t show(const Point& p, int32_t got, int32_t want, uint64_t before) {
    if (before < kShown)
        std::printf("mode %u unsigned %u acc %08x words %08x %08x %08x: %d on the RTL, %d by the rule\n", p.mode,
                    p.isUnsigned, p.acc, p.word0, p.word1, p.word2, got, want);
    return before + 1;
}

std::FILE* openFile(const char* name, const char* how) {
    std::FILE* file = std::fopen(name, how);
    if (!file) {
        std::perror(name);
        std::exit(2);
    }
    return file;
}

int fromFile(const char* in, const char* out, uint64_t upset) {
    std::FILE* file = openFile(in, "rb");
    std::vector<Point> points;
    Point p;
    while (std::fread(&p, sizeof p, 1, file) == 1) points.push_back(p);
    std::fclose(file);
    Bench bench(upset);
    std::vector<int32_t> got(points.size());
    uint64_t mismatches = 0;
    for (uint64_t start = 0, end; start < points.size(); start = end) {
        for (end = start + 1; end < points.size() && points[end].mode == points[start].mode &&
                              points[end].isUnsigned == points[start].isUnsigned; ++end) {}
        bench.run(&points[start], end - start, &got[start]);
    }
    std::FILE* results = openFile(out, "wb");
    for (uint64_t k = 0; k < points.size(); ++k) {
        int32_t pair[2] = {got[k], rule(points[k])};
        std::fwrite(pair, sizeof pair, 1, results);
        if (pair[0] != pair[1]) mismatches = show(points[k], pair[0], pair[1], mismatches);
    }
    std::fclose(results);
    std::printf("%zu %" PRIu64 "\n", points.size(), mismatches);
    return 0;
}

int fromDice(uint64_t seed, uint64_t count, const char* in, uint64_t upset) {
    Bench bench(upset);
    Draw draw{seed * 0x9E3779B97F4A7C15ull + 1};
    std::vector<Point> points(kBlock);
    std::vector<int32_t> got(kBlock);
    std::FILE* kept = openFile(in, "wb");
    uint64_t mismatches = 0, written = 0;
    for (uint64_t done = 0, number = 0; done < count; ++number) {
        uint64_t block = count - done < kBlock ? count - done : kBlock;
        uint32_t mode = kModes[number / 2 % (sizeof kModes / sizeof *kModes)];
        for (uint64_t k = 0; k < block; ++k) points[k] = draw.point(mode, number & 1);
        bench.run(points.data(), block, got.data());
        for (uint64_t k = 0; k < block; ++k) {
            int32_t want = rule(points[k]);
            if (got[k] != want) mismatches = show(points[k], got[k], want, mismatches);
        }
        if (written < kKept) {
            uint64_t more = block < kKept - written ? block : kKept - written;
            std::fwrite(points.data(), sizeof(Point), more, kept);
            written += more;
        }
        done += block;
    }
    std::fclose(kept);
    std::printf("%" PRIu64 " %" PRIu64 "\n", count, mismatches);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::string what = argc > 1 ? argv[1] : "";
    int needed = what == "file" ? 4 : what == "random" ? 5 : argc + 2;
    if (argc != needed && argc != needed + 1) {
        std::fprintf(stderr, "requant_bench: file IN OUT [UPSET] | random SEED COUNT IN [UPSET]\n");
        return 2;
    }
    uint64_t upset = argc > needed ? std::strtoull(argv[needed], nullptr, 16) : 0;
    if (what == "file") return fromFile(argv[2], argv[3], upset);
    return fromDice(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10), argv[4], upset);
}
