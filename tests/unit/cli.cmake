# SPDX-License-Identifier: Apache-2.0
# Programs against a group behind a gateway.
foreach(name cli_call sdk_controller)
  cadre_test(test_${name} SOURCES cli_world.c gateway_fixture.c LINKS cadre_gateway)
  add_dependencies(test_${name} kubectl-cadre cadre-worker controller module_accumulator)
  target_compile_definitions(
    test_${name}
    PRIVATE KUBECTL_CADRE="$<TARGET_FILE:kubectl-cadre>" WORKER="$<TARGET_FILE:cadre-worker>"
            CONTROLLER="$<TARGET_FILE:controller>" ACCUMULATOR_SO="$<TARGET_FILE:module_accumulator>")
endforeach()
