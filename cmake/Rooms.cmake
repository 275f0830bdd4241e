# A room is a static library of all sources under src/<room> with its public headers in include/weir/<room>/.

function(weir_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  # In optimised library code, g++ 12 gives false warnings of these kinds (GCC bugs 105329, 105651, 109224).
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-mismatched-new-delete>)
  if(WEIR_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(WEIR_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=undefined)
    if(WEIR_SANITIZE MATCHES undefined)
      # AddressSanitizer finds these faults too, except for wrong alignment. The fuzz targets have all of these
      # checks, because clang compiles them. With g++, the checks would double the compile time.
      target_compile_options(${target} PRIVATE
        $<$<CXX_COMPILER_ID:GNU>:-fno-sanitize=null,vptr,object-size,alignment>)
    endif()
    if(WEIR_SANITIZE STREQUAL "thread")
      # ThreadSanitizer does not understand Asio's fences, and g++ warns about that. But it understands the mutex
      # under which Asio passes work from thread to thread.
      target_compile_options(${target} PRIVATE -Wno-tsan)
    endif()
    target_link_options(${target} PRIVATE -fsanitize=${WEIR_SANITIZE})
  endif()
endfunction()

# Sources of a room are compiled several at a time, because each spends most of its compile time on library headers.
# If you edit and compile one source repeatedly, -DWEIR_UNITY=OFF is faster.
option(WEIR_UNITY "Compile sources of a room several at a time (unity builds)" ON)

# weir_unity(TARGET SIZE): lets SIZE sources of the target be compiled at a time. Must be called after
# weir_compile_options().
function(weir_unity target size)
  if(WEIR_UNITY AND NOT WEIR_FUZZ)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
    # In a unity build, g++ takes a source for a header, and warns if a class has a member whose type is in an unnamed
    # namespace.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# weir_room(NAME [PRECOMPILED headers] [DEPENDS rooms] [LIBRARIES libraries] [EMBED files]): declares a room.
#   PRECOMPILED: set of precompiled headers; default: standard
#   DEPENDS: lower rooms
#   EMBED: files under src/ to embed as text
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
  weir_unity(${target} 8)
  # With -fsanitize=function, clang 14 cannot compile some coroutines: "Cannot represent a difference across
  # sections".
  if(WEIR_FUZZ)
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

# Makes <file>.inc from src/<file>, as a raw string literal that the target can include. Depends on all files with the
# same extension in its folder, because the file may include them.
function(weir_embed target file)
  set(source ${PROJECT_SOURCE_DIR}/src/${file})
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(ending ${source} EXT)
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/*${ending} ${folder}/kinds.hpp)
  weir_embed_as(${target} ${source} ${file} ${parts})
endfunction()

# Makes <file>.inc from a source anywhere. Further arguments: the files on which the result depends.
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

# weir_embed_descriptors(TARGET FOLDER FILE...): compiles .proto files of src/FOLDER into a FileDescriptorSet, and makes
# descriptors.inc from it, as a string literal in the same folder of the embedded files.
function(weir_embed_descriptors target folder)
  set(source ${PROJECT_SOURCE_DIR}/src/${folder}/proto)
  set(output ${PROJECT_BINARY_DIR}/embedded/${folder}/descriptors.inc)
  set(set_file ${PROJECT_BINARY_DIR}/embedded/${folder}/descriptors.pb)
  list(TRANSFORM ARGN PREPEND ${source}/ OUTPUT_VARIABLE files)
  file(GLOB_RECURSE parts CONFIGURE_DEPENDS ${source}/*.proto)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/embedded/${folder})
  add_custom_command(OUTPUT ${output}
    COMMAND ${PROTOC} -I${source} --include_imports --descriptor_set_out=${set_file} ${files}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${set_file} -DOUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedOctets.cmake
    DEPENDS ${parts} ${PROJECT_SOURCE_DIR}/cmake/EmbedOctets.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/embedded)
  set_property(GLOBAL APPEND PROPERTY WEIR_EMBEDDED ${output})
endfunction()
