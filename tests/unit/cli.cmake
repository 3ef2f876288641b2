# SPDX-License-Identifier: Apache-2.0
# Programs against a group behind a gateway.
foreach(name cli_call cli_kubectl cli_top sdk_example)
  cadre_test(test_${name} SOURCES cli_world.c gateway_fixture.c LINKS cadre_gateway)
  add_dependencies(test_${name} kubectl-cadre cadre-worker client module_accumulator module_tensor)
  target_compile_definitions(
    test_${name}
    PRIVATE FAKE_KUBECTL="${CMAKE_CURRENT_SOURCE_DIR}/fake_kubectl.py" KUBECTL_CADRE="$<TARGET_FILE:kubectl-cadre>" WORKER="$<TARGET_FILE:cadre-worker>"
            EXAMPLE_CLIENT="$<TARGET_FILE:client>" ACCUMULATOR_SO="$<TARGET_FILE:module_accumulator>"
            TENSOR_SO="$<TARGET_FILE:module_tensor>")
endforeach()
cadre_test(test_cli_document LINKS cadre_cli)
cadre_test(test_cli_explain SOURCES golden.c LINKS cadre_cli)
cadre_test(test_cli_rates LINKS cadre_cli)
