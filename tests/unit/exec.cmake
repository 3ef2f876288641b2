# SPDX-License-Identifier: Apache-2.0
cadre_test(test_notebook LINKS cadre_exec)
cadre_test(test_entries LINKS cadre_exec)
cadre_test(test_dryruns LINKS cadre_exec)
cadre_test(test_tenancy LINKS cadre_exec)
cadre_test(test_timekeeper LINKS cadre_exec SOURCES placement_builder.c)
cadre_test(test_executor LINKS cadre_exec cadre_fakeapi SOURCES kube_fixture.c)
# These speak to a stub instead of the client: the linker takes the first definition it meets.
foreach(name group_controller group_controller_agents group_controller_bundles execution reaper abandoned)
  cadre_test(test_${name} LINKS cadre_exec SOURCES stub_client.c)
endforeach()
cadre_test(test_provision LINKS cadre_runtime cadre_identity SOURCES stub_client.c ../../operator/provision.c)
