# SPDX-License-Identifier: Apache-2.0
"""Random programs on the RTL and on fsim, compared after every instruction; disturbed, damaged and counted."""
