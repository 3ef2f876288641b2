# SPDX-License-Identifier: Apache-2.0
foreach(name agent_groups agent_tail agent_lines agent_listen agent_output agent_process agent_supervisor agent_environment agent_command agent_oom)
  cadre_test(test_${name} LINKS cadre_agent)
endforeach()
cadre_test(test_agent_orders LINKS cadre_reconcile cadre_agent SOURCES golden.c group_case.c likeness.c)
cadre_test(test_agent_connection LINKS cadre_agent cadre_ws_server)
add_test(NAME test_agent_run COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_agent_run.sh" $<TARGET_FILE:cadre-agent>
                                     $<TARGET_FILE:rendezvous>)
set_tests_properties(test_agent_run PROPERTIES LABELS unit TIMEOUT 600)
