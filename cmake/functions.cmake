# SPDX-License-Identifier: Apache-2.0

# cadre_library(NAME LINKS ...): one static library of all .c files in the calling folder. The links are the layers
# below it; tests/lint checks that #include lines agree.
function(cadre_library name)
  cmake_parse_arguments(arg "" "" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.c")
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC project_options ${arg_LINKS})
  else() # a layer of headers only
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE project_options ${arg_LINKS})
  endif()
endfunction()

# cadre_test(FILE LINKS ...): one CMocka binary of its own for FILE.c in the calling folder. SUPPORT: files of
# tests/unit/support.
function(cadre_test name)
  cmake_parse_arguments(arg "" "" "LINKS;SOURCES;SUPPORT" ${ARGN})
  list(TRANSFORM arg_SUPPORT PREPEND "${PROJECT_SOURCE_DIR}/tests/unit/support/")
  add_executable(${name} ${name}.c ${arg_SOURCES} ${arg_SUPPORT})
  target_link_libraries(${name} PRIVATE project_options PkgConfig::cmocka ${arg_LINKS})
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  # CMocka catches SIGSEGV, which would hide the sanitizer's report.
  set_tests_properties(
    ${name} PROPERTIES LABELS unit ENVIRONMENT
                       "ASAN_OPTIONS=allow_user_segv_handler=0:handle_segv=2;UBSAN_OPTIONS=print_stacktrace=1")
endfunction()

# cadre_module(NAME): NAME.so out of NAME.c in the calling folder, as cadre-worker loads it. SOURCE: of another name.
function(cadre_module name)
  cmake_parse_arguments(arg "" "SOURCE" "LINKS" ${ARGN})
  if(NOT arg_SOURCE)
    set(arg_SOURCE ${name}.c)
  endif()
  add_library(module_${name} MODULE ${arg_SOURCE})
  set_target_properties(module_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name})
  target_link_libraries(module_${name} PRIVATE project_options cadre_module_sdk ${arg_LINKS})
endfunction()

# cadre_release_file(VARIABLE TARGET): the file of a target without sanitizers. In a build with sanitizers, the test
# build_release builds it, which is then a fixture of what uses the file: cadre_needs_release(TEST).
function(cadre_release_file variable target)
  set(file "$<TARGET_FILE:${target}>")
  if(CADRE_SANITIZE)
    set(file "${CMAKE_BINARY_DIR}/build-release/$<PATH:RELATIVE_PATH,${file},${CMAKE_BINARY_DIR}>")
  endif()
  set(${variable} "${file}" PARENT_SCOPE)
endfunction()

function(cadre_needs_release test)
  if(CADRE_SANITIZE)
    set_property(TEST ${test} APPEND PROPERTY FIXTURES_REQUIRED built_release)
  endif()
endfunction()
