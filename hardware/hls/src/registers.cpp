// SPDX-License-Identifier: Apache-2.0
// The register map. Combinational.
#include "vta_control.h"

namespace openvta {

namespace {

uint32_t control_word(const ControlState& s) {
    ControlFields f;
    f.launch = s.running ? 1 : 0;
    f.finish = s.finished ? 1 : 0;
    return pack(f);
}

bool busy(const ControlState& s, Unit unit) { return s.views[static_cast<uint32_t>(unit)].phase != Phase::EMPTY; }

uint32_t status_word(const ControlState& s) {
    StatusFields f;
    f.running = s.running ? 1 : 0;
    f.fetch_busy = s.running && s.dispatched != s.insn_count ? 1 : 0;
    f.load_busy = busy(s, Unit::LOAD) ? 1 : 0;
    f.compute_busy = busy(s, Unit::COMPUTE) ? 1 : 0;
    f.store_busy = busy(s, Unit::STORE) ? 1 : 0;
    f.reads_pending = 0;  // bursts are complete when a step ends
    f.writes_pending = 0;
    f.halted = s.held ? 1 : 0;
    return pack(f);
}

}  // namespace

uint32_t read_register(const ControlState& s, uint32_t offset, bool& mapped) {
    mapped = true;
    if (offset >= reg::INSN_BASE_LO && offset <= reg::OUT_BASE_HI) return s.pointer[(offset - reg::INSN_BASE_LO) / 4];
    if (offset >= reg::COUNTER_FETCH_BUSY && offset < reg::COUNTER_FETCH_BUSY + 4 * COUNTERS)
        return s.counters[(offset - reg::COUNTER_FETCH_BUSY) / 4];
    switch (offset) {
        case reg::CONTROL:
            return control_word(s);
        case reg::CYCLES:
            return static_cast<uint32_t>(s.cycles);
        case reg::CYCLES_HI:
            return static_cast<uint32_t>(s.cycles >> 32);
        case reg::INSN_COUNT:
            return s.insn_count;
        case reg::ACC_WRITES:
            return s.acc_writes;
        case reg::ID:
            return ID_MAGIC;
        case reg::ISA_VERSION:
            return ISA_VERSION;
        case reg::CONFIG_HASH_LO:
            return static_cast<uint32_t>(CONFIG_HASH);
        case reg::CONFIG_HASH_HI:
            return static_cast<uint32_t>(CONFIG_HASH >> 32);
        case reg::FEATURES:
            return FEATURES;
        case reg::STATUS:
            return status_word(s);
        case reg::ERROR:
            return s.held ? pack(s.error) : 0;
        case reg::ERROR_INDEX:
            return s.held ? s.error_index : 0;
        case reg::ERROR_ADDR_LO:
            return s.held ? static_cast<uint32_t>(s.error_address) : 0;
        case reg::ERROR_ADDR_HI:
            return s.held ? static_cast<uint32_t>(s.error_address >> 32) : 0;
        case reg::IRQ_ENABLE:
            return s.irq_enable;
        case reg::IRQ_STATUS:
            return s.irq_status;
        case reg::WATCHDOG:
            return s.watchdog;
        case reg::RESET:
            return s.reset_wanted ? 1 : 0;
        default:
            mapped = false;
            return 0;
    }
}

Request write_register(ControlState& s, uint32_t offset, uint32_t data, uint32_t mask) {
    Request request = {false, false, true};
    const uint32_t bits = data & mask;
    if (offset >= reg::INSN_BASE_LO && offset <= reg::OUT_BASE_HI) {
        const uint32_t n = (offset - reg::INSN_BASE_LO) / 4;
        if (!s.running) s.pointer[n] = bits | (s.pointer[n] & ~mask);
        return request;
    }
    switch (offset) {
        case reg::CONTROL:
            request.launch = unpack_control(bits).launch != 0;
            break;
        case reg::RESET:
            request.reset = (bits & 1) != 0;
            break;
        case reg::INSN_COUNT:
            if (!s.running) s.insn_count = bits | (s.insn_count & ~mask);
            break;
        case reg::WATCHDOG:
            s.watchdog = bits | (s.watchdog & ~mask);
            break;
        case reg::IRQ_ENABLE:
            s.irq_enable = (bits | (s.irq_enable & ~mask)) & (IRQ_FINISH | IRQ_ERROR);
            break;
        case reg::IRQ_STATUS:
            s.irq_status &= ~bits;
            break;
        default:
            read_register(s, offset, request.mapped);
    }
    return request;
}

}  // namespace openvta
