// SPDX-License-Identifier: Apache-2.0
// Main program of fast_top under cocotb: the clock is driven here, and callbacks run only when the host side has
// answered a request (`wake`) or a timer is due, not in every time step. Takes the arguments --trace and --trace-file FILE.
#include <cstdio>
#include <cstring>
#include <memory>

#include "Vtop.h"
#include "verilated.h"
#include "verilated_vpi.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif
#if VM_COVERAGE
#include "verilated_cov.h"
#endif

extern "C" void vlog_startup_routines_bootstrap();

static constexpr uint64_t HALF_PERIOD = 1000;  // in the time unit of the model, 1 ps
static constexpr uint64_t NEVER = ~uint64_t{0};

static void settle() {
    while (VerilatedVpi::callValueCbs()) {
    }
}

// One time step as cocotb sees it: evaluations until nothing changes, then the read-only callbacks.
static void step(Vtop& top) {
    do {
        do {
            top.eval_step();
            VerilatedVpi::clearEvalNeeded();
            VerilatedVpi::doInertialPuts();
            settle();
        } while (VerilatedVpi::evalNeeded());
        VerilatedVpi::callCbs(cbReadWriteSynch);
        VerilatedVpi::doInertialPuts();
        settle();
    } while (VerilatedVpi::evalNeeded());
    top.eval_end_step();
    VerilatedVpi::callCbs(cbReadOnlySynch);
}

int main(int argc, char** argv) {
    const char* waves = nullptr;
    bool traced = false;
    for (int n = 1; n < argc; ++n) {
        if (std::strcmp(argv[n], "--trace") == 0) traced = true;
        if (std::strcmp(argv[n], "--trace-file") == 0 && n + 1 < argc) waves = argv[++n];
    }
    VerilatedContext& context = *Verilated::threadContextp();
    context.commandArgs(argc, argv);
    auto top = std::make_unique<Vtop>("");
    Verilated::fatalOnVpiError(false);  // cocotb asks for objects that are not there
#if VM_TRACE
    VerilatedVcdC vcd;
    if (traced) {
        context.traceEverOn(true);
        top->trace(&vcd, 99);
        vcd.open(waves ? waves : "dump.vcd");
    }
#else
    if (traced || waves) {
        std::fprintf(stderr, "fast_top: built without waveforms\n");
        return 2;
    }
#endif
    top->clock = 0;
    vlog_startup_routines_bootstrap();
    VerilatedVpi::callCbs(cbStartOfSimulation);
    settle();
    uint64_t edge = HALF_PERIOD;
    while (!context.gotFinish()) {
        step(*top);
#if VM_TRACE
        if (traced) vcd.dump(context.time());
#endif
        bool before = top->wake_out;
        uint64_t due = VerilatedVpi::cbNextDeadline();
        // Nobody looks before the host answers or a timer is due: the clock runs by itself until then.
        while (edge < due) {
            context.time(edge);
            edge += HALF_PERIOD;
            top->clock = !top->clock;
            top->eval();
            if (top->wake_out != before || context.gotFinish()) break;
#if VM_TRACE
            if (traced) vcd.dump(context.time());
#endif
        }
        if (top->wake_out == before && due != NEVER) context.time(due);
        VerilatedVpi::callCbs(cbNextSimTime);
        settle();
        VerilatedVpi::callTimedCbs();
        settle();
    }
    top->final();
    VerilatedVpi::callCbs(cbEndOfSimulation);
#if VM_TRACE
    if (traced) vcd.close();
#endif
#if VM_COVERAGE
    context.coveragep()->write();
#endif
    return context.errorCount() > 0;
}
