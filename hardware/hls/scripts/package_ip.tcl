# SPDX-License-Identifier: Apache-2.0
# After export:  vivado -mode batch -source package_ip.tcl     makes an IP with an AXI4-Lite slave and AXI4 masters in ./ip
set here [file dirname [file normalize [info script]]]
create_project -force -part {@PART@} openvta_ip $here/ip_project
set_property ip_repo_paths [list $here/openvta_hls/solution/impl/ip] [current_project]
update_ip_catalog
add_files -norecurse $here/openvta_hls.v
foreach file [glob -nocomplain $here/openvta_hls/solution/syn/verilog/*.v] {
    add_files -norecurse $file
}
set_property top openvta_hls [current_fileset]
update_compile_order -fileset sources_1
ipx::package_project -root_dir $here/ip -vendor openvta -library hls -taxonomy /UserIP -import_files -force
set core [ipx::current_core]
set_property name openvta_hls $core
set_property display_name "OpenVTA HLS core (@CONFIG@)" $core
set_property version 0.1 $core
ipx::associate_bus_interfaces -busif s_axil -clock aclk $core
foreach bundle {insn uop inp wgt acc out} {
    ipx::associate_bus_interfaces -busif m_axi_$bundle -clock aclk $core
}
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::save_core $core
close_project
exit
