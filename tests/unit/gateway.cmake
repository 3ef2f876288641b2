# SPDX-License-Identifier: Apache-2.0
foreach(name controllers agents posts)
  cadre_test(test_gateway_${name} LINKS cadre_gateway cadre_fakeapi SOURCES gateway_fixture.c)
endforeach()
