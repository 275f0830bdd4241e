# All libraries come from Debian 12; ARCHITECTURE.md says what weir uses each library for. Their headers are SYSTEM
# headers, so weir's builds ignore warnings in them.
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
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
pkg_check_modules(CARES REQUIRED IMPORTED_TARGET libcares)
pkg_check_modules(MAXMINDDB REQUIRED IMPORTED_TARGET libmaxminddb)
pkg_check_modules(YAML_CPP REQUIRED IMPORTED_TARGET yaml-cpp)
find_library(CCTZ_LIBRARY cctz REQUIRED)  # cctz has no CMake or pkg-config file
# protoc compiles the .proto files that gRPC tools read from weir (reflection). weir's own messages need no generated code.
find_program(PROTOC protoc REQUIRED)
# This library of charts is embedded into the dashboard.
find_file(WEIR_DYGRAPH dygraph.min.js PATHS /usr/share/javascript/dygraphs NO_DEFAULT_PATH)
if(NOT WEIR_DYGRAPH)
  message(FATAL_ERROR "dygraph.min.js is missing: install libjs-dygraphs, or say where it is with -DWEIR_DYGRAPH=FILE")
endif()

find_program(CCACHE ccache)
if(CCACHE)  # ccache's manual requires this setting for precompiled headers, which hide __TIME__ and macros
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

# Options with which every room is compiled. With BOOST_ASIO_SEPARATE_COMPILATION, only src/net/asio.cpp compiles the
# function bodies of Asio.
add_library(weir_settings INTERFACE)
target_compile_definitions(weir_settings INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE BOOST_BEAST_SEPARATE_COMPILATION
  # _FILE_OFFSET_BITS is set for all code, because some libraries need it.
  WEIR_VERSION="${PROJECT_VERSION}" _FILE_OFFSET_BITS=64)
target_compile_options(weir_settings INTERFACE -pthread)
target_link_libraries(weir_settings INTERFACE Threads::Threads Boost::headers)
