# SPDX-License-Identifier: Apache-2.0
foreach(name blob record record_reader record_writer share frame handshake protocol error_body safetensors dispatch batch body_list ref traceparent via)
  cadre_test(test_${name} LINKS cadre_wire)
endforeach()

# The package of the format's authors, where it is installed or pip can have it.
add_executable(safetensors_peer safetensors_peer.c)
target_link_libraries(safetensors_peer PRIVATE project_options cadre_wire)
find_program(CADRE_PYTHON3 NAMES python3)
if(CADRE_PYTHON3)
  add_test(NAME test_safetensors_peer
           COMMAND "${CADRE_PYTHON3}" "${CMAKE_CURRENT_SOURCE_DIR}/test_safetensors_peer.py"
                   $<TARGET_FILE:safetensors_peer> "${CMAKE_CURRENT_BINARY_DIR}/safetensors")
  set_tests_properties(test_safetensors_peer PROPERTIES LABELS unit TIMEOUT 600 SKIP_RETURN_CODE 77
                                                       ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()
