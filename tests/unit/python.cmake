# SPDX-License-Identifier: Apache-2.0
# The Python package over libcadre_client.so. Where that is built with gcc's address sanitizer, Python must have loaded
# its runtime before, and what Python itself never frees is no leak of ours; with other sanitizers they are not run.
if(CADRE_PYTHON3 AND (NOT CADRE_SANITIZE OR (CADRE_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL GNU)))
  set(python_environment
      "CADRE_CLIENT_LIBRARY=$<TARGET_FILE:cadre_client>"
      "PYTHONPATH=${PROJECT_SOURCE_DIR}/sdk/python"
      PYTHONDONTWRITEBYTECODE=1
      "CADRE_LIBRARY=$<TARGET_FILE:cadre>"
      "CADRE_LOCAL=$<TARGET_FILE:cadre-local>"
      "CADRE_AGENT=$<TARGET_FILE:cadre-agent>"
      "CADRE_WORKER=$<TARGET_FILE:cadre-worker>"
      ASAN_OPTIONS=detect_leaks=0)
  foreach(module accumulator dispatch echo misbehaving tensor watched)
    string(TOUPPER ${module} macro)
    list(APPEND python_environment "${macro}_SO=$<TARGET_FILE:module_${module}>")
  endforeach()
  if(CADRE_SANITIZE)
    execute_process(COMMAND "${CMAKE_C_COMPILER}" -print-file-name=libasan.so OUTPUT_VARIABLE preloaded
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND python_environment "LD_PRELOAD=${preloaded}")
  endif()
  # Packages that are too large to be brought once for each build.
  set(CADRE_PYTHON_CACHE "$ENV{HOME}/.cache/cadre" CACHE PATH "where tests of the Python package keep others")
  function(cadre_python_test name script)
    add_test(NAME ${name} COMMAND "${CADRE_PYTHON3}" "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${ARGN})
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 600 SKIP_RETURN_CODE 77 ENVIRONMENT
                                            "${python_environment}")
  endfunction()
  cadre_python_test(test_python_client test_python_client.py)
  cadre_python_test(test_python_batch test_python_batch.py)
  cadre_python_test(test_python_numpy test_python_batch.py --numpy "${CMAKE_CURRENT_BINARY_DIR}/numpy")
  cadre_python_test(test_python_value test_python_value.py)
  cadre_python_test(test_python_value_numpy test_python_value.py --with "${CMAKE_CURRENT_BINARY_DIR}/numpy" numpy)
  cadre_python_test(test_python_value_torch test_python_value.py --with "${CADRE_PYTHON_CACHE}/torch" torch)
  cadre_python_test(test_python_local test_python_local.py)
  cadre_python_test(test_python_worker test_python_worker.py)
  cadre_python_test(test_python_torch test_python_torch.py --with "${CADRE_PYTHON_CACHE}/torch" torch)
  cadre_python_test(test_python_package test_python_package.py "${CMAKE_C_COMPILER}")
endif()
