// SPDX-License-Identifier: Apache-2.0
// Compiled memory and host for fast_top.sv. Python reaches it through the C functions at the end, in the same
// process; while the simulation runs no Python is called.
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "svdpi.h"

namespace {

struct Settings {
    uint64_t readLatency = 1;      // cycles from the AR handshake to the first beat
    uint64_t writeLatency = 1;     // cycles from the last W beat to B
    uint32_t outstanding = 64;     // bursts accepted in each direction
    uint32_t closedEvery = 0;      // every n-th cycle R and W are closed; 0: never
};

struct Fault {
    uint64_t base, bytes;
    uint32_t response;
    bool write;
};

struct Burst {
    uint64_t address, ready;
    uint32_t id, beats;
};

struct Response {
    uint64_t ready;
    uint32_t id, code;
};

enum class Kind : uint32_t { Write, Read, Wait, Reset };

struct Op {
    Kind kind;
    uint32_t address, data, mask;
    uint64_t bound;
};

struct Retired {
    uint64_t cycle;
    uint32_t unit, index;
};

uint8_t* memory = nullptr;
uint64_t memoryBase = 0, memoryBytes = 0;
Settings settings;
std::vector<Fault> faults;
uint64_t cycle = 0;

uint32_t faultOf(bool write, uint64_t address, uint64_t bytes) {
    if (address < memoryBase || address + bytes > memoryBase + memoryBytes) return 3;  // DECERR
    for (const Fault& f : faults)
        if (f.write == write && address < f.base + f.bytes && f.base < address + bytes) return f.response;
    return 0;
}

bool closed() { return settings.closedEvery != 0 && cycle % settings.closedEvery == 0; }

// Read channel ------------------------------------------------------------------------------------
std::deque<Burst> reads;
bool arready = false, rvalid = false, rlast = false;
uint32_t beat = 0;

// Write channel -----------------------------------------------------------------------------------
std::deque<Burst> writes;
std::deque<Response> responses;
bool awready = false, wready = false, bvalid = false;
uint32_t wbeat = 0, wcode = 0;

// Host --------------------------------------------------------------------------------------------
std::deque<Op> ops;
std::vector<uint32_t> results;
std::vector<Retired> retired;
std::vector<uint64_t> gemmEnds;            // cycle of the last micro-op of each GEMM
bool hostAw = false, hostW = false, hostB = false, hostAr = false, hostR = false, inReset = true;
bool active = false, announced = true;
uint64_t opStart = 0, resetLeft = 16;
constexpr uint32_t kPollInterval = 16;
uint64_t nextPoll = 0, busStart = 0, completed = 0;
int64_t stuck = -1;                        // place in the request of an operation the registers did not answer
constexpr uint64_t kBusCycles = 1 << 14;   // cycles a register access may take

}  // namespace

