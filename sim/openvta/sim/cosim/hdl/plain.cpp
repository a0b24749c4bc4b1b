// SPDX-License-Identifier: Apache-2.0
// A plain loop around fast_top: no VPI, no Python, the clock driven from here. It measures what the simulation itself
// costs. Usage: plain MEMORY BASE BYTES READ_LATENCY WRITE_LATENCY OUTSTANDING CLOSED_EVERY CYCLES < requests
// A request is lines "kind address data mask bound" and a line "run"; each run answers "cycles nanoseconds values...".
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

extern "C" {
void fast_memory(uint8_t* data, uint64_t base, uint64_t bytes);
void fast_settings(uint64_t readLatency, uint64_t writeLatency, uint32_t outstanding, uint32_t closedEvery,
                   uint64_t latencySpread, uint32_t stall, uint32_t inside, uint32_t disorder, uint64_t seed);
void fast_push(uint32_t kind, uint32_t address, uint32_t data, uint32_t mask, uint64_t bound);
uint64_t fast_results(uint32_t* into, uint64_t capacity);
uint64_t fast_retired_count();
void fast_retired(uint64_t* into);
uint64_t fast_gemm_count();
void fast_gemm_ends(uint64_t* into);
}

double sc_time_stamp() { return 0; }

static uint64_t number(const char* text) { return std::strtoull(text, nullptr, 0); }

int main(int argc, char** argv) {
    if (argc != 9) {
        std::fprintf(stderr, "plain: 8 arguments needed, %d given\n", argc - 1);
        return 2;
    }
    uint64_t bytes = number(argv[3]), limit = number(argv[8]);
    int file = open(argv[1], O_RDWR);
    void* memory = file < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        std::perror(argv[1]);
        return 2;
    }
    fast_memory(static_cast<uint8_t*>(memory), number(argv[2]), bytes);
    fast_settings(number(argv[4]), number(argv[5]), static_cast<uint32_t>(number(argv[6])),
                  static_cast<uint32_t>(number(argv[7])), 0, 0, 0, 0, 1);
    auto top = std::make_unique<Vtop>();
    top->clock = 0;
    top->eval();
    char line[256];
    uint64_t operations = 0;
    while (std::fgets(line, sizeof line, stdin)) {
        uint32_t kind, address, data, mask;
        uint64_t bound;
        if (std::sscanf(line, "%u %u %u %u %" SCNu64, &kind, &address, &data, &mask, &bound) == 5) {
            fast_push(kind, address, data, mask, bound);
            ++operations;
            continue;
        }
        if (std::strncmp(line, "run", 3) != 0) {
            std::fprintf(stderr, "plain: not a request: %s", line);
            return 2;
        }
        bool before = top->wake_out;
        uint64_t cycles = 0;
        auto start = std::chrono::steady_clock::now();
        while (top->wake_out == before && cycles < limit) {
            top->clock = 1;
            top->eval();
            top->clock = 0;
            top->eval();
            ++cycles;
        }
        auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start);
        if (top->wake_out == before) {
            std::fprintf(stderr, "plain: no end after %" PRIu64 " cycles\n", cycles);
            return 3;
        }
        std::vector<uint64_t> events(3 * fast_retired_count() + fast_gemm_count() + 1);
        fast_retired(events.data());
        fast_gemm_ends(events.data());
        std::vector<uint32_t> values(operations + 1);
        uint64_t count = fast_results(values.data(), values.size());
        std::printf("%" PRIu64 " %lld", cycles, static_cast<long long>(time.count()));
        for (uint64_t n = 0; n < count; ++n) std::printf(" %u", values[n]);
        std::printf("\n");
        std::fflush(stdout);
        operations = 0;
    }
    top->final();
    return 0;
}
