# SPDX-License-Identifier: Apache-2.0
cadre_test(test_notebook LINKS cadre_exec)
cadre_test(test_executor LINKS cadre_exec cadre_fakeapi SOURCES kube_fixture.c)
# This one speaks to a stub instead of the client: the linker takes the first definition it meets.
cadre_test(test_group_controller LINKS cadre_exec SOURCES stub_client.c)