extern "C" {

void fast_read(svBit arvalid, svBit rready, int arid, int64_t araddr, int arlen, svBit* out_arready, svBit* out_rvalid,
               svBit* out_rlast, int* rid, int* rresp, svBitVecVal* rdata) {
    constexpr uint32_t kBytes = DATA_BITS / 8;
    if (arvalid && arready)
        reads.push_back({static_cast<uint64_t>(araddr) & ~uint64_t(kBytes - 1), cycle + settings.readLatency,
                         static_cast<uint32_t>(arid), static_cast<uint32_t>(arlen) + 1});
    bool taken = rvalid && rready;
    if (taken) {
        if (rlast) {
            reads.pop_front();
            beat = 0;
        } else {
            ++beat;
        }
    }
    if (!rvalid || taken) rvalid = !reads.empty() && cycle + 1 >= reads.front().ready && !closed();
    if (rvalid) {
        const Burst& burst = reads.front();
        uint64_t address = burst.address + uint64_t(beat) * kBytes;
        uint32_t code = faultOf(false, address, kBytes);
        rlast = beat + 1 == burst.beats;
        *rid = static_cast<int>(burst.id);
        *rresp = static_cast<int>(code);
        if (code == 0)
            std::memcpy(rdata, memory + (address - memoryBase), kBytes);
        else
            std::memset(rdata, 0, kBytes);
    } else {
        rlast = false;
    }
    arready = reads.size() < settings.outstanding;
    *out_arready = arready;
    *out_rvalid = rvalid;
    *out_rlast = rlast;
}

void fast_write(svBit awvalid, svBit wvalid, svBit wlast, svBit bready, int awid, int64_t awaddr, int awlen,
                const svBitVecVal* wdata, int64_t wstrb, svBit* out_awready, svBit* out_wready, svBit* out_bvalid,
                int* bid, int* bresp) {
    constexpr uint32_t kBytes = DATA_BITS / 8;
    if (awvalid && awready)
        writes.push_back({static_cast<uint64_t>(awaddr) & ~uint64_t(kBytes - 1), 0, static_cast<uint32_t>(awid),
                          static_cast<uint32_t>(awlen) + 1});
    if (wvalid && wready) {
        const Burst& burst = writes.front();
        uint64_t address = burst.address + uint64_t(wbeat) * kBytes;
        uint32_t code = faultOf(true, address, kBytes);
        if (code == 0) {
            const uint8_t* bytes = reinterpret_cast<const uint8_t*>(wdata);
            uint64_t strobes = static_cast<uint64_t>(wstrb);
            for (uint32_t i = 0; i < kBytes; ++i)
                if (strobes >> i & 1) memory[address - memoryBase + i] = bytes[i];
        } else {
            wcode = code;
        }
        ++wbeat;
        if (wlast || wbeat == burst.beats) {
            responses.push_back({cycle + settings.writeLatency, burst.id, wcode});
            writes.pop_front();
            wbeat = wcode = 0;
        }
    }
    bool taken = bvalid && bready;
    if (taken) responses.pop_front();
    if (!bvalid || taken) bvalid = !responses.empty() && cycle + 1 >= responses.front().ready;
    if (bvalid) {
        *bid = static_cast<int>(responses.front().id);
        *bresp = static_cast<int>(responses.front().code);
    }
    awready = writes.size() + responses.size() < settings.outstanding;
    wready = !writes.empty() && !closed();
    *out_awready = awready;
    *out_wready = wready;
    *out_bvalid = bvalid;
}

void fast_retire(svBit load, svBit compute, svBit store, int loadIndex, int computeIndex, int storeIndex) {
    if (load) retired.push_back({cycle, 1, static_cast<uint32_t>(loadIndex)});
    if (compute) retired.push_back({cycle, 2, static_cast<uint32_t>(computeIndex)});
    if (store) retired.push_back({cycle, 3, static_cast<uint32_t>(storeIndex)});
}

void fast_gemm_last() { gemmEnds.push_back(cycle); }

// One operation at a time; called last of the four, it advances the cycle. Returns 1 when the queue has run empty.
svBit fast_host(svBit awr, svBit wr, svBit bv, svBit arr, svBit rv, int rdata, svBit* out_aresetn, svBit* awvalid,
                svBit* wvalid, svBit* bready, svBit* arvalid, svBit* rready, int* awaddr, int* wdata, int* araddr) {
    ++cycle;
    if (inReset && resetLeft-- == 0) inReset = false;
    if (!inReset && !active && !ops.empty()) {
        active = true;
        opStart = cycle;
        const Op& op = ops.front();
        if (op.kind == Kind::Write) {
            hostAw = hostW = hostB = true;
            busStart = cycle;
        } else if (op.kind == Kind::Reset) {
            inReset = true;
            resetLeft = 16;
            reads.clear();
            writes.clear();
            responses.clear();
            beat = wbeat = wcode = 0;
            arready = rvalid = rlast = awready = wready = bvalid = false;
            ops.pop_front();
            ++completed;
            active = false;
        } else {
            hostAr = hostR = true;
            busStart = cycle;
        }
    } else if (active) {
        const Op op = ops.front();
        bool done = false;
        if (op.kind == Kind::Write) {
            if (hostAw && awr) hostAw = false;
            if (hostW && wr) hostW = false;
            if (hostB && bv) hostB = false, done = true;
        } else {
            if (hostAr && arr) hostAr = false;
            if (hostR && rv) {
                hostR = false;
                uint32_t value = static_cast<uint32_t>(rdata);
                bool hit = op.kind == Kind::Read || (value & op.mask) == op.data;
                bool late = op.kind == Kind::Wait && cycle - opStart >= op.bound;
                if (hit || late) {
                    results.push_back(op.kind == Kind::Wait ? (hit ? 1u : 0u) : value);
                    done = true;
                } else {
                    nextPoll = cycle + kPollInterval;
                }
            } else if (!hostR && !hostAr && cycle >= nextPoll) {
                hostAr = hostR = true;
                busStart = cycle;
            }
        }
        // Registers that do not answer must not stop us: give up, and tell which operation it was.
        if (!done && (hostB || hostR) && cycle - busStart >= kBusCycles) {
            stuck = static_cast<int64_t>(completed);
            hostAw = hostW = hostB = hostAr = hostR = false;
            ops.clear();
            active = false;
        }
        if (done) {
            ++completed;
            ops.pop_front();
            active = false;
        }
    }
    if (active) {
        const Op& op = ops.front();
        *awaddr = *araddr = static_cast<int>(op.address);
        *wdata = static_cast<int>(op.data);
    } else {
        *awaddr = *araddr = *wdata = 0;
    }
    *out_aresetn = !inReset;
    *awvalid = hostAw;
    *wvalid = hostW;
    *bready = hostB;
    *arvalid = hostAr;
    *rready = hostR;
    bool empty = ops.empty() && !active && !inReset;
    bool tell = empty && !announced;
    if (tell) announced = true;
    return tell;
}

// What Python calls -------------------------------------------------------------------------------
void fast_memory(uint8_t* data, uint64_t base, uint64_t bytes) {
    memory = data;
    memoryBase = base;
    memoryBytes = bytes;
}

void fast_settings(uint64_t readLatency, uint64_t writeLatency, uint32_t outstanding, uint32_t closedEvery) {
    settings = {readLatency, writeLatency, outstanding, closedEvery};
}

void fast_clear_faults() { faults.clear(); }

void fast_fault(uint64_t base, uint64_t bytes, uint32_t response, uint32_t write) {
    faults.push_back({base, bytes, response, write != 0});
}

void fast_push(uint32_t kind, uint32_t address, uint32_t data, uint32_t mask, uint64_t bound) {
    if (announced) {
        completed = 0;
        stuck = -1;
    }
    ops.push_back({static_cast<Kind>(kind), address, data, mask, bound});
    announced = false;
}

uint64_t fast_results(uint32_t* into, uint64_t capacity) {
    uint64_t count = results.size() < capacity ? results.size() : capacity;
    std::memcpy(into, results.data(), count * sizeof(uint32_t));
    results.clear();
    return count;
}

uint64_t fast_retired_count() { return retired.size(); }

void fast_retired(uint64_t* into) {
    for (const Retired& r : retired) {
        *into++ = r.cycle;
        *into++ = uint64_t(r.unit) << 32 | r.index;
    }
    retired.clear();
}

uint64_t fast_gemm_count() { return gemmEnds.size(); }

void fast_gemm_ends(uint64_t* into) {
    for (uint64_t end : gemmEnds) *into++ = end;
    gemmEnds.clear();
}

uint64_t fast_cycle() { return cycle; }

int64_t fast_stuck() { return stuck; }

}  // extern "C"
