# Everything from Debian 12; ARCHITECTURE.md says what each is for. Their headers are SYSTEM: their warnings are theirs.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(OpenSSL 3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(tomlplusplus REQUIRED)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
pkg_check_modules(MAXMINDDB REQUIRED IMPORTED_TARGET libmaxminddb)
find_library(CCTZ_LIBRARY cctz REQUIRED)  # comes without a description of itself
find_file(WEIR_DYGRAPH dygraph.min.js PATHS /usr/share/javascript/dygraphs NO_DEFAULT_PATH)  # the dashboard carries it
if(NOT WEIR_DYGRAPH)
  message(FATAL_ERROR "dygraph.min.js is missing: install libjs-dygraphs, or say where it is with -DWEIR_DYGRAPH=FILE")
endif()

find_program(CCACHE ccache)
if(CCACHE)  # which has to be told that precompiled headers hide what stands in __TIME__ and in macros (its manual)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

# What every room compiles with. BOOST_ASIO_SEPARATE_COMPILATION: Asio's own body is compiled once (src/net/asio.cpp).
add_library(weir_settings INTERFACE)
target_compile_definitions(weir_settings INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE BOOST_BEAST_SEPARATE_COMPILATION
  WEIR_VERSION="${PROJECT_VERSION}" _FILE_OFFSET_BITS=64)  # the last as some libraries ask for: one for all
target_compile_options(weir_settings INTERFACE -pthread)
target_link_libraries(weir_settings INTERFACE Threads::Threads Boost::headers)
