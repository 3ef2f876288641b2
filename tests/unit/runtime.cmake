# SPDX-License-Identifier: Apache-2.0
foreach(name metrics workqueue controller health store leader_fsm)
  cadre_test(test_${name} LINKS cadre_runtime)
endforeach()
# These speak to a stub instead of the client: the linker takes the first definition it meets.
foreach(name leader recorder reflector)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/test_${name}.c")
    cadre_test(test_${name} LINKS cadre_runtime SOURCES stub_client.c)
  endif()
endforeach()
