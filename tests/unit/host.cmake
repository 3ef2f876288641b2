# SPDX-License-Identifier: Apache-2.0
# Modules to load, and what is wrong with them.
foreach(name other_abi no_symbol future misbehaving watched nested_calls)
  cadre_module(${name} SOURCE modules/${name}.c)
endforeach()
add_library(driver_stub SHARED modules/driver_stub.c)
set_target_properties(driver_stub PROPERTIES OUTPUT_NAME cuda SOVERSION 1
                                             LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/driver_stub")
cadre_module(needs_driver SOURCE modules/needs_driver.c LINKS driver_stub)
set_target_properties(module_needs_driver PROPERTIES SKIP_BUILD_RPATH ON)

set(host "$<LINK_LIBRARY:WHOLE_ARCHIVE,cadre_host>") # modules find the functions of the ABI in the program
set(loaded accumulator dispatch echo counter tensor other_abi no_symbol future misbehaving needs_driver)
foreach(name module call batch executor)
  cadre_test(test_host_${name} LINKS ${host})
  set_target_properties(test_host_${name} PROPERTIES ENABLE_EXPORTS ON)
endforeach()
cadre_test(test_host_via LINKS cadre_host)
cadre_test(test_host_session LINKS cadre_host cadre_ws_server SOURCES host_proxy.c)
cadre_test(test_host_process LINKS cadre_ws_server cadre_fakeapi SOURCES host_proxy.c)
add_dependencies(test_host_process cadre-worker)
target_compile_definitions(test_host_process PRIVATE WORKER="$<TARGET_FILE:cadre-worker>")
foreach(test module call process)
  foreach(module IN LISTS loaded)
    string(TOUPPER ${module} macro)
    target_compile_definitions(test_host_${test} PRIVATE ${macro}_SO="$<TARGET_FILE:module_${module}>")
    add_dependencies(test_host_${test} module_${module})
  endforeach()
endforeach()
