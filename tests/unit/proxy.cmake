# SPDX-License-Identifier: Apache-2.0
foreach(name idmap deadline scan)
  cadre_test(test_${name} LINKS cadre_proxy)
endforeach()
