# SPDX-License-Identifier: Apache-2.0
foreach(name err clock arena buf str map list log rand loop json json_writer rfc3339 reuse small spin cpus)
  cadre_test(test_${name} LINKS cadre_base)
endforeach()
