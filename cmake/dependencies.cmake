# SPDX-License-Identifier: Apache-2.0
# Everything comes from Debian's packages; deploy/deps.sh names them. What a wheel has is built of Debian's sources:
# deploy/wheel/libraries.sh.
find_package(PkgConfig REQUIRED)
pkg_check_modules(libuv REQUIRED IMPORTED_TARGET libuv>=1.44)
if(NOT CADRE_PORTABLE)
  pkg_check_modules(libcurl REQUIRED IMPORTED_TARGET libcurl>=7.88)
endif()
pkg_check_modules(openssl REQUIRED IMPORTED_TARGET openssl>=3.0)
pkg_check_modules(libwebsockets REQUIRED IMPORTED_TARGET libwebsockets>=4.1.6) # its libuv plugin is loaded at run time
pkg_check_modules(libyaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(libcjson REQUIRED IMPORTED_TARGET libcjson>=1.7.15) # where which reader is used: docs/adr/0005
if(CADRE_TESTS)
  pkg_check_modules(cmocka REQUIRED IMPORTED_TARGET cmocka)
endif()

# Collectives of workers without GPUs. Everything else builds and runs without it.
find_path(CADRE_GLOO_INCLUDE gloo/allreduce.h)
find_library(CADRE_GLOO_LIBRARY gloo HINTS /usr/lib)
find_program(CADRE_CXX NAMES ${CMAKE_CXX_COMPILER} c++ g++ clang++)
if(CADRE_GLOO_INCLUDE AND CADRE_GLOO_LIBRARY AND CADRE_CXX)
  set(CADRE_HAVE_GLOO TRUE)
  enable_language(CXX)
else()
  set(CADRE_HAVE_GLOO FALSE)
  message(STATUS "No gloo (libgloo-dev, g++): workers are built without collectives")
endif()
