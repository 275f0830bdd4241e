# Precompiles library headers that nearly every source of some rooms reads, because they took two thirds of each compile
# time. Only with g++, because clang requires the same macros on every command line. Sources still include all headers
# that they use, because ./dev lint reads them without precompiled headers.
option(WEIR_PRECOMPILED "Compile the headers of libraries once" ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(WEIR_PRECOMPILED OFF)
endif()

# weir_precompiled(NAME HEADERS headers [LIBRARIES of the headers] [OPTIONS of the compiler])
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

# Lets the target use the headers of NAME and its options, because both must be compiled with the same options.
function(weir_precompile_with target name)
  get_property(options GLOBAL PROPERTY WEIR_OPTIONS_${name})
  target_compile_options(${target} PRIVATE ${options})
  if(WEIR_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM weir_precompiled_${name})
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # lets ccache see what changed
  endif()
endfunction()

set(standard_headers <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cstdint> <deque> <functional> <limits> <map>
    <memory> <mutex> <optional> <random> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)
set(asio_headers <boost/asio/generic/stream_protocol.hpp> <boost/asio/io_context.hpp> <boost/asio/ip/tcp.hpp>
    <boost/asio/post.hpp> <boost/asio/steady_timer.hpp>)
set(test_headers <gmock/gmock.h> <gtest/gtest.h>)
