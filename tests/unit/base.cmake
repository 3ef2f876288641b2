# SPDX-License-Identifier: Apache-2.0
foreach(name err arena buf str map list log rand loop)
  cadre_test(test_${name} LINKS cadre_base)
endforeach()
