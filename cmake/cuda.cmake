# SPDX-License-Identifier: Apache-2.0
# CUDA, if it is there: deploy/cuda.sh knows where to look and can set it up. Only examples and tests use it; no program
# of ours is linked with a CUDA library.
set(CADRE_CUDA AUTO CACHE STRING "Build what needs a CUDA compiler: AUTO (where one works), ON (it must), OFF")
set_property(CACHE CADRE_CUDA PROPERTY STRINGS AUTO ON OFF)

# cadre_find_cuda(PART VAR): the folder of the toolkit or of nccl, empty if there is none.
function(cadre_find_cuda part var)
  execute_process(COMMAND "${CMAKE_SOURCE_DIR}/deploy/cuda.sh" --find ${part}
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${var} "${found}" PARENT_SCOPE)
endfunction()

# GPUs of 2020 and of 2022 run as they are, and of 2024 where the compiler knows them; others by compiling PTX when they
# load it.
set(architectures 80-real 90)
set(CMAKE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "GPU architectures")

if(CADRE_CUDA AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  cadre_find_cuda(toolkit toolkit)
  if(toolkit)
    set(ENV{CUDACXX} "${toolkit}/bin/nvcc")
  elseif(NOT CADRE_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "CADRE_CUDA is ${CADRE_CUDA} and there is no nvcc: deploy/cuda.sh sets up a toolkit")
  endif()
endif()
set(CADRE_HAVE_CUDA FALSE)
if(CADRE_CUDA STREQUAL AUTO)
  include(CheckLanguage)
  if(CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
    check_language(CUDA) # a compiler that nobody asked for and that does not work is not a reason to stop
  endif()
  if(CMAKE_CUDA_COMPILER)
    set(CADRE_HAVE_CUDA TRUE)
  endif()
elseif(CADRE_CUDA)
  set(CADRE_HAVE_CUDA TRUE)
endif()
if(CADRE_HAVE_CUDA)
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 17)
  if("${CMAKE_CUDA_ARCHITECTURES}" STREQUAL "${architectures}" AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
    list(APPEND CMAKE_CUDA_ARCHITECTURES 100-real)
  endif()
  cadre_find_cuda(nccl nccl)
  find_path(CADRE_NCCL_INCLUDE nccl.h HINTS "${nccl}/include")
  find_library(CADRE_NCCL_LIBRARY nccl HINTS "${nccl}/lib")
  if(CADRE_NCCL_INCLUDE AND CADRE_NCCL_LIBRARY)
    add_library(cadre_nccl INTERFACE)
    target_include_directories(cadre_nccl SYSTEM INTERFACE "${CADRE_NCCL_INCLUDE}"
                                                           ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
    target_link_libraries(cadre_nccl INTERFACE "${CADRE_NCCL_LIBRARY}")
  endif()
endif()

# cadre_cuda_module(NAME): NAME.so out of NAME.cu in the calling folder, with the runtimes of CUDA and C++ inside: the
# image needs neither, and a node without a driver gets a message instead of a module that does not load.
function(cadre_cuda_module name)
  add_library(module_${name} MODULE ${name}.cu)
  set_target_properties(module_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name} CUDA_RUNTIME_LIBRARY Static
                                                  CUDA_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden)
  target_compile_options(module_${name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
                                                $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${CADRE_WERROR}>>:-Werror=all-warnings>)
  target_link_options(module_${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL
                                              $<$<CONFIG:Release>:-s>)
  target_link_libraries(module_${name} PRIVATE cadre_module_sdk)
endfunction()
