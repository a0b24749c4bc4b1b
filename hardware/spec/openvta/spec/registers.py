# SPDX-License-Identifier: Apache-2.0
"""The register map: the original's registers first (64-bit address form), then identity, errors and counters."""

from __future__ import annotations

from dataclasses import dataclass

from openvta.spec.config import EXTENSIONS
from openvta.spec.layout import Field, Layout

ID_MAGIC = 0x4F565441
"""The ID register: 'OVTA'."""

WATCHDOG_RESET = 1 << 16
REGISTER_SPACE_BYTES = 0x1000
FEATURE_BITS = {name: bit for bit, name in enumerate(EXTENSIONS)} | {"bgemm": len(EXTENSIONS)}


@dataclass(frozen=True)
class Register:
    """A 32-bit register. ``access`` is rw, ro or w1c."""

    name: str
    offset: int
    access: str
    doc: str
    reset: int = 0


COUNTERS: tuple[tuple[str, str], ...] = (
    ("fetch_busy", "cycles fetch dispatched an instruction"),
    ("fetch_stall_queue", "cycles fetch held an instruction whose queue was full"),
    ("fetch_wait_memory", "cycles fetch had instructions left and none at hand"),
    ("fetch_idle", "cycles every instruction was dispatched"),
    ("load_busy", "cycles a loader worked and did not wait for data"),
    ("load_wait_memory", "cycles instructions were in flight and every loader waited for data"),
    ("load_wait_token", "cycles nothing was in flight and the next instruction waited for a token"),
    ("load_idle", "cycles the load unit had no instruction"),
    ("compute_gemm", "cycles a GEMM micro-op entered the pipeline"),
    ("compute_alu", "cycles the ALU had an operation under way and no GEMM micro-op entered"),
    ("compute_stall_requant", "cycles without a micro-op because an older REQUANT was not complete"),
    ("compute_stall_pipeline", "cycles without a micro-op while the pipeline filled, drained or changed its kind"),
    ("compute_wait_memory", "cycles without a micro-op because a load of uop or acc was not complete"),
    ("compute_wait_token", "cycles without a micro-op because the next instruction waited for a token"),
    ("compute_wait_finish", "cycles FINISH waited for the other units"),
    ("compute_idle", "cycles the compute unit had nothing to do: fetch was behind"),
    ("store_busy", "cycles the store unit prepared or sent data"),
    ("store_wait_memory", "cycles the bus did not take an address or data, or only responses were missing"),
    ("store_wait_token", "cycles nothing was in flight and the next instruction waited for a token"),
    ("store_idle", "cycles the store unit had no instruction"),
    ("compute_busy", "cycles the compute unit had an instruction"),
    ("gemm_busy", "cycles a GEMM instruction was in flight"),
    ("alu_busy", "cycles an ALU instruction was in flight"),
    ("requant_busy", "cycles a REQUANT was in flight, beside others or not"),
    ("requant_wait_port", "cycles REQUANT wanted to read acc and GEMM or ALU did"),
    ("gemm_uops", "GEMM micro-ops executed (reset included)"),
    ("alu_uops", "ALU micro-ops executed"),
    ("requant_vectors", "acc elements requantized"),
    ("insn_bytes", "bytes of instructions read"),
    ("uop_load_bytes", "bytes of micro-ops read, padding not counted"),
    ("inp_load_bytes", "bytes of inp elements read, padding not counted"),
    ("wgt_load_bytes", "bytes of wgt elements read, padding not counted"),
    ("acc_load_bytes", "bytes of acc elements read, padding not counted"),
    ("out_store_bytes", "bytes of out elements written"),
    ("insns_retired", "instructions retired"),
)
"""Counters of the last run, 32 bits each, cleared by launch; they stop with the run."""

CYCLE_SPLIT: dict[str, tuple[str, ...]] = {
    "fetch": ("fetch_busy", "fetch_stall_queue", "fetch_wait_memory", "fetch_idle"),
    "load": ("load_busy", "load_wait_memory", "load_wait_token", "load_idle"),
    "compute": (
        "compute_gemm", "compute_alu", "compute_stall_requant", "compute_stall_pipeline", "compute_wait_memory",
        "compute_wait_token", "compute_wait_finish", "compute_idle",
    ),
    "store": ("store_busy", "store_wait_memory", "store_wait_token", "store_idle"),
}  # fmt: skip
"""The counters that split the cycles of a unit: every cycle of a run is in exactly one of each unit, so they sum to CYCLES."""


