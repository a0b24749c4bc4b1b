// SPDX-License-Identifier: Apache-2.0
// Compiled memory and host for fast_top.sv. Python reaches it through the C functions at the end, in the same
// process; while the simulation runs no Python is called.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <vector>

#include "svdpi.h"

#ifdef TRACE
constexpr bool TRACED = true;
#else
constexpr bool TRACED = false;
#endif

namespace {

struct Settings {
    uint64_t readLatency = 1;      // cycles from the AR handshake to the first beat
    uint64_t writeLatency = 1;     // cycles from the last W beat to B
    uint32_t outstanding = 64;     // bursts accepted in each direction
    uint32_t closedEvery = 0;      // every n-th cycle of a request R and W are closed; 0: never
    uint64_t latencySpread = 0;    // random cycles more, at most, a burst
    uint32_t stall = 0;            // chance of 256 that a channel stands still in a cycle
    uint32_t inside = 0;           // chance of 256 that a stall point inside the design is closed in a cycle
    uint32_t disorder = 0;         // beats of different ids come in any order
};

struct Fault {
    uint64_t base, bytes;
    uint32_t response;
    bool write;
};

struct Burst {
    uint64_t address, ready;
    uint32_t id, beats, tag, beat;
};

struct Response {
    uint64_t ready;
    uint32_t id, code;
};

enum class Kind : uint32_t { Write, Read, Wait, Reset, Delay };

struct Op {
    Kind kind;
    uint32_t address, data, mask;
    uint64_t bound;
};

struct Retired {
    uint64_t cycle, hash;
    uint32_t unit, index;
};

struct Cell {
    uint64_t key;
    uint32_t value;
};

uint8_t* memory = nullptr;
uint64_t memoryBase = 0, memoryBytes = 0;
Settings settings;
std::vector<Fault> faults;
uint64_t cycle = 0;
uint64_t requested = 0;  // cycle of the last request: a launch takes the same cycles whatever was run before it
bool inReset = true;
constexpr uint32_t kLost = 4;              // response code of a fault: none is given as long as the fault is there

uint32_t faultOf(bool write, uint64_t address, uint64_t bytes) {
    if (address < memoryBase || address + bytes > memoryBase + memoryBytes) return 3;  // DECERR
    for (const Fault& f : faults)
        if (f.write == write && address < f.base + f.bytes && f.base < address + bytes) return f.response;
    return 0;
}

// Random numbers (xorshift64*), so that a seed repeats a run.
uint64_t randomState = 1;

uint32_t drawn() {
    randomState ^= randomState >> 12;
    randomState ^= randomState << 25;
    randomState ^= randomState >> 27;
    return static_cast<uint32_t>(randomState * 0x2545F4914F6CDD1DULL >> 32);
}

bool chance(uint32_t of256) { return of256 != 0 && (drawn() & 255) < of256; }

uint64_t later(uint64_t latency) {
    return cycle + latency + (settings.latencySpread == 0 ? 0 : drawn() % (settings.latencySpread + 1));
}

bool closed() {
    return (settings.closedEvery != 0 && (cycle - requested) % settings.closedEvery == 0) || chance(settings.stall);
}

// Rules of the bus that the accelerator broke: how many, and the first in words.
uint64_t violations = 0;
char violation[160] = "";

void broken(const char* channel, const char* rule, uint64_t value) {
    if (violations++ == 0)
        std::snprintf(violation, sizeof violation, "%s: %s (%#llx) in cycle %llu", channel, rule,
                      static_cast<unsigned long long>(value), static_cast<unsigned long long>(cycle));
}

// An address that was offered and not taken must be offered again.
struct Offer {
    bool held = false;
    uint64_t address = 0;
    uint32_t id = 0, len = 0;

