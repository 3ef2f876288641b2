# SPDX-License-Identifier: Apache-2.0
# Suites in shell that need a real cluster. They print TAP, start their own clusters, and remove them. If the machine cannot run
# a cluster, they exit with 77, and ctest reports them as skipped.
#
# The fixtures below build programs and images once. A suite waits most of the time: for a Lease, a grace period, or a node
# that counts as lost. So resources.json lets several suites run at the same time, beside all other tests. ctest gets that file
# by --preset, or by --resource-spec-file.

# cadre_suite(SCRIPT TAKES SECONDS [MEMORY GB] [IMAGES]): registers SCRIPT of the calling folder as FOLDER_NAME. TAKES: about so
# long on a quiet machine. The longest suites start first, so that none of them is alone at the end. IMAGES: the script needs
# localhost/cadre-{operator,example,python}:dev. MEMORY: for programs with torch. The script finds the operator with sanitizers
# in $CADRE_OPERATOR, kubectl-cadre in $CADRE_KUBECTL_CADRE, and the build folder in $CADRE_BUILD_DIR.
function(cadre_suite script)
  cmake_parse_arguments(arg "IMAGES" "TAKES;MEMORY" "" ${ARGN})
  get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  get_filename_component(name "${script}" NAME_WE)
  string(REGEX REPLACE "^test_" "" name "${name}")
  set(test ${folder}_${name})
  add_test(NAME ${test} COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/${script}" WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  math(EXPR cost "1000 + ${arg_TAKES}") # all suites start before the other tests
  set(resources clusters:1)
  if(arg_MEMORY)
    string(APPEND resources ",memory:${arg_MEMORY}")
  endif()
  set(needs cluster_programs)
  if(arg_IMAGES)
    list(APPEND needs cluster_images)
  endif()
  set_tests_properties(
    ${test} PROPERTIES LABELS "cluster;${folder}" SKIP_RETURN_CODE 77 COST ${cost}
                       RESOURCE_GROUPS "${resources}" FIXTURES_REQUIRED "${needs}")
  set_property(
    TEST ${test} PROPERTY ENVIRONMENT "CADRE_OPERATOR=$<TARGET_FILE:cadre-operator>"
                          "CADRE_KUBECTL_CADRE=$<TARGET_FILE:kubectl-cadre>" "CADRE_BUILD_DIR=${CMAKE_BINARY_DIR}"
                          CADRE_USE=own)
endfunction()

add_test(NAME cluster_programs COMMAND "${CMAKE_CURRENT_LIST_DIR}/fixture.sh" programs)
add_test(NAME cluster_images COMMAND "${CMAKE_CURRENT_LIST_DIR}/fixture.sh" images)
set_tests_properties(cluster_programs PROPERTIES FIXTURES_SETUP cluster_programs LABELS cluster)
set_tests_properties(cluster_images PROPERTIES FIXTURES_SETUP cluster_images LABELS cluster ENVIRONMENT
                                               "CADRE_BUILD_DIR=${CMAKE_BINARY_DIR}")
