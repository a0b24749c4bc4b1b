// SPDX-License-Identifier: Apache-2.0
// What load, compute and store have in common: the life of an instruction from queue to retirement.
#ifndef OPENVTA_VTA_UNIT_H
#define OPENVTA_VTA_UNIT_H

#include "vta_bus.h"

namespace openvta {

enum class Phase : uint32_t {
    EMPTY = 0,    // nothing at hand
    TAKEN = 1,    // an instruction is at hand, its tokens are not taken yet
    STARTED = 2,  // its tokens are taken: do it
};

struct UnitState {
    Phase phase;
    bool halted;
    Command command;
};

inline uint32_t opcode_of(Word128 word) {
#pragma HLS inline
    return unpack_finish(word).opcode;
}

// A report about the instruction at hand.
inline Report about(ReportKind kind, const Command& command, uint32_t pops, uint32_t pushes) {
#pragma HLS inline
    Report r = report_of(kind, command.index);
    r.opcode = opcode_of(command.word);
    r.pops = pops;
    r.pushes = pushes;
    return r;
}

// Tell the watchdog that a long instruction makes progress. Losing a sign of life does no harm: one is on its way then.
inline void live(token_stream& alive) {
#pragma HLS inline
    const bool sent = alive.write_nb(token_t(1));
    (void)sent;
}

// Take a token that is known to be there.
inline void take(token_stream& queue) {
#pragma HLS inline
    token_t token;
    const bool taken = queue.read_nb(token);
    (void)taken;
}

}  // namespace openvta

#endif  // OPENVTA_VTA_UNIT_H
