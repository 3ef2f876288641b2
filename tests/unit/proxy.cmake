# SPDX-License-Identifier: Apache-2.0
foreach(name idmap deadline scan)
  cadre_test(test_${name} LINKS cadre_proxy)
endforeach()
foreach(name router router_life)
  cadre_test(test_${name} SOURCES proxy_fixture.c proxy_world.c LINKS cadre_proxy)
endforeach()
cadre_test(test_jsonrpc SOURCES proxy_fixture.c LINKS cadre_proxy)
cadre_test(test_router_simulation SOURCES proxy_fixture.c LINKS cadre_proxy)
