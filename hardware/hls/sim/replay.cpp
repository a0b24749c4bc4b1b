// SPDX-License-Identifier: Apache-2.0
// Plays recorded sessions on the kernel in either mode, as a program of its own: sanitizers cannot watch a library that a
// foreign process loads. Arguments: "sequential" or "threaded", the depth limit of the streams, then sessions.
#include "../tb/vta_case.h"

#include <cstdlib>

extern "C" {
int ovta_start(uint8_t* memory, uint64_t base, uint64_t bytes, int threaded, uint32_t depth_limit, uint32_t timeout_ms);
int ovta_write(uint32_t offset, uint32_t value);
int ovta_read(uint32_t offset, uint32_t* value);
int ovta_wait(uint64_t steps, double seconds);
const char* ovta_error();
void ovta_stop();
}

namespace {

struct Player {
    void write(uint32_t offset, uint32_t value) {
        if (ovta_write(offset, value) != 0) std::printf("%s\n", ovta_error());
    }
    uint32_t read(uint32_t offset) {
        uint32_t value = 0;
        if (ovta_read(offset, &value) != 0) std::printf("%s\n", ovta_error());
        return value;
    }
    bool wait() {
        const int result = ovta_wait(10000000, 300.0);
        if (result < 0) std::printf("%s\n", ovta_error());
        return result == 1;
    }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::printf("usage: vta_replay sequential|threaded DEPTH SESSION...\n");
        return 2;
    }
    openvta_case::Case session;
    std::vector<uint64_t> memory;
    Player player;
    int wrong = 0;
    for (int n = 3; n < argc; ++n) {
        openvta_case::Case next;
        if (!openvta_case::read_case(argv[n], next) || (n > 3 && (next.base != session.base || next.size != session.size))) {
            std::printf("%s: cannot be read, or has another memory than the first\n", argv[n]);
            ++wrong;
            continue;
        }
        session = next;
        if (n == 3) {
            memory.resize(2 * (session.size / 16 + 1));
            const int threaded = std::string(argv[1]) == "threaded" ? 1 : 0;
            if (ovta_start(reinterpret_cast<uint8_t*>(memory.data()), session.base, session.size, threaded,
                           static_cast<uint32_t>(std::atoi(argv[2])), 60000) != 0) {
                std::printf("%s\n", ovta_error());
                return 1;
            }
        }
        wrong += openvta_case::play(session, reinterpret_cast<uint8_t*>(memory.data()), player, argv[n]);
    }
    ovta_stop();
    std::printf("%d sessions, %d differences\n", argc - 3, wrong);
    return wrong == 0 ? 0 : 1;
}
