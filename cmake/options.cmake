# SPDX-License-Identifier: Apache-2.0
# One INTERFACE target carries the language level, warnings, hardening and sanitizers of every target.
add_library(project_options INTERFACE)
target_compile_features(project_options INTERFACE c_std_17)
set(CMAKE_C_EXTENSIONS ON)
target_include_directories(project_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_definitions(project_options INTERFACE _GNU_SOURCE CADRE_VERSION="${CADRE_VERSION}")
target_compile_options(
  project_options
  INTERFACE -Wall -Wextra -Wshadow $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
            $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes> -Wformat=2 -Wvla -Wundef -Wpointer-arith -Wwrite-strings
            -Wno-missing-field-initializers -fvisibility=hidden -fno-strict-aliasing)
# For a struct of a few hundred bytes, gcc's choice (rep stos) takes longer than the stores themselves. Gain: a tenth of
# the proxy's time for a small call (bench/calls).
include(CheckCCompilerFlag)
set(CADRE_ZERO_STRUCTS -mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign)
check_c_compiler_flag(${CADRE_ZERO_STRUCTS} CADRE_HAS_MEMSET_STRATEGY)
if(CADRE_HAS_MEMSET_STRATEGY)
  target_compile_options(project_options INTERFACE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:C>>:${CADRE_ZERO_STRUCTS}>)
endif()
# Each preset compiles all files, and so does each clean checkout. With ccache, a file that was compiled before takes
# milliseconds.
find_program(CADRE_CCACHE ccache)
if(CADRE_CCACHE)
  foreach(language C CXX)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER) # or what the environment names
      set(CMAKE_${language}_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${CADRE_CCACHE}")
    endif()
  endforeach()
endif()
if(CADRE_WERROR)
  target_compile_options(project_options INTERFACE -Werror)
endif()
if(CADRE_SANITIZE)
  target_compile_options(project_options INTERFACE -fsanitize=${CADRE_SANITIZE} -fno-sanitize-recover=all
                                                   -fno-omit-frame-pointer)
  target_link_options(project_options INTERFACE -fsanitize=${CADRE_SANITIZE})
  # Three hundred programs with debug information: gold links them in half the CPU time of the usual linker. It would show
  # symbols of its own in a library.
  include(CheckLinkerFlag)
  check_linker_flag(C -fuse-ld=gold CADRE_HAS_GOLD)
  if(CADRE_HAS_GOLD)
    target_link_options(project_options INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-fuse-ld=gold>)
  endif()
else()
  target_compile_options(project_options INTERFACE -fstack-protector-strong $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>
                                                   -ffunction-sections -fdata-sections)
  target_link_options(project_options INTERFACE -Wl,-z,relro,-z,now -Wl,--gc-sections)
endif()