    void see(const char* channel, bool valid, bool ready, uint64_t a, uint32_t i, uint32_t l) {
        constexpr uint32_t kBytes = DATA_BITS / 8;
        if (held && !valid) broken(channel, "an address was taken back", address);
        if (held && valid && (a != address || i != id || l != len)) broken(channel, "an offered address changed", a);
        if (valid && !held) {
            uint64_t last = a + uint64_t(l) * kBytes;
            if (a % kBytes != 0) broken(channel, "not aligned to a beat", a);
            if (a >> 12 != last >> 12) broken(channel, "a burst crosses 4 KiB", a);
            if (a / kBytes / BURST_BEATS != last / kBytes / BURST_BEATS) broken(channel, "a burst leaves its window", a);
        }
        held = valid && !ready;
        address = a;
        id = i;
        len = l;
    }
};

// What instructions wrote, until they retire.
std::unordered_map<uint32_t, std::vector<Cell>> written;

uint64_t mix(uint64_t v) {
    v = (v ^ v >> HASH_SHIFT_1) * HASH_FACTOR_1;
    v = (v ^ v >> HASH_SHIFT_2) * HASH_FACTOR_2;
    return v ^ v >> HASH_SHIFT_3;
}

void wrote(uint32_t memory_, uint32_t tag, uint64_t address, uint32_t word, uint32_t value) {
    uint64_t key = uint64_t(memory_) << HASH_MEMORY_SHIFT ^ uint64_t(word) << HASH_WORD_SHIFT ^ address;
    written[tag].push_back({key, value});
}

uint64_t hashOf(uint32_t tag) {
    auto found = written.find(tag);
    if (found == written.end()) return 0;
    std::vector<Cell>& cells = found->second;
    std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.key < b.key; });
    uint64_t sum = 0;
    for (size_t i = 0; i < cells.size(); ++i)
        if (i + 1 == cells.size() || cells[i + 1].key != cells[i].key)
            sum += mix(mix(cells[i].key + HASH_STEP) ^ (cells[i].value * HASH_STEP));
    written.erase(found);
    return sum;
}

// Read channel ------------------------------------------------------------------------------------
std::deque<Burst> reads;
bool arready = false, rvalid = false, rlast = false;
size_t current = 0;                        // place in `reads` of the burst whose beat is offered
uint32_t lastId = 0;
Offer arOffer;

// Write channel -----------------------------------------------------------------------------------
std::deque<Burst> writes;
std::deque<Response> responses;
bool awready = false, wready = false, bvalid = false;
uint32_t wbeat = 0, wcode = 0;
bool wheld = false;
uint64_t wsum = 0;
Offer awOffer;

// The oldest burst of an id that may give a beat; with `disorder` any id's, else only the oldest of all.
bool chooseRead() {
    size_t found = 0;
    bool any = false;
    uint64_t seen = 0;                     // ids that have an older burst
    uint32_t count = 0;
    for (size_t i = 0; i < reads.size(); ++i) {
        const Burst& burst = reads[i];
        if (seen >> burst.id & 1) continue;
        seen |= uint64_t(1) << burst.id;
        uint64_t address = burst.address + uint64_t(burst.beat) * (DATA_BITS / 8);
        if (cycle + 1 >= burst.ready && faultOf(false, address, DATA_BITS / 8) != kLost) {
            any = true;
            if (drawn() % ++count == 0) found = i;
        }
        if (!settings.disorder) break;
    }
    if (any) current = found;
    return any;
}

// Host --------------------------------------------------------------------------------------------
std::deque<Op> ops;
std::vector<uint32_t> results;
std::vector<Retired> retired;
std::vector<uint64_t> gemmEnds;            // cycle of the last micro-op of each GEMM
bool hostAw = false, hostW = false, hostB = false, hostAr = false, hostR = false;
bool active = false, announced = true;
uint64_t opStart = 0, resetLeft = 16;
constexpr uint32_t kPollInterval = 16;
uint64_t nextPoll = 0, busStart = 0, completed = 0;
int64_t stuck = -1;                        // place in the request of an operation the registers did not answer
uint64_t delayLeft = 0;
constexpr uint64_t kBusCycles = 1 << 14;   // cycles a register access may take

}  // namespace