def _map() -> tuple[Register, ...]:
    registers = [
        Register("CONTROL", 0x00, "rw", "bit 0: launch (write 1); bit 1: finished"),
        Register("CYCLES", 0x04, "ro", "cycles from launch to finish, low 32 bits"),
        Register("INSN_COUNT", 0x08, "rw", "instructions in the stream, FINISH included"),
    ]
    pointers = ("INSN", "UOP", "INP", "WGT", "ACC", "OUT")
    for number, name in enumerate(pointers):
        registers.append(
            Register(f"{name}_BASE_LO", 0x0C + 8 * number, "rw", f"byte address of {name.lower()}, low half")
        )
        registers.append(
            Register(f"{name}_BASE_HI", 0x10 + 8 * number, "rw", f"byte address of {name.lower()}, high half")
        )
    registers += [
        Register("ACC_WRITES", 0x3C, "ro", "elements GEMM, ALU and requant wrote to acc"),
        Register("ID", 0x40, "ro", "'OVTA'", ID_MAGIC),
        Register("ISA_VERSION", 0x44, "ro", "major in bits 15:8, minor in bits 7:0"),
        Register("CONFIG_HASH_LO", 0x48, "ro", "configuration hash, low half"),
        Register("CONFIG_HASH_HI", 0x4C, "ro", "configuration hash, high half"),
        Register("FEATURES", 0x50, "ro", "one bit an extension"),
        Register("STATUS", 0x54, "ro", "what is running"),
        Register("ERROR", 0x58, "ro", "first error: cause, unit, channel, waiting token; zero if none"),
        Register("ERROR_INDEX", 0x5C, "ro", "index of the instruction at fault"),
        Register("ERROR_ADDR_LO", 0x60, "ro", "byte address of a bus error, low half"),
        Register("ERROR_ADDR_HI", 0x64, "ro", "byte address of a bus error, high half"),
        Register("IRQ_ENABLE", 0x68, "rw", "bit 0: interrupt on finish; bit 1: interrupt on error"),
        Register("IRQ_STATUS", 0x6C, "w1c", "bit 0: finished; bit 1: error; write 1 to clear"),
        Register(
            "WATCHDOG", 0x70, "rw", "cycles without progress that are an error; 0 switches it off", WATCHDOG_RESET
        ),
        Register("RESET", 0x74, "rw", "write 1: soft reset; reads 1 until outstanding beats are in"),
        Register("CYCLES_HI", 0x78, "ro", "cycles from launch to finish, high 32 bits"),
    ]
    registers += [
        Register(f"COUNTER_{name.upper()}", 0x80 + 4 * number, "ro", doc) for number, (name, doc) in enumerate(COUNTERS)
    ]
    return tuple(registers)


REGISTERS: tuple[Register, ...] = _map()
OFFSETS: dict[str, int] = {register.name: register.offset for register in REGISTERS}

CHANNELS: dict[str, int] = {"insn": 0, "uop": 1, "inp": 2, "wgt": 3, "acc": 4, "out": 8}
"""AXI clients as ERROR.channel numbers them: the read clients, and the write channel."""

CONTROL = Layout("CONTROL", 32, (Field("launch", 0, 1), Field("finish", 1, 1)), ignored=((2, 30),))
STATUS = Layout(
    "STATUS",
    32,
    (
        Field("running", 0, 1, doc="launched, neither finished nor stopped by an error"),
        Field("fetch_busy", 1, 1),
        Field("load_busy", 2, 1),
        Field("compute_busy", 3, 1),
        Field("store_busy", 4, 1),
        Field("reads_pending", 5, 1, doc="read beats outstanding"),
        Field("writes_pending", 6, 1, doc="write beats or responses outstanding"),
        Field("halted", 7, 1, doc="an error is held"),
    ),
    ignored=((8, 24),),
)
ERROR = Layout(
    "ERROR",
    32,
    (
        Field("cause", 0, 8, doc="see Cause"),
        Field("unit", 8, 4, doc="see Unit: where it happened, or who waits (watchdog)"),
        Field("channel", 12, 4, doc="AXI read client (0 insn, 1 uop, 2 inp, 3 wgt, 4 acc) or 8 for the write channel"),
        Field("wait", 16, 4, doc="watchdog: bit n set = waits for a token of queue n (see Queue)"),
        Field("finish", 20, 1, doc="watchdog: FINISH waits for units, queues or tokens to become empty"),
    ),
    ignored=((21, 11),),
)
