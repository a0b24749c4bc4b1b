# SPDX-License-Identifier: Apache-2.0
"""From the error registers to an exception that names the instruction, its text, its layer and what is missing."""

from __future__ import annotations

from openvta.driver.errors import BusError, Fault
from openvta.driver.transport import Transport, read_registers
from openvta.spec.asm import disassemble_word
from openvta.spec.isa import CAUSE_DOC, TOKEN_FLAGS, Cause, Queue, Unit, pops_and_pushes
from openvta.spec.program import Program
from openvta.spec.registers import ERROR, OFFSETS

CHANNELS = {0: "instruction read", 1: "uop read", 2: "inp read", 3: "wgt read", 4: "acc read", 8: "out write"}


def read_fault(transport: Transport, program: Program, place: str, image_base: int) -> Fault | None:
    """The error the device holds, or None.

    Args:
        transport: the device.
        program: what it was running.
        place: what was running, for the message (such as "segment 0 of bundle 'm'").
        image_base: device address of the image, so that a bus error can say where inside it.
    """
    names = ("ERROR", "ERROR_INDEX", "ERROR_ADDR_LO", "ERROR_ADDR_HI")
    word, index, low, high = read_registers(transport, [OFFSETS[name] for name in names])
    if word == 0:
        return None
    fields = ERROR.decode(word)
    cause = Cause(fields["cause"]) if fields["cause"] in {int(item) for item in Cause} else None
    unit = Unit(fields["unit"]) if fields["unit"] in {int(item) for item in Unit} else Unit.FETCH
    instruction = f"(beyond the last of {len(program)})"
    if index < len(program):
        instruction = disassemble_word(program.config, program.words[index])
    where = f"{place}: instruction {index} '{instruction}' in unit {unit.name.lower()}"
    queues = tuple(queue for queue in Queue if fields["wait"] >> queue & 1)
    name = cause.name.lower() if cause is not None else f"cause {fields['cause']}"
    if cause in (Cause.BUS_READ, Cause.BUS_WRITE):
        address = high << 32 | low
        channel = CHANNELS.get(fields["channel"], f"channel {fields['channel']}")
        error = BusError(
            f"{name} at {where}: {channel} of address {address:#x} ({address - image_base:+#x} from the image) failed: "
            "the address is outside the image, or memory has a fault",
            cause=cause,
            unit=unit,
            index=index,
            instruction=instruction,
        )
        error.address, error.channel = address, channel
        return error
    if cause is Cause.WATCHDOG:
        text = _waiting(unit, queues, bool(fields["finish"]))
        fills = getattr(transport, "queue_fills", None)
        if fills is not None:
            text = f"{text}; queues: {fills()}"
    else:
        text = CAUSE_DOC[cause] if cause is not None else "this version does not know the cause"
    detail = getattr(transport, "fault_text", None)
    extra = detail() if detail is not None else ""
    if extra and cause is not Cause.WATCHDOG:
        text = f"{text} ({extra})"
    return Fault(
        f"{name} at {where}: {text}",
        cause=cause if cause is not None else Cause.NONE,
        waits=queues,
        finish=bool(fields["finish"]),
        unit=unit,
        index=index,
        instruction=instruction,
    )


def _waiting(unit: Unit, queues: tuple[Queue, ...], finish: bool) -> str:
    if queues:
        return "deadlock: " + "; ".join(_missing(unit, queue) for queue in queues)
    if finish:
        return (
            "FINISH waits for units and queues to become empty: a token is left over (a push without a pop), "
            "or another unit is stuck"
        )
    return "nothing retired and no bus transfer took place for the watchdog bound; is memory answering?"


def _missing(unit: Unit, queue: Queue) -> str:
    pop = next(
        (flag for flag in TOKEN_FLAGS if flag.startswith("pop") and pops_and_pushes(unit).get(flag) is queue), "pop"
    )
    for pusher in Unit:
        for flag, target in pops_and_pushes(pusher).items():
            if flag.startswith("push") and target is queue:
                return (
                    f"its {pop} waits for a token of queue {queue.name.lower()} that never comes; the stream lacks a "
                    f"{flag} in unit {pusher.name.lower()}, or has a {pop} too many"
                )
    return f"it waits for a token of queue {queue.name.lower()}"
