# SPDX-License-Identifier: Apache-2.0
foreach(name ws ws_http ws_porch ws_receive)
  cadre_test(test_${name} LINKS cadre_ws_server cadre_fakeapi SOURCES ws_fixture.c)
endforeach()
cadre_test(test_ws_stress LINKS cadre_ws_server cadre_fakeapi)
cadre_test(test_ws_client LINKS cadre_ws)
cadre_test(test_pool LINKS cadre_ws)
cadre_test(test_ws_silence LINKS cadre_ws)
cadre_test(test_ws_dial LINKS cadre_ws)
cadre_test(test_ws_addresses LINKS cadre_ws -Wl,--wrap=loop_resolve_new,--wrap=loop_resolve_cancel
                             SOURCES fake_names.c)
cadre_test(test_ws_replicas LINKS cadre_ws -Wl,--wrap=loop_resolve_new,--wrap=loop_resolve_cancel)
