# SPDX-License-Identifier: Apache-2.0
"""The register model: the machine as the host sees it."""

from __future__ import annotations

from collections.abc import Callable

from openvta.sim.fsim.machine import Machine, Outcome
from openvta.spec import Cause
from openvta.spec.isa import ISA_VERSION
from openvta.spec.registers import CONTROL, COUNTERS, ERROR, OFFSETS, REGISTER_SPACE_BYTES, REGISTERS, STATUS
from openvta.spec.resolve import config_hash, feature_word

BASE_NAMES = {"UOP": "uop", "INP": "inp", "WGT": "wgt", "ACC": "acc", "OUT": "out"}
WORD = 0xFFFFFFFF
EXACT_COUNTERS = frozenset(
    {
        "gemm_uops",
        "alu_uops",
        "requant_vectors",
        "insn_bytes",
        "uop_load_bytes",
        "inp_load_bytes",
        "wgt_load_bytes",
        "acc_load_bytes",
        "out_store_bytes",
        "insns_retired",
    }
)
"""Counters that mean the same here as in hardware; those that count cycles read zero."""

IRQ_FINISH = 1
IRQ_ERROR = 2


class RegisterModel:
    """Registers by byte offset. A launch runs the stream at once; without a watchdog a deadlock stays ``running``.

    ``CYCLES`` counts retired instructions: the functional simulator has no notion of time.

    Args:
        machine: what a launch runs.
        run: runs ``count`` instructions at an address with these base addresses; the machine's own
            :meth:`Machine.run` unless a check is wanted around it.
    """

    def __init__(self, machine: Machine, run: Callable[[int, int, dict[str, int]], Outcome] | None = None) -> None:
        self._machine = machine
        self._run = run or machine.run
        self._reset_values = {register.offset: register.reset for register in REGISTERS}
        self._access = {register.offset: register.access for register in REGISTERS}
        self._values: dict[int, int] = {}
        self.outcome: Outcome | None = None
        self.reset()

    def reset(self) -> None:
        """Every register at its reset value, no error held, token queues empty; scratchpads stay."""
        self._values = dict(self._reset_values)
        self._put("ISA_VERSION", ISA_VERSION)
        value = config_hash(self._machine.config)
        self._put("CONFIG_HASH_LO", value & WORD)
        self._put("CONFIG_HASH_HI", value >> 32)
        self._put("FEATURES", feature_word(self._machine.config))
        self.outcome = None
        self._machine.reset()

    def read(self, offset: int) -> int:
        """A register's value; offsets inside the register space where there is none read zero.

        Raises:
            ValueError: an offset outside the register space or not a multiple of 4.
        """
        _check_offset(offset)
        return self._values.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        """Write a register; read-only and missing ones ignore it.

        Raises:
            ValueError: an offset outside the register space or not a multiple of 4.
        """
        _check_offset(offset)
        value &= WORD
        access = self._access.get(offset)
        if offset == OFFSETS["CONTROL"]:
            if value & CONTROL.field("launch").mask:
                self._launch()
        elif offset == OFFSETS["RESET"]:
            if value & 1:
                self._soft_reset()
        elif access == "rw":
            self._values[offset] = value
        elif access == "w1c":
            self._values[offset] &= ~value

    @property
    def running(self) -> bool:
        """Launched, neither finished nor stopped by an error: only after a deadlock without a watchdog."""
        return bool(self.read(OFFSETS["STATUS"]) & STATUS.field("running").mask)

    @property
    def interrupt(self) -> bool:
        """Level of the interrupt line."""
        return bool(self.read(OFFSETS["IRQ_STATUS"]) & self.read(OFFSETS["IRQ_ENABLE"]))

    def _put(self, name: str, value: int) -> None:
        self._values[OFFSETS[name]] = value & WORD

    def _get(self, name: str) -> int:
        return self._values[OFFSETS[name]]

    def _pair(self, name: str) -> int:
        return self._get(f"{name}_LO") | self._get(f"{name}_HI") << 32

    def _soft_reset(self) -> None:
        kept = {
            register.offset: self._values[register.offset]
            for register in REGISTERS
            if register.access == "rw" and register.name not in ("CONTROL", "RESET")
        }
        self.reset()
        self._values.update(kept)

    def _launch(self) -> None:
        if self.running or self._get("ERROR"):
            return
        for register in ("CONTROL", "STATUS", "CYCLES", "CYCLES_HI", "ACC_WRITES"):
            self._put(register, 0)
        bases = {name: self._pair(f"{register}_BASE") for register, name in BASE_NAMES.items()}
        outcome = self._run(self._pair("INSN_BASE"), self._get("INSN_COUNT"), bases)
        self.outcome = outcome
        self._put("CYCLES", outcome.retired)
        self._put("CYCLES_HI", outcome.retired >> 32)
        self._put("ACC_WRITES", outcome.counters.get("acc_writes", 0))
        for name, _ in COUNTERS:
            count = outcome.counters.get(name, 0) if name in EXACT_COUNTERS else 0
            self._put(f"COUNTER_{name.upper()}", count)
        fault = outcome.fault
        if fault is None:
            self._put("CONTROL", CONTROL.field("finish").mask)
            self._put("IRQ_STATUS", self._get("IRQ_STATUS") | IRQ_FINISH)
            return
        if fault.cause is Cause.WATCHDOG and self._get("WATCHDOG") == 0:
            self._put("STATUS", STATUS.field("running").mask)
            return
        word = ERROR.encode(
            {
                "cause": int(fault.cause),
                "unit": int(fault.unit),
                "channel": fault.channel,
                "wait": fault.wait,
                "finish": int(fault.finish),
            }
        )
        self._put("ERROR", word)
        self._put("ERROR_INDEX", fault.index)
        self._put("ERROR_ADDR_LO", fault.address)
        self._put("ERROR_ADDR_HI", fault.address >> 32)
        self._put("STATUS", STATUS.field("halted").mask)
        self._put("IRQ_STATUS", self._get("IRQ_STATUS") | IRQ_ERROR)


def _check_offset(offset: int) -> None:
    if offset % 4 or not 0 <= offset < REGISTER_SPACE_BYTES:
        raise ValueError(f"register offset {offset:#x}: must be a multiple of 4 below {REGISTER_SPACE_BYTES:#x}")
