# Precompiles the library headers that nearly every source of a room includes, because they took two thirds of the
# compile time. Works only with g++: clang requires the same macros on every command line. Sources must still include
# all headers that they use, because ./dev lint compiles them without precompiled headers.
option(WEIR_PRECOMPILED "Compile the headers of libraries once" ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(WEIR_PRECOMPILED OFF)
endif()

# weir_precompiled(NAME HEADERS headers [LIBRARIES libraries of these headers] [OPTIONS compiler options]): declares a
# set of precompiled headers.
function(weir_precompiled name)
  cmake_parse_arguments(GIVEN "" "" "HEADERS;LIBRARIES;OPTIONS" ${ARGN})
  set_property(GLOBAL PROPERTY WEIR_OPTIONS_${name} ${GIVEN_OPTIONS})
  if(NOT WEIR_PRECOMPILED)
    return()
  endif()
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(weir_precompiled_${name} OBJECT ${source})
  target_link_libraries(weir_precompiled_${name} PRIVATE weir_settings ${GIVEN_LIBRARIES})
  target_precompile_headers(weir_precompiled_${name} PRIVATE ${GIVEN_HEADERS})
  weir_compile_options(weir_precompiled_${name})
  target_compile_options(weir_precompiled_${name} PRIVATE ${GIVEN_OPTIONS})
endfunction()

# Lets the target use the precompiled headers NAME. Both must be compiled with the same options.
function(weir_precompile_with target name)
  get_property(options GLOBAL PROPERTY WEIR_OPTIONS_${name})
  target_compile_options(${target} PRIVATE ${options})
  if(WEIR_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM weir_precompiled_${name})
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # lets ccache see changes in the headers
  endif()
endfunction()

set(standard_headers <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cstdint> <deque> <functional> <limits> <map>
    <memory> <mutex> <optional> <random> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)
set(asio_headers <boost/asio/generic/stream_protocol.hpp> <boost/asio/io_context.hpp> <boost/asio/ip/tcp.hpp>
    <boost/asio/post.hpp> <boost/asio/steady_timer.hpp>)
set(test_headers <gmock/gmock.h> <gtest/gtest.h>)
