# SPDX-License-Identifier: Apache-2.0
foreach(name metrics workqueue controller health store leader recorder reflector)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/test_${name}.c")
    cadre_test(test_${name} LINKS cadre_runtime)
  endif()
endforeach()
