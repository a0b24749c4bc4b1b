// SPDX-License-Identifier: Apache-2.0
// Recorded sessions with the core: what the host does, and what memory and registers must hold. A file is the memory's address
// and size (two 64-bit numbers behind the mark), then operations: a 32-bit kind, a 64-bit address or offset, a 64-bit count or
// value, and for memory so many bytes. Little endian.
#ifndef OPENVTA_VTA_CASE_H
#define OPENVTA_VTA_CASE_H

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace openvta_case {

const char MARK[9] = "OVTACASE";

enum Kind { PUT = 1, WRITE = 2, WAIT = 3, EXPECT = 4, EXPECT_REGISTER = 5 };

struct Operation {
    uint32_t kind;
    uint64_t at;
    uint64_t value;
    std::vector<uint8_t> bytes;
};

struct Case {
    uint64_t base;
    uint64_t size;
    std::vector<Operation> operations;
};

inline uint64_t number(FILE* file, int bytes, bool& good) {
    uint64_t value = 0;
    for (int n = 0; n < bytes; ++n) {
        const int next = std::fgetc(file);
        good = good && next != EOF;
        value |= static_cast<uint64_t>(next & 255) << (8 * n);
    }
    return value;
}

// Read a file; false where it is damaged.
inline bool read_case(const char* path, Case& result) {
    FILE* file = std::fopen(path, "rb");
    if (file == nullptr) return false;
    char mark[8];
    bool good = std::fread(mark, 1, 8, file) == 8 && std::memcmp(mark, MARK, 8) == 0;
    result.base = number(file, 8, good);
    result.size = number(file, 8, good);
    const uint64_t count = number(file, 8, good);
    for (uint64_t n = 0; good && n < count; ++n) {
        Operation op;
        op.kind = static_cast<uint32_t>(number(file, 4, good));
        op.at = number(file, 8, good);
        op.value = number(file, 8, good);
        if (op.kind == PUT || op.kind == EXPECT) {
            good = good && op.at >= result.base && op.value <= result.size && op.at - result.base <= result.size - op.value;
            if (!good) break;
            op.bytes.resize(op.value);
            good = std::fread(op.bytes.data(), 1, op.value, file) == op.value;
        }
        result.operations.push_back(op);
    }
    std::fclose(file);
    return good;
}

// Play a session; the number of things that were not as expected. HOST has write(offset, value), read(offset) and wait(),
// which is false where the core does not stop.
template <class HOST>
int play(const Case& session, uint8_t* memory, HOST& host, const char* name) {
    int wrong = 0;
    for (const Operation& op : session.operations) {
        const uint64_t at = op.at - session.base;
        if (op.kind == PUT) {
            std::memcpy(memory + at, op.bytes.data(), op.bytes.size());
        } else if (op.kind == WRITE) {
            host.write(static_cast<uint32_t>(op.at), static_cast<uint32_t>(op.value));
        } else if (op.kind == WAIT) {
            if (!host.wait()) {
                std::printf("%s: the core does not stop\n", name);
                return wrong + 1;
            }
        } else if (op.kind == EXPECT) {
            for (size_t n = 0; n < op.bytes.size(); ++n) {
                if (memory[at + n] == op.bytes[n]) continue;
                std::printf("%s: byte at %#llx is %02x, must be %02x\n", name, static_cast<unsigned long long>(op.at + n),
                            memory[at + n], op.bytes[n]);
                ++wrong;
                break;
            }
        } else {
            const uint32_t value = host.read(static_cast<uint32_t>(op.at));
            if (value != op.value) {
                std::printf("%s: register %#llx is %#x, must be %#llx\n", name, static_cast<unsigned long long>(op.at), value,
                            static_cast<unsigned long long>(op.value));
                ++wrong;
            }
        }
    }
    return wrong;
}

}  // namespace openvta_case

#endif  // OPENVTA_VTA_CASE_H
