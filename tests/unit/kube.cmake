# SPDX-License-Identifier: Apache-2.0
foreach(name client client_stream client_tls)
  cadre_test(test_${name} LINKS cadre_kube cadre_fakeapi SOURCES kube_fixture.c)
endforeach()
