# SPDX-License-Identifier: Apache-2.0
cadre_test(test_browser LINKS cadre_gateway)
foreach(name clients agents posts provision workers abuse strain)
  cadre_test(test_gateway_${name} LINKS cadre_gateway cadre_fakeapi SOURCES gateway_fixture.c)
endforeach()
cadre_test(test_lookout LINKS cadre_gateway cadre_identity cadre_fakeapi SOURCES gateway_fixture.c)
cadre_test(test_objects LINKS cadre_client_core cadre_gateway cadre_fakeapi SOURCES gateway_fixture.c)
add_dependencies(test_objects cadre-worker module_tensor module_echo)
target_compile_definitions(
  test_objects PRIVATE WORKER="$<TARGET_FILE:cadre-worker>" TENSOR_SO="$<TARGET_FILE:module_tensor>"
                       ECHO_SO="$<TARGET_FILE:module_echo>")
add_dependencies(test_gateway_workers cadre-worker module_accumulator)
target_compile_definitions(test_gateway_workers PRIVATE WORKER="$<TARGET_FILE:cadre-worker>"
                                                        ACCUMULATOR_SO="$<TARGET_FILE:module_accumulator>")
add_test(NAME test_local COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local.sh" $<TARGET_FILE:cadre-local>
                                 $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker> $<TARGET_FILE:module_accumulator>
                                 $<TARGET_FILE:kubectl-cadre>)
set_tests_properties(test_local PROPERTIES LABELS unit TIMEOUT 600)

add_test(NAME test_local_port COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local_port.sh" $<TARGET_FILE:cadre-local>
                                      $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker>
                                      $<TARGET_FILE:module_accumulator> $<TARGET_FILE:kubectl-cadre>)
set_tests_properties(test_local_port PROPERTIES LABELS unit TIMEOUT 600)

add_test(NAME test_local_run COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local_run.sh" $<TARGET_FILE:cadre-local>
                                 $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker> $<TARGET_FILE:module_accumulator>
                                 $<TARGET_FILE:kubectl-cadre>)
set_tests_properties(test_local_run PROPERTIES LABELS unit TIMEOUT 600)
add_test(NAME test_local_roles
         COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local_roles.sh" "${PROJECT_SOURCE_DIR}" $<TARGET_FILE:cadre-local>
                 $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker> $<TARGET_FILE:kubectl-cadre>
                 $<TARGET_FILE_DIR:module_tensor>)
set_tests_properties(test_local_roles PROPERTIES LABELS unit TIMEOUT 600)
add_test(NAME test_local_watch COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local_watch.sh" $<TARGET_FILE:cadre-local>
                                 $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker> $<TARGET_FILE:module_watched>
                                 $<TARGET_FILE:kubectl-cadre>)
set_tests_properties(test_local_watch PROPERTIES LABELS unit TIMEOUT 600)
add_test(NAME test_local_nested
         COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local_nested.sh" "${PROJECT_SOURCE_DIR}" $<TARGET_FILE:cadre-local>
                 $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker> $<TARGET_FILE:kubectl-cadre>
                 $<TARGET_FILE:module_nested> $<TARGET_FILE:module_nested_calls>)
add_test(NAME test_local_tasks
         COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local_tasks.sh" "${PROJECT_SOURCE_DIR}" $<TARGET_FILE:cadre-local>
                 $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker> $<TARGET_FILE:kubectl-cadre>
                 $<TARGET_FILE:module_tasks> $<TARGET_FILE:submit>)
add_test(NAME test_local_references
         COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local_references.sh" "${PROJECT_SOURCE_DIR}" $<TARGET_FILE:cadre-local>
                 $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker> $<TARGET_FILE:kubectl-cadre>
                 $<TARGET_FILE:module_tensor> $<TARGET_FILE:references>)
add_test(NAME test_local_routes
         COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local_routes.sh" "${PROJECT_SOURCE_DIR}" $<TARGET_FILE:cadre-local>
                 $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker> $<TARGET_FILE:kubectl-cadre>
                 $<TARGET_FILE:module_routes>)
set_tests_properties(test_local_nested test_local_tasks test_local_references test_local_routes PROPERTIES LABELS unit TIMEOUT 600)

add_executable(echo_call echo_call.c)
target_link_libraries(echo_call PRIVATE project_options cadre_client_core)
add_test(NAME test_local_memory COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local_memory.sh" $<TARGET_FILE:cadre-local>
                                $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker> $<TARGET_FILE:module_echo>
                                $<TARGET_FILE:echo_call>)
set_tests_properties(test_local_memory PROPERTIES LABELS unit TIMEOUT 600)

add_executable(batch_call batch_call.c)
target_link_libraries(batch_call PRIVATE project_options cadre_client_core)
add_test(NAME test_local_modes COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_local_modes.sh" $<TARGET_FILE:cadre-local>
                                 $<TARGET_FILE:cadre-agent> $<TARGET_FILE:cadre-worker> $<TARGET_FILE:batch_call>
                                 $<TARGET_FILE:module_accumulator> $<TARGET_FILE:module_dispatch> $<TARGET_FILE:module_tensor>)
set_tests_properties(test_local_modes PROPERTIES LABELS unit TIMEOUT 600)
cadre_test(test_budget LINKS cadre_gateway)
