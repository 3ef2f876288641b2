# SPDX-License-Identifier: Apache-2.0
foreach(name blob record record_reader record_writer frame handshake protocol error_body)
  cadre_test(test_${name} LINKS cadre_wire)
endforeach()
