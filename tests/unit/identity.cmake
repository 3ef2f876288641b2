# SPDX-License-Identifier: Apache-2.0
cadre_test(test_base64 LINKS cadre_identity)
foreach(name jwks jwt)
  cadre_test(test_${name} LINKS cadre_identity SOURCES issuer.c)
endforeach()
