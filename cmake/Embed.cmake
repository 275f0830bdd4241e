# Writes SOURCE as a raw string literal. A line "--#include FILE" is replaced by the file, which lies in the same
# folder.
file(READ ${SOURCE} text)
get_filename_component(folder ${SOURCE} DIRECTORY)
string(REGEX MATCHALL "--#include [a-z_.]+\n" lines "${text}")
foreach(line ${lines})
  string(REGEX REPLACE "--#include ([a-z_.]+)\n" "\\1" name "${line}")
  file(READ ${folder}/${name} part)
  string(REPLACE "${line}" "${part}" text "${text}")
endforeach()
file(WRITE ${OUTPUT} "R\"__embed__(${text})__embed__\"\n")
