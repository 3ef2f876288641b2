# SPDX-License-Identifier: Apache-2.0
foreach(name agent_tail agent_lines agent_output agent_process agent_supervisor agent_environment agent_command)
  cadre_test(test_${name} LINKS cadre_agent)
endforeach()
