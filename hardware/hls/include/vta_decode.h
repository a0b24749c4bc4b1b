// SPDX-License-Identifier: Apache-2.0
// What fetch refuses: the faults that can be seen in one instruction word, in the order of the causes.
#ifndef OPENVTA_VTA_DECODE_H
#define OPENVTA_VTA_DECODE_H

#include "vta_types.h"

namespace openvta {

// The fault of an instruction word, or NONE; `last` says whether it is the last of the stream.
Cause static_fault(Word128 word, bool last);

// The unit that executes a legal instruction.
Unit unit_of(Word128 word);

}  // namespace openvta

#endif  // OPENVTA_VTA_DECODE_H
