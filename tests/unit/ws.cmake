# SPDX-License-Identifier: Apache-2.0
cadre_test(test_ws LINKS cadre_ws_server cadre_fakeapi SOURCES ws_fixture.c)
cadre_test(test_ws_stress LINKS cadre_ws_server cadre_fakeapi)
