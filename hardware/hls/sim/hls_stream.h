// SPDX-License-Identifier: Apache-2.0
// hls::stream for running the kernel under an ordinary C++ compiler: first in, first out, of declared depth.
// One thread (the default): a blocking write to a full stream makes room, a blocking read of an empty one is an error, as in the
// vendors' C simulation; full() and write_nb() honour the depth. With threads: blocking calls wait, up to a time-out that names every
// stream with its fill.
#ifndef HLS_STREAM_H
#define HLS_STREAM_H

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace hls_sim {

// What the runtime knows about every stream.
class stream_base {
  public:
    virtual ~stream_base() = default;
    virtual size_t fill() const = 0;
    virtual size_t capacity() const = 0;
    std::string name;
    bool exact = false;  // the depth is part of the specification: no limit of the runtime applies
};

// A wait that took too long; the text names every stream's fill.
class stalled : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The stage this thread runs; -1: all of them, one after the other.
inline int& stage() {
    thread_local int number = -1;
    return number;
}

// Stages at most, and the host behind them.
constexpr int THREADS = 8;

// The number of this thread: its stage, or the last one.
inline int thread() { return stage() < 0 ? THREADS - 1 : stage(); }

// A range of memory that answers reads, or writes, with an error.
struct refusal {
    uint64_t address;
    uint64_t bytes;
    bool write;
};

// The streams of the program, and how they behave; what memory refuses.
class runtime {
  public:
    static runtime& get() {
        static runtime instance;
        return instance;
    }

    bool threaded = false;
    size_t depth_limit = 0;  // 0: as declared; streams that say so are never limited
    std::chrono::milliseconds timeout{10000};
    std::mutex mutex;
    uint64_t activity = 0;  // successful reads and writes, of all threads
    bool awaited = false;   // the host waits for the core
    bool stopping = false;
    std::vector<stream_base*> streams;
    std::vector<refusal> refusals;  // changed only while the core does not run

    // The first byte of an access that memory answers with an error; false where it answers well.
    bool refused(uint64_t address, uint64_t bytes, bool write, uint64_t& first) const {
        bool found = false;
        for (const refusal& r : refusals) {
            if (r.write != write || address >= r.address + r.bytes || r.address >= address + bytes) continue;
            const uint64_t at = address > r.address ? address : r.address;
            first = found && first < at ? first : at;
            found = true;
        }
        return found;
    }

    std::string fills() const {
        std::string text;
        for (const stream_base* stream : streams)
            text += (text.empty() ? "" : ", ") + stream->name + " " + std::to_string(stream->fill()) + "/" +
                    std::to_string(stream->capacity());
        return text;
    }

    // How often a stream that this thread reads or writes has changed (with the lock held).
    uint64_t changes() const { return sleepers_[thread()].changes; }

    // Sleep (the lock is given up meanwhile) until a stream of this thread changes for the first time after `seen`; false where
    // none does within `bound`.
    template <class Duration>
    bool sleep(std::unique_lock<std::mutex>& lock, uint64_t seen, Duration bound) {
        sleeper& me = sleepers_[thread()];
        me.asleep = true;
        const bool woken = me.changed.wait_for(lock, bound, [&] { return me.changes != seen || stopping; });
        me.asleep = false;
        return woken;
    }

    // A stream changed: wake the thread at its other end, if it is known and sleeps.
    void tell(int other) {
        ++activity;
        if (other < 0) return;
        sleeper& it = sleepers_[other];
        ++it.changes;
        if (it.asleep) it.changed.notify_one();
    }

    // End every wait of every thread.
    void end() {
        stopping = true;
        for (sleeper& each : sleepers_) each.changed.notify_all();
    }

    // Wait (with the lock held) until `ready`, or fail after the time-out without any activity.
    template <class Ready>
    void wait(std::unique_lock<std::mutex>& lock, const stream_base& stream, const char* what, Ready ready) {
        while (!ready()) {
            if (stopping) throw stalled("the simulation ends");
            const uint64_t before = activity;
            if (!sleep(lock, changes(), timeout) && !ready() && before == activity)
                throw stalled(std::string("no progress while waiting to ") + what + " " + stream.name + "; fills: " + fills());
        }
    }

  private:
    struct sleeper {
        std::condition_variable changed;
        uint64_t changes = 0;
        bool asleep = false;
    };
    sleeper sleepers_[THREADS];
};

// Successful stream operations of this thread.
inline uint64_t& operations() {
    thread_local uint64_t count = 0;
    return count;
}

}  // namespace hls_sim

