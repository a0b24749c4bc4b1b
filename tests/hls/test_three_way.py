# SPDX-License-Identifier: Apache-2.0
"""fsim, the HLS kernel and the RTL on the same random programs: one memory image, and one error where memory refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from openvta.sim.cosim.session import IDEAL, BusFault
from openvta.sim.fsim.machine import Fault
from openvta.sim.hls.transport import HlsTransport
from openvta.sim.memory import Refusal
from openvta.sim.verify.generator import Bytes, Generator
from openvta.sim.verify.rig import IMAGE_BYTES, MEMORY_BYTES, Rig, fill_program
from openvta.spec import Cause, Program, Unit, load_config
from openvta.spec.registers import CHANNELS, CONTROL, ERROR, OFFSETS

LENGTH = 60
STEPS = 5_000_000
MODES = ("sequential", "threaded")
Record = Callable[[str, str], None]


class Three:
    """The rig of fsim and RTL, and HLS kernels in both modes at the same addresses."""

    def __init__(self, name: str) -> None:
        self.rig = Rig(load_config(name))
        self.twins = {
            mode: HlsTransport(self.rig.config, mode=mode, integers="wide", memory_bytes=MEMORY_BYTES) for mode in MODES
        }
        assert {twin.allocate(MEMORY_BYTES) for twin in self.twins.values()} == {self.rig.base}

    def write_areas(self, areas: dict[str, Bytes]) -> None:
        """The same contents everywhere."""
        self.rig.write_areas(areas)
        for twin in self.twins.values():
            for name, data in areas.items():
                twin.write(self.rig.areas[name], data)

    def run_twin(self, mode: str, words: bytes) -> Fault | None:
        """Run a stream on one kernel; the error it holds, after a soft reset, or None."""
        twin, rig = self.twins[mode], self.rig
        twin.write(rig.stream, words)
        twin.write_register(OFFSETS["INSN_COUNT"], len(words) // 16)
        for name, address in (("INSN", rig.stream), *((name.upper(), base) for name, base in rig.areas.items())):
            twin.write_register(OFFSETS[f"{name}_BASE_LO"], address & 0xFFFFFFFF)
            twin.write_register(OFFSETS[f"{name}_BASE_HI"], address >> 32)
        twin.write_register(OFFSETS["CONTROL"], CONTROL.field("launch").mask)
        assert twin.wait(cycles=STEPS), f"{mode}: still running; {twin.queue_fills()}"
        names = ("ERROR", "ERROR_INDEX", "ERROR_ADDR_LO", "ERROR_ADDR_HI")
        value, index, low, high = (twin.read_register(OFFSETS[name]) for name in names)
        if not value:
            return None
        word = ERROR.decode(value)
        twin.hard_reset()
        return Fault(
            Cause(word["cause"]), Unit(word["unit"]), index, "", channel=word["channel"], address=low | high << 32
        )

    def compare(self, program: Program) -> None:
        """fsim = RTL (events, counters, memory) and fsim = HLS on the whole image, in both modes."""
        found = self.rig.compare(program)
        assert found is None, found.text
        expected = self.rig.memory.read(self.rig.base, IMAGE_BYTES)
        for mode, twin in self.twins.items():
            assert self.run_twin(mode, program.to_bytes()) is None, mode
            different = np.flatnonzero(expected != twin.read(self.rig.base, IMAGE_BYTES))
            assert not different.size, f"{mode}: {different.size} bytes differ, first at {different[:4]}"

    def close(self) -> None:
        self.rig.close()
        for twin in self.twins.values():
            twin.close()


@pytest.fixture(scope="module", params=["tiny", pytest.param("default", marks=pytest.mark.long)])
def three(request: pytest.FixtureRequest) -> Iterator[Three]:
    opened = Three(request.param)
    yield opened
    opened.close()


def test_random_programs_leave_one_image(three: Three, seed: int, record_coverage: Record) -> None:
    generator = Generator(three.rig.config, seed)
    three.write_areas(generator.program(8).areas)
    three.compare(fill_program(three.rig.config))
    done = 0
    while done < 600:
        program = generator.program(LENGTH)
        three.write_areas(program.areas)
        three.compare(program.program)
        done += len(program.program)
    record_coverage("fsim-hls-rtl", three.rig.config.name)


@pytest.mark.parametrize("name", ["insn", "uop", "inp", "wgt", "acc", "out"])
def test_an_error_of_memory_is_seen_by_all(three: Three, name: str, seed: int) -> None:
    """Memory inside the window answers an error: cause, unit and channel of all three are equal, and so is a read's beat."""
    rig = three.rig
    program = fill_program(rig.config)
    if name == "out":
        generator = Generator(rig.config, seed)
        drawn = generator.program(LENGTH)
        three.write_areas(drawn.areas)
        program = drawn.program
    words = program.to_bytes()
    write, beat = name == "out", rig.config.axi_data_bytes
    where = rig.stream + 16 * 3 if name == "insn" else rig.areas[name]
    nbytes = 1 << 15 if write else beat
    rig.memory.refuse(Refusal(where, nbytes, write))
    try:
        if name == "insn":
            rig.memory.write(rig.stream, words)
            _, expected = rig.machine.fetch(rig.stream, len(program))
        else:
            expected = rig.run_fsim(words).fault
    finally:
        rig.memory.refuse()
    assert expected is not None
    cause = Cause.BUS_WRITE if write else Cause.BUS_READ
    assert (expected.cause, expected.channel) == (cause, CHANNELS[name])
    rig.set_memory(IDEAL, (BusFault(where, nbytes, 2, write),))
    run = rig.run_rtl(words)
    rig.set_memory(IDEAL)
    assert run.stopped and run.error is not None
    assert rig.soft_reset()
    got: dict[str, Fault | None] = {"rtl": run.error}
    for mode, twin in three.twins.items():
        twin.memory.refuse(Refusal(where, nbytes, write))
        got[mode] = three.run_twin(mode, words)
        twin.memory.refuse()
    for who, error in got.items():
        assert error is not None, who
        assert (error.cause, error.unit, error.channel) == (cause, expected.unit, expected.channel), who
        if not write:
            assert error.address // beat == expected.address // beat, who
    for mode in MODES:
        error = got[mode]
        assert error is not None and (error.index, error.address) == (expected.index, expected.address), mode
        assert three.run_twin(mode, fill_program(rig.config).to_bytes()) is None, "works again"
