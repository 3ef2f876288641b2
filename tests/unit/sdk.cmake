# SPDX-License-Identifier: Apache-2.0
foreach(name client_load batch)
  cadre_test(test_sdk_${name} LINKS cadre_client_core cadre_ws_server cadre_fakeapi SOURCES sdk_proxy.c)
endforeach()
foreach(name client futures retry threads)
  cadre_test(test_sdk_${name} LINKS cadre_client_core cadre_ws_server cadre_fakeapi SOURCES sdk_proxy.c sdk_case.c)
endforeach()
cadre_test(test_sdk_moving LINKS cadre_client_core cadre_ws_server cadre_fakeapi
                                 -Wl,--wrap=loop_resolve_new,--wrap=loop_resolve_cancel
                           SOURCES sdk_proxy.c sdk_case.c fake_names.c)
cadre_test(test_sdk_interface LINKS cadre_client_core)
add_test(NAME test_sdk_package COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test_sdk_package.sh" "${CMAKE_SOURCE_DIR}"
                                       "${CMAKE_BINARY_DIR}" "${CMAKE_C_COMPILER}" "${CMAKE_INSTALL_LIBDIR}"
                                       "${CADRE_SANITIZE}")
set_tests_properties(test_sdk_package PROPERTIES LABELS unit TIMEOUT 600)
