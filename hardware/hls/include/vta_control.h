// SPDX-License-Identifier: Apache-2.0
// State of the control stage: what a host can read, what it knows about the units, and how far a stop has come.
#ifndef OPENVTA_VTA_CONTROL_H
#define OPENVTA_VTA_CONTROL_H

#include "vta_unit.h"

namespace openvta {

constexpr uint32_t POINTERS = 6;  // insn, uop, inp, wgt, acc, out
constexpr uint32_t IRQ_FINISH = 1;
constexpr uint32_t IRQ_ERROR = 2;

// A unit as the control stage sees it.
struct View {
    Phase phase;
    uint32_t index;
    uint32_t opcode;
    uint32_t pops;
};

enum class Stop : uint32_t {
    NONE = 0,
    HALTING = 1,   // every unit was told to stop
    HALTED = 2,    // and has
    DRAINING = 3,  // every unit was told to empty its streams
};

struct ControlState {
    // registers that software writes
    uint32_t pointer[2 * POINTERS];  // low and high halves, in the order of the register map
    uint32_t insn_count;
    uint32_t watchdog;
    uint32_t irq_enable;
    uint32_t irq_status;
    // the run
    bool running;
    bool finished;
    uint64_t cycles;
    uint32_t acc_writes;
    uint32_t counters[COUNTERS];
    uint32_t dispatched;
    uint32_t retired;
    bool fetch_stalled;
    bool finish_sent;
    uint32_t idle;  // steps without a sign of progress
    View views[UNITS];
    int32_t tokens[TOKEN_QUEUES];
    // the first error
    bool held;
    ErrorFields error;
    uint32_t error_index;
    uint64_t error_address;
    // stopping
    Stop stop;
    bool reset_wanted;
    uint32_t answers;
};

// Registers.
uint32_t read_register(const ControlState& s, uint32_t offset, bool& mapped);

// What a register write asks for beyond the register itself.
struct Request {
    bool launch;
    bool reset;
    bool mapped;
};

Request write_register(ControlState& s, uint32_t offset, uint32_t data, uint32_t mask);

// Take a unit's report into account; true where it brought the run's first error.
bool handle(ControlState& s, Unit unit, const Report& report);

// Whether only FINISH itself is left.
bool quiet(const ControlState& s);

// Count a step of a run; true where the watchdog ends it.
bool tick(ControlState& s);

// Forget the last run.
void clear_run(ControlState& s);

}  // namespace openvta

#endif  // OPENVTA_VTA_CONTROL_H
