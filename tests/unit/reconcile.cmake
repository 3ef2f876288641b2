# SPDX-License-Identifier: Apache-2.0
cadre_test(test_golden_plan LINKS cadre_reconcile SOURCES golden.c group_case.c)
set_tests_properties(test_golden_plan PROPERTIES LABELS "unit;golden")
