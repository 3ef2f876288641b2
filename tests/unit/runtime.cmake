# SPDX-License-Identifier: Apache-2.0
foreach(name metrics workqueue controller health store leader_fsm replicas handover territory)
  cadre_test(test_${name} LINKS cadre_runtime)
endforeach()
# These speak to a stub instead of the client: the linker takes the first definition it meets.
foreach(name leader outage recorder reflector)
  cadre_test(test_${name} LINKS cadre_runtime SOURCES stub_client.c)
endforeach()
# And this one to a server over sockets.
cadre_test(test_reflector_http LINKS cadre_runtime cadre_fakeapi SOURCES kube_fixture.c)
