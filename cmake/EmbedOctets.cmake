# Writes the octets of the file SOURCE into OUTPUT as a string literal of escapes.
file(READ ${SOURCE} octets HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" octets "${octets}")
string(REGEX REPLACE "(................................................................)" "\"\\1\"\n" octets "${octets}")
string(REGEX REPLACE "\n([^\"\n]+)$" "\n\"\\1\"\n" octets "${octets}")
file(WRITE ${OUTPUT} "${octets}")
