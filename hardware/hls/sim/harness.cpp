// SPDX-License-Identifier: Apache-2.0
// The kernel as a library: a host that accesses registers, memory in place, and the core either stepped by the caller or
// run by a thread a stage. One core a loaded library.
#include "vta.h"

#include <memory>
#include <string>
#include <thread>

using namespace openvta;

namespace {

constexpr unsigned STAGES = 5;
constexpr unsigned ACCESS_STEPS = 100000;  // bound of a register access, in steps of the core
constexpr unsigned STEPS_A_POLL = 32;
constexpr unsigned ACCESS_OPERATIONS = 4;  // stream operations of one register read
constexpr int CONTROL_STAGE = 0;
constexpr std::chrono::microseconds TICK{50};     // of the control stage while the host waits: its watchdog counts idle steps
constexpr std::chrono::microseconds REST{20000};  // of a stage that nobody wakes

hls::stream<axil_address_t, 2> aw("axi-lite aw");
hls::stream<axil_data_t, 2> w("axi-lite w");
hls::stream<axil_response_t, 2> b("axi-lite b");
hls::stream<axil_address_t, 2> ar("axi-lite ar");
hls::stream<axil_data_t, 2> r("axi-lite r");
ap_uint<1> interrupt(0);

struct Core {
    uint8_t* memory = nullptr;
    uint64_t base = 0;
    uint64_t bytes = 0;
    std::vector<std::thread> threads;
    std::string error;
    std::string text;
};

Core& core() {
    static Core instance;
    return instance;
}

hls_sim::runtime& runtime() { return hls_sim::runtime::get(); }

// One step of the stages this thread runs.
void step() {
    Core& c = core();
    vta(reinterpret_cast<const insn_word_t*>(c.memory), reinterpret_cast<const uop_word_t*>(c.memory),
        reinterpret_cast<const inp_word_t*>(c.memory), reinterpret_cast<const wgt_word_t*>(c.memory),
        reinterpret_cast<const acc_word_t*>(c.memory), reinterpret_cast<out_word_t*>(c.memory), c.base, c.bytes, aw, w, b, ar,
        r, &interrupt);
}

void run_stage(int stage) {
    hls_sim::stage() = stage;
    uint64_t seen = 0;
    try {
        for (;;) {
            const uint64_t before = hls_sim::operations();
            step();
            std::unique_lock<std::mutex> lock(runtime().mutex);
            if (runtime().stopping) return;
            // Nothing to do: sleep until a stream of this stage has changed since before the step.
            if (hls_sim::operations() == before)
                runtime().sleep(lock, seen, stage == CONTROL_STAGE && runtime().awaited ? TICK : REST);
            seen = runtime().changes();
        }
    } catch (const std::exception& failure) {
        std::lock_guard<std::mutex> lock(runtime().mutex);
        if (!runtime().stopping) core().error = failure.what();
        runtime().end();
    }
}

std::string fills() {
    std::lock_guard<std::mutex> lock(runtime().mutex);
    return runtime().fills();
}

// While the host waits for the core, time passes for the watchdog.
class Awaited {
  public:
    Awaited() { set(true); }
    ~Awaited() { set(false); }
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;

