// SPDX-License-Identifier: Apache-2.0
#ifndef OPENVTA_VTA_H
#define OPENVTA_VTA_H

#include "vta_stages.h"

// The core. All memory ports reach the same device memory; pointers are to its first byte, which has address `memory_base`.
// The core touches nothing outside `memory_bytes` from there (both are constant while it runs). `interrupt` is a level.
void vta(const openvta::insn_word_t* m_axi_insn, const openvta::uop_word_t* m_axi_uop, const openvta::inp_word_t* m_axi_inp,
         const openvta::wgt_word_t* m_axi_wgt, const openvta::acc_word_t* m_axi_acc, openvta::out_word_t* m_axi_out,
         uint64_t memory_base, uint64_t memory_bytes, hls::stream<openvta::axil_address_t>& s_axil_aw,
         hls::stream<openvta::axil_data_t>& s_axil_w, hls::stream<openvta::axil_response_t>& s_axil_b,
         hls::stream<openvta::axil_address_t>& s_axil_ar, hls::stream<openvta::axil_data_t>& s_axil_r,
         ap_uint<1>* interrupt);

#endif  // OPENVTA_VTA_H