// In front of a stage's call in a dataflow region.
#define HLS_SIM_STAGE(number) if (hls_sim::stage() < 0 || hls_sim::stage() == (number))

// How the kernel asks what memory answers.
#define HLS_SIM_MEMORY_ERROR(address, bytes, write, first) hls_sim::runtime::get().refused(address, bytes, write, first)

namespace hls {

template <class T, int DEPTH = 0>
class stream;

// The type functions take; its depth is that of the declaration.
template <class T>
class stream<T, 0> : public hls_sim::stream_base {
  public:
    stream() : stream("stream", 2) {}
    explicit stream(const char* name_) : stream(name_, 2) {}
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    ~stream() override = default;

    bool read_nb(T& value) {
        if (!shared()) return take(value);
        std::lock_guard<std::mutex> lock(state().mutex);
        reader_ = hls_sim::thread();
        return take(value) && told(writer_);
    }
    bool write_nb(const T& value) {
        if (!shared()) return count_ < capacity() && put(value);
        std::lock_guard<std::mutex> lock(state().mutex);
        writer_ = hls_sim::thread();
        return count_ < capacity() && put(value) && told(reader_);
    }
    T read() {
        T value{};
        if (!shared()) {
            if (!take(value)) throw hls_sim::stalled("read of " + name + ", which is empty; fills: " + state().fills());
            return value;
        }
        std::unique_lock<std::mutex> lock(state().mutex);
        reader_ = hls_sim::thread();
        state().wait(lock, *this, "read", [this] { return count_ > 0; });
        take(value);
        told(writer_);
        return value;
    }
    void write(const T& value) {
        if (!shared()) {
            put(value);
            return;
        }
        std::unique_lock<std::mutex> lock(state().mutex);
        writer_ = hls_sim::thread();
        state().wait(lock, *this, "write", [this] { return count_ < capacity(); });
        put(value);
        told(reader_);
    }
    void operator>>(T& value) { value = read(); }
    void operator<<(const T& value) { write(value); }
    bool empty() const {
        if (!shared()) return count_ == 0;
        std::lock_guard<std::mutex> lock(state().mutex);
        reader_ = hls_sim::thread();
        return count_ == 0;
    }
    bool full() const {
        if (!shared()) return count_ >= capacity();
        std::lock_guard<std::mutex> lock(state().mutex);
        writer_ = hls_sim::thread();
        return count_ >= capacity();
    }
    size_t size() const {
        if (!shared()) return count_;
        std::lock_guard<std::mutex> lock(state().mutex);
        return count_;
    }

    // For the runtime, which holds the lock where there are threads.
    size_t fill() const override { return count_; }
    size_t capacity() const override {
        const size_t limit = state().depth_limit;
        return limit != 0 && limit < depth_ && !exact ? limit : depth_;
    }

  protected:
    stream(const char* name_, size_t depth) : depth_(depth) {
        name = name_;
        state().streams.push_back(this);
    }

  private:
    static hls_sim::runtime& state() { return hls_sim::runtime::get(); }
    static bool shared() { return state().threaded; }
    static bool told(int other) {
        state().tell(other);
        return true;
    }
    bool take(T& value) {
        if (count_ == 0) return false;
        value = ring_[first_];
        first_ = first_ + 1 == ring_.size() ? 0 : first_ + 1;
        --count_;
        ++hls_sim::operations();
        return true;
    }
    bool put(const T& value) {
        if (count_ == ring_.size()) grow();
        size_t at = first_ + count_;
        if (at >= ring_.size()) at -= ring_.size();
        ring_[at] = value;
        ++count_;
        ++hls_sim::operations();
        return true;
    }
    void grow() {
        std::vector<T> larger;
        larger.reserve(2 * ring_.size() + 4);
        for (size_t n = 0; n < count_; ++n) larger.push_back(ring_[(first_ + n) % ring_.size()]);
        larger.resize(2 * ring_.size() + 4);
        ring_.swap(larger);
        first_ = 0;
    }

    std::vector<T> ring_;
    size_t first_ = 0;
    size_t count_ = 0;
    size_t depth_;
    mutable int reader_ = -1;  // the threads at either end, once they have called; a change wakes the other one
    mutable int writer_ = -1;
};

template <class T, int DEPTH>
class stream : public stream<T, 0> {
  public:
    stream() : stream<T, 0>("stream", DEPTH) {}
    explicit stream(const char* name_) : stream<T, 0>(name_, DEPTH) {}
};

}  // namespace hls

#endif  // HLS_STREAM_H
