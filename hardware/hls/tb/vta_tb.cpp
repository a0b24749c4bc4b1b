// SPDX-License-Identifier: Apache-2.0
// Test bench for C simulation and co-simulation: plays the recorded sessions named on the command line, a call of the top
// level a step. The process ends with 0 where everything is as recorded.
#include "vta.h"
#include "vta_case.h"

#include <memory>

using namespace openvta;

namespace {

const int ACCESS_STEPS = 1000;
const int RUN_STEPS = 1000000;

struct Host {
    uint8_t* memory;
    uint64_t base;
    uint64_t bytes;
    hls::stream<axil_address_t> aw;
    hls::stream<axil_data_t> w;
    hls::stream<axil_response_t> b;
    hls::stream<axil_address_t> ar;
    hls::stream<axil_data_t> r;
    ap_uint<1> interrupt;

    void step() {
        vta(reinterpret_cast<const insn_word_t*>(memory), reinterpret_cast<const uop_word_t*>(memory),
            reinterpret_cast<const inp_word_t*>(memory), reinterpret_cast<const wgt_word_t*>(memory),
            reinterpret_cast<const acc_word_t*>(memory), reinterpret_cast<out_word_t*>(memory), base, bytes, aw, w, b, ar, r,
            &interrupt);
    }

    void write(uint32_t offset, uint32_t value) {
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
        for (int n = 0; n < ACCESS_STEPS && b.empty(); ++n) step();
        if (!b.empty()) b.read();
    }

    uint32_t read(uint32_t offset) {
        ar.write(axil_address_t(offset));
        for (int n = 0; n < ACCESS_STEPS && r.empty(); ++n) step();
        return r.empty() ? 0 : static_cast<uint32_t>(r.read().data);
    }

    bool wait() {
        for (int n = 0; n < RUN_STEPS; ++n) {
            if (unpack_status(read(reg::STATUS)).running == 0) return true;
        }
        return false;
    }
};

}  // namespace

int main(int argc, char** argv) {
    int wrong = argc < 2 ? 1 : 0;
    if (argc < 2) std::printf("name the sessions to play\n");
    for (int n = 1; n < argc; ++n) {
        openvta_case::Case session;
        if (!openvta_case::read_case(argv[n], session)) {
            std::printf("%s: cannot be read\n", argv[n]);
            ++wrong;
            continue;
        }
        std::vector<uint64_t> memory(2 * (session.size / 16 + 1));
        std::unique_ptr<Host> host(new Host);
        host->memory = reinterpret_cast<uint8_t*>(memory.data());
        host->base = session.base;
        host->bytes = session.size;
        const int faults = openvta_case::play(session, host->memory, *host, argv[n]);
        std::printf("%s: %s\n", argv[n], faults == 0 ? "as recorded" : "DIFFERS");
        wrong += faults;
    }
    return wrong == 0 ? 0 : 1;
}
