# SPDX-License-Identifier: Apache-2.0
foreach(name controllers agents posts workers)
  cadre_test(test_gateway_${name} LINKS cadre_gateway cadre_fakeapi SOURCES gateway_fixture.c)
endforeach()
add_dependencies(test_gateway_workers cadre-worker module_accumulator)
target_compile_definitions(test_gateway_workers PRIVATE WORKER="$<TARGET_FILE:cadre-worker>"
                                                        ACCUMULATOR_SO="$<TARGET_FILE:module_accumulator>")