extern "C" {

void fast_read(svBit arvalid, svBit rready, int arid, int64_t araddr, int arlen, svBit* out_arready, svBit* out_rvalid,
               svBit* out_rlast, int* rid, int* rresp, svBitVecVal* rdata) {
    constexpr uint32_t kBytes = DATA_BITS / 8;
    if (inReset) {  // what comes out of registers that start with anything is no offer
        reads.clear();
        arready = rvalid = rlast = false;
        arOffer = Offer();
        *out_arready = *out_rvalid = *out_rlast = 0;
        return;
    }
    if (arvalid && arready)
        reads.push_back({static_cast<uint64_t>(araddr) & ~uint64_t(kBytes - 1), later(settings.readLatency),
                         static_cast<uint32_t>(arid), static_cast<uint32_t>(arlen) + 1, 0, 0});
    arOffer.see("AR", arvalid, arready, static_cast<uint64_t>(araddr), static_cast<uint32_t>(arid),
                static_cast<uint32_t>(arlen));
    bool taken = rvalid && rready;
    if (taken) {
        if (rlast)
            reads.erase(reads.begin() + static_cast<std::ptrdiff_t>(current));
        else
            ++reads[current].beat;
    }
    if (!rvalid || taken) rvalid = !reads.empty() && !closed() && chooseRead();
    if (rvalid) {
        const Burst& burst = reads[current];
        uint64_t address = burst.address + uint64_t(burst.beat) * kBytes;
        uint32_t code = faultOf(false, address, kBytes);
        rlast = burst.beat + 1 == burst.beats;
        *rid = static_cast<int>(burst.id);
        *rresp = static_cast<int>(code);
        if (code == 0)
            std::memcpy(rdata, memory + (address - memoryBase), kBytes);
        else
            std::memset(rdata, 0, kBytes);
    } else {
        rlast = false;
    }
    arready = reads.size() < settings.outstanding && !chance(settings.stall);
    *out_arready = arready;
    *out_rvalid = rvalid;
    *out_rlast = rlast;
}

void fast_write(svBit awvalid, svBit wvalid, svBit wlast, svBit bready, int awid, int64_t awaddr, int awlen, int awtag,
                const svBitVecVal* wdata, int64_t wstrb, svBit* out_awready, svBit* out_wready, svBit* out_bvalid,
                int* bid, int* bresp) {
    constexpr uint32_t kBytes = DATA_BITS / 8;
    if (inReset) {
        writes.clear();
        responses.clear();
        wbeat = wcode = 0;
        awready = wready = bvalid = wheld = false;
        awOffer = Offer();
        *out_awready = *out_wready = *out_bvalid = 0;
        return;
    }
    if (awvalid && awready)
        writes.push_back({static_cast<uint64_t>(awaddr) & ~uint64_t(kBytes - 1), 0, static_cast<uint32_t>(awid),
                          static_cast<uint32_t>(awlen) + 1, static_cast<uint32_t>(awtag), 0});
    awOffer.see("AW", awvalid, awready, static_cast<uint64_t>(awaddr), static_cast<uint32_t>(awid),
                static_cast<uint32_t>(awlen));
    uint64_t sum = (static_cast<uint64_t>(wstrb) * HASH_STEP) ^ wlast;
    for (uint32_t i = 0; i < DATA_BITS / 32; ++i) sum = mix(sum ^ wdata[i]);
    if (wheld && (!wvalid || sum != wsum)) broken("W", "an offered beat changed or was taken back", wstrb);
    wheld = wvalid && !wready;
    wsum = sum;
    if (wvalid && wready) {
        const Burst& burst = writes.front();
        uint64_t address = burst.address + uint64_t(wbeat) * kBytes;
        uint32_t code = faultOf(true, address, kBytes);
        if (code == 0) {
            const uint8_t* bytes = reinterpret_cast<const uint8_t*>(wdata);
            uint64_t strobes = static_cast<uint64_t>(wstrb);
            for (uint32_t i = 0; i < kBytes; ++i)
                if (strobes >> i & 1) {
                    memory[address - memoryBase + i] = bytes[i];
                    if (TRACED) wrote(HASH_DEVICE_MEMORY, burst.tag, address + i, 0, bytes[i]);
                }
        } else {
            wcode = code;
        }
        ++wbeat;
        if (wlast != (wbeat == burst.beats)) broken("W", "last beat where the address said otherwise", burst.address);
        if (wlast || wbeat == burst.beats) {
            responses.push_back({later(settings.writeLatency), burst.id, wcode});
            writes.pop_front();
            wbeat = wcode = 0;
        }
    }
    bool taken = bvalid && bready;
    if (taken) responses.pop_front();
    if (!bvalid || taken)
        bvalid = !responses.empty() && cycle + 1 >= responses.front().ready && responses.front().code != kLost &&
                 !chance(settings.stall);
    if (bvalid) {
        *bid = static_cast<int>(responses.front().id);
        *bresp = static_cast<int>(responses.front().code);
    }
    awready = writes.size() + responses.size() < settings.outstanding && !chance(settings.stall);
    wready = !writes.empty() && !closed();
    *out_awready = awready;
    *out_wready = wready;
    *out_bvalid = bvalid;
}

void fast_retire(svBit load, svBit compute, svBit store, int loadIndex, int computeIndex, int storeIndex) {
    if (inReset) return;  // registers may start with anything
    auto add = [](uint32_t unit, int index) {
        uint32_t tag = static_cast<uint32_t>(index);
        retired.push_back({cycle, TRACED ? hashOf(tag) : 0, unit, tag});
    };
    if (load) add(1, loadIndex);
    if (compute) add(2, computeIndex);
    if (store) add(3, storeIndex);
}

void fast_gemm_last() {
    if (!inReset) gemmEnds.push_back(cycle);
}
// What trace_taps.sv says.
void fast_cell(int memory_, int tag, int address, int word, int value) {
    wrote(static_cast<uint32_t>(memory_), static_cast<uint32_t>(tag), static_cast<uint32_t>(address),
          static_cast<uint32_t>(word), static_cast<uint32_t>(value));
}

void fast_launch() { written.clear(); }

svBit fast_open() { return !chance(settings.inside); }

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
        } else if (op.kind == Kind::Delay) {
            delayLeft = op.bound;
        } else if (op.kind == Kind::Reset) {
            inReset = true;
            resetLeft = 16;
            written.clear();
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
        if (op.kind == Kind::Delay) {
            done = delayLeft == 0 || --delayLeft == 0;
        } else if (op.kind == Kind::Write) {
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

void fast_settings(uint64_t readLatency, uint64_t writeLatency, uint32_t outstanding, uint32_t closedEvery,
                   uint64_t latencySpread, uint32_t stall, uint32_t inside, uint32_t disorder, uint64_t seed) {
    settings = {readLatency, writeLatency, outstanding, closedEvery, latencySpread, stall, inside, disorder};
    randomState = mix(seed + HASH_STEP) | 1;
}

// Responses that were held back come now.
void fast_clear_faults() {
    faults.clear();
    for (Response& response : responses)
        if (response.code == kLost) response.code = 0;
}

void fast_fault(uint64_t base, uint64_t bytes, uint32_t response, uint32_t write) {
    faults.push_back({base, bytes, response, write != 0});
}

void fast_push(uint32_t kind, uint32_t address, uint32_t data, uint32_t mask, uint64_t bound) {
    if (announced) {
        completed = 0;
        stuck = -1;
        requested = cycle;
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
        *into++ = r.hash;
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

uint64_t fast_violations() { return violations; }

const char* fast_violation() { return violation; }

}  // extern "C"
