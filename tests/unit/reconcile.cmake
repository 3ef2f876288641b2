# SPDX-License-Identifier: Apache-2.0
foreach(name names accept plan bundles)
  cadre_test(test_${name} LINKS cadre_reconcile)
endforeach()
cadre_test(test_census LINKS cadre_reconcile SOURCES placement_builder.c)
cadre_test(test_placementgroup LINKS cadre_reconcile SOURCES group_case.c)
cadre_test(test_group LINKS cadre_reconcile SOURCES group_case.c)
cadre_test(test_golden_plan LINKS cadre_reconcile SOURCES golden.c group_case.c)
set_tests_properties(test_golden_plan PROPERTIES LABELS "unit;golden")
cadre_test(test_group_simulation LINKS cadre_exec cadre_agent SOURCES group_life.c group_world.c group_names.c group_agent.c group_operator.c
           group_case.c)
cadre_test(test_group_life LINKS cadre_exec cadre_agent SOURCES group_life.c group_world.c group_names.c group_agent.c group_operator.c
           group_case.c)
set_tests_properties(test_group_simulation PROPERTIES TIMEOUT 900)
cadre_test(test_placementgroup_simulation LINKS cadre_exec SOURCES plg_world.c plg_operator.c)
set_tests_properties(test_placementgroup_simulation PROPERTIES TIMEOUT 600)
cadre_test(test_turn LINKS cadre_reconcile SOURCES placement_builder.c)
cadre_test(test_placement_simulation LINKS cadre_reconcile SOURCES placement_simulation.c placement_world.c)