  private:
    static void set(bool value) {
        std::lock_guard<std::mutex> lock(runtime().mutex);
        runtime().awaited = value;
    }
};

// Step, or let the threads step, until `ready`.
template <class Ready>
bool until(Ready ready) {
    if (runtime().threaded) {
        const auto limit = std::chrono::steady_clock::now() + runtime().timeout;
        for (;;) {
            std::unique_lock<std::mutex> lock(runtime().mutex);
            if (runtime().stopping) return false;
            const uint64_t seen = runtime().changes();
            lock.unlock();
            if (ready()) return true;
            lock.lock();
            runtime().sleep(lock, seen, REST);
            lock.unlock();
            if (std::chrono::steady_clock::now() > limit && !ready()) {
                core().error = "a register access was not answered; fills: " + fills();
                return false;
            }
        }
    }
    for (unsigned n = 0; n < ACCESS_STEPS; ++n) {
        if (ready()) return true;
        step();
    }
    core().error = "a register access was not answered; fills: " + fills();
    return false;
}

template <class Body>
int guarded(Body body) {
    try {
        return body();
    } catch (const std::exception& failure) {
        core().error = failure.what();
        return -1;
    }
}

int read_one(uint32_t offset, uint32_t* value) {
    ar.write(axil_address_t(offset));
    if (!until([] { return !r.empty(); })) return -1;
    *value = static_cast<uint32_t>(r.read().data);
    return 0;
}

bool running(uint32_t status) { return unpack_status(status).running != 0; }

int wait_threads(double seconds) {
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
    auto moved = clock::now();
    uint64_t seen = 0, polls = 0;
    auto pause = std::chrono::microseconds(20);
    const Awaited awaited;
    for (;;) {
        uint32_t status = 0;
        if (read_one(reg::STATUS, &status) != 0) return -1;
        if (!running(status)) return 1;
        polls += 1;
        uint64_t activity = 0;
        {
            std::lock_guard<std::mutex> lock(runtime().mutex);
            activity = runtime().activity - ACCESS_OPERATIONS * polls;
        }
        const auto now = clock::now();
        if (activity != seen) moved = now;
        seen = activity;
        if (now - moved > runtime().timeout) {
            const StatusFields f = unpack_status(status);
            core().error = std::string("no stage has moved within the time-out; at hand an instruction: ") +
                           (f.load_busy ? "load " : "") + (f.compute_busy ? "compute " : "") + (f.store_busy ? "store " : "") +
                           "; fills: " + fills();
            return -1;
        }
        if (now > end) return 0;
        std::this_thread::sleep_for(pause);
        if (pause < std::chrono::microseconds(1000)) pause *= 2;
    }
}

int wait_steps(uint64_t steps) {
    for (uint64_t n = 0;; n += STEPS_A_POLL) {
        uint32_t status = 0;
        if (read_one(reg::STATUS, &status) != 0) return -1;
        if (!running(status)) return 1;
        if (n >= steps) return 0;
        for (unsigned k = 0; k < STEPS_A_POLL; ++k) step();
    }
}

}  // namespace

// All else is hidden, so that two loaded cores share nothing.
#pragma GCC visibility push(default)
extern "C" {

// Give the core its memory: `bytes` at device address `base`. `threaded`: a thread a stage, with streams of their declared depth (at
// most `depth_limit` where it is not 0; dependence queues always as declared), and `timeout_ms` as the bound of every wait.
int ovta_start(uint8_t* memory, uint64_t base, uint64_t bytes, int threaded, uint32_t depth_limit, uint32_t timeout_ms) {
    return guarded([&] {
        core().memory = memory;
        core().base = base;
        core().bytes = bytes;
        runtime().threaded = threaded != 0;
        runtime().depth_limit = depth_limit;
        runtime().timeout = std::chrono::milliseconds(timeout_ms);
        for (hls_sim::stream_base* stream : runtime().streams)
            stream->exact = stream->name.find("_to_") != std::string::npos;
        if (threaded != 0)
            for (unsigned stage = 0; stage < STAGES; ++stage) core().threads.emplace_back(run_stage, static_cast<int>(stage));
        return 0;
    });
}

// Answer reads (or writes) of these bytes with an error; none are left where `bytes` is 0. Only while the core does not run.
int ovta_refuse(uint64_t address, uint64_t bytes, int write) {
    return guarded([&] {
        std::lock_guard<std::mutex> lock(runtime().mutex);
        if (bytes == 0) {
            runtime().refusals.clear();
        } else {
            runtime().refusals.push_back({address, bytes, write != 0});
        }
        return 0;
    });
}

int ovta_write(uint32_t offset, uint32_t value) {
    return guarded([&] {
        axil_data_t data;
        data.data = value;
        data.keep = 15;
        data.strb = 15;
        data.user = 0;
        data.last = 1;
        data.id = 0;
        data.dest = 0;
        aw.write(axil_address_t(offset));
        w.write(data);
        if (!until([] { return !b.empty(); })) return -1;
        b.read();
        return 0;
    });
}

int ovta_read(uint32_t offset, uint32_t* value) {
    return guarded([&] { return read_one(offset, value); });
}

// Run until the core stops: 1; still running after so many steps (with threads: seconds): 0; failed, see ovta_error: -1.
int ovta_wait(uint64_t steps, double seconds) {
    return guarded([&] { return runtime().threaded ? wait_threads(seconds) : wait_steps(steps); });
}

int ovta_interrupt() { return static_cast<int>(static_cast<uint32_t>(interrupt)); }

const char* ovta_error() { return core().error.c_str(); }

const char* ovta_fills() {
    core().text = fills();
    return core().text.c_str();
}

// End the threads.
void ovta_stop() {
    {
        std::lock_guard<std::mutex> lock(runtime().mutex);
        runtime().end();
    }
    for (std::thread& thread : core().threads) thread.join();
    core().threads.clear();
}

}  // extern "C"
#pragma GCC visibility pop
