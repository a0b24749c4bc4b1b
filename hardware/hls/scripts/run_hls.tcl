# SPDX-License-Identifier: Apache-2.0
# Vitis HLS 2021.1 or later:  vitis_hls -f run_hls.tcl [step ...]     steps: csim csynth cosim export (default: all but cosim)
# Configuration @CONFIG@ (@HASH@), part @PART@, clock @CLOCK@ ns.
set here [file dirname [file normalize [info script]]]
set steps {csim csynth export}
if {[info exists argv] && [llength $argv] > 0} {
    # vitis_hls passes its own "-f script" along; what follows are steps
    set given {}
    foreach word $argv {
        if {[lsearch -exact {csim csynth cosim export} $word] >= 0} { lappend given $word }
    }
    if {[llength $given] > 0} { set steps $given }
}

open_project -reset openvta_hls
set_top @TOP@
set flags "-std=c++14 -I$here/include -I$here/tb"
foreach name {@SOURCES@} {
    add_files $here/src/$name -cflags $flags
}
add_files -tb $here/tb/vta_tb.cpp -cflags $flags
set sessions {@SESSIONS@}
foreach name $sessions {
    add_files -tb $here/sessions/$name
}
open_solution -reset -flow_target vivado solution
set_part {@PART@}
create_clock -period @CLOCK@ -name default
config_interface -m_axi_addr64 -m_axi_latency 32 -m_axi_max_widen_bitwidth 0
config_dataflow -strict_mode off

if {[lsearch -exact $steps csim] >= 0} {
    csim_design -clean -argv [join $sessions " "]
}
if {[lsearch -exact $steps csynth] >= 0} {
    csynth_design
}
if {[lsearch -exact $steps cosim] >= 0} {
    cosim_design -rtl verilog -argv [lindex $sessions 0]
}
if {[lsearch -exact $steps export] >= 0} {
    export_design -format ip_catalog -rtl verilog -vendor openvta -library hls -ipname openvta_core -version 0.1
}
close_project
exit
