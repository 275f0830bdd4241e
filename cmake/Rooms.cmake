# A room is a static library of all sources under src/<room> with its public headers in include/weir/<room>/.

function(weir_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  # g++ 12 gives false warnings of these kinds in optimised library code (GCC bugs 105329, 105651, 109224).
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-mismatched-new-delete>)
  if(WEIR_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(WEIR_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=undefined)
    if(WEIR_SANITIZE MATCHES undefined)
      # AddressSanitizer finds the same faults, except for alignment. The fuzz targets, which clang compiles, have all
      # of these checks. With g++ they would double the compile time.
      target_compile_options(${target} PRIVATE
        $<$<CXX_COMPILER_ID:GNU>:-fno-sanitize=null,vptr,object-size,alignment>)
    endif()
    if(WEIR_SANITIZE STREQUAL "thread")
      # ThreadSanitizer does not understand Asio's fences, but it understands the mutex under which Asio hands work
      # over.
      target_compile_options(${target} PRIVATE -Wno-tsan)
    endif()
    target_link_options(${target} PRIVATE -fsanitize=${WEIR_SANITIZE})
  endif()
endfunction()

# Sources of a room are compiled several at a time, because most of the time of each goes to the headers of libraries. A
# short loop of edit and compile is faster with -DWEIR_UNITY=OFF.
option(WEIR_UNITY "Compile sources of a room several at a time (unity builds)" ON)

# Must be called after weir_compile_options().
function(weir_unity target)
  if(WEIR_UNITY AND NOT WEIR_FUZZ)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # A type of one source's anonymous namespace may be a member there; g++ takes the source for a header.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# weir_room(NAME [PRECOMPILED set of headers, if not the standard one] [DEPENDS rooms below] [LIBRARIES outside
# libraries]
#           [EMBED files under src/ to embed as text])
function(weir_room name)
  cmake_parse_arguments(ROOM "" "PRECOMPILED" "DEPENDS;LIBRARIES;EMBED" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  set(target weir_${name})
  add_library(${target} STATIC ${sources})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  foreach(room ${ROOM_DEPENDS})
    target_link_libraries(${target} PUBLIC weir_${room})
  endforeach()
  target_link_libraries(${target} PUBLIC weir_settings ${ROOM_LIBRARIES})
  foreach(file ${ROOM_EMBED})
    weir_embed(${target} ${file})
  endforeach()
  weir_compile_options(${target})
  weir_unity(${target})
  if(WEIR_FUZZ)  # clang 14 fails at some coroutines with this check: "Cannot represent a difference across sections"
    foreach(source ${sources})
      file(STRINGS ${source} coroutines REGEX "co_await|co_return" LIMIT_COUNT 1)
      if(coroutines)
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -fno-sanitize=function)
      endif()
    endforeach()
  endif()
  if(NOT ROOM_PRECOMPILED)
    set(ROOM_PRECOMPILED standard)
  endif()
  weir_precompile_with(${target} ${ROOM_PRECOMPILED})
endfunction()

# Turns src/<file> into <file>.inc, a raw string literal, on the include path of the target. Depends on all files with
# the same ending in its folder, because the file may include them.
function(weir_embed target file)
  set(source ${PROJECT_SOURCE_DIR}/src/${file})
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(ending ${source} EXT)
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/*${ending} ${folder}/kinds.hpp)
  weir_embed_as(${target} ${source} ${file} ${parts})
endfunction()

# Does the same for a file anywhere. Further arguments are the files that it depends on.
function(weir_embed_as target source file)
  set(output ${PROJECT_BINARY_DIR}/embedded/${file}.inc)
  set(parts ${ARGN})
  if(NOT parts)
    set(parts ${source})
  endif()
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DOUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${parts} ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/embedded)
  set_property(GLOBAL APPEND PROPERTY WEIR_EMBEDDED ${output})
endfunction()
