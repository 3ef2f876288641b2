# SPDX-License-Identifier: Apache-2.0
cadre_test(test_golden_plan LINKS cadre_reconcile SOURCES golden.c group_case.c)
set_tests_properties(test_golden_plan PROPERTIES LABELS "unit;golden")
cadre_test(test_group_simulation LINKS cadre_exec SOURCES group_world.c group_operator.c group_case.c)
