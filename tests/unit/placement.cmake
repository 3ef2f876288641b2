# SPDX-License-Identifier: Apache-2.0
cadre_test(test_pick LINKS cadre_placement)
cadre_test(test_line LINKS cadre_placement)
cadre_test(test_kubernetes_rules LINKS cadre_placement)
foreach(name cluster planner planner_golden planner_oracle planner_preemption)
  cadre_test(test_${name} LINKS cadre_placement SOURCES placement_builder.c)
endforeach()
