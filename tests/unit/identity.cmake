# SPDX-License-Identifier: Apache-2.0
foreach(name base64 ticket)
  cadre_test(test_${name} LINKS cadre_identity)
endforeach()
foreach(name jwks jwt)
  cadre_test(test_${name} LINKS cadre_identity SOURCES issuer.c)
endforeach()
